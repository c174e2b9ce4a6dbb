/* loss_scaler.c - a step is applied as a whole, or not at all
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * When all gradients of a step are merged, one task looks at the loss and at
 * the norms, before any bucket is updated.  OPTIM changes nothing without a
 * divisor: so a step is skipped, and for the same reason divided by the scale
 * of the loss, by what the task leaves in the scaler.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "engine/early.h"
#include "engine/engine.h"
#include "engine/loss_scaler.h"
#include "engine/slices.h"

/* The defaults of PyTorch's GradScaler. */
#define FIRST_SCALE 65536.0
enum { GROWTH_INTERVAL = 2000 };

/* Where each entry of a saved state is. */
static const int state_at[DDP__SCALER_STATE] = {
    DDP__STAT_UPDATES, DDP__SCALER_SCALE, DDP__SCALER_GOOD, DDP__SCALER_SKIPPED,
    DDP__SCALER_ROW};

static bool is_scaled(const struct ddp__engine *e)
{
    return e->spec.graph.dtype == DDP_F16;
}

/* ---- the decision ------------------------------------------------------- */

/* The forward pass computes running statistics, and those of the first layer
 * are the last in the buckets; the backward pass computes gradients, in the
 * order of the buckets. */
static void explain_skip(struct ddp__engine *e, int64_t number, bool loss,
                         const double *norm)
{
    double place = norm[DDP__NORM_RUNNING] > 0 ? norm[DDP__NORM_RUNNING]
                                               : norm[DDP__NORM_TRAINED];
    char name[160] = "", worker[40];

    ddp__task_group_seen_by(&e->group, number, worker, sizeof(worker));
    if (place > 0)
        ddp__params_name(e->params, (size_t)place - 1, name, sizeof(name));
    snprintf(e->why, sizeof(e->why), "%s not finite%s%s, seen by %s",
             loss ? "the loss is" : "gradients are", *name ? ", first at " : "",
             name, worker);
}

static void accept_step(const struct ddp__engine *e, double *scaler)
{
    scaler[DDP__STAT_UPDATES] += scaler[DDP__STAT_DIVISOR] != 0;
    scaler[DDP__SCALER_ROW] = 0;
    if (!is_scaled(e) || ++scaler[DDP__SCALER_GOOD] < GROWTH_INTERVAL)
        return;
    scaler[DDP__SCALER_GOOD] = 0;
    if (scaler[DDP__SCALER_SCALE] < 0x1p126)
        scaler[DDP__SCALER_SCALE] *= 2;
}

/* An overflow of the loss scale is expected and not counted. */
static void refuse_step(const struct ddp__engine *e, bool loss, int64_t number,
                        double *scaler)
{
    bool overflow = is_scaled(e) && !loss && scaler[DDP__SCALER_SCALE] > 1;

    scaler[DDP__STAT_DIVISOR] = scaler[DDP__STAT_COUNT] = 0;
    scaler[DDP__SCALER_SKIPPED]++;
    scaler[DDP__SCALER_ROW] += !overflow;
    scaler[DDP__SCALER_LAST] = (double)number;
    scaler[DDP__SCALER_GOOD] = 0;
    if (is_scaled(e))
        scaler[DDP__SCALER_SCALE] /= 2;
}

/* What the step's gradients are divided by, with the scale they have. */
static void take_stats(const double *stats, double *scaler)
{
    for (int i = 0; i < DDP__STAT_UPDATES; i++)
        scaler[i] = stats[i];
    scaler[DDP__STAT_DIVISOR] *= scaler[DDP__SCALER_SCALE];
}

static void judge_step(struct ddp__engine *e, int64_t number,
                       const double *stats, const double *norm, double *scaler)
{
    bool loss = !isfinite(stats[DDP__STAT_LOSS]);

    take_stats(stats, scaler);
    if (!loss && isfinite(norm[DDP__NORM_SQUARES])) {
        accept_step(e, scaler);
        return;
    }
    refuse_step(e, loss, number, scaler);
    explain_skip(e, number, loss, norm);
}

static struct ddp__agreed *agreed_of(struct ddp__engine *e,
                                     const struct ddp__task *t)
{
    return &e->agreed[(int64_t)t->seed % (e->spec.run_ahead + 1)];
}

/* Its norm is in the scaler, not among what slices have found. */
static int decide_step(const struct ddp__task *t, void *arg)
{
    double *norm = t->data[DDP__DECIDE_NORM];
    double *scaler = t->data[DDP__DECIDE_SCALER];
    double scale = scaler[DDP__SCALER_SCALE];

    agreed_of(arg, t)->scale = 0;
    norm[DDP__NORM_SQUARES] /= scale * scale;
    scaler[DDP__SCALER_NORM] = norm[DDP__NORM_SQUARES];
    judge_step(arg, (int64_t)t->seed, t->data[DDP__DECIDE_STATS], norm, scaler);
    return 0;
}

/* ---- early updates ------------------------------------------------------ */

/* What updates need, as if all gradients were finite.  Where the loss is not
 * there is nothing to begin with. */
static int take_terms(const struct ddp__task *t, void *arg)
{
    struct ddp__verdict *v = ddp__early_verdict(arg, (int64_t)t->seed);
    const double *stats = t->data[DDP__TERMS_STATS];
    double *scaler = t->data[DDP__TERMS_SCALER];

    memcpy(v->scaler, scaler, sizeof(v->scaler));
    v->taken = true;
    take_stats(stats, scaler);
    if (!isfinite(stats[DDP__STAT_LOSS]))
        scaler[DDP__STAT_DIVISOR] = scaler[DDP__STAT_COUNT] = 0;
    scaler[DDP__STAT_UPDATES] += scaler[DDP__STAT_DIVISOR] != 0;
    return 0;
}

/* As if there had been no terms. */
static int decide_after(const struct ddp__task *t, void *arg)
{
    struct ddp__verdict *v = ddp__early_verdict(arg, (int64_t)t->seed);

    memcpy(t->data[DDP__DECIDE_SCALER], v->scaler, sizeof(v->scaler));
    return decide_step(t, arg);
}

/* ---- slices ------------------------------------------------------------- */

static void put_squares(struct ddp__agreed *all, double squares)
{
    all->squares = squares / (all->scale * all->scale);
}

/* The ranks have exchanged what they found, or there is only this process.
 * Without a divisor gradients are not checked. */
static int agree_step(const struct ddp__task *t, void *arg)
{
    static const double nothing[DDP__NORMS];
    struct ddp__agreed *all = agreed_of(arg, t);
    const double *stats = t->data[DDP__AGREE_STATS];
    double *scaler = t->data[DDP__AGREE_SCALER];

    memcpy(t->data[DDP__AGREE_COPY], stats, DDP__STATS * sizeof(*stats));
    if (!ddp__comm_used(arg)) {
        *all = (struct ddp__agreed){
            .kept = true,
            .squares = ddp__slices_squares(arg, stats[DDP__STAT_DIVISOR])};
        ddp__slices_found(arg, all->found);
    }
    all->scale = scaler[DDP__SCALER_SCALE];
    judge_step(arg, (int64_t)t->seed, stats,
               stats[DDP__STAT_DIVISOR] != 0 ? all->found : nothing, scaler);
    if (all->kept)
        put_squares(all, all->squares);
    return 0;
}

static int note_norm(const struct ddp__task *t, void *arg)
{
    const double *norm = t->data[DDP__NOTE_NORM];

    put_squares(agreed_of(arg, t), norm[DDP__NORM_SQUARES]);
    return 0;
}

/* ---- making, and what is kept ------------------------------------------- */

void ddp__loss_scaler_new(struct ddp__engine *e)
{
    e->scaler_memory[DDP__SCALER_SCALE] = is_scaled(e) ? FIRST_SCALE : 1;
    e->scaler_memory[DDP__SCALER_LAST] = -1;
    ddp__handle_register(&e->scaler, e->scaler_memory,
                         sizeof(e->scaler_memory));
    e->decide = (struct ddp__call){
        .op = DDP__OP_HOST,
        .cap = 1,
        .buf =
            {[DDP__DECIDE_STATS] = {DDP_F64, false, {1, 1, DDP__STATS}, 0},
             [DDP__DECIDE_NORM] = {DDP_F64, false, {1, 1, DDP__NORMS}, 0},
             [DDP__DECIDE_SCALER] = {DDP_F64, false, {1, 1, DDP__SCALERS}, 0}},
        .buffers = DDP__DECIDE_BUFFERS,
        .host = {DDP__HOST_DECIDE, decide_step, e}};
}

void ddp__loss_scaler_early(struct ddp__engine *e, struct ddp__call *terms,
                            struct ddp__call *decide)
{
    *terms = (struct ddp__call){
        .op = DDP__OP_HOST,
        .cap = 1,
        .buf = {[DDP__TERMS_STATS] = e->decide.buf[DDP__DECIDE_STATS],
                [DDP__TERMS_SCALER] = e->decide.buf[DDP__DECIDE_SCALER]},
        .buffers = DDP__TERMS_BUFFERS,
        .host = {DDP__HOST_TERMS, take_terms, e}};
    *decide = e->decide;
    decide->host.fn = decide_after;
}

void ddp__loss_scaler_slices(struct ddp__engine *e, struct ddp__call *agree,
                             struct ddp__call *note)
{
    *agree = (struct ddp__call){
        .op = DDP__OP_HOST,
        .cap = 1,
        .buf = {[DDP__AGREE_STATS] = e->decide.buf[DDP__DECIDE_STATS],
                [DDP__AGREE_SCALER] = e->decide.buf[DDP__DECIDE_SCALER],
                [DDP__AGREE_COPY] = e->decide.buf[DDP__DECIDE_STATS]},
        .buffers = DDP__AGREE_BUFFERS,
        .host = {DDP__HOST_AGREE, agree_step, e}};
    *note = (struct ddp__call){
        .op = DDP__OP_HOST,
        .cap = 1,
        .buf = {[DDP__NOTE_NORM] = e->decide.buf[DDP__DECIDE_NORM],
                [DDP__NOTE_TOKEN] = {DDP_F32, false, {1, 1, 1}, 0}},
        .buffers = DDP__NOTE_BUFFERS,
        .host = {DDP__HOST_NOTE, note_norm, e}};
}

void ddp__loss_scaler_free(struct ddp__engine *e)
{
    ddp__handle_unregister(&e->scaler);
}

int ddp__loss_scaler_get(struct ddp__engine *e, double state[DDP__SCALER_STATE])
{
    if (!ddp__handle_open(&e->scaler, false, "the training state"))
        return ddp_errcode();
    for (int i = 0; i < DDP__SCALER_STATE; i++)
        state[i] = e->scaler_memory[state_at[i]];
    ddp__handle_close(&e->scaler);
    return 0;
}

int ddp__loss_scaler_set(struct ddp__engine *e,
                         const double state[DDP__SCALER_STATE])
{
    for (int i = 0; i < DDP__SCALER_STATE; i++) {
        bool scale = state_at[i] == DDP__SCALER_SCALE;

        if (!(state[i] >= 0) || !isfinite(state[i]) || (scale && state[i] == 0))
            return ddp__fail(DDP_EDATA, "%s is %g, expected a finite number%s",
                             scale ? "the loss scale" : "a count of steps",
                             state[i], scale ? " above 0" : ", 0 or more");
    }
    if (!ddp__handle_open(&e->scaler, true, "the training state"))
        return ddp_errcode();
    for (int i = 0; i < DDP__SCALER_STATE; i++)
        e->scaler_memory[state_at[i]] = state[i];
    ddp__handle_close(&e->scaler);
    return 0;
}
