/* tracing.c - the trace and the graph of some steps of a run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "runtime/context.h"
#include "runtime/trace_write.h"
#include "train/tracing.h"

/* The last steps of a run that has fewer. */
static int64_t first_step(const struct ddp_trainer *t, int64_t steps)
{
    int64_t first = t->begun + t->cfg.trace_first;
    int64_t last = t->total - steps;

    if (first > last)
        first = last;
    return first > t->begun ? first : t->begun;
}

int ddp__tracing_begin(struct ddp_trainer *t)
{
    int64_t steps = t->cfg.trace_steps ? t->cfg.trace_steps : 1;

    if ((!t->cfg.trace && !t->cfg.graph) || t->traced ||
        t->submitted < first_step(t, steps))
        return 0;
    t->traced = true;
    if (!(t->trace = ddp__trace_new(t->submitted, steps)))
        return DDP_ENOMEM;
    ddp__engine_trace(t->engine, t->trace);
    return 0;
}

int ddp__tracing_end(struct ddp_trainer *t, bool all)
{
    int rc = 0;

    if (!t->trace || (!all && t->reported < ddp__trace_end(t->trace)))
        return 0;
    ddp__task_group_wait(&t->engine->group);
    ddp__engine_trace(t->engine, NULL);
    if (t->cfg.trace)
        rc = ddp__trace_json(t->trace, t->cfg.trace, ddp_rank(t->ddp));
    if (rc == 0 && t->cfg.graph)
        rc = ddp__trace_dot(t->trace, t->cfg.graph);
    ddp__trace_free(t->trace);
    t->trace = NULL;
    return rc;
}
