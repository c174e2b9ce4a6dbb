/* agree.c - ranks that train together train the same
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Sums over ranks with other settings or data would be of what does not belong
 * together, and ranks with another number of steps would wait for ever.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "checkpoint/compare.h"
#include "engine/ranks.h"
#include "runtime/context.h"
#include "train/agree.h"
#include "train/snapshot.h"

/* What checkpoints describe otherwise, or not at all, but ranks must share:
 * devices, unless all have asked for different ones. */
static int add_settings(const struct ddp_trainer *t, json_t *settings)
{
    char devices[512] = "DDP_UNLIKE_GPUS=1";

    if (!t->ddp->gpus.unlike)
        ddp__snapshot_devices(t->ddp, devices, sizeof(devices));
    return json_object_set_new(settings, "devices", json_string(devices)) ==
                       0 &&
                   json_object_set_new(settings, "shard_optimizer",
                                       json_boolean(t->cfg.shard_optimizer)) ==
                       0
               ? 0
               : ddp__fail(DDP_ENOMEM, "out of memory for ranks");
}

static int settings_text(const struct ddp_trainer *t, char **text)
{
    json_t *settings;
    int rc = ddp__snapshot_settings(t, &settings);

    if (rc < 0)
        return rc;
    rc = add_settings(t, json_object_get(settings, "settings"));
    if (rc < 0) {
        json_decref(settings);
        return rc;
    }
    *text = json_dumps(settings, JSON_SORT_KEYS);
    json_decref(settings);
    return *text ? 0
                 : ddp__fail(DDP_ENOMEM, "out of memory for a run's settings");
}

/* Name what differs in the settings of rank r. */
static int fail_different(const char *first, const char *text, int r)
{
    struct ddp__changes changes = {.allowed = NULL};
    json_t *there = json_loads(first, 0, NULL);
    json_t *here = json_loads(text, 0, NULL);
    char what[DDP__DIFFERENCES] = "out of memory to compare them";

    if (there && here)
        ddp__settings_differences(there, here, &changes, what);
    json_decref(there);
    json_decref(here);
    return ddp__fail(DDP_EINVAL,
                     "rank %d has other settings than rank 0: there %s", r,
                     what);
}

/* All in the same room, which the longest needs. */
static int compare_texts(ddp_t *ddp, const char *text, size_t room)
{
    size_t count = (size_t)ddp_rank_count(ddp), len = strlen(text);
    char *all = calloc(count + 1, room), *mine = all + count * room;
    int rc;

    if (!all)
        return ddp__fail(DDP_ENOMEM, "out of memory for ranks");
    memcpy(mine, text, len);
    rc = ddp__ranks_gather(ddp, mine, room, all);
    for (size_t r = 1; r < count && rc == 0; r++)
        if (strcmp(all, all + r * room) != 0)
            rc = fail_different(all, all + r * room, (int)r);
    free(all);
    return rc;
}

struct digest {
    uint64_t len;
    uint32_t crc, unused;
};

static int compare_all(ddp_t *ddp, const char *text)
{
    struct digest mine = {strlen(text), 0, 0}, *all;
    int count = ddp_rank_count(ddp), rc;
    bool equal = true;
    size_t most = 0;

    mine.crc = ddp__crc32c(0, text, mine.len);
    if (!(all = calloc((size_t)count, sizeof(*all))))
        return ddp__fail(DDP_ENOMEM, "out of memory for ranks");
    rc = ddp__ranks_gather(ddp, &mine, sizeof(mine), all);
    for (int r = 0; r < count; r++) {
        equal &= all[r].crc == all[0].crc && all[r].len == all[0].len;
        most = all[r].len > most ? all[r].len : most;
    }
    free(all);
    return rc < 0 || equal ? rc : compare_texts(ddp, text, most + 1);
}

int ddp__agree_on_trainer(struct ddp_trainer *t, int rc)
{
    char *text = NULL;

    if (ddp_rank_count(t->ddp) == 1)
        return rc;
    if (rc == 0)
        rc = settings_text(t, &text);
    rc = ddp__ranks_agree(t->ddp, rc);
    if (rc == 0)
        rc = compare_all(t->ddp, text);
    free(text);
    return rc;
}
