/* averages.c - the averages of a trainer's weights, for its program
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"
#include "train/trainer.h"
#include "weights/weights.h"

/* NULL and a message if there are none. */
static struct ddp__ema *averages_of(const ddp_trainer_t *t)
{
    if (ddp__trainer_check(t) < 0)
        return NULL;
    if (!t->engine->ema)
        ddp__fail(
            DDP_EINVAL,
            "the trainer keeps no averages of the weights: set ema_decay");
    return t->engine->ema;
}

int ddp_trainer_ema_get(ddp_trainer_t *t, const char *name, float *out,
                        size_t len)
{
    struct ddp__ema *m = averages_of(t);

    return m ? ddp__ema_get(m, name, out, len) : DDP_EINVAL;
}

int ddp_trainer_ema_set(ddp_trainer_t *t, const char *name, const float *in,
                        size_t len)
{
    struct ddp__ema *m = averages_of(t);

    return m ? ddp__ema_set(m, name, in, len) : DDP_EINVAL;
}

static int average_values(void *t, const char *name, float *out, size_t len)
{
    return ddp_trainer_ema_get(t, name, out, len);
}

int ddp_trainer_ema_save(ddp_trainer_t *t, const char *path,
                         const struct ddp_save_options *o)
{
    if (!averages_of(t))
        return DDP_EINVAL;
    return ddp__weights_save(t->chain, path, o, average_values, t);
}
