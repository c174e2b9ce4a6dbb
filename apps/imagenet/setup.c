/* setup.c - recipe, storage and devices as the settings name them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "common/app_peer.h"
#include "common/opt_file.h"
#include "setup.h"

int setup_storage(const struct settings *s)
{
    struct ddp_storage_config c;

    ddp_storage_config_init(&c);
    if (s->storage_timeout)
        c.timeout = (double)s->storage_timeout;
    if (s->storage_requests)
        c.requests = (int)s->storage_requests;
    c.cache_dir = s->cache_dir;
    if (s->cache_size > 0)
        c.cache_size = (int64_t)(s->cache_size * 1e9);
    return ddp_storage_configure(&c) < 0 ? app_fail(ddp_errcode()) : OPTS_GO;
}

/* The name of an installed recipe, or of a file that is not there. */
static int configure_named(struct opts *o, const char *name)
{
    char *installed;
    int rc = EXIT_USAGE;

    if (asprintf(&installed, "%s/%s.conf", DDP_RECIPES, name) < 0)
        return app_exit_code(DDP_ENOMEM);
    if (access(installed, F_OK) == 0)
        rc = opts_configure(o, installed);
    else
        opt_complain(o,
                     "--config %s: there is no such file, and no %s; recipes "
                     "that are not installed need their path, such as "
                     "recipes/resnet50.conf",
                     name, installed);
    free(installed);
    return rc;
}

int setup_config(struct opts *o, const struct settings *s)
{
    if (!s->config)
        return OPTS_GO;
    if (strchr(s->config, '/') || access(s->config, F_OK) == 0)
        return opts_configure(o, s->config);
    return configure_named(o, s->config);
}

int setup_devices(const struct settings *s, ddp_t **ddp)
{
    struct ddp_config cfg;

    ddp_config_init(&cfg);
    if (s->workers)
        cfg.cpus = (int)s->workers;
    if (s->device == DEVICE_CPU)
        cfg.gpus = 0;
    cfg.backend = s->backend ? "ref" : "cpu";
    cfg.peer_timeout = (double)s->peer_timeout;
    cfg.on_peer_lost = app_peer_lost;
    if (!(*ddp = ddp_init(&cfg)))
        return app_fail(ddp_errcode());
    return OPTS_GO;
}
