/* schedule.c - the factor of the learning rate over a run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Goyal et al. 2017 (linear warm-up); Loshchilov and Hutter 2017
 *          (cosine); Smith and Topin 2018 (one cycle).
 *
 * Linear, stepped and cosine have the numbers of PyTorch's LinearLR, StepLR and
 * CosineAnnealingLR if these are stepped as often.  One cycle differs from
 * OneCycleLR: the rise is linear, not half a cosine, the end is 1e-4 of the
 * highest rate, not 4e-6, and momentum does not cycle.
 */
#include "config.h"

#include <math.h>

#include "ddp.h"

void ddp_schedule_init(struct ddp_schedule *s, enum ddp_schedule_kind kind,
                       double epochs)
{
    *s = (struct ddp_schedule){
        .kind = kind, .warmup_factor = 0.01, .every = 30, .gamma = 0.1};
    if (kind != DDP_ONE_CYCLE)
        return;
    s->warmup = 0.3 * epochs;
    s->warmup_factor = 0.04;
    s->final_factor = 1e-4;
}

/* From 1 to `end` along half a wave, or a line, as x goes from 0 to 1. */
static double cosine(double x, double end)
{
    return end + (1 - end) * (1 + cos(acos(-1) * x)) / 2;
}

static double linear(double x, double end)
{
    return 1 + (end - 1) * x;
}

/* The factor after the warm-up; x is the fraction of the run after it. */
static double after_warmup(const struct ddp_schedule *s, double epoch, double x)
{
    switch (s->kind) {
    case DDP_STEPPED:
        return pow(s->gamma, floor(epoch / s->every));
    case DDP_COSINE:
    case DDP_ONE_CYCLE:
        return cosine(x, s->final_factor);
    case DDP_LINEAR:
        return linear(x, s->final_factor);
    default:
        return 1;
    }
}

double ddp_schedule_factor(const struct ddp_schedule *s, int64_t step,
                           double epoch, double epochs)
{
    double warmup, x;

    if (!s)
        return 1;
    if (s->kind == DDP_CUSTOM_SCHEDULE)
        return s->fn ? s->fn(step, epoch, epochs, s->arg) : 1;
    warmup = fmax(s->warmup, 0);
    if (epoch < warmup)
        return (s->warmup_factor +
                (1 - s->warmup_factor) * fmax(epoch, 0) / warmup) *
               (s->kind == DDP_STEPPED ? after_warmup(s, epoch, 0) : 1);
    x = epochs > warmup ? (epoch - warmup) / (epochs - warmup) : 1;
    return after_warmup(s, epoch, fmin(fmax(x, 0), 1));
}
