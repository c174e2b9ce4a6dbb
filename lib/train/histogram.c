/* histogram.c - how many of some values lie where
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>

#include "train/histogram.h"

static void add(struct ddp__histogram *h, double v)
{
    if (h->values == 0 || v < h->min)
        h->min = v;
    if (h->values == 0 || v > h->max)
        h->max = v;
    h->values++;
    h->sum += v;
    h->squares += v * v;
}

double ddp__histogram_edge(const struct ddp__histogram *h, int bin)
{
    return bin < h->bins ? h->min + (h->max - h->min) * bin / h->bins : h->max;
}

struct ddp__histogram ddp__histogram(const float *v, size_t len)
{
    struct ddp__histogram h = {0};
    double scale;

    for (size_t i = 0; i < len; i++)
        if (isfinite(v[i]))
            add(&h, v[i]);
    h.bins = h.max > h.min ? DDP__BINS : 1;
    scale = h.max > h.min ? h.bins / (h.max - h.min) : 0;
    for (size_t i = 0; i < len; i++) {
        int bin = isfinite(v[i]) ? (int)((v[i] - h.min) * scale) : -1;

        if (bin >= 0)
            h.count[bin < h.bins ? bin : h.bins - 1]++;
    }
    return h;
}
