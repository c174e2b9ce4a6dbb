/* count_mpi.c - counts what MPI sends out of the memory of emulated GPUs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For LD_PRELOAD, with that of tests/emulator.  At its end a process writes a
 * line of it, if it has sent anything.
 */
#include "config.h"

#include <stdio.h>

#include <cuda_runtime.h>
#include <mpi.h>

static long long gpus, others; /* bytes; one thread sends */

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag,
              MPI_Comm comm, MPI_Request *request)
{
    struct cudaPointerAttributes a = {.type = cudaMemoryTypeUnregistered};

    if (cudaPointerGetAttributes(&a, data) == cudaSuccess &&
        a.type == cudaMemoryTypeDevice)
        gpus += count;
    else
        others += count;
    return PMPI_Isend(data, count, type, to, tag, comm, request);
}

__attribute__((destructor)) static void report(void)
{
    if (gpus + others > 0)
        fprintf(stderr, "sent: %lld bytes of GPUs, %lld of main memory\n", gpus,
                others);
}
