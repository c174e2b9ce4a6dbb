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

#include "bn.h"
#include "bn_bwd_loops.h"
#include "bn_gate.h"
#include "bn_line_v16.h"
#include "bn_silu_v16.h"
#include "bn_stat.h"
#include "bn_sum_v16.h"
#include "cpu/backend.h"
#include "cpu/elementwise/mask.h"
#include "cpu/store.h"
#include "cpu/thread.h"
#include "cpu/vector/unit_v16.h"

/* What both passes work with; buf holds a chunk. */
struct pass {
    const struct ddp__task *t;
    struct ddp__rows r;
    struct ddp__bn_params p;
    struct ddp__bn_part all;
    float *par, *buf; /* par: what p points to */
    double *sum;
    enum ddp__bn_source from;
    bool silu; /* bn_silu_v16.c computes it, with these parameters in buf */
    struct ddp__bn_silu of_silu;
    const struct ddp__bn_gate *gate; /* that it multiplies by, or NULL */
};

/* The block of at most `most` rows from `at` on, or the last, shorter row. */
static struct ddp__bn_part block_at(const struct pass *s, size_t at,
                                    size_t most)
{
    struct ddp__bn_part k = s->all;
    size_t left = at < s->r.rows ? s->r.rows - at : 0;
    size_t i = (s->r.rows - left) * s->r.width;
    bool b = s->r.b;

    k.x = ddp__at(k.x, i, b);
    k.y = k.y ? ddp__at(k.y, i, b) : NULL;
    k.dy = ddp__at(k.dy, i, b);
    k.mask = k.mask ? k.mask + i / 8 : NULL;
    k.dx = k.dx ? ddp__to(k.dx, i, b) : NULL;
    k.dr = k.dr ? ddp__to(k.dr, i, b) : NULL;
    k.rows = left < most ? left : most;
    k.width = k.len = s->r.width;
    if (k.rows == 0) {
        k.rows = 1;
        k.len = s->r.tail;
    }
    return k;
}

static size_t block_len(const struct ddp__bn_part *k)
{
    return (k->rows - 1) * k->width + k->len;
}

/* The sums over a block whose dz is kept as dr, which the second pass reads. */
static void sum_and_keep(const struct pass *s, struct ddp__bn_part k)
{
    void *dr = k.dr;

    if (!s->r.direct)
        k.dr = s->buf;
    ddp__fetch(k.dy, block_len(&k), block_len(&k), s->r.b);
    if (k.mask)
        ddp__mask_apply(k.mask, k.dy, k.dr, block_len(&k), s->r.b);
    else
        ddp__bn_bwd_keep(&s->p, &k, s->from, s->r.b);
    k.dy = k.dr;
    ddp__bn_bwd_sum(&s->p, &k, DDP__FROM_DZ, s->r.b);
    if (!s->r.direct)
        ddp__store_block(dr, k.dr, block_len(&k), s->r.b, s->r.stream);
}

/* Whether the sums need no block of dz. */
static bool in_registers(const struct pass *s, const struct ddp__bn_part *k)
{
    return ddp__unit_v16(s->r.b) &&
           (!k->dr || (k->mask && !s->r.b && k->len % 16 == 0));
}

/* All values, as one line. */
static struct ddp__bn_line line_of(const struct pass *s)
{
    return (struct ddp__bn_line){.x = s->all.x,
                                 .dy = s->all.dy,
                                 .y = s->all.y,
                                 .to = s->all.dx,
                                 .len = s->r.rows * s->r.width + s->r.tail,
                                 .period = s->r.width,
                                 .b = s->r.b,
                                 .stream = s->r.stream &&
                                           (uintptr_t)s->all.dx % 64 == 0};
}

static void sum_blocks(const struct pass *s, double *sum)
{
    size_t w = s->r.width, end = s->r.rows + (s->r.tail > 0);
    size_t most =
        s->all.dr && s->r.chunk < DDP__BN_BLOCK ? s->r.chunk : DDP__BN_BLOCK;
    struct ddp__bn_part k;

    memset(sum, 0, 2 * w * sizeof(*sum));
    for (size_t at = 0; at < end; at += k.rows) {
        k = block_at(s, at, most);
        if (in_registers(s, &k)) {
            ddp__bn_sum_v16(&s->p, &k, sum, k.mask ? DDP__FROM_MASK : s->from,
                            s->r.b, s->r.stream);
            continue;
        }
        if (k.dr)
            sum_and_keep(s, k);
        else
            ddp__bn_bwd_sum(&s->p, &k, s->from, s->r.b);
        ddp__bn_add(sum, k.s1, k.len);
        ddp__bn_add(sum + w, k.s2, k.len);
    }
    ddp__store_end();
}

static void first_pass(const struct pass *s, double *sum)
{
    struct ddp__bn_line l = line_of(s);

    if (s->silu)
        ddp__bn_silu_sum(&s->of_silu, &l, s->gate, sum);
    else
        sum_blocks(s, sum);
    ddp__bn_gather(&s->r, sum);
    ddp__bn_gather(&s->r, sum + s->r.width);
}

/* From the end to the beginning: what the first pass read last may still be in
 * a cache. */
static void second_pass(const struct pass *s)
{
    size_t blocks = ddp__bn_blocks(&s->r);

    while (blocks-- > 0) {
        struct ddp__bn_part k = block_at(s, blocks * s->r.chunk, s->r.chunk);
        void *dx = k.dx;

        if (!s->r.direct)
            k.dx = s->buf;
        ddp__bn_bwd_spread(&s->p, &k, s->from, s->r.b);
        if (!s->r.direct)
            ddp__store_block(dx, s->buf, block_len(&k), s->r.b, s->r.stream);
    }
    ddp__store_end();
}

static void spread_line(const struct pass *s)
{
    struct ddp__bn_line l = line_of(s);

    if (s->silu)
        ddp__bn_silu_spread(&s->of_silu, &l, s->gate);
    else
        ddp__bn_spread_v16(&s->p, &l, s->from);
}

static void store_gradient(const struct ddp__task *t, float *g, double v)
{
    *g = (float)(t->accumulate ? *g + v : v);
}

/* g, from the sums of dz and dz (x - mean); all: values that the statistics are
 * of. */
static void store_gradients(const struct pass *s, const double *sum, double all)
{
    const struct ddp__task *t = s->t;
    size_t c = s->r.c, w = s->r.width;
    const float *stat = t->data[DDP__BN_BWD_STAT];
    float *g = t->data[DDP__BN_BWD_G];

    for (size_t i = 0; i < c; i++) {
        struct ddp__bn_spread of = ddp__bn_spread(t->call, stat[c + i]);

        store_gradient(t, &g[i], sum[w + i] * of.inv);
        store_gradient(t, &g[c + i], sum[i]);
        store_gradient(t, &g[2 * c + i], t->n * (double)stat[i]);
        store_gradient(t, &g[3 * c + i],
                       t->n * (all > 1 ? of.var * all / (all - 1) : of.var));
    }
}

/* The factors of the second pass, k1 and k2, from sums over all values, `apart`
 * from each other. */
static void store_factors(const struct pass *s, const double *sum, size_t apart,
                          double all)
{
    size_t c = s->r.c;
    const float *stat = s->t->data[DDP__BN_BWD_STAT];
    size_t w = ddp__bn_spaced(&s->r);
    float *k1 = s->par + 3 * w, *k2 = s->par + 4 * w;

    for (size_t i = 0; i < c; i++) {
        double inv = ddp__bn_spread(s->t->call, stat[c + i]).inv;
        double dscale = sum[apart + i] * inv;

        k1[i] = (float)(sum[i] / all);
        k2[i] = (float)(dscale * inv / all);
    }
    ddp__bn_repeat(&s->r, k1, w);
    ddp__bn_repeat(&s->r, k2, w);
    if (s->silu) {
        ddp__bn_silu_set(&s->of_silu, s->of_silu.k1, k1);
        ddp__bn_silu_set(&s->of_silu, s->of_silu.k2, k2);
        ddp__bn_silu_scale(&s->of_silu);
    }
}

static void load_silu(const struct pass *s)
{
    ddp__bn_silu_set(&s->of_silu, s->of_silu.mean, s->p.mean);
    ddp__bn_silu_set(&s->of_silu, s->of_silu.a, s->p.a);
    ddp__bn_silu_set(&s->of_silu, s->of_silu.shift, s->p.shift);
    ddp__bn_silu_center(&s->of_silu);
}

/* mean, a and shift, as the forward pass had them. */
static void load_parameters(const struct pass *s, float *par)
{
    const float *w = s->t->data[DDP__BN_BWD_W],
                *stat = s->t->data[DDP__BN_BWD_STAT];
    size_t c = s->r.c, width = ddp__bn_spaced(&s->r);
    bool inverse = s->t->call->bn.inverse;
    float eps = s->t->call->bn.eps;

    for (size_t i = 0; i < c; i++) {
        par[i] = stat[i];
        par[width + i] =
            inverse ? w[i] * stat[c + i] : w[i] / sqrtf(stat[c + i] + eps);
        par[2 * width + i] = w[c + i];
    }
    for (size_t i = 0; i < 3; i++)
        ddp__bn_repeat(&s->r, par + i * width, width);
    if (s->silu)
        load_silu(s);
}

/* Room for both passes, and what they read.  dx is NULL where it is not an
 * operand of the call; the other operands are at the places of BN_BWD. */
static int begin(struct pass *s, const struct ddp__task *t, void *dx)
{
    struct ddp__rows r = ddp__bn_rows(t, DDP__BN_BWD_X);
    size_t w = ddp__bn_spaced(&r),
           n = ddp__align(w * sizeof(float)) / sizeof(float);
    bool silu =
        ddp__bn_silu_fits(t->call->bn.act, t->call->bn.residual, r.b, r.width);
    char *scratch =
        ddp__scratch(7 * n * sizeof(float) + 2 * n * sizeof(double) +
                     (silu ? ddp__bn_silu_size(r.width)
                           : (r.chunk * r.width + 16) * sizeof(float)));
    float *par = (float *)(void *)scratch;
    bool mask = t->call->bn.mask;

    if (!scratch)
        return DDP_ENOMEM;
    *s = (struct pass){
        .t = t,
        .r = r,
        .par = par,
        .p = {par, par + w, par + 2 * w, par + 3 * w, par + 4 * w},
        .all = {.x = t->data[DDP__BN_BWD_X],
                .y = mask ? NULL : t->data[DDP__BN_BWD_SLOPE],
                .dy = t->data[DDP__BN_BWD_DY],
                .mask = mask ? t->data[DDP__BN_BWD_SLOPE] : NULL,
                .dx = dx,
                .dr = t->data[DDP__BN_BWD_DR],
                .s1 = par + 5 * w,
                .s2 = par + 6 * w},
        .sum = (double *)(void *)(par + 7 * n),
        .from = ddp__bn_source_of(t->call->bn.act, t->call->bn.residual),
        .silu = silu};
    s->buf = (float *)(void *)(s->sum + 2 * n);
    if (silu)
        s->of_silu = ddp__bn_silu_in(s->buf, r.width);
    load_parameters(s, par);
    return 0;
}

/* The second pass reads dz from dr, where that holds it to the last bit. */
static void finish(struct pass *s)
{
    enum ddp_act act = s->t->call->bn.act;
    bool exact =
        !s->r.b || act == DDP_IDENTITY || act == DDP_RELU || act == DDP_RELU6;

    if (s->t->call->bn.residual && exact) {
        s->all.dy = s->all.dr;
        s->from = DDP__FROM_DY;
    }
    if (ddp__unit_v16(s->r.b))
        spread_line(s);
    else
        second_pass(s);
}

/* Both passes over a sub-batch that has the statistics for itself. */
static void run(struct pass *s)
{
    double m = (double)ddp__rows(s->t, DDP__BN_BWD_X);

    first_pass(s, s->sum);
    store_gradients(s, s->sum, m);
    store_factors(s, s->sum, s->r.width, m);
    finish(s);
}

int ddp__cpu_bn_bwd(const struct ddp__task *t)
{
    struct pass s;

    if (begin(&s, t, t->data[DDP__BN_BWD_DX]) < 0)
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

/* Where the loops do not multiply by the gate, dx has the gradient of y until
 * it is written. */
int ddp__cpu_bn_gated_bwd(const struct ddp__task *t)
{
    struct ddp__rows r = ddp__bn_rows(t, DDP__BN_GATED_BWD_X);
    bool multiplies = ddp__bn_silu_fits(t->call->bn.act, false, r.b, r.width) &&
                      ddp__bn_silu_gates(r.c);
    const void *dy = t->data[DDP__BN_GATED_BWD_DY];
    void *dx = t->data[DDP__BN_GATED_BWD_DX];
    struct ddp__bn_gate gate = gate_of(t);
    struct pass s;
    int rc = multiplies ? 0 : ddp__bn_gate_apply(&gate, dy, dx);

    if (rc < 0 || (rc = begin(&s, t, dx)) < 0)
        return rc;
    s.all.y = NULL;
    s.all.dr = NULL;
    s.all.dy = multiplies ? dy : dx;
    s.gate = multiplies ? &gate : NULL;
    run(&s);
    return 0;
}

/* ---- over the sub-batches of a step ------------------------------------- */

int ddp__cpu_bn_sum_bwd(const struct ddp__task *t)
{
    size_t c = (size_t)t->call->buf[DDP__BN_SUM_BWD_X].shape.c;
    const float *stat = t->data[DDP__BN_SUM_BWD_STAT];
    double *to = t->data[DDP__BN_SUM_BWD_DSUM];
    struct pass s;

    if (begin(&s, t, NULL) < 0)
        return DDP_ENOMEM;
    first_pass(&s, s.sum);
    store_gradients(&s, s.sum, (double)stat[2 * c]);
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
    struct pass s;

    if (begin(&s, t, t->data[DDP__BN_SYNC_BWD_DX]) < 0)
        return DDP_ENOMEM;
    store_factors(&s, t->data[DDP__BN_SYNC_BWD_DSUM], c, (double)stat[2 * c]);
    finish(&s);
    return 0;
}
