/* skinny_wgrad.c - weight gradients of products with few rows
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Gradients that do not fit in the caches go past them: two busy cores with AMX
 * need 6.4 and 13.1 ms for those of 4096x4096, 4 and 16 samples, with stores
 * through the caches, and 2.9 and 5.2.  There oneDNN needs 24 and 26.5.
 */
#include "config.h"

#include "cpu/cpu.h"
#include "cpu/store.h"
#include "skinny_wgrad.h"

enum { LINE = 16 /* floats */ };

/* Whether gradients at dw go past the caches, in whole lines: there are more of
 * them than fit. */
static bool streams(const struct ddp__skinny_product *p, const float *dw)
{
    return p->in % LINE == 0 && p->c % LINE == 0 &&
           (uintptr_t)dw % (LINE * sizeof(*dw)) == 0 &&
           ddp__streams(p->in * p->out, false);
}

DDP__CLONES static void sum_rows(const float *restrict dy, size_t rows,
                                 size_t o, bool add, float *restrict db)
{
    if (!add)
        memset(db, 0, o * sizeof(*db));
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < o; i++)
            db[i] += dy[r * o + i];
}

void ddp__skinny_wgrad(const struct ddp__skinny_product *p, const float *x,
                       const float *dy, bool bias, bool add, float *dw)
{
    const struct ddp__skinny_loops *loops = ddp__skinny_loops();

    for (size_t tap = 0; tap < p->x->taps; tap++) {
        const struct ddp__skinny_tap *t = &p->x->tap[tap];
        size_t len = ddp__skinny_piece(t);

        for (size_t at = 0; at < p->c; at += len) {
            float *to = dw + tap * p->c + at;
            struct ddp__skinny_columns k = {
                t, len < p->c - at ? len : p->c - at, add, streams(p, to)};

            loops->put_columns(p, &k, x + at, dy, to);
            if (k.stream)
                ddp__store_end();
        }
    }
    if (bias)
        sum_rows(dy, p->n, p->out, add, dw + p->in * p->out);
}
