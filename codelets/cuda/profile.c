/* profile.c - the time of each operation on GPUs, as a table in a file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * NVIDIA's profilers show kernels, but are not installed everywhere, and do not
 * know which layer a kernel of cuDNN works for.  Here an event before and one
 * after each call of an operation are recorded on its stream; nothing waits for
 * them.  A call may be several kernels, and the gaps between them count: where
 * the host is slower than the GPU, the time is the host's.
 *
 * The clock replaces the kernels in the backend's table, so that a run without
 * DDP_PROFILE is not changed at all.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "profile.h"
#include "worker.h"

enum { MAX_ROWS = 200000 }; /* of a run that nobody thought would be long */

struct row {
    enum ddp__op op;
    int n, device;
    char type[8], shapes[104];
    cudaEvent_t begin, end;
};

static struct {
    pthread_mutex_t lock;
    FILE *file; /* owned; NULL: no profile */
    ddp__kernel_f kernel[DDP__OP_COUNT];
    struct row *row; /* owned */
    size_t rows, room;
} profile = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Height, width and channels of the operands that have values per pixel, such
 * as "56x56x64 56x56x256". */
static void describe_shapes(const struct ddp__call *c, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < c->buffers && used < size; i++) {
        const struct ddp_shape *s = &c->buf[i].shape;

        if (c->buf[i].per_sample && s->c > 0)
            used += (size_t)snprintf(text + used, size - used, "%s%dx%dx%d",
                                     used ? " " : "", s->h, s->w, s->c);
    }
    if (!used && c->buffers > 0)
        snprintf(text, size, "%d", c->buf[0].shape.c);
    if (ddp__op_is(c->op, DDP__IS_CONV) && used < size)
        snprintf(text + used, size - used, " by %dx%d/%d", c->conv.kh,
                 c->conv.kw, c->conv.sh);
}

static void describe_row(struct row *r, const struct ddp__task *t, int device)
{
    static const char *const type[] = {
        [DDP_F32] = "f32", [DDP_BF16] = "bf16", [DDP_F16] = "f16"};
    enum ddp_dtype of = t->call->buf[0].type;

    *r = (struct row){.op = t->call->op, .n = t->n, .device = device};
    snprintf(r->type, sizeof(r->type), "%s",
             of < sizeof(type) / sizeof(type[0]) && type[of] ? type[of] : "");
    describe_shapes(t->call, r->shapes, sizeof(r->shapes));
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

static void free_events(const struct row *r)
{
    if (r->begin)
        cudaEventDestroy(r->begin);
    if (r->end)
        cudaEventDestroy(r->end);
}

/* In the place of every kernel.  What cannot be timed is run all the same. */
static int run_timed(const struct ddp__task *t)
{
    struct ddp__cuda_worker *w = ddp__cuda_self();
    struct row r;
    int rc;

    if (!w)
        return DDP_ENODEV;
    describe_row(&r, t, w->device);
    if (cudaEventCreate(&r.begin) != cudaSuccess ||
        cudaEventCreate(&r.end) != cudaSuccess ||
        cudaEventRecord(r.begin, w->stream) != cudaSuccess) {
        free_events(&r);
        return profile.kernel[t->call->op](t);
    }
    rc = profile.kernel[t->call->op](t);
    if (cudaEventRecord(r.end, w->stream) != cudaSuccess || rc < 0 ||
        !keep_row(&r))
        free_events(&r);
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
    fprintf(profile.file, "%d,%.4f,%.4f,%s,%d,%s,%s\n", r->device, start, ms,
            ddp__signature[r->op].name, r->n, r->type, r->shapes);
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
        free_events(&profile.row[i]);
    free(profile.row);
    fclose(profile.file);
    memcpy(b->kernel, profile.kernel, sizeof(profile.kernel));
    profile.file = NULL;
    profile.row = NULL;
    profile.rows = profile.room = 0;
}
