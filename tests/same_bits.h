/* same_bits.h - a run under some setting, and the checksum it ends with
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef SAME_BITS_H
#define SAME_BITS_H

#include <stdlib.h>

#include "defaults.h"
#include "tap.h"

/* NULL: the default, but for ncpu. */
static inline ddp_t *start_under(const char *sched, const char *ncpu,
                                 const char *segment_us, const char *backend)
{
    ddp_t *ddp;

    if (sched)
        setenv("STARPU_SCHED", sched, 1);
    else
        unsetenv("STARPU_SCHED");
    setenv("STARPU_NCPU", ncpu, 1);
    setenv("DDP_SEGMENT_US", segment_us ? segment_us : "", 1);
    ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .backend = backend});
    if (!ddp)
        bail_out("%s", ddp_errmsg());
    return ddp;
}

/* Train to the end, and free all; the checksum of the weights, or 0.  loss: of
 * an evaluation, or NULL. */
static inline uint32_t train_and_end(ddp_t *ddp, ddp_trainer_t *t,
                                     ddp_chain_t *c, ddp_dataset_t *d,
                                     double *loss)
{
    struct ddp_metrics m = {0};
    uint32_t crc = 0;

    if (!t || ddp_trainer_train(t) < 0 ||
        (loss && ddp_trainer_evaluate(t, d, &m) < 0) ||
        ddp_chain_checksum(c, &crc) < 0)
        diag("%s", ddp_errmsg());
    if (loss)
        *loss = m.loss;
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
    ddp_finish(ddp);
    return crc;
}

#endif
