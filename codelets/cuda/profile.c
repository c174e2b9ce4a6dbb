/* profile.c - the time of each operation on GPUs, as a table in a file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * NVIDIA's profilers show kernels, but are not installed everywhere, and do not
 * know which layer a kernel of cuDNN works for.  Here an event before and one
 * after each call of an operation are recorded on its stream.
 *
 * A call may be several kernels.  So that the time between its events is theirs
 * and not the host's, which launches them, the stream waits at a gate before
 * the first event until all of them are launched: then they run back to back.
 *
 * The clock replaces the kernels in the backend's table, so that a run without
 * DDP_PROFILE is not changed at all.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "profile.h"
#include "worker.h"

enum { MAX_ROWS = 200000 }; /* of a run that nobody thought would be long */
enum { MOST_MS = 10 };      /* that a gate is closed */

struct row {
    enum ddp__op op;
    int n, device;
    char type[8], shapes[128];
    cudaEvent_t begin, end;
    atomic_bool *gate; /* whether it is open; owned */
};

static struct {
    pthread_mutex_t lock;
    FILE *file; /* owned; NULL: no profile */
    ddp__kernel_f kernel[DDP__OP_COUNT];
    struct row *row; /* owned */
    size_t rows, room;
} profile = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void describe_row(struct row *r, const struct ddp__task *t, int device)
{
    *r = (struct row){.op = t->call->op, .n = t->n, .device = device};
    snprintf(r->type, sizeof(r->type), "%s", ddp__call_type(t->call));
    ddp__call_describe(t->call, r->shapes, sizeof(r->shapes));
}

/* Keep it; false: there is no room. */
static bool keep_row(const struct row *r)
{
    bool kept = false;
    struct row *more;

    pthread_mutex_lock(&profile.lock);
    if (profile.rows == profile.room && profile.room < MAX_ROWS) {
        size_t room = profile.room ? 2 * profile.room : 1024;

        if ((more = realloc(profile.row, room * sizeof(*more)))) {
            profile.row = more;
            profile.room = room;
        }
    }
    if (profile.rows < profile.room) {
        profile.row[profile.rows++] = *r;
        kept = true;
    }
    pthread_mutex_unlock(&profile.lock);
    return kept;
}

static void free_row(const struct row *r)
{
    if (r->begin)
        cudaEventDestroy(r->begin);
    if (r->end)
        cudaEventDestroy(r->end);
    free(r->gate);
}

/* ---- the gate ------------------------------------------------------------ */

static double milliseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* Not for good: the first launch of a kernel loads it, and may wait for the
 * stream. */
static void CUDART_CB wait_at_gate(void *gate)
{
    double end = milliseconds() + MOST_MS;

    while (!atomic_load((atomic_bool *)gate) && milliseconds() < end)
        sched_yield();
}

/* The stream waits, then the time begins. */
static bool begin_row(struct row *r, cudaStream_t stream)
{
    if (!(r->gate = calloc(1, sizeof(*r->gate))) ||
        cudaEventCreate(&r->begin) != cudaSuccess ||
        cudaEventCreate(&r->end) != cudaSuccess)
        return false;
    if (cudaLaunchHostFunc(stream, wait_at_gate, r->gate) != cudaSuccess)
        return false;
    return cudaEventRecord(r->begin, stream) == cudaSuccess;
}

/* In the place of every kernel.  What cannot be timed is run all the same. */
static int run_timed(const struct ddp__task *t)
{
    struct ddp__cuda_worker *w = ddp__cuda_self();
    struct row r;
    bool timed;
    int rc;

    if (!w)
        return DDP_ENODEV;
    describe_row(&r, t, w->device);
    timed = begin_row(&r, w->stream);
    rc = profile.kernel[t->call->op](t);
    timed = timed && cudaEventRecord(r.end, w->stream) == cudaSuccess;
    if (r.gate)
        atomic_store(r.gate, true);
    if (timed && rc == 0 && keep_row(&r))
        return 0;
    cudaStreamSynchronize(w->stream); /* it may be at the gate */
    free_row(&r);
    return rc;
}

int ddp__cuda_profile_open(struct ddp__backend *b)
{
    const char *path = getenv("DDP_PROFILE");

    if (!path || !*path || profile.file)
        return 0;
    if (!(profile.file = fopen(path, "w")))
        return ddp__fail(DDP_EIO, "DDP_PROFILE: cannot write %s: %s", path,
                         strerror(errno));
    memcpy(profile.kernel, b->kernel, sizeof(profile.kernel));
    for (int op = 0; op < DDP__OP_COUNT; op++)
        if (b->kernel[op])
            b->kernel[op] = run_timed;
    return 0;
}

/* Since the first row of its GPU, and its own; both in ms. */
static void write_row(const struct row *r, const struct row *first)
{
    float start = 0, ms = 0;

    if (cudaEventElapsedTime(&start, first->begin, r->begin) != cudaSuccess ||
        cudaEventElapsedTime(&ms, r->begin, r->end) != cudaSuccess)
        return;
    fprintf(profile.file, "%d,%.4f,%.4f,%s,%d,%s,\"%s\"\n", r->device, start,
            ms, ddp__signature[r->op].name, r->n, r->type, r->shapes);
}

static void write_rows(void)
{
    const struct row *first[DDP__CUDA_DEVICES] = {NULL};

    fprintf(profile.file, "gpu,start_ms,ms,operation,samples,type,shapes\n");
    for (size_t i = 0; i < profile.rows; i++) {
        const struct row *r = &profile.row[i];

        if (!first[r->device])
            first[r->device] = r;
        write_row(r, first[r->device]);
    }
}

void ddp__cuda_profile_close(struct ddp__backend *b)
{
    if (!profile.file)
        return;
    write_rows();
    for (size_t i = 0; i < profile.rows; i++)
        free_row(&profile.row[i]);
    free(profile.row);
    fclose(profile.file);
    memcpy(b->kernel, profile.kernel, sizeof(profile.kernel));
    profile.file = NULL;
    profile.row = NULL;
    profile.rows = profile.room = 0;
}
