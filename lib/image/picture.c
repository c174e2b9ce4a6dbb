/* picture.c - checks that all file formats share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"
#include "image/picture.h"

int ddp__picture_check(const struct ddp__picture *p, int64_t w, int64_t h,
                       int64_t most)
{
    if (w < 1 || h < 1)
        return ddp__fail(DDP_EDATA, "has no pixels");
    if (w > p->max_pixels / h)
        return ddp__fail(DDP_EDATA,
                         "has %lld x %lld pixels, more than the "
                         "limit %lld",
                         (long long)w, (long long)h, (long long)p->max_pixels);
    if (w * h / most > (int64_t)p->len)
        return ddp__fail(DDP_EDATA,
                         "claims %lld x %lld pixels, which do not "
                         "fit into %zu bytes",
                         (long long)w, (long long)h, p->len);
    return 0;
}

int ddp__picture_check_expansion(const struct ddp__picture *p, size_t bytes)
{
    enum { MANY_BYTES = 1 << 28, MOST_TIMES = 256 };

    if (bytes <= MANY_BYTES || bytes / MOST_TIMES <= p->len)
        return 0;
    return ddp__fail(DDP_EDATA,
                     "expands from %zu bytes to %zu: images of more than %d "
                     "may expand %d times",
                     p->len, bytes, MANY_BYTES, MOST_TIMES);
}
