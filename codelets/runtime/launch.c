/* launch.c - whether this process was started together with others
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * From the environment, since MPI cannot be asked: without its launcher, Open
 * MPI ends the process.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "runtime/launch.h"

/* 0: not set, or no number. */
static int count_in(const char *name)
{
    const char *value = getenv(name);

    return value ? atoi(value) : 0;
}

/* The processes that a launcher says it has started; 0: there is none. */
static int launched(void)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};

    for (int i = 0; i < 2; i++)
        if (count_in(sizes[i]) > 0)
            return count_in(sizes[i]);
    if (!getenv("PMIX_RANK") && !getenv("PMI_RANK"))
        return 0;
    return count_in("SLURM_STEP_NUM_TASKS") == 1 ? 1 : 2; /* or more */
}

int ddp__launch(bool *ranks)
{
    const char *choice = getenv("DDP_MPI");
    int tasks = count_in("SLURM_STEP_NUM_TASKS");
    int world = count_in("WORLD_SIZE");

    *ranks = false;
    if (choice && !strcmp(choice, "0"))
        return 0;
    if (launched()) {
        *ranks = launched() > 1;
        return 0;
    }
    if (tasks > 1)
        return ddp__fail(DDP_EINVAL,
                         "srun has started %d processes without MPI, and each "
                         "would train alone: use srun --mpi=pmix (srun "
                         "--mpi=list shows what there is), or DDP_MPI=0 if "
                         "each is to train alone",
                         tasks);
    if (world > 1)
        return ddp__fail(DDP_EINVAL,
                         "WORLD_SIZE is %d, but there is no MPI, and each "
                         "process would train alone: start them with mpirun "
                         "-n %d or srun --mpi=pmix, or set DDP_MPI=0 if each "
                         "is to train alone",
                         world, world);
    return 0;
}
