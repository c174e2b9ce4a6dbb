/* batch.c - a batch of a run, as the network gets it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"
#include "train/trainer.h"

/* What the first node of the graph fills for a sub-batch. */
struct batch {
    const struct ddp__call *call;
    struct ddp__task task;
    void *buffer[DDP__FILL_BUFFERS]; /* owned; x is the caller's */
};

static int make_buffers(struct batch *b, void *x)
{
    for (int i = 0; i < b->call->buffers; i++) {
        size_t size =
            ddp__len(&b->task, i) * ddp__dtype_size(b->call->buf[i].type);

        if (i != DDP__FILL_X && !(b->buffer[i] = calloc(1, size + 1)))
            return ddp__fail(DDP_ENOMEM, "out of memory for a batch");
        b->task.data[i] = i == DDP__FILL_X ? x : b->buffer[i];
        b->task.size[i] = size;
    }
    return 0;
}

/* The class with the largest share; -1: targets are no classes. */
static int32_t label_of(const struct batch *b, bool shares, int i)
{
    const struct ddp__view *v = &b->call->buf[DDP__FILL_TARGET];
    const float *share = (const float *)b->buffer[DDP__FILL_TARGET] +
                         (size_t)i * (size_t)v->shape.c;
    int32_t best = 0;

    if (v->type == DDP_I32)
        return ((const int32_t *)b->buffer[DDP__FILL_TARGET])[i];
    for (int k = 1; k < v->shape.c; k++)
        best = share[k] > share[best] ? k : best;
    return shares ? best : -1;
}

int ddp_trainer_batch(ddp_trainer_t *t, int64_t step, void *x, int32_t *label)
{
    struct batch b = {0};
    int rc = ddp__trainer_check(t), n;

    if (rc < 0)
        return rc;
    if (!x || !label)
        return ddp__fail_null(!x ? "x" : "label");
    if ((rc = ddp__stream_refuse(t->loader.data)) < 0)
        return rc;
    if (step < 0)
        return ddp__fail(DDP_EINVAL, "there is no step %lld", (long long)step);
    if (!ddp__loader_sizes(&t->loader, step, t->sizes))
        return 0;
    n = t->sizes[0];
    b.call = &t->engine->graph->node[0]->call;
    b.task = (struct ddp__task){
        .call = b.call,
        .n = n,
        .seed = (uint64_t)step * (uint64_t)t->loader.subs,
    };
    if ((rc = make_buffers(&b, x)) == 0)
        rc = b.call->host.fn(&b.task, b.call->host.arg);
    for (int i = 0; rc == 0 && i < n; i++)
        label[i] = label_of(&b, t->loader.shares, i);
    for (int i = 0; i < DDP__FILL_BUFFERS; i++)
        free(b.buffer[i]);
    return rc < 0 ? rc : n;
}
