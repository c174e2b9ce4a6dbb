/* split.c - how a step is split: its batch, sub-batches and lanes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/app.h"
#include "common/opt_file.h"
#include "split.h"

#define OPT_STRUCT struct split
#include "common/opt_rows.h"

enum { DEVICES = 8, SUB_BATCH = 32, BATCH = DEVICES * SUB_BATCH, LEAST = 8 };

/* ---- a new run ---------------------------------------------------------- */

static int64_t quotient_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Of a batch on more than the usual devices.  Below LEAST kernels are slow, and
 * batch norm has poor statistics. */
static int64_t share_batch(int64_t batch, int devices)
{
    int64_t n = quotient_up(batch, devices);

    return n < LEAST ? LEAST : n < SUB_BATCH ? n : SUB_BATCH;
}

/* Kernels work on 8 at a time. */
static int64_t choose_sub_batch(int64_t batch, int devices)
{
    if (devices <= DEVICES)
        return SUB_BATCH;
    if (batch)
        return share_batch(batch, devices);
    return 8 * quotient_up(share_batch(BATCH, devices), 8);
}

void split_choose(struct split *s, int devices, int64_t samples, bool sync_bn)
{
    int64_t lanes = devices > DEVICES ? devices : DEVICES;

    if (!s->sub_batch)
        s->sub_batch = choose_sub_batch(s->batch, devices);
    if (!s->batch) {
        s->batch = (s->lanes ? s->lanes : lanes) * s->sub_batch;
        s->batch = s->batch < samples ? s->batch : samples;
    }
    if (!s->lanes) {
        s->lanes = quotient_up(s->batch, s->sub_batch);
        s->lanes = s->lanes < lanes || sync_bn ? s->lanes : lanes;
    }
}

/* ---- a run that is resumed ---------------------------------------------- */

static const struct opt_group rows = {
    "Split",
    (const struct opt[]){
        INT("batch-size", batch, NULL, 1, 1 << 24, "", .of_network = true),
        INT("sub-batch", sub_batch, NULL, 1, 1 << 20, "", .of_network = true),
        INT("lanes", lanes, NULL, 1, 65536, "", .of_network = true),
        END,
    },
};

static const struct opt_command recorded = {
    .name = "imagenet train",
    .group = (const struct opt_group *const[]){&rows, NULL},
};

/* RUN, RUN/ckpt and RUN/ckpt/step-N are all folders to resume from. */
static int find_config(const char *folder, char **path)
{
    static const char *const up[] = {"", "../", "../../"};

    for (int i = 0; i < 3; i++) {
        if (!(*path = app_path(folder, "%sconfig.txt", up[i])))
            return EXIT_MEMORY;
        if (access(*path, R_OK) == 0)
            return OPTS_GO;
        free(*path);
    }
    *path = NULL;
    return OPTS_GO;
}

static bool differs(int64_t given, int64_t was)
{
    return given && given != was;
}

int split_recorded(struct split *s, const char *folder)
{
    struct split was = {0};
    struct opts o = {.cmd = &recorded, .values = &was};
    char *path;
    int rc = find_config(folder, &path);

    if (rc != OPTS_GO || !path)
        return rc;
    rc = opts_load(&o, path);
    free(path);
    if (rc == OPTS_GO && was.batch && !differs(s->batch, was.batch) &&
        !differs(s->sub_batch, was.sub_batch) && !differs(s->lanes, was.lanes))
        *s = was;
    return rc;
}
