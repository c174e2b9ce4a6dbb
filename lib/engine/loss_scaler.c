/* loss_scaler.c - a step is applied as a whole, or not at all
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * When all gradients of a step are merged, one task looks at the loss and at
 * the norms, before any bucket is updated.  OPTIM changes nothing without a
 * divisor: so a step is skipped, and for the same reason divided by the scale
 * of the loss, by what the task leaves in the guard.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/loss_scaler.h"

/* The defaults of PyTorch's GradScaler. */
#define FIRST_SCALE 65536.0
enum { GROWTH_INTERVAL = 2000 };

/* Where each entry of a saved state is. */
static const int state_at[DDP__GUARD_STATE] = {
    DDP__STAT_UPDATES, DDP__GUARD_SCALE, DDP__GUARD_GOOD, DDP__GUARD_SKIPPED,
    DDP__GUARD_ROW};

static bool is_scaled(const struct ddp__engine *e)
{
    return e->spec.graph.dtype == DDP_F16;
}

/* ---- the decision ------------------------------------------------------- */

/* The forward pass computes running statistics, and those of the first layer
 * are the last in the buckets; the backward pass computes gradients, in the
 * order of the buckets. */
static void explain(struct ddp__engine *e, bool loss, const double *norm)
{
    double place = norm[DDP__NORM_RUNNING] > 0 ? norm[DDP__NORM_RUNNING]
                                               : norm[DDP__NORM_TRAINED];
    char name[160] = "", worker[40];

    ddp__flow_who(&e->flow, worker, sizeof(worker));
    if (place > 0)
        ddp__params_name(e->params, (size_t)place - 1, name, sizeof(name));
    snprintf(e->why, sizeof(e->why), "%s not finite%s%s, seen by %s",
             loss ? "the loss is" : "gradients are", *name ? ", first at " : "",
             name, worker);
}

static void accept(const struct ddp__engine *e, double *guard)
{
    guard[DDP__STAT_UPDATES] += guard[DDP__STAT_DIVISOR] != 0;
    guard[DDP__GUARD_ROW] = 0;
    if (!is_scaled(e) || ++guard[DDP__GUARD_GOOD] < GROWTH_INTERVAL)
        return;
    guard[DDP__GUARD_GOOD] = 0;
    if (guard[DDP__GUARD_SCALE] < 0x1p126)
        guard[DDP__GUARD_SCALE] *= 2;
}

/* An overflow of the loss scale is expected and not counted. */
static void refuse(const struct ddp__engine *e, bool loss, int64_t number,
                   double *guard)
{
    bool overflow = is_scaled(e) && !loss && guard[DDP__GUARD_SCALE] > 1;

    guard[DDP__STAT_DIVISOR] = guard[DDP__STAT_COUNT] = 0;
    guard[DDP__GUARD_SKIPPED]++;
    guard[DDP__GUARD_ROW] += !overflow;
    guard[DDP__GUARD_LAST] = (double)number;
    guard[DDP__GUARD_GOOD] = 0;
    if (is_scaled(e))
        guard[DDP__GUARD_SCALE] /= 2;
}

static int decide(const struct ddp__task *t, void *arg)
{
    struct ddp__engine *e = arg;
    const double *totals = t->data[DDP__DECIDE_TOTALS];
    double *norm = t->data[DDP__DECIDE_NORM];
    double *guard = t->data[DDP__DECIDE_GUARD];
    double scale = guard[DDP__GUARD_SCALE];
    bool loss = !isfinite(totals[DDP__STAT_LOSS]);

    for (int i = 0; i < DDP__STAT_UPDATES; i++)
        guard[i] = totals[i];
    guard[DDP__STAT_DIVISOR] *= scale;
    norm[DDP__NORM_SQUARES] /= scale * scale;
    if (!loss && isfinite(norm[DDP__NORM_SQUARES])) {
        accept(e, guard);
        return 0;
    }
    refuse(e, loss, (int64_t)t->seed, guard);
    explain(e, loss, norm);
    return 0;
}

/* ---- making, and what is kept ------------------------------------------- */

void ddp__guard_new(struct ddp__engine *e)
{
    e->guard_memory[DDP__GUARD_SCALE] = is_scaled(e) ? FIRST_SCALE : 1;
    e->guard_memory[DDP__GUARD_LAST] = -1;
    ddp__handle_register(&e->guard, e->guard_memory, sizeof(e->guard_memory));
    e->decide = (struct ddp__call){
        .op = DDP__OP_HOST,
        .cap = 1,
        .buf = {[DDP__DECIDE_TOTALS] = {DDP_F64, false, {1, 1, DDP__STATS}, 0},
                [DDP__DECIDE_NORM] = {DDP_F64, false, {1, 1, DDP__NORMS}, 0},
                [DDP__DECIDE_GUARD] = {DDP_F64, false, {1, 1, DDP__GUARDS}, 0}},
        .buffers = 3,
        .host = {decide, e}};
}

void ddp__guard_free(struct ddp__engine *e)
{
    ddp__handle_unregister(&e->guard);
}

int ddp__guard_get(struct ddp__engine *e, double state[DDP__GUARD_STATE])
{
    if (!ddp__handle_open(&e->guard, false, "the training state"))
        return DDP_EINVAL;
    for (int i = 0; i < DDP__GUARD_STATE; i++)
        state[i] = e->guard_memory[state_at[i]];
    ddp__handle_close(&e->guard);
    return 0;
}

int ddp__guard_set(struct ddp__engine *e, const double state[DDP__GUARD_STATE])
{
    for (int i = 0; i < DDP__GUARD_STATE; i++)
        if (!(state[i] >= 0) || !isfinite(state[i]))
            return ddp__fail(DDP_EDATA,
                             "a count of steps or the loss scale is %g; "
                             "expected a finite number, 0 or more",
                             state[i]);
    if (!ddp__handle_open(&e->guard, true, "the training state"))
        return DDP_EINVAL;
    for (int i = 0; i < DDP__GUARD_STATE; i++)
        e->guard_memory[state_at[i]] = state[i];
    ddp__handle_close(&e->guard);
    return 0;
}
