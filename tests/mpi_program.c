/* mpi_program.c - a program that starts MPI itself, for app_loops.sh
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     mpi_program multiple|single
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <mpi.h>

#include "ddp.h"

/* The sum of all ranks' numbers, by libddp and by MPI at the same time. */
static bool sums_agree(ddp_t *ddp)
{
    int32_t own = ddp_rank(ddp) + 1, sum = 0, ours = own;
    ddp_request_t *r = ddp_allreduce_begin(ddp, &ours, 1, DDP_I32, DDP_SUM);

    MPI_Allreduce(&own, &sum, 1, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
    return r && ddp_request_wait(r) == 0 && ours == sum && sum >= 3;
}

int main(int argc, char **argv)
{
    bool multiple = argc > 1 && !strcmp(argv[1], "multiple"), good = false;
    int level, ended = 1;
    ddp_t *ddp;

    MPI_Init_thread(&argc, &argv,
                    multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    if ((ddp = ddp_init(NULL)))
        good = sums_agree(ddp);
    else
        fprintf(stderr, "%s\n", ddp_errmsg());
    ddp_finish(ddp);
    MPI_Finalized(&ended);
    printf("%s, MPI %s\n", good ? "sums agree" : "no sums",
           ended ? "has ended" : "runs on");
    MPI_Finalize();
    return !good;
}
