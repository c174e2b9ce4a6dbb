/* bn_bwd.c - batch normalisation of CPU workers, backward
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * With dz = dy act'(y), m values per channel and inv = 1 / sqrt(var + eps):
 *
 *     dshift = sum dz,  dscale = inv sum dz (x - mean)
 *     dx = scale inv (dz - dshift / m - (x - mean) inv dscale / m)
 *
 * Two passes: one for the sums, which also writes dr = dz, one for dx.  For
 * most activations without a residual, x tells what the activation got (by the
 * arithmetic of the forward pass, to the last bit), and y need not be read.
 *
 * The second pass makes the slope of SiLU again.  If the first left dz in dx,
 * bf16 would be rounded once more, for little: of EfficientNet-B0, 2 x 16
 * images, one Zen 5 core under load, norms backward would take 163 instead of
 * 172 ms of a step's 631 ms of processor time.
 * bn.c has oneDNN's figures.
 *
 * Behind squeeze-excite both passes multiply by its gate, so that no gradient
 * of y is in memory: see BN_GATED_BWD.
 */
#include "config.h"

#include "bn_bwd.h"
#include "bn_bwd_channels.h"
#include "bn_bwd_pass.h"
#include "bn_gate.h"
#include "cpu/backend.h"
#include "cpu/thread.h"

/* The operands of BN_BWD; dx is NULL where it is not an operand of the call. */
static struct ddp__bn_part operands(const struct ddp__task *t, void *dx,
                                    float *s1, float *s2)
{
    bool mask = t->call->bn.mask;

    return (struct ddp__bn_part){.x = t->data[DDP__BN_BWD_X],
                                 .y = mask ? NULL : t->data[DDP__BN_BWD_SLOPE],
                                 .dy = t->data[DDP__BN_BWD_DY],
                                 .mask =
                                     mask ? t->data[DDP__BN_BWD_SLOPE] : NULL,
                                 .dx = dx,
                                 .dr = t->data[DDP__BN_BWD_DR],
                                 .s1 = s1,
                                 .s2 = s2};
}

/* Whether loops for SiLU compute it, which multiply by a gate in registers. */
static bool is_silu(const struct ddp__task *t, const struct ddp__rows *r)
{
    const struct ddp__call *k = t->call;

    return ddp__bn_silu_fits(k->bn.act, k->bn.residual, r->b, r->width) &&
           (k->op != DDP__OP_BN_GATED_BWD || ddp__bn_silu_gates(r->c));
}

/* Floats of a block of results, and with a gate those of wide. */
static size_t block_size(const struct ddp__task *t, const struct ddp__rows *r)
{
    size_t block = r->chunk * r->width;
    bool gated = t->call->op == DDP__OP_BN_GATED_BWD;

    return block + 16 + (gated ? 2 * block + 2 * r->c : 0);
}

/* The operands of other calls are at the places of BN_BWD. */
void *ddp__bn_bwd_begin(struct ddp__bn_pass *s, const struct ddp__task *t,
                        void *dx, size_t more)
{
    struct ddp__rows r = ddp__bn_rows(t, DDP__BN_BWD_X);
    enum ddp_act act = t->call->bn.act;
    bool residual = t->call->bn.residual;
    bool silu = is_silu(t, &r);
    size_t w = ddp__bn_spaced(&r),
           n = ddp__align(w * sizeof(float)) / sizeof(float);
    size_t buf = ddp__align(silu ? ddp__bn_silu_size(r.width)
                                 : block_size(t, &r) * sizeof(float));
    float *par = ddp__scratch(7 * n * sizeof(float) + 2 * n * sizeof(double) +
                              buf + more);

    if (!par)
        return NULL;
    *s = (struct ddp__bn_pass){
        .t = t,
        .r = r,
        .par = par,
        .p = {par, par + w, par + 2 * w, par + 3 * w, par + 4 * w},
        .all = operands(t, dx, par + 5 * w, par + 6 * w),
        .sum = (double *)(void *)(par + 7 * n),
        .from = ddp__bn_source_of(act, residual),
        .silu = silu};
    s->buf = (float *)(void *)(s->sum + 2 * n);
    if (silu)
        s->of_silu = ddp__bn_silu_in(s->buf, r.width);
    ddp__bn_bwd_load(s);
    return (char *)s->buf + buf;
}

/* Both passes over a sub-batch that has the statistics for itself. */
static void run(struct ddp__bn_pass *s)
{
    double m = (double)ddp__rows(s->t, DDP__BN_BWD_X);

    ddp__bn_first_pass(s, s->sum);
    ddp__bn_bwd_gradients(s, s->sum, m);
    ddp__bn_bwd_factors(s, s->sum, s->r.width, m);
    ddp__bn_second_pass(s);
}

int ddp__cpu_bn_bwd(const struct ddp__task *t)
{
    struct ddp__bn_pass s;

    if (!ddp__bn_bwd_begin(&s, t, t->data[DDP__BN_BWD_DX], 0))
        return DDP_ENOMEM;
    run(&s);
    return 0;
}

static struct ddp__bn_gate gate_of(const struct ddp__task *t)
{
    size_t n = (size_t)t->n;

    return (struct ddp__bn_gate){
        .s = t->data[DDP__BN_GATED_BWD_S],
        .dm = t->data[DDP__BN_GATED_BWD_DM],
        .samples = n,
        .pixels = ddp__rows(t, DDP__BN_GATED_BWD_X) / n,
        .c = (size_t)t->call->buf[DDP__BN_GATED_BWD_X].shape.c,
        .b = ddp__is_bf16(t, DDP__BN_GATED_BWD_X)};
}

/* Loops of f32 find the gradient of y in dx, where they write theirs. */
int ddp__cpu_bn_gated_bwd(const struct ddp__task *t)
{
    const void *dy = t->data[DDP__BN_GATED_BWD_DY];
    void *dx = t->data[DDP__BN_GATED_BWD_DX];
    struct ddp__bn_gate gate = gate_of(t);
    struct ddp__bn_pass s;

    if (!ddp__bn_bwd_begin(&s, t, dx, 0))
        return DDP_ENOMEM;
    s.all.y = NULL;
    s.all.dr = NULL;
    s.gate = &gate;
    s.all.dy = dy;
    if (s.r.b && !s.silu)
        s.wide = s.buf + s.r.chunk * s.r.width + 16;
    if (!s.r.b) {
        ddp__bn_gate_apply(&gate, dy, 0, gate.samples * gate.pixels * gate.c,
                           s.buf, dx);
        s.all.dy = dx;
    }
    run(&s);
    return 0;
}

/* ---- over the sub-batches of a step ------------------------------------- */

int ddp__cpu_bn_sum_bwd(const struct ddp__task *t)
{
    size_t c = (size_t)t->call->buf[DDP__BN_SUM_BWD_X].shape.c;
    const float *stat = t->data[DDP__BN_SUM_BWD_STAT];
    double *to = t->data[DDP__BN_SUM_BWD_DSUM];
    struct ddp__bn_pass s;

    if (!ddp__bn_bwd_begin(&s, t, NULL, 0))
        return DDP_ENOMEM;
    ddp__bn_first_pass(&s, s.sum);
    ddp__bn_bwd_gradients(&s, s.sum, (double)stat[2 * c]);
    for (size_t i = 0; i < c; i++) {
        ddp__bn_collect(t, &to[i], s.sum[i]);
        ddp__bn_collect(t, &to[c + i], s.sum[s.r.width + i]);
    }
    return 0;
}

int ddp__cpu_bn_sync_bwd(const struct ddp__task *t)
{
    size_t c = (size_t)t->call->buf[DDP__BN_SYNC_BWD_X].shape.c;
    const float *stat = t->data[DDP__BN_SYNC_BWD_STAT];
    struct ddp__bn_pass s;

    if (!ddp__bn_bwd_begin(&s, t, t->data[DDP__BN_SYNC_BWD_DX], 0))
        return DDP_ENOMEM;
    ddp__bn_bwd_factors(&s, t->data[DDP__BN_SYNC_BWD_DSUM], c,
                        (double)stat[2 * c]);
    ddp__bn_second_pass(&s);
    return 0;
}
