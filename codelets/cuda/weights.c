/* weights.c - weights in the type of activations, made when they are new
 *
 * A table for each GPU, by what a handle's id and the view say.  Memory comes
 * in chunks that are kept: after the first steps nothing is allocated.  Before
 * a handle gets a new version, all that read the old one are done, so the copy
 * can be overwritten; but a copy made on one worker's stream may be wanted on
 * another's, which waits for it through an event.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cast.h"
#include "worker.h"

enum { TABLE = 512, CHUNK = 32 << 20 };

struct copy {
    struct copy *next;
    uint64_t id, version;
    size_t offset, len;
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
        ddp__fail(DDP_ENOMEM, "no memory for copies of weights");
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

static void *take(struct gpu *g, size_t size)
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

static struct copy *find(struct gpu *g, const struct copy *key)
{
    struct copy **at = &g->copy[(key->id * 31 + key->offset / 64) % TABLE];
    struct copy *c;

    for (c = *at; c; c = c->next)
        if (c->id == key->id && c->offset == key->offset &&
            c->len == key->len && c->type == key->type)
            return c;
    if (!(c = malloc(sizeof(*c)))) {
        ddp__fail(DDP_ENOMEM, "no memory for copies of weights");
        return NULL;
    }
    *c = *key;
    if (!(c->data = take(g, key->len * ddp__dtype_size(key->type))) ||
        ddp__cuda_check(
            cudaEventCreateWithFlags(&c->made, cudaEventDisableTiming),
            "making an event") < 0) {
        free(c);
        return NULL;
    }
    c->next = *at;
    *at = c;
    return c;
}

static int convert(struct copy *c, const float *src, cudaStream_t stream)
{
    cudaError_t e;
    int rc;

    switch (c->type) {
    case DDP_BF16:
        e = ddp__cuda_to_bf16(src, c->data, c->len, stream);
        break;
    case DDP_F16:
        e = ddp__cuda_to_f16(src, c->data, c->len, stream);
        break;
    default:
        return ddp__fail(DDP_EINVAL, "weights of a type that has no use");
    }
    if ((rc = ddp__cuda_check(e, "converting weights")) < 0)
        return rc;
    return ddp__cuda_check(cudaEventRecord(c->made, stream),
                           "noting that weights are converted");
}

/* The copy, up to date in the order of the worker's stream. */
static const void *refresh(struct gpu *g, const struct copy *key,
                           const float *src, struct ddp__cuda_worker *w)
{
    struct copy *c = find(g, key);
    bool fresh;

    if (!c)
        return NULL;
    fresh = c->made_on && c->version == key->version;
    if (!fresh) {
        c->made_on = NULL;
        if (convert(c, src, w->stream) < 0)
            return NULL;
        c->version = key->version;
        c->made_on = w->stream;
    } else if (c->made_on != w->stream &&
               ddp__cuda_check(cudaStreamWaitEvent(w->stream, c->made, 0),
                               "waiting for weights") < 0) {
        return NULL;
    }
    return c->data;
}

const void *ddp__cuda_weights(const struct ddp__task *t, int i,
                              enum ddp_dtype type)
{
    struct ddp__cuda_worker *w = ddp__cuda_self();
    struct copy key = {.id = t->id[i],
                       .version = t->version[i],
                       .offset = t->call->buf[i].offset,
                       .len = ddp__len(t, i),
                       .type = type};
    const void *p;

    if (!w)
        return NULL;
    if (type == DDP_F32)
        return t->data[i];
    pthread_once(&once, make_locks);
    pthread_mutex_lock(&gpu[w->device].lock);
    p = refresh(&gpu[w->device], &key, t->data[i], w);
    pthread_mutex_unlock(&gpu[w->device].lock);
    return p;
}

/* ---- giving up ---------------------------------------------------------- */

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
