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
#include "engine/ranks.h"
#include "runtime/context.h"
#include "train/agree.h"
#include "train/checkpoints.h"

static int settings_crc(const struct ddp_trainer *t, uint32_t *crc)
{
    json_t *settings;
    char *text;
    int rc = ddp__checkpoints_settings(t, &settings);

    if (rc < 0)
        return rc;
    text = json_dumps(settings, JSON_SORT_KEYS);
    json_decref(settings);
    if (!text)
        return ddp__fail(DDP_ENOMEM, "out of memory for a run's settings");
    *crc = ddp__crc32c(0, text, strlen(text));
    free(text);
    return 0;
}

static int compare_all(ddp_t *ddp, uint32_t mine)
{
    int count = ddp_rank_count(ddp), rc;
    uint32_t *all = calloc((size_t)count, sizeof(*all));

    if (!all)
        return ddp__fail(DDP_ENOMEM, "out of memory for ranks");
    rc = ddp__ranks_gather(ddp, &mine, sizeof(mine), all);
    for (int r = 1; r < count && rc == 0; r++)
        if (all[r] != all[0])
            rc = ddp__fail(DDP_EINVAL,
                           "rank %d has other settings, another network or "
                           "other data than rank 0",
                           r);
    free(all);
    return rc;
}

int ddp__agree_on_trainer(struct ddp_trainer *t, int rc)
{
    uint32_t crc = 0;

    if (ddp_rank_count(t->ddp) == 1)
        return rc;
    if (rc == 0)
        rc = settings_crc(t, &crc);
    rc = ddp__ranks_agree(t->ddp, rc);
    return rc < 0 ? rc : compare_all(t->ddp, crc);
}
