/* bn_bwd_loops.c - loops of the backward pass of batch normalisation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * An instance for each activation and type: see bn_bwd.c for the formulas.
 */
#include "config.h"

#include "bn_bwd_loops.h"
#include "cpu/backend.h"
#include "cpu/store.h"
#include "cpu/vector/vmath.h"

/* These are inlined with a constant `from` and `b`: what does not depend on
 * the data is decided when they are compiled. */

DDP__INLINE float slope_y(const struct ddp__bn_part *k, size_t at, float dy,
                          enum ddp_act act, bool b)
{
    return ddp__act_grad(ddp__load(k->y, at, b), dy, act);
}

/* dz of the value at `at`, which is y = act(z) unless there is a residual. */
DDP__INLINE float dz_at(const struct ddp__bn_part *k, size_t at, float z,
                        enum ddp__bn_source from, bool b)
{
    float dy = ddp__load(k->dy, at, b && from != DDP__FROM_DZ);

    switch (from) {
    case DDP__FROM_X_RELU:
        return ddp__act_grad(z, dy, DDP_RELU);
    case DDP__FROM_X_RELU6:
        return ddp__act_grad(z, dy, DDP_RELU6);
    case DDP__FROM_X_SILU:
        return ddp__act_grad(z, dy, DDP_SILU);
    case DDP__FROM_X_HARDSWISH:
        return ddp__act_grad(z, dy, DDP_HARDSWISH);
    case DDP__FROM_RELU:
        return slope_y(k, at, dy, DDP_RELU, b);
    case DDP__FROM_RELU6:
        return slope_y(k, at, dy, DDP_RELU6, b);
    case DDP__FROM_SIGMOID:
        return slope_y(k, at, dy, DDP_SIGMOID, b);
    case DDP__FROM_TANH:
        return slope_y(k, at, dy, DDP_TANH, b);
    default:
        return dy;
    }
}

/* What a value adds to the sums. */
struct term {
    float d, dz; /* x - mean, dz */
};

DDP__INLINE struct term term_at(const struct ddp__bn_params *p,
                                const struct ddp__bn_part *k, size_t at,
                                size_t i, enum ddp__bn_source from, bool b)
{
    float d = ddp__load(k->x, at, b) - p->mean[i];

    return (struct term){d, dz_at(k, at, d * p->a[i] + p->shift[i], from, b)};
}

/* What is read from `at` on. */
DDP__INLINE void fetch(const struct ddp__bn_part *k, size_t at, size_t len,
                       enum ddp__bn_source from, bool b)
{
    ddp__fetch(k->x, at, len, b);
    if (from != DDP__FROM_DZ)
        ddp__fetch(k->dy, at, len, b);
    if (from >= DDP__FROM_RELU)
        ddp__fetch(k->y, at, len, b);
}

/* s1 = sum of dz, s2 = sum of dz (x - mean) */
DDP__INLINE void sum(const struct ddp__bn_params *p,
                     const struct ddp__bn_part *k, float *restrict s1,
                     float *restrict s2, enum ddp__bn_source from, bool b)
{
    size_t w = k->width, r = 0;

    for (size_t i = 0; i < k->len; i++)
        s1[i] = s2[i] = 0;
    for (; r + 4 <= k->rows; r += 4) {
        fetch(k, (r + 4) * w, 4 * w, from, b);
        for (size_t i = 0; i < k->len; i++) {
            size_t at = r * w + i;
            struct term t0 = term_at(p, k, at, i, from, b);
            struct term t1 = term_at(p, k, at + w, i, from, b);
            struct term t2 = term_at(p, k, at + 2 * w, i, from, b);
            struct term t3 = term_at(p, k, at + 3 * w, i, from, b);

            s1[i] += (t0.dz + t1.dz) + (t2.dz + t3.dz);
            s2[i] +=
                (t0.dz * t0.d + t1.dz * t1.d) + (t2.dz * t2.d + t3.dz * t3.d);
        }
    }
    for (; r < k->rows; r++) {
        fetch(k, (r + 1) * w, k->len, from, b);
        for (size_t i = 0; i < k->len; i++) {
            struct term t = term_at(p, k, r * w + i, i, from, b);

            s1[i] += t.dz;
            s2[i] += t.dz * t.d;
        }
    }
}

/* dr = dz, of a block with a residual. */
DDP__INLINE void keep(const struct ddp__bn_part *k, float *restrict dr,
                      enum ddp__bn_source from, bool b)
{
    size_t len = (k->rows - 1) * k->width + k->len;

    for (size_t i = 0; i < len; i++)
        dr[i] = dz_at(k, i, 0, from, b);
}

/* dx from dz and its sums. */
DDP__INLINE void spread(const struct ddp__bn_params *p,
                        const struct ddp__bn_part *k, float *restrict dx,
                        enum ddp__bn_source from, bool b)
{
    for (size_t r = 0; r < k->rows; r++) {
        fetch(k, (r - k->rows) * k->width, k->len, from, b);
        for (size_t i = 0; i < k->len; i++) {
            size_t at = r * k->width + i;
            struct term t = term_at(p, k, at, i, from, b);

            dx[at] = p->a[i] * ((t.dz - p->k1[i]) - t.d * p->k2[i]);
        }
    }
}

/* ---- one instance of a loop for each source and type -------------------- */

enum loop { SUM, KEEP, SPREAD };

DDP__INLINE void run_loop(enum loop loop, const struct ddp__bn_params *p,
                          const struct ddp__bn_part *k,
                          enum ddp__bn_source from, bool b)
{
    switch (loop) {
    case SUM:
        sum(p, k, k->s1, k->s2, from, b);
        break;
    case KEEP:
        keep(k, k->dr, from, b);
        break;
    case SPREAD:
        spread(p, k, k->dx, from, b);
        break;
    }
}

/* The instances: `loop` and `b` are constants here, `from` is not yet. */
DDP__INLINE void run_instance(enum loop loop, const struct ddp__bn_params *p,
                              const struct ddp__bn_part *k,
                              enum ddp__bn_source from, bool b)
{
    switch (from) {
    case DDP__FROM_DY:
        run_loop(loop, p, k, DDP__FROM_DY, b);
        break;
    case DDP__FROM_DZ:
        run_loop(loop, p, k, DDP__FROM_DZ, b);
        break;
    case DDP__FROM_X_RELU:
        run_loop(loop, p, k, DDP__FROM_X_RELU, b);
        break;
    case DDP__FROM_X_RELU6:
        run_loop(loop, p, k, DDP__FROM_X_RELU6, b);
        break;
    case DDP__FROM_X_SILU:
        run_loop(loop, p, k, DDP__FROM_X_SILU, b);
        break;
    case DDP__FROM_X_HARDSWISH:
        run_loop(loop, p, k, DDP__FROM_X_HARDSWISH, b);
        break;
    case DDP__FROM_RELU:
        run_loop(loop, p, k, DDP__FROM_RELU, b);
        break;
    case DDP__FROM_RELU6:
        run_loop(loop, p, k, DDP__FROM_RELU6, b);
        break;
    case DDP__FROM_SIGMOID:
        run_loop(loop, p, k, DDP__FROM_SIGMOID, b);
        break;
    case DDP__FROM_TANH:
        run_loop(loop, p, k, DDP__FROM_TANH, b);
        break;
    default: /* in registers only */
        break;
    }
}

DDP__CLONES void ddp__bn_bwd_sum(const struct ddp__bn_params *p,
                                 const struct ddp__bn_part *k,
                                 enum ddp__bn_source from, bool b)
{
    if (b)
        run_instance(SUM, p, k, from, true);
    else
        run_instance(SUM, p, k, from, false);
}

DDP__CLONES void ddp__bn_bwd_keep(const struct ddp__bn_params *p,
                                  const struct ddp__bn_part *k,
                                  enum ddp__bn_source from, bool b)
{
    if (b)
        run_instance(KEEP, p, k, from, true);
    else
        run_instance(KEEP, p, k, from, false);
}

DDP__CLONES void ddp__bn_bwd_spread(const struct ddp__bn_params *p,
                                    const struct ddp__bn_part *k,
                                    enum ddp__bn_source from, bool b)
{
    if (b)
        run_instance(SPREAD, p, k, from, true);
    else
        run_instance(SPREAD, p, k, from, false);
}

enum ddp__bn_source ddp__bn_source_of(enum ddp_act act, bool residual)
{
    static const enum ddp__bn_source from_y[DDP_ACT_COUNT] = {
        [DDP_IDENTITY] = DDP__FROM_DY, [DDP_RELU] = DDP__FROM_RELU,
        [DDP_RELU6] = DDP__FROM_RELU6, [DDP_SIGMOID] = DDP__FROM_SIGMOID,
        [DDP_TANH] = DDP__FROM_TANH,
    };
    static const enum ddp__bn_source from_x[DDP_ACT_COUNT] = {
        [DDP_RELU] = DDP__FROM_X_RELU,
        [DDP_RELU6] = DDP__FROM_X_RELU6,
        [DDP_SILU] = DDP__FROM_X_SILU,
        [DDP_HARDSWISH] = DDP__FROM_X_HARDSWISH,
    };

    return !residual && from_x[act] ? from_x[act] : from_y[act];
}
