/* schedule.c - the factor of the learning rate over a run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Goyal et al. 2017 (linear warm-up); Loshchilov and Hutter 2017
 *          (cosine, restarts); Smith and Topin 2018 (one cycle);
 *          huggingface/pytorch-image-models timm/scheduler/scheduler.py (noise,
 *          with random numbers of our own).
 *
 * Linear, stepped, cosine, one cycle, multistep, exponential, polynomial and
 * restarts have the numbers of PyTorch's LinearLR, StepLR, CosineAnnealingLR,
 * OneCycleLR, MultiStepLR, ExponentialLR, PolynomialLR and
 * CosineAnnealingWarmRestarts, if these are stepped as often.
 */
#include "config.h"

#include <math.h>
#include <stdbool.h>

#include "ddp.h"

#include "base/philox.h"
#include "base/random.h"

/* A fraction of a step more: epochs that are quotients may be too small by a
 * rounding, and a decay then came a step late. */
static const double rounding = 1e-9;

void ddp_schedule_init(struct ddp_schedule *s, enum ddp_schedule_kind kind,
                       double epochs)
{
    *s = (struct ddp_schedule){.kind = kind,
                               .warmup_factor = 0.01,
                               .every = 30,
                               .gamma = 0.1,
                               .milestones = {epochs / 3, 2 * epochs / 3},
                               .power = 1,
                               .stretch = 1,
                               .patience = 10,
                               .threshold = 1e-4,
                               .noise_limit = 0.67,
                               .noise_deviation = 1};
    if (kind == DDP_RESTARTS)
        s->every = 10;
    if (kind == DDP_EXPONENTIAL)
        s->gamma = pow(0.1, 1.0 / 30);
    if (kind != DDP_ONE_CYCLE)
        return;
    s->warmup = 0.3 * epochs;
    s->warmup_factor = 0.04;
    s->final_factor = 0.04 * 1e-4;
    s->max_momentum = 0.95;
    s->base_momentum = 0.85;
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

/* ---- one cycle ---------------------------------------------------------- */

/* The half of the cycle, and which share of it is over. */
struct half {
    bool rises;
    double x;
};

/* The halves end at their last steps, so each is a step shorter than its epochs
 * are.  At step 0 the length of a step is not known, nor needed. */
static struct half half_at(const struct ddp_schedule *s, int64_t step,
                           double epoch, double epochs)
{
    double one = step > 0 ? epoch / (double)step : 0; /* step, in epochs */
    double top = s->warmup - one, end = epochs - one;

    if (s->warmup > 0 && epoch <= top)
        return (struct half){true, epoch / top};
    return (struct half){false,
                         end > top ? fmin((epoch - top) / (end - top), 1) : 1};
}

static double cycle_factor(const struct ddp_schedule *s, struct half h)
{
    return h.rises ? cosine(1 - h.x, s->warmup_factor)
                   : cosine(h.x, s->final_factor);
}

double ddp_schedule_momentum(const struct ddp_schedule *s, int64_t step,
                             double epoch, double epochs)
{
    struct half h;
    double low, high;

    if (!s || s->kind != DDP_ONE_CYCLE)
        return 0;
    h = half_at(s, step, epoch, epochs);
    low = s->base_momentum;
    high = s->max_momentum;
    return low + (high - low) * cosine(h.rises ? h.x : 1 - h.x, 0);
}

/* ---- all of them -------------------------------------------------------- */

/* Milestones that are behind. */
static int milestones_before(const struct ddp_schedule *s, double epoch)
{
    int n = 0;

    while (n < DDP_MILESTONES && s->milestones[n] > 0 &&
           s->milestones[n] <= epoch + rounding)
        n++;
    return n;
}

/* Which share of its cycle is over at an epoch, as PyTorch finds the cycle. */
static double cycle_share(const struct ddp_schedule *s, double epoch)
{
    double more = s->stretch - 1, n, before;

    epoch += rounding;
    if (more == 0)
        return fmod(epoch, s->every) / s->every;
    n = floor(log(epoch / s->every * more + 1) / log(s->stretch));
    before = s->every * (pow(s->stretch, n) - 1) / more;
    return (epoch - before) / (s->every * pow(s->stretch, n));
}

/* The factor after the warm-up; x is the fraction of the run after it. */
static double after_warmup(const struct ddp_schedule *s, double epoch, double x)
{
    switch (s->kind) {
    case DDP_STEPPED:
        return pow(s->gamma, floor(epoch / s->every + rounding));
    case DDP_MULTISTEP:
        return pow(s->gamma, milestones_before(s, epoch));
    case DDP_EXPONENTIAL:
        return pow(s->gamma, epoch);
    case DDP_RESTARTS:
        return cosine(cycle_share(s, epoch), s->final_factor);
    case DDP_COSINE:
        return cosine(x, s->final_factor);
    case DDP_LINEAR:
        return linear(x, s->final_factor);
    case DDP_POLYNOMIAL:
        return s->final_factor + (1 - s->final_factor) * pow(1 - x, s->power);
    default:
        return 1;
    }
}

/* Of the rate that the schedule has at that time. */
static double warmup_factor(const struct ddp_schedule *s, double epoch,
                            double warmup)
{
    double x = s->warmup_steady ? 0 : fmax(epoch, 0) / warmup;

    return s->warmup_factor + (1 - s->warmup_factor) * x;
}

/* Kinds whose epochs count from the beginning of the run. */
static bool counts_epochs(const struct ddp_schedule *s)
{
    return s->kind == DDP_STEPPED || s->kind == DDP_MULTISTEP ||
           s->kind == DDP_EXPONENTIAL || s->kind == DDP_RESTARTS;
}

/* ---- noise -------------------------------------------------------------- */

/* By which share the factor is off in an epoch. */
static double noise(const struct ddp_schedule *s, double epoch)
{
    enum { TRIES = 1000 }; /* of which half succeed with the usual numbers */
    double at = floor(epoch + rounding);

    if (!(at >= s->noise_from && at < s->noise_to))
        return 0;
    for (uint64_t i = 0; i < TRIES; i++) {
        uint64_t key = ddp__key(s->noise_seed, (uint64_t)at, i);
        double x = s->noise_deviation * (double)ddp__draw_normal(key);

        if (fabs(x) < s->noise_limit)
            return x;
    }
    return 0;
}

static double smooth_factor(const struct ddp_schedule *s, int64_t step,
                            double epoch, double epochs)
{
    double warmup, x, count;

    if (s->kind == DDP_ONE_CYCLE)
        return cycle_factor(s, half_at(s, step, epoch, epochs));
    warmup = fmax(s->warmup, 0);
    count = s->warmup_prefix ? fmax(epoch - warmup, 0) : epoch;
    if (epoch < warmup)
        return warmup_factor(s, epoch, warmup) *
               (counts_epochs(s) ? after_warmup(s, count, 0) : 1);
    if (s->warmup_inside)
        warmup = 0;
    x = epochs > warmup ? (epoch - warmup) / (epochs - warmup) : 1;
    return after_warmup(s, count, fmin(fmax(x, 0), 1));
}

double ddp_schedule_factor(const struct ddp_schedule *s, int64_t step,
                           double epoch, double epochs)
{
    if (!s)
        return 1;
    if (s->kind == DDP_CUSTOM_SCHEDULE)
        return s->fn ? s->fn(step, epoch, epochs, s->arg) : 1;
    return smooth_factor(s, step, epoch, epochs) * (1 + noise(s, epoch));
}
