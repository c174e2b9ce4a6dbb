/* merge.c - sums and copies of whole vectors, in plain C
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <string.h>
#include "backend.h"
#include "ref.h"

/* dst += src */
int ddp__ref_merge(const struct ddp__task *t)
{
    float *dst = t->data[DDP__MERGE_DST];
    const float *src = t->data[DDP__MERGE_SRC];

    for (size_t i = 0; i < ddp__len(t, DDP__MERGE_DST); i++)
        dst[i] += src[i];
    return 0;
}

/* dst += src, in double */
int ddp__ref_merge_stats(const struct ddp__task *t)
{
    double *dst = t->data[DDP__MERGE_STATS_DST];
    const double *src = t->data[DDP__MERGE_STATS_SRC];

    for (size_t i = 0; i < ddp__len(t, DDP__MERGE_STATS_DST); i++)
        dst[i] += src[i];
    return 0;
}

/* dst = src */
int ddp__ref_keep(const struct ddp__task *t)
{
    memcpy(t->data[DDP__KEEP_DST], t->data[DDP__KEEP_SRC],
           ddp__len(t, DDP__KEEP_DST) * sizeof(float));
    return 0;
}
