/* taps_pairs.c - which pixels the taps of a convolution join
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "taps_pairs.h"

bool ddp__taps_has_room(const struct ddp__conv_shape *s)
{
    return s->h * s->w <= DDP__TAPS_TARGETS &&
           s->oh * s->ow <= DDP__TAPS_PAIRS &&
           s->conv.kh * s->conv.kw <= DDP__TAPS_PAIRS;
}

static void add_pair(struct ddp__taps_pairs *p, enum ddp__conv_pass pass, int y,
                     int x, int tap)
{
    int target = pass == DDP__FWD ? y : pass == DDP__BWD_X ? x : tap;
    struct ddp__taps_target *t = &p->target[target];

    t->from[t->count] = (unsigned char)(pass == DDP__FWD ? x : y);
    t->by[t->count] = (unsigned char)(pass == DDP__BWD_W ? x : tap);
    t->count++;
    p->count++;
    p->used[tap] = true;
}

void ddp__taps_list(const struct ddp__conv_shape *s, enum ddp__conv_pass pass,
                    struct ddp__taps_pairs *p)
{
    const struct ddp__conv *k = &s->conv;

    *p = (struct ddp__taps_pairs){0};
    for (int tap = 0; tap < k->kh * k->kw; tap++)
        for (int i = 0; i < s->oh * s->ow; i++) {
            int y = i / s->ow * k->sh - k->top + tap / k->kw * k->dh;
            int x = i % s->ow * k->sw - k->left + tap % k->kw * k->dw;

            if (y >= 0 && y < s->h && x >= 0 && x < s->w)
                add_pair(p, pass, i, y * s->w + x, tap);
        }
}
