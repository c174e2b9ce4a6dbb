/* pack.c - "imagenet data pack" and "data unpack": image files into tar files
 * with an index, and out of them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdlib.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "common/app_log.h"
#include "common/cores.h"
#include "options.h"
#include "pack.h"
#include "progress.h"
#include "setup_data.h"

static int pack_split(const struct settings *s, ddp_dataset_t *d,
                      const char *name)
{
    char *dir = app_path(s->output, "%s", name);
    struct ddp_pack_options p;
    double t = app_now();
    struct work work;
    int rc;

    if (!dir)
        return app_exit_code(DDP_ENOMEM);
    work_begin(&work, name, false);
    ddp_pack_options_init(&p);
    p.shard_samples = s->shard_samples;
    p.threads = s->workers ? (int)s->workers : app_cores();
    p.seed = (uint64_t)s->seed;
    p.resize = (int)s->resize;
    p.quality = (int)s->quality;
    p.interpolation = (enum ddp_interpolation)s->pack_filter;
    p.on_count = work_count;
    p.arg = &work;
    rc = ddp_dataset_pack(d, dir, &p);
    work_clear(&work);
    if (rc == 0)
        printf("packed split=%s images=%lld seconds=%.1f: %s\n", name,
               (long long)ddp_dataset_count(d), app_now() - t, dir);
    free(dir);
    return rc < 0 ? app_fail(rc) : 0;
}

static int unpack_split(const struct settings *s, ddp_dataset_t *d,
                        const char *name)
{
    char *dir = app_path(s->output, "%s", name);
    double t = app_now();
    struct work work;
    int rc;

    if (!dir)
        return app_exit_code(DDP_ENOMEM);
    work_begin(&work, name, false);
    rc = ddp_dataset_unpack(d, dir, work_count, &work);
    work_clear(&work);
    if (rc == 0)
        printf("unpacked split=%s images=%lld seconds=%.1f: %s\n", name,
               (long long)ddp_dataset_count(d), app_now() - t, dir);
    free(dir);
    return rc < 0 ? app_fail(rc) : 0;
}

/* For each split that there is. */
static int run_splits(struct opts *o, const struct settings *s,
                      int (*fn)(const struct settings *s, ddp_dataset_t *d,
                                const char *name))
{
    static const char *const name[] = {
        [DDP_TRAIN] = "train", [DDP_VAL] = "val"};
    unsigned splits;
    int rc = 0;

    if (!s->data || !s->output) {
        opt_complain(o, "--%s DIR is missing", s->data ? "output" : "data");
        return EXIT_USAGE;
    }
    splits = setup_splits(s->data);
    for (int i = DDP_TRAIN; rc == 0 && i <= DDP_VAL; i++) {
        ddp_dataset_t *d;

        if (!(splits & 1U << i))
            continue;
        d = ddp_dataset_open(s->data, (enum ddp_split)i, NULL);
        rc = d ? app_make_dir(s->output) : app_fail(ddp_errcode());
        if (rc == 0) {
            app_print("%s: %s\n", name[i], ddp_dataset_describe(d));
            fflush(stdout);
            rc = fn(s, d, name[i]);
        }
        ddp_dataset_free(d);
    }
    return rc;
}

int pack_run(struct opts *o, struct settings *s)
{
    return run_splits(o, s, pack_split);
}

int unpack_run(struct opts *o, struct settings *s)
{
    return run_splits(o, s, unpack_split);
}
