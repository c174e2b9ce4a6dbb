/* copy.c - all of a run's state in memory, and back into the engine
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "checkpoint/copy.h"
#include "checkpoint/files.h"
#include "engine/ema.h"
#include "engine/ranks.h"
#include "graph/params.h"
#include "ops_optim.h"

/* ---- which vectors there are -------------------------------------------- */

static struct ddp__handle *weights_handle(const struct ddp__engine *e, int b)
{
    return &e->params->bucket[b].handle;
}

static struct ddp__handle *state_handle(const struct ddp__engine *e, int b)
{
    return &e->state[b];
}

static struct ddp__handle *ema_handle(const struct ddp__engine *e, int b)
{
    return &e->ema->bucket[b].handle;
}

static int list_sets(const struct ddp__engine *e,
                     struct ddp__ckpt_set set[DDP__CKPT_SETS])
{
    const struct ddp_optimizer *o = &e->optimizer;
    int state = ddp__optimizer_states(o), n = 0;

    set[n++] = (struct ddp__ckpt_set){DDP__CKPT_MODEL, "", NULL, true,
                                      weights_handle,  0};
    for (int i = 0; i < state; i++)
        set[n++] = (struct ddp__ckpt_set){
            DDP__CKPT_OPTIM, "opt.",       ddp__optimizer_state(o, i),
            false,           state_handle, i};
    if (e->ema)
        set[n++] = (struct ddp__ckpt_set){DDP__CKPT_EMA, "",         NULL,
                                          true,          ema_handle, 0};
    return n;
}

/* ---- the copy ----------------------------------------------------------- */

int ddp__ckpt_copy_new(struct ddp__ckpt_copy *c, const struct ddp__engine *e)
{
    *c = (struct ddp__ckpt_copy){.params = e->params,
                                 .size = (e->params->held + 1) * sizeof(float)};
    c->sets = list_sets(e, c->set);
    for (int i = 0; i < c->sets; i++)
        if (!(c->data[i] = malloc(c->size))) {
            ddp__ckpt_copy_free(c);
            return ddp__fail(DDP_ENOMEM, "out of memory for a copy of the "
                                         "weights and the optimizer's state");
        }
    return 0;
}

void ddp__ckpt_copy_free(struct ddp__ckpt_copy *c)
{
    for (int i = 0; i < c->sets; i++)
        free(c->data[i]);
    json_decref(c->state);
    *c = (struct ddp__ckpt_copy){0};
}

/* Whether this rank has that vector: it may be another one's, and what is
 * frozen has no state. */
static bool has_vector(const struct ddp__engine *e,
                       const struct ddp__ckpt_set *s, int b)
{
    return s->handle != state_handle || e->state[b].h;
}

/* A bucket of a set: from the engine, or (restore) to it.  What there is none
 * of is 0. */
static int copy_vector(const struct ddp__engine *e,
                       const struct ddp__ckpt_set *s, int b, float *copy,
                       bool restore)
{
    size_t len = e->params->bucket[b].len;
    struct ddp__handle *h = s->handle(e, b);
    float *data;

    if (!has_vector(e, s, b)) {
        if (!restore)
            memset(copy, 0, len * 4);
        return 0;
    }
    if (!(data = ddp__handle_open(h, restore, "checkpoints")))
        return ddp_errcode();
    data += (size_t)s->index * len;
    memcpy(restore ? data : copy, restore ? copy : data, len * 4);
    ddp__handle_close(h);
    return 0;
}

static int copy_buckets(struct ddp__ckpt_copy *c, const struct ddp__engine *e,
                        bool restore)
{
    int rc = 0;

    for (int i = 0; i < c->sets; i++) {
        const struct ddp__ckpt_set *s = &c->set[i];
        float *copy = c->data[i];

        for (int b = 0; b < c->params->buckets && rc == 0; b++) {
            rc = copy_vector(e, s, b, copy, restore);
            copy += c->params->bucket[b].len;
        }
    }
    return rc;
}

int ddp__ckpt_copy_save(struct ddp__ckpt_copy *c, const struct ddp__engine *e)
{
    return copy_buckets(c, e, false);
}

int ddp__ckpt_copy_restore(struct ddp__ckpt_copy *c,
                           const struct ddp__engine *e)
{
    return copy_buckets(c, e, true);
}

/* ---- what other ranks keep ---------------------------------------------- */

/* A set of states through `room`, which holds any bucket.  A rank that cannot
 * read its own takes part all the same, for the others wait for it; *read is
 * its first failure. */
static int collect_set(const struct ddp__engine *e,
                       const struct ddp__ckpt_set *s, float *room, float *copy,
                       struct ddp__error *read)
{
    int rc = 0;

    for (int b = 0; b < e->params->buckets && rc == 0; b++) {
        size_t len = e->params->bucket[b].len;

        if (copy_vector(e, s, b, room, false) < 0 && read->code == 0)
            *read = ddp__error_save();
        rc = ddp_bcast(e->ddp, room, len * 4, e->keeper[b]);
        if (rc == 0 && copy)
            memcpy(copy, room, len * 4);
        copy = copy ? copy + len : NULL;
    }
    return rc;
}

static int collect(const struct ddp__engine *e, struct ddp__ckpt_copy *c,
                   float *room)
{
    struct ddp__ckpt_set set[DDP__CKPT_SETS];
    int rc = 0, sets = list_sets(e, set);
    struct ddp__error read = {0};

    for (int i = 0; i < sets && rc == 0; i++)
        if (set[i].handle == state_handle)
            rc = collect_set(e, &set[i], room, c ? c->data[i] : NULL, &read);
    if (rc < 0) /* no rank hears another any more */
        return rc;
    if (read.code < 0)
        ddp__error_restore(&read);
    return ddp__ranks_agree(e->ddp, read.code);
}

int ddp__ckpt_copy_collect(struct ddp__ckpt_copy *c,
                           const struct ddp__engine *e)
{
    size_t most = 0;
    float *room;
    int rc;

    for (int b = 0; b < e->params->buckets; b++)
        if (e->params->bucket[b].len > most)
            most = e->params->bucket[b].len;
    room = calloc(most + 1, sizeof(*room));
    rc = ddp__ranks_agree(e->ddp, room ? 0
                                       : ddp__fail(DDP_ENOMEM,
                                                   "out of memory for the "
                                                   "other ranks' state of the "
                                                   "optimizer"));
    if (rc == 0)
        rc = collect(e, c, room);
    free(room);
    return rc;
}

/* ---- tensors ------------------------------------------------------------ */

float *ddp__ckpt_copy_tensor(const struct ddp__ckpt_copy *c, int set,
                             const struct ddp__param_block *b, int i)
{
    float *data = c->data[set];

    for (int k = 0; k < b->bucket; k++)
        data += c->params->bucket[k].len;
    return data + b->offset + b->param_offset[i];
}

void ddp__ckpt_copy_name(const struct ddp__ckpt_copy *c, int set,
                         const struct ddp__param_block *b, int i,
                         char name[DDP__ST_NAME])
{
    const struct ddp__ckpt_set *s = &c->set[set];
    char param[DDP__PARAM_NAME];

    ddp__param_name(b, i, param);
    snprintf(name, DDP__ST_NAME, "%s%s%s%s", s->prefix, param,
             s->suffix ? "." : "", s->suffix ? s->suffix : "");
}
