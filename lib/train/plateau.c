/* plateau.c - a learning rate that falls when evaluations no longer improve
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   PyTorch, ReduceLROnPlateau with threshold_mode "rel".
 */
#include "config.h"

#include <math.h>

#include "train/plateau.h"

/* A reduction that changes the rate by less is not made: PyTorch's eps. */
static const double least_change = 1e-8;

double ddp__plateau_factor(const struct ddp__plateau *p)
{
    return p->evaluations ? p->factor : 1;
}

static bool improves(const struct ddp__plateau *p, double threshold,
                     double value, bool greater)
{
    if (p->evaluations == 0)
        return true;
    return greater ? value > p->best * (1 + threshold)
                   : value < p->best * (1 - threshold);
}

void ddp__plateau_note(struct ddp__plateau *p, const struct ddp_schedule *s,
                       double lr, double value, bool greater)
{
    double factor;

    if (improves(p, s->threshold, value, greater)) {
        p->best = value;
        p->bad = 0;
    } else {
        p->bad++;
    }
    if (p->evaluations++ == 0)
        p->factor = 1;
    if (p->cooldown > 0) {
        p->cooldown--;
        p->bad = 0;
    }
    if (p->bad <= s->patience)
        return;
    factor = fmax(p->factor * s->gamma, s->final_factor);
    if ((p->factor - factor) * lr > least_change)
        p->factor = factor;
    p->cooldown = s->cooldown;
    p->bad = 0;
}
