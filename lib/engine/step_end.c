/* step_end.c - the last tasks of a step, for which the program waits
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "engine/engine.h"
#include "engine/slices.h"
#include "engine/step.h"
#include "engine/step_end.h"
#include "engine/step_updates.h"
#include "engine/vector.h"

/* A task at the end of a step runs even after a failure, because the host waits
 * for it.  `first` and `token` are how it uses its first and last buffer. */
static int submit_last(struct ddp__engine *e, const struct ddp__step *s,
                       const struct ddp__call *call, struct ddp__handle **buf,
                       enum ddp_access first, enum ddp_access token)
{
    struct ddp__task_call last = {
        .task = {.call = call, .n = 1, .seed = (uint64_t)e->submitted}};
    struct ddp__submit sub = {
        .call = &last,
        .calls = 1,
        .group = &e->group,
        .step = s->number,
        .tag = {.kind = DDP__SCHED_MERGE},
        .priority = DDP__PRIORITY_UPDATE,
        .always = true,
    };

    for (int i = 0; i < call->buffers; i++) {
        last.buf[i] = buf[i];
        last.access[i] = DDP_READ;
    }
    last.access[0] = first;
    last.access[call->buffers - 1] = token;
    return ddp__submit(&sub);
}

/* The last task of a step on bucket b. */
static struct ddp__handle *end_of(struct ddp__engine *e,
                                  const struct ddp__step *s, int b)
{
    if (!s->update)
        return &e->lane[0].grad[b];
    return e->ema ? &e->ema->bucket[b].handle : &e->params->bucket[b].handle;
}

/* Wait for every bucket to be updated (or merged).  A task has few buffers, so
 * it is done in groups, one after another through the token. */
static int submit_fences(struct ddp__engine *e, const struct ddp__step *s)
{
    struct ddp__handle *buf[DDP_MAX_BUFFERS];
    int n = 0, rc;

    for (int b = 0; b < e->params->buckets; b++) {
        if (!ddp__step_reached(e, b))
            continue;
        buf[n++] = end_of(e, s, b);
        if (n < DDP_MAX_BUFFERS - 1)
            continue;
        buf[n] = &e->token;
        if ((rc = submit_last(e, s, &e->fence[n], buf, DDP_READ, DDP_UPDATE)) <
            0)
            return rc;
        n = 0;
    }
    buf[n] = &e->token;
    return n ? submit_last(e, s, &e->fence[n], buf, DDP_READ, DDP_UPDATE) : 0;
}

int ddp__step_end(struct ddp__engine *e, const struct ddp__step *s, int so_far)
{
    struct ddp__handle *buf[] = {[DDP__END_STATS] = ddp__slices_stats(e),
                                 [DDP__END_SCALER] = &e->scaler,
                                 [DDP__END_TOKEN] = &e->token};
    int rc = so_far < 0 ? 0 : submit_fences(e, s);

    ddp__slices_end(e);
    if (rc == 0)
        rc = submit_last(e, s, &e->end, buf, so_far < 0 ? DDP_WRITE : DDP_READ,
                         DDP_READ);
    if (rc == 0)
        return 0;
    ddp__task_group_fail(&e->group, s->number, rc, "submission", NULL);
    return ddp__engine_wait_all(e);
}
