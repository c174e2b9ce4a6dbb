/* die_mpi.c - kills rank 1 at a moment between its start and its end
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For LD_PRELOAD, with glibc.  DIE_AT names the moment.  The process leaves the
 * file DIE_ONCE, and none is killed while that is there.
 */
#include "config.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

/* MPI may not have started, so its launcher says so. */
static bool is_rank_1(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    if (!rank)
        rank = getenv("PMI_RANK");
    return rank && !strcmp(rank, "1");
}

static void reach(const char *moment)
{
    const char *at = getenv("DIE_AT"), *once = getenv("DIE_ONCE");

    if (at && once && !strcmp(at, moment) && is_rank_1() &&
        open(once, O_CREAT | O_EXCL | O_CLOEXEC, 0600) >= 0)
        raise(SIGKILL);
}

__attribute__((constructor)) static void start(void)
{
    reach("start");
}

/* While it holds a lock in memory that it shares with the launcher. */
int pthread_mutex_unlock(pthread_mutex_t *m)
{
    static int (*unlock)(pthread_mutex_t *);

    if (!unlock)
        *(void **)&unlock = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    if (m->__data.__kind & 128) /* PTHREAD_PROCESS_SHARED */
        reach("lock");
    return unlock(m);
}

int MPI_Init_thread(int *argc, char ***argv, int want, int *level)
{
    int rc;

    reach("init");
    rc = PMPI_Init_thread(argc, argv, want, level);
    reach("started");
    return rc;
}

int MPI_Comm_dup(MPI_Comm from, MPI_Comm *to)
{
    reach("dup");
    return PMPI_Comm_dup(from, to);
}

int MPI_Allgather(const void *in, int count, MPI_Datatype type, void *out,
                  int each, MPI_Datatype to, MPI_Comm comm)
{
    reach("hosts");
    return PMPI_Allgather(in, count, type, out, each, to, comm);
}

int MPI_Comm_split_type(MPI_Comm comm, int kind, int key, MPI_Info info,
                        MPI_Comm *out)
{
    reach("groups");
    return PMPI_Comm_split_type(comm, kind, key, info, out);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *out)
{
    reach("share");
    return PMPI_Comm_split(comm, color, key, out);
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag,
              MPI_Comm comm, MPI_Request *request)
{
    reach("hello");
    return PMPI_Isend(data, count, type, to, tag, comm, request);
}

int MPI_Finalize(void)
{
    reach("end");
    return PMPI_Finalize();
}
