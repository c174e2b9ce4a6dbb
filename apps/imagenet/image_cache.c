/* image_cache.c - the option --cache: decoded images in memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdlib.h>
#include <string.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "common/app_log.h"
#include "image_cache.h"

static const double usual = 4e9, most = 1e15;

/* "500M", "8G": bytes; 0 for what is no size. */
static double size_of(const char *text)
{
    static const char units[] = "kMGT";
    double scale = 1e3;
    char *end;
    double x = strtod(text, &end);

    if (end == text || !(x > 0))
        return 0;
    if (!*end)
        return x;
    for (const char *u = units; *u; u++, scale *= 1e3)
        if (*end == *u && !end[1])
            return x * scale;
    return 0;
}

int image_cache_setup(const struct opts *o, const struct settings *s)
{
    static const char word[] = "memory";
    const char *rest = s->cache ? s->cache + strlen(word) : NULL;
    double bytes = usual;

    if (!s->cache)
        return OPTS_GO;
    if (strncmp(s->cache, word, strlen(word)) != 0 || (*rest && *rest != ':') ||
        (*rest && !((bytes = size_of(rest + 1)) >= 1 && bytes <= most))) {
        opt_complain(o,
                     "--cache %s: expected memory, or with a size in bytes, "
                     "such as memory:500M or memory:8G; on disks, tar files do "
                     "this: imagenet data pack --resize",
                     s->cache);
        return EXIT_USAGE;
    }
    return ddp_image_cache_configure((int64_t)bytes) < 0
               ? app_fail(ddp_errcode())
               : OPTS_GO;
}

static double share_of(const struct ddp_image_cache_stats *c)
{
    int64_t reads = c->hits + c->misses;

    return reads ? (double)c->hits / (double)reads : -1;
}

double image_cache_hits(void)
{
    struct ddp_image_cache_stats c;

    ddp_image_cache_stats(&c);
    return share_of(&c);
}

void image_cache_report(void)
{
    struct ddp_image_cache_stats c;

    ddp_image_cache_stats(&c);
    if (share_of(&c) >= 0)
        app_print("cache images=%lld MB=%.1f hits=%.1f%%\n",
                  (long long)c.images, 1e-6 * (double)c.bytes,
                  100 * share_of(&c));
}
