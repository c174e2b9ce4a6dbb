/* weights.c - weights in the type of activations
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Weights are f32, and cuDNN's and cuBLASLt's fast kernels read bf16 or f16.
 * Converting at each use would read and write every weight once per layer and
 * sub-batch; so each GPU has a table with a copy of every bucket of weights
 * that was asked for, and a copy serves all layers of its bucket.
 *
 * Who writes a copy: OPTIM, together with the weights it updates, since it has
 * them in registers (ddp__cuda_copy_begin() and _end()).  Only where weights
 * come from another GPU or from the host does the first who asks convert them.
 * OPTIM takes the copy of whichever type exists, since a run has one type.
 *
 * When a copy is valid: if its version is that of the handle.  Between begin
 * and end it has neither the old contents nor the new ones: made_on is NULL
 * then; a kernel that fails in between leaves it so, and the next who asks
 * converts.
 *
 * Why a copy can be overwritten in place: StarPU gives a handle a new version
 * only when all tasks that read the old one are done.  A reader of the new
 * version is ordered by its stream if that made the copy; any other stream
 * waits for the event `made`.
 *
 * Why memory comes in chunks that are kept: cudaMalloc() may wait for all that
 * runs on the GPU.  After the first steps nothing is allocated.  Copies are of
 * one size for good and are freed all at once, when no task is running, so a
 * chunk is only ever filled from its beginning.  StarPU learns of chunks
 * (ddp__cuda_account()), or it would count on the same memory.
 *
 * Why one lock for a GPU: it is held for the lookup and for queueing a
 * conversion, never for its execution.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "rows.h"
#include "weights.h"
#include "worker.h"

enum { TABLE = 512, CHUNK = 32 << 20 };

struct copy {
    struct copy *next;
    uint64_t id, version; /* of the handle */
    size_t len;
    enum ddp_dtype type;
    void *data;
    cudaStream_t made_on;
    cudaEvent_t made;
};

struct chunk {
    struct chunk *next;
    char *data;
    size_t size, used;
};

static struct gpu {
    pthread_mutex_t lock;
    struct copy *copy[TABLE];
    struct chunk *chunk;
    size_t bytes; /* of all chunks */
} gpu[DDP__CUDA_DEVICES];

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_locks(void)
{
    for (size_t i = 0; i < sizeof(gpu) / sizeof(gpu[0]); i++)
        pthread_mutex_init(&gpu[i].lock, NULL);
}

/* ---- memory ------------------------------------------------------------- */

static struct chunk *chunk_new(struct gpu *g, size_t size)
{
    struct chunk *c = calloc(1, sizeof(*c));

    if (!c) {
        ddp__fail(DDP_ENOMEM, "out of memory for copies of weights");
        return NULL;
    }
    c->size = size > CHUNK ? size : CHUNK;
    if (ddp__cuda_check(cudaMalloc((void **)&c->data, c->size),
                        "memory for copies of weights") < 0) {
        cudaGetLastError();
        free(c);
        return NULL;
    }
    ddp__cuda_account(c->size);
    c->next = g->chunk;
    g->chunk = c;
    g->bytes += c->size;
    return c;
}

static void *take_memory(struct gpu *g, size_t size)
{
    struct chunk *c;

    size = (size + 255) & ~(size_t)255;
    for (c = g->chunk; c && c->size - c->used < size; c = c->next)
        ;
    if (!c && !(c = chunk_new(g, size)))
        return NULL;
    c->used += size;
    return c->data + c->used - size;
}

/* ---- the table ---------------------------------------------------------- */

/* Of any type for DDP_F32, which no copy has. */
static struct copy *find_copy(const struct gpu *g, uint64_t id,
                              enum ddp_dtype type)
{
    struct copy *c = g->copy[id % TABLE];

    while (c && (c->id != id || (type != DDP_F32 && c->type != type)))
        c = c->next;
    return c;
}

static struct copy *copy_new(struct gpu *g, uint64_t id, enum ddp_dtype type,
                             size_t len)
{
    struct copy **at = &g->copy[id % TABLE], *c = malloc(sizeof(*c));

    if (!c) {
        ddp__fail(DDP_ENOMEM, "out of memory for copies of weights");
        return NULL;
    }
    *c = (struct copy){.next = *at, .id = id, .len = len, .type = type};
    if (!(c->data = take_memory(g, len * ddp__dtype_size(type))) ||
        ddp__cuda_check(
            cudaEventCreateWithFlags(&c->made, cudaEventDisableTiming),
            "making an event") < 0) {
        free(c);
        return NULL;
    }
    return *at = c;
}

/* What was queued last on this stream writes this version. */
static int note_made(struct copy *c, uint64_t version, cudaStream_t stream)
{
    c->made_on = NULL;
    if (ddp__cuda_check(cudaEventRecord(c->made, stream),
                        "noting that weights are converted") < 0)
        return DDP_EDEVICE;
    c->version = version;
    c->made_on = stream;
    return 0;
}

/* The copy has this version, in the order of the stream. */
static int refresh_copy(struct copy *c, uint64_t version, const void *src,
                        cudaStream_t stream)
{
    int rc;

    if (c->made_on && c->version == version)
        return c->made_on == stream
                   ? 0
                   : ddp__cuda_check(cudaStreamWaitEvent(stream, c->made, 0),
                                     "waiting for weights");
    c->made_on = NULL;
    rc = ddp__cuda_convert(src, c->data, c->type, c->len, 1, 1);
    return rc < 0 ? rc : note_made(c, version, stream);
}

/* The table of this GPU, locked. */
static struct gpu *lock_gpu(int device)
{
    pthread_once(&once, make_locks);
    pthread_mutex_lock(&gpu[device].lock);
    return &gpu[device];
}

const void *ddp__cuda_weights(const struct ddp__task *t, int i,
                              enum ddp_dtype type)
{
    const size_t offset = t->call->buf[i].offset / sizeof(float);
    const float *all = (const float *)t->data[i] - offset;
    struct ddp__cuda_worker *w = ddp__cuda_self();
    const char *data = NULL;
    struct copy *c;
    struct gpu *g;

    if (!w)
        return NULL;
    if (type == DDP_F32)
        return t->data[i];
    g = lock_gpu(w->device);
    c = find_copy(g, t->id[i], type);
    if (!c)
        c = copy_new(g, t->id[i], type, t->size[i] / sizeof(float));
    if (c && refresh_copy(c, t->version[i], all, w->stream) == 0)
        data = c->data;
    pthread_mutex_unlock(&g->lock);
    return data ? data + offset * ddp__dtype_size(type) : NULL;
}

/* ---- with the weights --------------------------------------------------- */

void *ddp__cuda_copy_begin(const struct ddp__task *t, int i,
                           enum ddp_dtype *type)
{
    struct ddp__cuda_worker *w = ddp__cuda_self();
    void *data = NULL;
    struct copy *c;
    struct gpu *g;

    if (!w)
        return NULL;
    g = lock_gpu(w->device);
    if ((c = find_copy(g, t->id[i], DDP_F32))) {
        c->made_on = NULL; /* neither the old nor the new version */
        data = c->data;
        *type = c->type;
    }
    pthread_mutex_unlock(&g->lock);
    return data;
}

int ddp__cuda_copy_end(const struct ddp__task *t, int i)
{
    struct ddp__cuda_worker *w = ddp__cuda_self();
    struct copy *c;
    struct gpu *g;
    int rc = 0;

    if (!w)
        return DDP_EDEVICE;
    g = lock_gpu(w->device);
    if ((c = find_copy(g, t->id[i], DDP_F32)))
        rc = note_made(c, t->version[i], w->stream);
    pthread_mutex_unlock(&g->lock);
    return rc;
}

/* ---- giving up ---------------------------------------------------------- */

/* Copies go first: they point into chunks, which start again from empty. */
void ddp__cuda_weights_forget(int device, bool memory_too)
{
    struct gpu *g = &gpu[device];

    pthread_once(&once, make_locks);
    pthread_mutex_lock(&g->lock);
    for (int i = 0; i < TABLE; i++)
        while (g->copy[i]) {
            struct copy *c = g->copy[i];

            g->copy[i] = c->next;
            cudaEventDestroy(c->made);
            free(c);
        }
    for (struct chunk *c = g->chunk; c; c = c->next)
        c->used = 0;
    while (memory_too && g->chunk) {
        struct chunk *c = g->chunk;

        g->chunk = c->next;
        g->bytes -= c->size;
        cudaFree(c->data);
        free(c);
    }
    pthread_mutex_unlock(&g->lock);
}
