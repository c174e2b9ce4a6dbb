/* sync.c - all ranks continue with the state of one
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "checkpoint/copy.h"
#include "engine/ranks.h"
#include "engine/shard.h"
#include "runtime/context.h"
#include "train/snapshot.h"
#include "train/resume.h"

/* The root's state of the run, as text, for all; to be freed. */
static int share_text(struct ddp_trainer *t, const json_t *state, int root,
                      char **text)
{
    char *mine = state ? json_dumps(state, 0) : NULL;
    int64_t len = mine ? (int64_t)strlen(mine) : 0;
    int rc = ddp_bcast(t->ddp, &len, sizeof(len), root);

    *text = rc == 0 ? calloc(1, (size_t)len + 1) : NULL;
    if (rc == 0 && !*text)
        rc = ddp__fail(DDP_ENOMEM, "out of memory for a run's state");
    rc = ddp__ranks_agree(t->ddp, rc);
    if (rc == 0 && mine)
        memcpy(*text, mine, (size_t)len);
    if (rc == 0)
        rc = ddp_bcast(t->ddp, *text, (size_t)len, root);
    free(mine);
    return rc;
}

static int share_vectors(struct ddp_trainer *t, struct ddp__ckpt_copy *copy,
                         int root)
{
    int rc = 0;

    for (int i = 0; i < copy->sets && rc == 0; i++)
        rc = ddp_bcast(t->ddp, copy->data[i],
                       copy->params->held * sizeof(float), root);
    return rc;
}

static int take_state(struct ddp_trainer *t, struct ddp__ckpt_copy *copy,
                      const char *text)
{
    json_t *state = json_loads(text, 0, NULL);
    struct ddp__run run;
    int rc;

    if (!state)
        return ddp__fail(DDP_ENOMEM, "out of memory for a run's state");
    if ((rc = ddp__state_parse(state, "the root", &run)) == 0)
        rc = ddp__resume_state(t, &run, copy);
    json_decref(state);
    t->gradients = false;
    return rc;
}

static int share_state(struct ddp_trainer *t, struct ddp__ckpt_copy *copy,
                       int root)
{
    char *text = NULL;
    int rc = share_text(t, copy->state, root, &text);

    if (rc == 0 && (rc = share_vectors(t, copy, root)) == 0 &&
        t->ddp->net.wire.rank != root)
        rc = take_state(t, copy, text);
    free(text);
    return ddp__ranks_agree(t->ddp, rc);
}

int ddp_trainer_sync(ddp_trainer_t *t, int root)
{
    struct ddp__ckpt_copy copy = {.sets = 0};
    int ranks, rc = ddp__trainer_check(t);

    if (rc < 0)
        return rc;
    ranks = t->ddp->net.wire.count;
    if (root < 0 || root >= ranks)
        return ddp__fail(DDP_EINVAL, "rank %d, expected 0 to %d", root,
                         ranks - 1);
    rc = ddp_trainer_wait(t);
    if (ranks == 1)
        return rc;
    if (rc == 0)
        rc = t->ddp->net.wire.rank == root
                 ? ddp__snapshot_take(t, &copy)
                 : ddp__ckpt_copy_new(&copy, t->engine);
    if ((rc = ddp__ranks_agree(t->ddp, rc)) == 0 && ddp__shard_used(t->engine))
        rc = ddp__ckpt_copy_collect(&copy, t->engine);
    if (rc == 0)
        rc = share_state(t, &copy, root);
    ddp__ckpt_copy_free(&copy);
    return rc;
}
