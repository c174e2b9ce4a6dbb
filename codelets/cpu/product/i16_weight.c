/* i16_weight.c - filters as panels of 16-bit integers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "cpu/thread.h"
#include "gemm.h"
#include "i16_round.h"
#include "i16_weight.h"
#include "pixels.h"

enum {
    VECTOR = DDP__GEMM_VECTOR,
    PANEL = DDP__GEMM_PANEL,
    PANELS = 8,     /* of a part at least, for long rows */
    SHARE = 1 << 16 /* weights of a part: some 20 us */
};

static size_t values_of(const struct ddp__conv_shape *s)
{
    return (size_t)(s->conv.kh * s->conv.kw) * (size_t)s->c;
}

size_t ddp__i16_pairs(const struct ddp__conv_shape *s)
{
    return (values_of(s) + 1) / 2;
}

size_t ddp__i16_columns(const struct ddp__conv_shape *s)
{
    return ddp__pixels_columns(s);
}

size_t ddp__i16_weight_size(const struct ddp__conv_shape *s)
{
    return (ddp__i16_pairs(s) + 1) * ddp__i16_columns(s) * sizeof(uint32_t);
}

static size_t panels_of(const struct ddp__conv_shape *s)
{
    return (ddp__i16_columns(s) + PANEL - 1) / PANEL;
}

/* Of at least some panels. */
int ddp__i16_weight_parts(const struct ddp__conv_shape *s)
{
    size_t parts = ddp__i16_columns(s) * values_of(s) / SHARE + 1;
    size_t most = (panels_of(s) + PANELS - 1) / PANELS;

    return (int)(parts < most ? parts : most);
}

#ifdef DDP__X86
#include "i16_unit.h"

/* ---- filters that lie in columns ---------------------------------------- */

/* Filters of a turned layer are columns of its weights.  Some panels are made
 * together, so that rows are read in long pieces: lines of one panel are as far
 * apart as rows, and would evict each other from the caches. */
struct columns {
    const struct ddp__conv_shape *s;
    const struct ddp__i16_filters *f;
    size_t values, pairs, o, all;
    size_t first, end; /* columns from first to before end */
    uint32_t *to;
    float *unit, *by; /* of all; by: factors */
};

DDP__V16_INLINE v16 load_columns(const struct columns *p, const float *row,
                                 size_t j)
{
    if (j + VECTOR <= p->o)
        return LOAD(row + j);
    return _mm512_maskz_loadu_ps(ddp__mask16(p->o > j ? p->o - j : 0), row + j);
}

/* A value of all filters: channel c under a tap. */
struct value {
    size_t tap, c;
};

/* Its row; then it is the next one. */
static const float *next_row(const struct columns *p, struct value *v)
{
    size_t tap = p->f->tap[v->tap];
    const float *row = p->f->w + (v->c * p->f->taps + tap) * p->o;

    if (++v->c == (size_t)p->s->c) {
        v->c = 0;
        v->tap++;
    }
    return row;
}

/* unit = sums of squares, times by^2. */
DDP__V16 static void sum_columns(const struct columns *p)
{
    struct value v = {0, 0};

    for (size_t j = p->first; j < p->end; j += VECTOR)
        STORE(p->unit + j, ZERO);
    for (size_t i = 0; i < p->values; i++) {
        const float *w = next_row(p, &v);

        for (size_t j = p->first; j < p->end; j += VECTOR) {
            v16 x = MUL(load_columns(p, w, j), LOAD(p->by + j));

            STORE(p->unit + j, FMA(x, x, LOAD(p->unit + j)));
        }
    }
}

/* by = what columns are multiplied by. */
DDP__V16 static void find_columns(const struct columns *p)
{
    __mmask16 again = 0;

    for (size_t j = p->first; j < p->end; j += VECTOR)
        STORE(p->by + j, SET(1));
    sum_columns(p);
    for (size_t j = p->first; j < p->end; j += VECTOR) {
        v16 by;

        again |= ddp__i16_out_of_range(LOAD(p->unit + j), &by);
        STORE(p->by + j, by);
    }
    if (again)
        sum_columns(p);
    for (size_t j = p->first; j < p->end; j += VECTOR) {
        STORE(p->by + j,
              ddp__i16_factor_of(LOAD(p->unit + j), LOAD(p->by + j)));
        STORE(p->unit + j, ddp__i16_unit(LOAD(p->by + j)));
    }
}

/* Pair i of column j in its panel. */
static uint32_t *place(const struct columns *p, size_t i, size_t j)
{
    size_t panel = j / PANEL * PANEL;
    size_t wide = p->all - panel < PANEL ? VECTOR : PANEL;

    return p->to + panel * p->pairs + i * wide + j % PANEL;
}

DDP__V16 static void pack_columns(const struct columns *p)
{
    struct value v = {0, 0};

    find_columns(p);
    for (size_t i = 0; i < p->values; i += 2) {
        bool pair = i + 1 < p->values;
        const float *w = next_row(p, &v);
        const float *next = pair ? next_row(p, &v) : NULL;

        for (size_t j = p->first; j < p->end; j += VECTOR)
            _mm512_storeu_si512(
                place(p, i / 2, j),
                ddp__i16_pair(load_columns(p, w, j),
                              pair ? load_columns(p, next, j) : ZERO,
                              LOAD(p->by + j)));
    }
}

/* ---- filters that lie in rows ------------------------------------------- */

/* Panels from `first` to before `end`; room: [values][PANEL] */
static void pack_panels(const struct ddp__conv_shape *s,
                        const struct ddp__i16_filters *f, size_t first,
                        size_t end, uint32_t *to, float *room)
{
    size_t values = values_of(s), pairs = ddp__i16_pairs(s);
    size_t all = ddp__i16_columns(s);
    float *unit = (float *)(void *)(to + pairs * all);

    for (size_t i = first * PANEL; i < end * PANEL; i += PANEL) {
        size_t wide = all - i < PANEL ? VECTOR : PANEL;

        ddp__pixels_panel(&(struct ddp__pixels_matrix){f->w, f->by, values,
                                                       (size_t)s->o, false},
                          i, wide, room);
        ddp__i16_round_columns(values, wide, room, wide, to + i * pairs, wide,
                               unit + i);
    }
}

int ddp__i16_weight_pack(const struct ddp__conv_shape *s,
                         const struct ddp__i16_filters *f, int part,
                         uint32_t *to)
{
    size_t values = values_of(s), pairs = ddp__i16_pairs(s);
    size_t panels = panels_of(s), parts = (size_t)ddp__i16_weight_parts(s);
    size_t first = panels * (size_t)part / parts, all = ddp__i16_columns(s);
    size_t end = panels * ((size_t)part + 1) / parts;
    size_t need = values * PANEL > all ? values * PANEL : all;
    float *room = ddp__scratch(need * sizeof(*room));

    if (!room)
        return DDP_ENOMEM;
    if (f->turn)
        pack_columns(
            &(struct columns){.s = s,
                              .f = f,
                              .values = values,
                              .pairs = pairs,
                              .o = (size_t)s->o,
                              .all = all,
                              .first = first * PANEL,
                              .end = end * PANEL < all ? end * PANEL : all,
                              .to = to,
                              .unit = (float *)(void *)(to + pairs * all),
                              .by = room});
    else
        pack_panels(s, f, first, end, to, room);
    return 0;
}

#endif
