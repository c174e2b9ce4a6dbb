/* settings.c - what ddp_storage_configure() has set, and what was counted
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/options.h"
#include "storage/settings.h"

#define DEFAULTS                                                               \
    {                                                                          \
        .struct_size = sizeof(struct ddp_storage_config), .timeout = 300,      \
        .requests = 256, .cache_size = (int64_t)50 << 30                       \
    }

static const struct ddp_storage_config defaults = DEFAULTS;
static struct ddp_storage_config settings = DEFAULTS;
struct ddp__copies ddp__storage_copies = {.counting =
                                              PTHREAD_MUTEX_INITIALIZER};
static char *cache_dir; /* of the settings; owned */

struct ddp__storage_counts ddp__storage_counts;

struct ddp__storage_place ddp__storage_place;

static int set_text(char **field, const char *text)
{
    char *own = text ? strdup(text) : NULL;

    if (!text)
        return 0;
    if (!own)
        return ddp__fail(DDP_ENOMEM, "out of memory for a setting of S3");
    free(*field);
    *field = own;
    return 0;
}

int ddp__storage_set_place(const char *region, const char *endpoint,
                           const char *profile)
{
    struct ddp__storage_place *p = &ddp__storage_place;
    int rc;

    if ((rc = set_text(&p->region, region)) < 0 ||
        (rc = set_text(&p->endpoint, endpoint)) < 0)
        return rc;
    return set_text(&p->profile, profile);
}

const struct ddp_storage_config *ddp__storage_settings(void)
{
    return &settings;
}

static atomic_int at_once = 64;

int ddp__storage_at_once(void)
{
    int n = atomic_load(&at_once);

    return n < settings.requests ? n : settings.requests;
}

bool ddp__storage_allow_another(void)
{
    if (atomic_load(&at_once) >= settings.requests)
        return false;
    atomic_fetch_add(&at_once, 1);
    return true;
}

void ddp_storage_config_init_sized(struct ddp_storage_config *c, size_t size)
{
    ddp__options_init(c, size, &defaults, sizeof(defaults));
}

static int check_settings(const struct ddp_storage_config *c)
{
    if (!(c->timeout > 0 && c->timeout <= 86400))
        return ddp__fail(DDP_EINVAL,
                         "timeout %g, expected above 0 and up to 86400 seconds",
                         c->timeout);
    if (c->requests < 1 || c->requests > 1024)
        return ddp__fail(DDP_EINVAL, "%d requests, expected 1 to 1024",
                         c->requests);
    if (c->cache_size < 1)
        return ddp__fail(DDP_EINVAL,
                         "cache_size %lld, expected 1 or more bytes",
                         (long long)c->cache_size);
    return 0;
}

static int set_cache(const char *dir)
{
    char *own = NULL;

    if (dir && mkdir(dir, 0777) < 0 && errno != EEXIST)
        return ddp__fail(DDP_EIO, "%s: cannot be created: %s", dir,
                         strerror(errno));
    if (dir && !(own = strdup(dir)))
        return ddp__fail(DDP_ENOMEM, "out of memory for a path");
    free(cache_dir);
    ddp__storage_copies.dir = cache_dir = own;
    return 0;
}

int ddp_storage_configure(const struct ddp_storage_config *c)
{
    struct ddp_storage_config own = defaults;
    int rc = ddp__options_copy(&own, sizeof(own), c, "ddp_storage_config");

    if (rc < 0 || (rc = check_settings(&own)) < 0 ||
        (rc = set_cache(own.cache_dir)) < 0)
        return rc;
    ddp__storage_copies.limit = own.cache_size;
    settings = own;
    settings.cache_dir = cache_dir;
    return 0;
}

void ddp_storage_stats(struct ddp_storage_stats *s)
{
    const struct ddp__storage_counts *c = &ddp__storage_counts;

    *s = (struct ddp_storage_stats){
        .requests = atomic_load(&c->requests),
        .retries = atomic_load(&c->retries),
        .bytes = atomic_load(&c->bytes),
        .cache_hits = atomic_load(&c->hits),
        .cache_misses = atomic_load(&c->misses),
    };
}
