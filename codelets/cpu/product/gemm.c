/* gemm.c - products of rows with matrices in panels: Winograd's, and those
 * of dense and 1x1 layers; gemm_t.c has those of columns
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One Zen 5 core under load, GFLOP/s of oneDNN 2.6's dnnl_sgemm(), here with
 * floats and with pairs of integers in their place: 28x64x64 191, 266, 477;
 * 28x128x128 237, 265, 494; 128x256x256 260, 259, 504.  The integers, and small
 * products, are what this is for.
 */
#include "config.h"

#include "gemm.h"
#include "gemm_block.h"

#ifdef DDP__X86

enum { ROWS = DDP__GEMM_ROWS, PANEL = DDP__GEMM_PANEL };

static enum ddp__gemm_kind kind_of(const struct ddp__gemm_product *g,
                                   const struct ddp__gemm_finish *f,
                                   size_t line)
{
    if (f)
        return f->fetch && line < f->fetch->lines ? DDP__GEMM_FETCH
                                                  : DDP__GEMM_FINISH;
    return g->row ? DDP__GEMM_INTEGERS : DDP__GEMM_FLOATS;
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

        for (size_t i = 0; i < g->m; i += ROWS, line += k) {
            struct ddp__gemm_block t = {.k = k,
                                        .a = (const float *)g->a + i * g->lda,
                                        .lda = g->lda,
                                        .b = b,
                                        .next = next_of(g, f, b, i),
                                        .row = g->row ? g->row + i : NULL,
                                        .col = g->row ? g->col + j : NULL,
                                        .finish = f,
                                        .column = j,
                                        .line = line,
                                        .p = p + i * ldp + j,
                                        .ldp = ldp};
            size_t rows = g->m - i < ROWS ? g->m - i : ROWS;

            ddp__gemm_block[kind_of(g, f, line)][wide](rows, &t);
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
        struct ddp__gemm_block t = {.k = g->k,
                                    .a = (const float *)g->a + row * g->lda,
                                    .lda = g->lda,
                                    .b = g->b,
                                    .next = *next++,
                                    .p = p + row * ldp,
                                    .ldp = ldp};

        rows = g->m - row < most ? g->m - row : most;
        ddp__gemm_block[DDP__GEMM_FLOATS][g->n >= PANEL](rows, &t);
    }
}

void ddp__gemm_finish(const struct ddp__gemm_product *g,
                      const struct ddp__gemm_finish *f, float *p, size_t ldp)
{
    multiply(g, f, p, ldp);
}

void ddp__gemm_round(const struct ddp__gemm_product *g,
                     const struct ddp__gemm_round *r)
{
    for (size_t i = 0; i < g->m; i += ROWS) {
        struct ddp__gemm_block t = {.k = g->k,
                                    .a = (const float *)g->a + i * g->lda,
                                    .lda = g->lda,
                                    .b = g->b,
                                    .next = next_of(g, NULL, g->b, i),
                                    .row = g->row + i,
                                    .col = g->col,
                                    .round = r,
                                    .first = i};
        size_t rows = g->m - i < ROWS ? g->m - i : ROWS;

        ddp__gemm_block[DDP__GEMM_ROUND][g->n >= PANEL](rows, &t);
    }
}

void ddp__gemm_stream(const struct ddp__gemm_product *g,
                      const struct ddp__gemm_stream *m, float *p, size_t ldp)
{
    for (size_t j = 0; j < g->n; j += PANEL)
        for (size_t i = 0; i < g->m; i += ROWS) {
            struct ddp__gemm_block t = {.k = g->k,
                                        .a = (const float *)g->a + i * g->lda,
                                        .lda = g->lda,
                                        .b = (const float *)g->b + j * g->k,
                                        .next = m->next + i * g->lda,
                                        .bias = m->bias ? m->bias + j : NULL,
                                        .past = m->past,
                                        .p = p + i * ldp + j,
                                        .ldp = ldp};
            size_t rows = g->m - i < ROWS ? g->m - i : ROWS;

            ddp__gemm_block[DDP__GEMM_STREAM][g->n - j >= PANEL](rows, &t);
        }
}

#endif
