/* gemm.c - products of rows with matrices in panels: Winograd's, and those
 * of dense and 1x1 layers; gemm_t.c has those of columns
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A block of the result is kept in registers: 14 rows by 32 columns; at the end
 * of odd multiples of 16 columns by 16.  Pairs of integers take the places of
 * floats: k then counts pairs.
 *
 * One Zen 5 core under load, GFLOP/s of oneDNN 2.6's dnnl_sgemm(), here with
 * floats and with integers: 28x64x64 191, 266, 477; 28x128x128 237, 265, 494;
 * 128x256x256 260, 259, 504.  The integers, and small products, are what this
 * is for.
 */
#include "config.h"

#include "cpu/vector/v16.h"
#include "gemm.h"

#ifdef DDP__X86
#include "gemm_sum.h"

enum { ROWS = 14, PANEL = DDP__GEMM_PANEL };

/* A block of p, its factors, and what is fetched meanwhile. */
struct block {
    size_t k;
    const float *a, *b, *next;
    size_t lda, ldp;
    const float *row, *col; /* units of integers; NULL: floats */
    const float *bias;      /* of FROM_MEMORY; NULL: 0 */
    bool past;
    const struct ddp__gemm_finish *finish; /* of FINISH */
    size_t column;                         /* its first */
    size_t line;                           /* of FETCH: the first of k */
    float *p;
};

/* What is multiplied.  FROM_MEMORY: floats, whose products go to memory, too;
 * FINISH: floats, and what follows; FETCH: so, and lines of a matrix are
 * fetched. */
enum kind { FLOATS, INTEGERS, FROM_MEMORY, FINISH, FETCH };

/* ---- a b ---------------------------------------------------------------- */

/* Prefetches of weights for later go to the second-level cache. */
DDP__V16_INLINE void fetch(enum kind kind, const float *next)
{
    if (kind == FROM_MEMORY)
        _mm_prefetch((const void *)next, _MM_HINT_T0);
    else
        _mm_prefetch((const void *)next, _MM_HINT_T1);
}

DDP__V16_INLINE void fetch_line(const struct ddp__gemm_fetch *f, size_t line)
{
    size_t row = line >> f->shift, mask = ((size_t)1 << f->shift) - 1;
    const float *p = f->from + row * f->pitch + (line & mask) * 16;

    _mm_prefetch((const void *)p, _MM_HINT_T1);
}

DDP__V16_INLINE v16 begin_sum(enum kind kind, const struct block *t, size_t j)
{
    return kind == FROM_MEMORY && t->bias ? LOAD(t->bias + j)
                                          : _mm512_setzero_ps();
}

DDP__V16_INLINE void end_sum(enum kind kind, const struct block *t, size_t i,
                             size_t j, v16 sum)
{
    float *p = t->p + i * t->ldp + j;

    if (kind == INTEGERS)
        sum = sum_in_units(sum, t->row[i], t->col + j);
    if (kind == FROM_MEMORY && t->past)
        _mm512_stream_ps(p, sum);
    else
        STORE(p, sum);
}

/* How a vector of columns ends. */
struct ending {
    v16 bias, low, high;
    __mmask16 mask; /* of columns that p has */
    bool add, past;
    ptrdiff_t later;
};

DDP__V16_INLINE struct ending ending_of(const struct block *t, size_t j)
{
    const struct ddp__gemm_finish *f = t->finish;
    size_t at = t->column + j, left = f->columns - at;
    struct ending e = {.low = SET(f->low),
                       .high = SET(f->high),
                       .mask = ddp__mask16(left),
                       .add = f->add,
                       .past = f->past,
                       .later = f->later};

    e.bias = _mm512_maskz_loadu_ps(e.mask, f->bias + at);
    return e;
}

/* A NaN remains one. */
DDP__V16_INLINE void finish_sum(const struct ending *e, float *p, v16 sum)
{
    v16 v = ADD(sum, e->bias);

    if (e->add) {
        _mm_prefetch((const void *)(p + e->later), _MM_HINT_T1);
        v = ADD(v, _mm512_maskz_loadu_ps(e->mask, p));
    }
    v = _mm512_min_ps(e->high, _mm512_max_ps(e->low, v));
    if (e->past)
        _mm512_stream_ps(p, v);
    else
        _mm512_mask_storeu_ps(p, e->mask, v);
}

DDP__V16_INLINE void finish_sums(const struct block *t, size_t rows, int wide,
                                 v16 acc[ROWS][2])
{
    struct ending first = ending_of(t, 0);
    struct ending second = wide > 1 ? ending_of(t, 16) : first;

#pragma GCC unroll 14
    for (size_t i = 0; i < rows; i++) {
        finish_sum(&first, t->p + i * t->ldp, acc[i][0]);
        if (wide > 1)
            finish_sum(&second, t->p + i * t->ldp + 16, acc[i][1]);
    }
}

/* `rows` rows of a against a panel of b of `wide` times 16 columns (constants
 * all).  Meanwhile k lines from t->next on are fetched. */
DDP__V16_INLINE void block(enum kind kind, size_t rows, int wide,
                           const struct block *t)
{
    v16 acc[ROWS][2];
    size_t lda = t->lda;
    const float *a0 = t->a, *a3 = a0 + 3 * lda, *a6 = a3 + 3 * lda;
    const float *a9 = a6 + 3 * lda, *a12 = a9 + 3 * lda;
    const float *b = t->b, *next = t->next;
    v16 first = begin_sum(kind, t, 0);
    v16 second = wide > 1 ? begin_sum(kind, t, 16) : first;

#pragma GCC unroll 14
    for (size_t i = 0; i < rows; i++) {
        acc[i][0] = first;
        acc[i][1] = second;
    }
    for (size_t l = 0; l < t->k; l++, b += wide * 16, next += 16) {
        v16 b0 = LOAD(b), b1 = wide > 1 ? LOAD(b + 16) : b0;

        if (kind == FETCH)
            fetch_line(t->finish->fetch, t->line + l);
        else
            fetch(kind, next);
#define ROW(i, at)                                                             \
    if (i < rows) {                                                            \
        v16 v = SET(at);                                                       \
        acc[i][0] = multiply_add(kind == INTEGERS, v, b0, acc[i][0]);          \
        if (wide > 1)                                                          \
            acc[i][1] = multiply_add(kind == INTEGERS, v, b1, acc[i][1]);      \
    }
#define ROW3(i, q)                                                             \
    ROW(i, q[0])                                                               \
    ROW(i + 1, q[lda])                                                         \
    ROW(i + 2, q[2 * lda])
        ROW3(0, a0)
        ROW3(3, a3)
        ROW3(6, a6)
        ROW3(9, a9)
        ROW(12, a12[0])
        ROW(13, a12[lda])
#undef ROW3
#undef ROW
        a0++, a3++, a6++, a9++, a12++;
        /* One register per pointer, not one per row. */
        __asm__("" : "+r"(a0), "+r"(a3), "+r"(a6), "+r"(a9), "+r"(a12));
    }
    if (kind == FINISH || kind == FETCH) {
        finish_sums(t, rows, wide, acc);
        return;
    }
#pragma GCC unroll 14
    for (size_t i = 0; i < rows; i++) {
        end_sum(kind, t, i, 0, acc[i][0]);
        if (wide > 1)
            end_sum(kind, t, i, 16, acc[i][1]);
    }
}

/* 1 to ROWS of them. */
#define ROW_COUNTS(X)                                                          \
    X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)

DDP__V16_INLINE void rows_of_block(enum kind kind, int wide, size_t rows,
                                   const struct block *t)
{
    switch (rows) {
#define X(r)                                                                   \
    case r:                                                                    \
        block(kind, r, wide, t);                                               \
        break;
        ROW_COUNTS(X)
#undef X
    default:
        break;
    }
}

/* A function for each kind, of a whole panel and of half of one. */
#define WIDTHS(kind, suffix)                                                   \
    DDP__V16 static void whole##suffix(size_t rows, const struct block *t)     \
    {                                                                          \
        rows_of_block(kind, 2, rows, t);                                       \
    }                                                                          \
    DDP__V16 static void half##suffix(size_t rows, const struct block *t)      \
    {                                                                          \
        rows_of_block(kind, 1, rows, t);                                       \
    }
WIDTHS(FLOATS, )
WIDTHS(INTEGERS, _i16)
WIDTHS(FROM_MEMORY, _stream)
WIDTHS(FINISH, _finish)
WIDTHS(FETCH, _fetch)
#undef WIDTHS

static void run_finish(bool wide, size_t rows, struct block *t, size_t line)
{
    const struct ddp__gemm_fetch *f = t->finish->fetch;

    t->line = line;
    if (f && line < f->lines)
        (wide ? whole_fetch : half_fetch)(rows, t);
    else
        (wide ? whole_finish : half_finish)(rows, t);
}

/* What is fetched while rows from i on are multiplied by a panel: what follows
 * says, or the next panel (the next matrix's, after the last) in halves. */
static const float *next_of(const struct ddp__gemm_product *g,
                            const struct ddp__gemm_finish *f, const float *b,
                            size_t i)
{
    if (f && f->next)
        return f->next + i * g->lda;
    return i < 2 * ROWS && i + ROWS <= g->m
               ? b + PANEL * g->k + i / ROWS * 16 * g->k
               : b;
}

/* f: NULL, or what follows. */
static void multiply(const struct ddp__gemm_product *g,
                     const struct ddp__gemm_finish *f, float *p, size_t ldp)
{
    size_t k = g->k, line = 0;
    const float *b = g->b;

    for (size_t j = 0; j < g->n; j += PANEL, b += PANEL * k) {
        bool wide = g->n - j >= PANEL;

        for (size_t i = 0; i < g->m; i += ROWS) {
            struct block t = {.k = k,
                              .a = (const float *)g->a + i * g->lda,
                              .lda = g->lda,
                              .b = b,
                              .next = next_of(g, f, b, i),
                              .row = g->row ? g->row + i : NULL,
                              .col = g->row ? g->col + j : NULL,
                              .finish = f,
                              .column = j,
                              .p = p + i * ldp + j,
                              .ldp = ldp};
            size_t rows = g->m - i < ROWS ? g->m - i : ROWS;

            if (f)
                run_finish(wide, rows, &t, line);
            else if (g->row)
                (wide ? whole_i16 : half_i16)(rows, &t);
            else
                (wide ? whole : half)(rows, &t);
            line += k;
        }
    }
}

void ddp__gemm(const struct ddp__gemm_product *g, float *p, size_t ldp)
{
    multiply(g, NULL, p, ldp);
}

size_t ddp__gemm_blocks(size_t rows)
{
    return (rows + ROWS - 1) / ROWS;
}

void ddp__gemm_ahead(const struct ddp__gemm_product *g,
                     const float *const *next, float *p, size_t ldp)
{
    bool two = g->m > ROWS && g->m <= 2 * ROWS;
    size_t most = two ? (g->m + 1) / 2 : ROWS, rows;

    for (size_t row = 0; row < g->m; row += rows) {
        struct block t = {.k = g->k,
                          .a = (const float *)g->a + row * g->lda,
                          .lda = g->lda,
                          .b = g->b,
                          .next = *next++,
                          .p = p + row * ldp,
                          .ldp = ldp};

        rows = g->m - row < most ? g->m - row : most;
        (g->n >= PANEL ? whole : half)(rows, &t);
    }
}

void ddp__gemm_finish(const struct ddp__gemm_product *g,
                      const struct ddp__gemm_finish *f, float *p, size_t ldp)
{
    multiply(g, f, p, ldp);
}

void ddp__gemm_stream(const struct ddp__gemm_product *g,
                      const struct ddp__gemm_stream *m, float *p, size_t ldp)
{
    for (size_t j = 0; j < g->n; j += PANEL)
        for (size_t i = 0; i < g->m; i += ROWS) {
            struct block t = {.k = g->k,
                              .a = (const float *)g->a + i * g->lda,
                              .lda = g->lda,
                              .b = (const float *)g->b + j * g->k,
                              .next = m->next + i * g->lda,
                              .bias = m->bias ? m->bias + j : NULL,
                              .past = m->past,
                              .p = p + i * ldp + j,
                              .ldp = ldp};
            size_t rows = g->m - i < ROWS ? g->m - i : ROWS;

            (g->n - j >= PANEL ? whole_stream : half_stream)(rows, &t);
        }
}

#endif
