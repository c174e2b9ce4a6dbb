/* vector.c - operations on whole vectors, as tasks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "engine/vector.h"
#include "engine/engine.h"
#include "runtime/devices.h"

static enum ddp__sched_kind kind_of(const struct ddp__vector_task *t)
{
    for (int i = 0; i < t->calls; i++)
        if (ddp__op_operand(t->e->task_call[i].task.call->op, DDP__TRAINED) >=
            0)
            return DDP__SCHED_UPDATE;
    return DDP__SCHED_MERGE;
}

int ddp__vector_flush(struct ddp__vector_task *t)
{
    struct ddp__engine *e = t->e;
    struct ddp__submit sub = {
        .call = e->task_call,
        .calls = t->calls,
        .group = &e->group,
        .step = t->s->number,
        .tag = {.kind = kind_of(t),
                .owner = t->owner,
                .at_lane = t->at_lane,
                .at_data = t->at_data,
                .lane = t->lane},
        .priority = DDP__PRIORITY_UPDATE,
    };

    if (t->calls == 0)
        return 0;
    t->calls = 0;
    t->us = 0;
    return ddp__submit(&sub);
}

/* An update may have its own share of the step's rate. */
static float lr_of(const struct ddp__step *s, const struct ddp__call *call)
{
    return call->op == DDP__OP_OPTIM ? s->lr * call->optim.rate
           : call->op == DDP__OP_EMA ? s->average
                                     : 0;
}

static void put_call(struct ddp__vector_task *t, const struct ddp__call *call,
                     struct ddp__handle *const buf[], bool accumulate,
                     bool shared)
{
    struct ddp__engine *e = t->e;
    struct ddp__task_call *p = &e->task_call[t->calls++];

    p->task = (struct ddp__task){.call = call,
                                 .n = 1,
                                 .accumulate = accumulate,
                                 .seed = (uint64_t)e->submitted,
                                 .lr = lr_of(t->s, call),
                                 .momentum = t->s->momentum};
    p->updated = t->updated;
    p->shared = shared;
    p->common = call->op == DDP__OP_OPTIM ? e->last_exchange : 0;
    for (int i = 0; i < call->buffers; i++) {
        p->buf[i] = buf[i];
        p->access[i] = ddp__call_access(call, i, !accumulate);
    }
    t->us += ddp__call_us(e->ddp, call, 1);
}

int ddp__vector_add(struct ddp__vector_task *t, const struct ddp__call *call,
                    int owner, struct ddp__handle *const buf[], bool accumulate)
{
    struct ddp__engine *e = t->e;
    int rc;

    if ((t->owner != owner || t->us >= e->spec.graph.segment_us || e->scarce) &&
        (rc = ddp__vector_flush(t)) < 0)
        return rc;
    t->owner = owner;
    put_call(t, call, buf, accumulate, t->shared);
    return 0;
}

void ddp__vector_join(struct ddp__vector_task *t, const struct ddp__call *call,
                      struct ddp__handle *const buf[])
{
    put_call(t, call, buf, false, false);
}

int ddp__vector_submit(struct ddp__vector_task *t, const struct ddp__call *call,
                       struct ddp__handle *const buf[])
{
    int rc = ddp__vector_add(t, call, t->owner, buf, false);

    return rc < 0 ? rc : ddp__vector_flush(t);
}

int ddp__vector_fence(struct ddp__engine *e, const struct ddp__step *s,
                      const struct ddp__task_call *fence)
{
    struct ddp__submit sub = {.call = fence,
                              .calls = 1,
                              .group = &e->group,
                              .step = s->number,
                              .tag = {.kind = DDP__SCHED_MERGE},
                              .priority = DDP__PRIORITY_UPDATE};

    return ddp__submit(&sub);
}
