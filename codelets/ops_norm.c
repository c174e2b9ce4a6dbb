/* ops_norm.c - parts of a vector, and the sum of its squares
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "ops_norm.h"

int ddp__norm_pieces(size_t len)
{
    int n = 1;

    while (n <= 1 << 24 && len / (size_t)(2 * n) >= DDP__NORM_PIECE)
        n *= 2;
    return n;
}

static size_t strip_end(size_t len, int n, int i)
{
    size_t lines = (len + 15) / 16;
    size_t end = lines * (size_t)i / (size_t)n * 16;

    return end < len ? end : len;
}

void ddp__strip_range(size_t len, int n, int i, size_t *from, size_t *to)
{
    *from = strip_end(len, n, i);
    *to = strip_end(len, n, i + 1);
}

bool ddp__strip_span(const struct ddp__span *whole, size_t from, size_t to,
                     struct ddp__span *out)
{
    size_t end = whole->begin + whole->len;

    *out = *whole;
    out->begin = from > whole->begin ? from : whole->begin;
    end = to < end ? to : end;
    out->len = end > out->begin ? end - out->begin : 0;
    return out->len > 0;
}

void ddp__norm_tree_add(struct ddp__norm_tree *t, double term)
{
    int last = __builtin_popcount(t->terms);

    for (unsigned k = t->terms++; k & 1; k >>= 1)
        term += t->branch[--last];
    t->branch[last] = term;
}

int ddp__norm_squares(const struct ddp__task *t,
                      double (*squares)(const struct ddp__task *t,
                                        const struct ddp__span *s,
                                        double norm[DDP__NORMS]))
{
    const struct ddp__optim *p = &t->call->optim;
    size_t len = ddp__len(t, DDP__SQNORM_G), from, to;
    const double *stats = t->data[DDP__SQNORM_STATS];
    double divisor = stats[DDP__STAT_DIVISOR],
           *norm = t->data[DDP__SQNORM_NORM];
    struct ddp__norm_tree tree = {0};
    int pieces = ddp__norm_pieces(len);

    if (!t->accumulate)
        memset(norm, 0, DDP__NORMS * sizeof(*norm));
    if (divisor == 0)
        return 0;
    for (int i = 0; i < pieces; i++) {
        struct ddp__span s;
        double sum = 0;

        ddp__strip_range(len, pieces, i, &from, &to);
        for (int k = 0; k < p->spans; k++)
            if (ddp__strip_span(&p->span[k], from, to, &s))
                sum += squares(t, &s, norm);
        ddp__norm_tree_add(&tree, sum);
    }
    norm[DDP__NORM_SQUARES] += tree.branch[0] / (divisor * divisor);
    return 0;
}
