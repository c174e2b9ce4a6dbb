/* bn_bwd_pass.c - the passes of batch normalisation backward over its values
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "bn_bwd_pass.h"
#include "bn_line_v16.h"
#include "bn_silu_sum_v16.h"
#include "bn_silu_v16.h"
#include "bn_stat.h"
#include "bn_sum_v16.h"
#include "cpu/elementwise/mask.h"
#include "cpu/vector/unit_v16.h"

/* The block of at most `most` rows from `at` on, or the last, shorter row. */
static struct ddp__bn_part block_at(const struct ddp__bn_pass *s, size_t at,
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

/* Whether values in memory are bf16, or floats in wide. */
static bool reads_bf16(const struct ddp__bn_pass *s)
{
    return s->r.b && !s->wide;
}

/* A block with the gradient of y, which bf16 would round once more. */
static struct ddp__bn_part widen(const struct ddp__bn_pass *s,
                                 struct ddp__bn_part k)
{
    size_t block = s->r.chunk * s->r.width, len = block_len(&k);
    const uint16_t *x = k.x, *first = s->all.x;
    float *dy = s->wide + block;

    ddp__widen(x, len, s->wide);
    ddp__bn_gate_apply(s->gate, s->all.dy, (size_t)(x - first), len, dy + block,
                       dy);
    k.x = s->wide;
    k.dy = dy;
    return k;
}

/* The sums over a block whose dz is kept as dr, which the second pass reads. */
static void sum_and_keep(const struct ddp__bn_pass *s, struct ddp__bn_part k)
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
static bool in_registers(const struct ddp__bn_pass *s,
                         const struct ddp__bn_part *k)
{
    return ddp__unit_v16(reads_bf16(s)) &&
           (!k->dr || (k->mask && !s->r.b && k->len % 16 == 0));
}

/* All values, as one line. */
static struct ddp__bn_line line_of(const struct ddp__bn_pass *s)
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

/* ---- the first ---------------------------------------------------------- */

static void sum_blocks(const struct ddp__bn_pass *s, double *sum)
{
    size_t w = s->r.width, end = s->r.rows + (s->r.tail > 0);
    bool in_chunks = (s->all.dr || s->wide) && s->r.chunk < DDP__BN_BLOCK;
    size_t most = in_chunks ? s->r.chunk : DDP__BN_BLOCK;
    struct ddp__bn_part k;

    memset(sum, 0, 2 * w * sizeof(*sum));
    for (size_t at = 0; at < end; at += k.rows) {
        k = block_at(s, at, most);
        if (s->wide)
            k = widen(s, k);
        if (in_registers(s, &k)) {
            ddp__bn_sum_v16(&s->p, &k, sum, k.mask ? DDP__FROM_MASK : s->from,
                            reads_bf16(s), s->r.stream);
            continue;
        }
        if (k.dr)
            sum_and_keep(s, k);
        else
            ddp__bn_bwd_sum(&s->p, &k, s->from, reads_bf16(s));
        ddp__bn_add(sum, k.s1, k.len);
        ddp__bn_add(sum + w, k.s2, k.len);
    }
    ddp__store_end();
}

void ddp__bn_first_pass(const struct ddp__bn_pass *s, double *sum)
{
    struct ddp__bn_line l = line_of(s);

    if (s->silu)
        ddp__bn_silu_sum(&s->of_silu, &l, s->gate, sum);
    else
        sum_blocks(s, sum);
    ddp__bn_gather(&s->r, sum);
    ddp__bn_gather(&s->r, sum + s->r.width);
}

/* ---- the second --------------------------------------------------------- */

/* From the end to the beginning: what the first pass read last may still be in
 * a cache. */
static void spread_blocks(const struct ddp__bn_pass *s)
{
    size_t blocks = ddp__bn_blocks(&s->r);

    while (blocks-- > 0) {
        struct ddp__bn_part k = block_at(s, blocks * s->r.chunk, s->r.chunk);
        void *dx = k.dx;

        if (s->wide)
            k = widen(s, k);
        if (!s->r.direct)
            k.dx = s->buf;
        ddp__bn_bwd_spread(&s->p, &k, s->from, reads_bf16(s));
        if (!s->r.direct)
            ddp__store_block(dx, s->buf, block_len(&k), s->r.b, s->r.stream);
    }
    ddp__store_end();
}

static void spread_line(const struct ddp__bn_pass *s)
{
    struct ddp__bn_line l = line_of(s);

    if (s->silu)
        ddp__bn_silu_spread(&s->of_silu, &l, s->gate);
    else
        ddp__bn_spread_v16(&s->p, &l, s->from);
}

/* It reads dz from dr, where that holds it to the last bit. */
void ddp__bn_second_pass(struct ddp__bn_pass *s)
{
    enum ddp_act act = s->t->call->bn.act;
    bool exact =
        !s->r.b || act == DDP_IDENTITY || act == DDP_RELU || act == DDP_RELU6;

    if (s->t->call->bn.residual && exact) {
        s->all.dy = s->all.dr;
        s->from = DDP__FROM_DY;
    }
    if (ddp__unit_v16(s->r.b) && !s->wide)
        spread_line(s);
    else
        spread_blocks(s);
}
