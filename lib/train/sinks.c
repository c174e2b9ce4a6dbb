/* sinks.c - telling those who record a run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "train/sinks.h"

/* Call a function of each sink that has it. */
#define TELL(t, function, ...)                                                 \
    for (int i_ = 0; i_ < (t)->cfg.sink_count; i_++)                           \
        if ((t)->sinks[i_].function)                                           \
    (t)->sinks[i_].function(__VA_ARGS__, (t)->sinks[i_].arg)

int ddp__sinks_copy(struct ddp_trainer *t)
{
    size_t size = (size_t)t->cfg.sink_count * sizeof(*t->sinks);

    if (!size)
        return 0;
    if (!t->cfg.sinks)
        return ddp__fail(DDP_EINVAL, "sinks is NULL, expected %d",
                         t->cfg.sink_count);
    if (!(t->sinks = malloc(size)))
        return ddp__fail(DDP_ENOMEM, "out of memory for a list of sinks");
    memcpy(t->sinks, t->cfg.sinks, size);
    t->cfg.sinks = t->sinks;
    return 0;
}

void ddp__sinks_run(const struct ddp_trainer *t)
{
    TELL(t, on_run, t);
}

void ddp__sinks_step(const struct ddp_trainer *t, const struct ddp_progress *p)
{
    TELL(t, on_step, p);
}

void ddp__sinks_eval(const struct ddp_trainer *t,
                     const struct ddp_evaluation *e)
{
    TELL(t, on_eval, e);
}

void ddp__sinks_checkpoint(const struct ddp_trainer *t, int64_t step)
{
    TELL(t, on_checkpoint, step);
}

/* They may make calls that fail, and the program asks why the run did. */
void ddp__sinks_end(const struct ddp_trainer *t, int rc)
{
    struct ddp__error why = ddp__error_save();

    TELL(t, on_end, rc);
    if (rc < 0)
        ddp__error_restore(&why);
}
