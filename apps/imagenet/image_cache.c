/* image_cache.c - the option --cache: decoded images
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

static const double usual = 4e9, usual_disk = 50e9, most = 1e15;

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

static int complain(const struct opts *o, const char *text)
{
    opt_complain(
        o,
        "--cache %s: expected memory, or disk:DIR, and then a size in "
        "bytes if need be, such as memory:500M or disk:/tmp/pixels:80G",
        text);
    return EXIT_USAGE;
}

/* ":8G"; "": the default; -1 for what is no size. */
static int64_t bytes_of(const char *text, double none)
{
    double x = !*text ? none : *text == ':' ? size_of(text + 1) : 0;

    return x >= 1 && x <= most ? (int64_t)x : -1;
}

static int use_memory(const struct opts *o, const char *text, const char *rest)
{
    int64_t bytes = bytes_of(rest, usual);

    if (bytes < 0)
        return complain(o, text);
    return ddp_image_cache_configure(bytes) < 0 ? app_fail(ddp_errcode())
                                                : OPTS_GO;
}

/* A folder whose name has a colon needs a size behind it. */
static int use_disk(const struct opts *o, const char *text, const char *rest)
{
    const char *colon = strrchr(rest, ':');
    int64_t bytes = bytes_of(colon ? colon : "", usual_disk);
    char *dir = strndup(rest, colon ? (size_t)(colon - rest) : strlen(rest));
    int rc = OPTS_GO;

    if (!dir)
        return app_exit_code(DDP_ENOMEM);
    if (bytes < 0 || !*dir)
        rc = complain(o, text);
    else if (ddp_image_cache_folder(dir, bytes) < 0)
        rc = app_fail(ddp_errcode());
    free(dir);
    return rc;
}

int image_cache_setup(const struct opts *o, const struct settings *s)
{
    const char *text = s->cache;

    if (!text)
        return OPTS_GO;
    if (!strncmp(text, "memory", 6))
        return use_memory(o, text, text + 6);
    return strncmp(text, "disk:", 5) ? complain(o, text)
                                     : use_disk(o, text, text + 5);
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
