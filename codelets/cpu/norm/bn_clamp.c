/* bn_clamp.c - a batch norm that another kernel computes as it reads
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "bn_clamp.h"
#include "cpu/thread.h"

bool ddp__bn_clamps(enum ddp_act act)
{
    return act == DDP_IDENTITY || act == DDP_RELU || act == DDP_RELU6;
}

static size_t channels_of(const struct ddp__task *t)
{
    return (size_t)t->call->buf[DDP__NORM_CONV_FWD_X].shape.c;
}

/* Whole vectors are read. */
static size_t spaced(size_t c)
{
    return ddp__align(c * sizeof(float)) / sizeof(float);
}

size_t ddp__bn_clamp_size(const struct ddp__task *t)
{
    return 3 * spaced(channels_of(t)) * sizeof(float);
}

/* As BN_FWD has them, to the last bit. */
struct ddp__bn_clamp ddp__bn_clamp_of(const struct ddp__task *t, void *room)
{
    const struct ddp__conv *k = &t->call->conv;
    const float *scale = t->data[DDP__NORM_CONV_FWD_BN];
    const float *stat = t->data[DDP__NORM_CONV_FWD_STAT];
    size_t c = channels_of(t), n = spaced(c);
    float *mean = room, *a = mean + n, *shift = a + n;

    memset(room, 0, 3 * n * sizeof(*mean));
    for (size_t i = 0; i < c; i++) {
        mean[i] = stat[i];
        a[i] = scale[i] / sqrtf(stat[c + i] + k->eps);
        shift[i] = scale[c + i];
    }
    return (struct ddp__bn_clamp){mean, a, shift,
                                  k->norm_act == DDP_IDENTITY ? -INFINITY : 0,
                                  k->norm_act == DDP_RELU6 ? 6 : INFINITY};
}
