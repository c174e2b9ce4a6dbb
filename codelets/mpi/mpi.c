/* mpi.c - messages between ranks by MPI
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One thread of libddp calls all of this.  It also starts MPI, unless the
 * program has, so no level of thread support is needed.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "ddp.h"
#include "wire.h"

enum { MOST_TAGS = 1 << 20 };

ddp__wire_open_f ddp_wire_open;

static MPI_Comm comm = MPI_COMM_NULL; /* of libddp alone */
static int own;                       /* MPI was started here */
static char (*hosts)[DDP__HOST_NAME]; /* by rank; owned */

_Static_assert(sizeof(MPI_Request) <= sizeof(uintptr_t),
               "a request does not fit");

/* Code, if it is not good. */
static int check(struct ddp__wire *w, int rc, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int len;

    if (rc == MPI_SUCCESS)
        return 0;
    MPI_Error_string(rc, text, &len);
    snprintf(w->why, sizeof(w->why), "%s", text);
    return code;
}

static int result(struct ddp__wire *w, int rc)
{
    return check(w, rc, DDP_EDEVICE);
}

/* 0 is the request that is over. */
static void put_request(uintptr_t *to, MPI_Request r)
{
    *to = 0;
    if (r == MPI_REQUEST_NULL)
        return;
    memcpy(to, &r, sizeof(r));
}

static int send(struct ddp__wire *w, int to, int tag, const void *data,
                size_t len, uintptr_t *request)
{
    MPI_Request r = MPI_REQUEST_NULL;
    int rc = MPI_Isend(data, (int)len, MPI_BYTE, to, tag, comm, &r);

    put_request(request, r);
    return check(w, rc, DDP_EPEER);
}

static int receive(struct ddp__wire *w, int from, int tag, void *data,
                   size_t len, uintptr_t *request)
{
    MPI_Request r = MPI_REQUEST_NULL;
    int rc = MPI_Irecv(data, (int)len, MPI_BYTE, from, tag, comm, &r);

    put_request(request, r);
    return check(w, rc, DDP_EPEER);
}

static int test(struct ddp__wire *w, uintptr_t *request)
{
    MPI_Request r;
    int done = 0, rc;

    memcpy(&r, request, sizeof(r));
    rc = MPI_Test(&r, &done, MPI_STATUS_IGNORE);
    put_request(request, r);
    return rc == MPI_SUCCESS ? done : check(w, rc, DDP_EPEER);
}

static void close_wire(struct ddp__wire *w)
{
    (void)w;
    MPI_Comm_free(&comm);
    free(hosts);
    if (own)
        MPI_Finalize();
}

static int count_tags(void)
{
    int *most, found = 0;

    MPI_Comm_get_attr(comm, MPI_TAG_UB, &most, &found);
    return found && *most < MOST_TAGS ? *most : MOST_TAGS;
}

/* The rank and the size of a group of processes, which is freed. */
static int take_place(MPI_Comm group, int *rank, int *count)
{
    int rc;

    if ((rc = MPI_Comm_rank(group, rank)) || (rc = MPI_Comm_size(group, count)))
        return rc;
    return MPI_Comm_free(&group);
}

static const char *level_name(void)
{
    int level = MPI_THREAD_SINGLE;

    MPI_Query_thread(&level);
    return level == MPI_THREAD_MULTIPLE     ? "MPI_THREAD_MULTIPLE"
           : level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
           : level == MPI_THREAD_FUNNELED   ? "MPI_THREAD_FUNNELED"
                                            : "MPI_THREAD_SINGLE";
}

/* Of an MPI that may know of GPUs. */
extern int MPIX_Query_cuda_support(void) __attribute__((weak));

static int knows_gpus(void)
{
    return MPIX_Query_cuda_support && MPIX_Query_cuda_support() == 1;
}

/* "Open MPI v4.1.4, package: ...", "MPICH Version:\t4.0.2\nMPICH ..." */
static void describe(struct ddp__wire *w)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int len = 0;

    MPI_Get_library_version(text, &len);
    text[strcspn(text, ",\n")] = '\0';
    for (char *tab = text; (tab = strchr(tab, '\t'));)
        *tab = ' ';
    snprintf(w->about, sizeof(w->about), "%.60s, %s%s", text, level_name(),
             w->gpus ? ", CUDA-aware" : "");
}

/* At once, for a rank that is lost to have a name from the first message. */
static int tell_hosts(struct ddp__wire *w)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "", host[DDP__HOST_NAME];
    int len, rc;

    if (!(hosts = calloc((size_t)w->count, sizeof(*hosts))))
        return MPI_ERR_NO_MEM;
    if ((rc = MPI_Get_processor_name(name, &len)))
        return rc;
    snprintf(host, sizeof(host), "%.*s", (int)sizeof(host) - 1, name);
    w->hosts = (const char(*)[DDP__HOST_NAME])hosts;
    return MPI_Allgather(host, sizeof(host), MPI_BYTE, hosts, sizeof(host),
                         MPI_BYTE, comm);
}

static int fill_places(struct ddp__wire *w)
{
    MPI_Comm here, shared;
    int rc;

    if ((rc = MPI_Comm_rank(comm, &w->rank)) ||
        (rc = MPI_Comm_size(comm, &w->count)) || (rc = tell_hosts(w)) ||
        (rc = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                                  &here)) ||
        (rc = MPI_Comm_split(here, w->share_key, 0, &shared)) ||
        (rc = take_place(here, &w->local_rank, &w->local_count)) ||
        (rc = take_place(shared, &w->share_rank, &w->share_count)))
        return result(w, rc);
    w->tags = count_tags();
    w->gpus = knows_gpus();
    describe(w);
    return 0;
}

/* Open MPI 4's PMIx keeps data in memory that ranks share with mpirun, with
 * locks: mpirun would wait without end for a rank that was killed while it held
 * one. */
static void avoid_shared_locks(void)
{
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION == 4
    setenv("PMIX_MCA_gds", "hash", 0);
#endif
}

/* Start MPI; or use that of the program, whose own calls may then come at any
 * time. */
static int start(struct ddp__wire *w)
{
    int started = 0, level = MPI_THREAD_SINGLE;

    MPI_Initialized(&started);
    if (!started) {
        own = 1;
        avoid_shared_locks();
        return result(w,
                      MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level));
    }
    MPI_Query_thread(&level);
    if (level == MPI_THREAD_MULTIPLE)
        return 0;
    snprintf(w->why, sizeof(w->why),
             "the program started MPI for one thread: call MPI_Init_thread() "
             "with MPI_THREAD_MULTIPLE, or let ddp_init() start it");
    return DDP_EINVAL;
}

int ddp_wire_open(struct ddp__wire *w)
{
    int rc = start(w);

    if (rc < 0)
        return rc;
    if ((rc = MPI_Comm_dup(MPI_COMM_WORLD, &comm)) ||
        (rc = MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)))
        return result(w, rc);
    w->send = send;
    w->recv = receive;
    w->test = test;
    w->close = close_wire;
    return fill_places(w);
}
