/* i16_conv.c - convolutions in bf16 as products of 16-bit integers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Forward passes and data gradients that Winograd's way does not fit.  What a
 * block of outputs sees is rounded (i16_rows.c) and meets one panel of filters
 * after the other; sums are rounded to bf16 on their way from the first-level
 * cache.
 *
 * An Intel Xeon whose AMX is hidden, one core, idle, least milliseconds of 8
 * images forward and of the data gradient, weights changed before: f32 (by
 * oneDNN 2.6 but for the first three), bf16 by oneDNN, which multiplies it with
 * vdpbf16ps, and in this way ("by 2": of stride 2):
 *
 *     1x1, 56x56, 64 to 256              5.5  5.5   9.9 10.1   4.0 3.7
 *     1x1, 56x56, 256 to 64              5.6  5.5  10.1  9.9   3.7 4.0
 *     1x1, 28x28, 128 to 512             5.1  5.3   9.8  9.7   3.0 3.0
 *     1x1, 14x14, 1024 to 256            5.3  5.8   9.7  9.9   2.7 2.9
 *     1x1, 7x7, 512 to 2048              6.7  6.5  10.4 10.8   3.2 3.8
 *     1x1 by 2, 56x56, 256 to 512       10.4 14.4  19.5 20.6   5.6 7.2
 *     3x3 by 2, 56x56, 128 to 128       11.6 12.8  21.2 21.5   6.3 7.3
 *     3x3 by 2, 14x14, 512 to 512       14.6 14.6  21.5 22.7   7.3 9.4
 *     7x7 by 2, 224x224, 3 to 64        11.6       28.7       11.9
 *     1x1, 14x14, 576 to 96, 16 images   2.2  2.2   4.1  4.2   1.3 1.4
 *     dense, 512 to 1000, 128 samples    1.0  1.0   1.7  1.8   0.7 0.9
 *
 * Where a filter has fewer than 32 values oneDNN is as fast, and in dense
 * layers of few samples, whose weights take longer to round than to multiply:
 * 4096 to 4096, 16 samples, data gradient 18, 25 in this way.  A result is
 * within sqrt(k / 6) / 32766 of its norm before it is rounded, for k values of
 * a filter: 2e-4 for 256, 9e-4 for 4608; to round it to bf16 costs 1.7e-3, and
 * weights in bf16, as oneDNN has them, as much (tests/test_i16_conv.c).
 */
#include "config.h"

#include <math.h>

#include "base/team.h"
#include "cpu/cpu.h"
#include "cpu/elementwise/act_v16.h"
#include "cpu/store.h"
#include "cpu/thread.h"
#include "cpu/vector/unit_v16.h"
#include "gemm.h"
#include "i16_conv.h"
#include "i16_rows.h"
#include "i16_weight.h"
#include "patch.h"

enum {
    VECTOR = DDP__GEMM_VECTOR,
    PANEL = DDP__GEMM_PANEL,
    STEP = DDP__GEMM_ROWS,
    LEAST_VALUES = 32,     /* of a filter, which pay for their rounding */
    LEAST_SAMPLES = 64,    /* of a dense layer, that pay for its weights */
    ROWS = 2 * STEP,       /* of a block */
    MOST_ROWS = 12 * STEP, /* of one that meets many weights */
    LIGHT = 3 << 18,       /* bytes of weights that stay in the second-level
                              cache */
    ROOM = 5 << 17,        /* bytes of rows that do so beside a panel */
    PART = 1 << 20,        /* pairs of products of a part: some 12 us */
};

bool ddp__i16_conv_fits(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return s->type == DDP_BF16 && (!s->dense || s->n >= LEAST_SAMPLES) &&
           k->groups == 1 && k->dh == 1 && k->dw == 1 &&
           k->kh <= DDP__PATCH_MOST && k->kw <= DDP__PATCH_MOST &&
           k->kh * k->kw * s->c >= LEAST_VALUES && ddp__i16_here() &&
           !ddp__patch_pays(s);
}

struct ddp__i16_target ddp__i16_target(const struct ddp__conv_shape *s,
                                       uint16_t *y)
{
    size_t o = (size_t)s->o, row = (size_t)s->ow * o;

    return (struct ddp__i16_target){y, o, row, (size_t)s->oh * row};
}

#ifdef DDP__X86

/* A block: its rows of integers, their units, where they go, and their sums. */
struct block {
    size_t rows;
    uint32_t *q;
    float *unit, *sum;
    uint16_t *y[MOST_ROWS];
};

struct run {
    const struct ddp__conv_shape *s;
    const uint16_t *x;
    const uint32_t *w;
    const float *unit, *bias;
    const struct ddp__i16_target *to;
    size_t o, all, pairs, ldq, outputs, rows; /* rows: of a block */
    size_t bands, groups;                     /* parts: of outputs, of panels */
    float low, high;
    bool past, plain; /* plain: sums are results */
};

static void find_targets(const struct run *r, struct ddp__patch_place at,
                         struct block *b)
{
    const struct ddp__i16_target *t = r->to;

    for (size_t i = 0; i < b->rows; i++) {
        b->y[i] = t->y + at.image * t->image + (size_t)at.y * t->row +
                  (size_t)at.x * t->pixel;
        ddp__patch_next(r->s, &at);
    }
}

/* ---- results ------------------------------------------------------------ */

/* How up to 32 filters end; second: there are more than 16. */
struct ending {
    bool second;
    v16 bias[2];
    __mmask16 mask[2];
    struct ddp__unit unit;
};

DDP__UNIT_INLINE struct ending ending_of(const struct run *r, size_t j)
{
    size_t left = r->o - j;
    struct ending e = {.second = left > VECTOR,
                       .unit = {.b = true,
                                .whole = left >= PANEL,
                                .stream = r->past,
                                .mask = left < PANEL ? (1U << left) - 1 : 0}};

    e.mask[0] = ddp__mask16(left);
    e.mask[1] = e.second ? ddp__mask16(left - VECTOR) : 0;
    for (size_t i = 0; i < 2; i++)
        e.bias[i] =
            r->bias && e.mask[i]
                ? _mm512_maskz_loadu_ps(e.mask[i], r->bias + j + i * VECTOR)
                : _mm512_setzero_ps();
    return e;
}

/* A NaN remains one. */
DDP__UNIT_INLINE v16 result(const struct run *r, v16 sum, v16 bias,
                            __mmask16 mask, const uint16_t *y)
{
    v16 v = _mm512_add_ps(sum, bias);

    if (r->s->sum)
        v = _mm512_add_ps(
            v,
            _mm512_castsi512_ps(_mm512_slli_epi32(
                _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, y)), 16)));
    if (r->s->conv.act > DDP_RELU6)
        return ddp__act_v16(v, r->s->conv.act);
    return _mm512_min_ps(_mm512_set1_ps(r->high),
                         _mm512_max_ps(_mm512_set1_ps(r->low), v));
}

DDP__UNIT_TARGET static void put_panel(const struct run *r,
                                       const struct block *b, size_t j)
{
    struct ending e = ending_of(r, j);

    for (size_t i = 0; i < b->rows; i++) {
        const float *sum = b->sum + i * PANEL;
        uint16_t *y = b->y[i] + j;
        v16 v = result(r, _mm512_load_ps(sum), e.bias[0], e.mask[0], y), v2 = v;

        if (e.second)
            v2 = result(r, _mm512_load_ps(sum + VECTOR), e.bias[1], e.mask[1],
                        y + VECTOR);
        ddp__unit_put_bf16(y, (__m512i)_mm512_cvtne2ps_pbh(v2, v), e.unit);
    }
}

/* A panel of a block: what it is multiplied by begins with filter j. */
static void run_panel(const struct run *r, const struct block *b, size_t j)
{
    size_t left = r->o - j;
    struct ddp__gemm_product g = {.m = b->rows,
                                  .n = r->all - j < PANEL ? VECTOR : PANEL,
                                  .k = r->pairs,
                                  .a = b->q,
                                  .lda = r->ldq,
                                  .b = r->w + j * r->pairs,
                                  .row = b->unit,
                                  .col = r->unit + j};

    if (r->plain) {
        ddp__gemm_round(&g, &(struct ddp__gemm_round){
                                .y = b->y,
                                .at = j,
                                .columns = left < PANEL ? left : PANEL,
                                .past = r->past});
    } else {
        ddp__gemm(&g, b->sum, PANEL);
        put_panel(r, b, j);
    }
}

/* ---- parts -------------------------------------------------------------- */

/* Panels from `first` to before `end` of a block that begins with output
 * `at`. */
static void run_block(const struct run *r, struct block *b, size_t at,
                      size_t first, size_t end)
{
    struct ddp__patch_place place = ddp__patch_place(r->s, at);

    ddp__i16_rows(r->s, r->x, place, b->rows, b->q, r->ldq, b->unit);
    find_targets(r, place, b);
    for (size_t j = first * PANEL; j < end * PANEL && j < r->all; j += PANEL)
        run_panel(r, b, j);
}

static size_t panels_of(const struct run *r)
{
    return ddp__divide_up(r->all, PANEL);
}

static size_t steps_of(const struct run *r)
{
    return ddp__divide_up(r->outputs, STEP);
}

static int run_part(void *arg, int i)
{
    const struct run *r = arg;
    size_t band = (size_t)i % r->bands, group = (size_t)i / r->bands;
    size_t at = steps_of(r) * band / r->bands * STEP;
    size_t last = steps_of(r) * (band + 1) / r->bands * STEP;
    size_t first = panels_of(r) * group / r->groups;
    size_t end = panels_of(r) * (group + 1) / r->groups;
    size_t q = ddp__align(r->rows * r->ldq * sizeof(uint32_t));
    size_t unit = ddp__align(r->rows * sizeof(float));
    char *room = ddp__scratch(q + unit + r->rows * PANEL * sizeof(float));
    struct block b = {.q = (uint32_t *)(void *)room,
                      .unit = (float *)(void *)(room + q),
                      .sum = (float *)(void *)(room + q + unit)};

    if (!room)
        return DDP_ENOMEM;
    for (last = last < r->outputs ? last : r->outputs; at < last;
         at += b.rows) {
        b.rows = last - at < r->rows ? last - at : r->rows;
        run_block(r, &b, at, first, end);
    }
    if (r->past)
        ddp__store_end();
    return 0;
}

/* Each part reads the filters of its panels and rounds what its outputs see:
 * outputs are cut unless there are few. */
static void cut(struct run *r)
{
    size_t work = r->outputs * r->all * (r->pairs + PANEL);
    size_t parts = (size_t)ddp__team_parts(work, PART);

    r->bands = parts < steps_of(r) ? parts : steps_of(r);
    r->groups = parts / r->bands;
    if (r->groups > panels_of(r))
        r->groups = panels_of(r);
}

/* Weights that do not stay in the cache meet as many rows as do. */
static size_t rows_of_block(const struct run *r)
{
    size_t row = r->ldq * sizeof(uint32_t), rows = ROOM / row / STEP * STEP;

    if (r->pairs * r->all * sizeof(uint32_t) <= LIGHT || rows < ROWS)
        return ROWS;
    return rows < MOST_ROWS ? rows : MOST_ROWS;
}

static bool streams(const struct run *r)
{
    return r->o % PANEL == 0 && (uintptr_t)r->to->y % 64 == 0 &&
           r->to->pixel % PANEL == 0 && ddp__streams(r->outputs * r->o, true);
}

int ddp__i16_conv_run(const struct ddp__conv_shape *s, const uint16_t *x,
                      const uint32_t *packed, const float *bias,
                      const struct ddp__i16_target *to)
{
    struct run r = {.s = s,
                    .x = x,
                    .w = packed,
                    .unit = ddp__i16_weight_units(s, packed),
                    .bias = bias,
                    .to = to,
                    .o = (size_t)s->o,
                    .all = ddp__i16_columns(s),
                    .pairs = ddp__i16_pairs(s),
                    .outputs = (size_t)s->n * (size_t)s->oh * (size_t)s->ow,
                    .plain = !bias && !s->sum && s->conv.act == DDP_IDENTITY,
                    .low = s->conv.act == DDP_IDENTITY ? -INFINITY : 0,
                    .high = s->conv.act == DDP_RELU6 ? 6 : INFINITY};

    r.ldq = ddp__divide_up(r.pairs, VECTOR) * VECTOR + DDP__GEMM_SKEW;
    r.rows = rows_of_block(&r);
    r.past = streams(&r);
    cut(&r);
    return ddp__team_each((int)(r.bands * r.groups), run_part, &r);
}

#endif
