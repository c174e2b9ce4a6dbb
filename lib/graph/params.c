/* params.c - the table of a chain's parameters: blocks, buckets, names
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/layer.h"
#include "graph/param_values.h"
#include "graph/params.h"
#include "graph/params_bind.h"
#include "runtime/pool.h"

/* Gradients of a bucket are merged and its weights updated by one task each:
 * large enough to be worth one, small enough to overlap with backward. */
enum { BUCKET_LEN = 4 << 20, LEAST_LEN = 1 << 18 };

/* Blocks are aligned to this many elements, as vector loads, cuDNN and cuBLASLt
 * require, also for copies of half the size.  The gaps are not in any span. */
enum { BLOCK_ALIGN = 64 };

size_t ddp__param_len(const struct ddp_param *p)
{
    size_t len = 1;

    for (int i = 0; i < p->ndim; i++)
        len *= (size_t)p->dim[i];
    return len;
}

/* ---- the table of blocks and buckets ------------------------------------ */

/* What a custom layer fills in decides how much memory there is. */
static int check_param(const ddp_layer_t *l, const struct ddp_param *p)
{
    if (!p->name || (int)p->role < DDP_WEIGHT || p->role > DDP_RUNNING)
        return ddp__fail(DDP_EINVAL,
                         "%s: a parameter without name, or of the "
                         "unknown role %d",
                         l->ops->kind, (int)p->role);
    if (p->ndim < 1 || p->ndim > 4)
        return ddp__fail(DDP_EINVAL,
                         "%s: %.60s has %d dimensions, expected 1 to 4",
                         l->ops->kind, p->name, p->ndim);
    for (int i = 0; i < p->ndim; i++)
        if (p->dim[i] < 1)
            return ddp__fail(DDP_EINVAL,
                             "%s: dimension %d of %.60s is %d, expected 1 or "
                             "more",
                             l->ops->kind, i, p->name, p->dim[i]);
    return 0;
}

static int take_params(ddp_layer_t *l, struct ddp__param_block *k)
{
    int rc = 0;

    k->params = l->ops->params(l, k->param);
    if (k->params < 0 || k->params > DDP_MAX_PARAMS) {
        rc = ddp__fail(DDP_EINVAL, "%s: params returned %d, expected 0 to %d",
                       l->ops->kind, k->params, DDP_MAX_PARAMS);
        k->params = 0;
    }
    for (int i = 0; rc == 0 && i < k->params; i++) {
        if ((rc = check_param(l, &k->param[i])) < 0)
            break;
        k->param_offset[i] = k->len;
        k->len += ddp__param_len(&k->param[i]);
    }
    return rc;
}

/* Count the layers that have parameters, or list them in layer order; or a
 * negative code. */
static int list_blocks(ddp_layer_t *l, char *path, size_t size,
                       struct ddp__param_block *b, int n)
{
    if (l->ops->params) {
        if (b) {
            struct ddp__param_block *k = &b[n];

            k->layer = l;
            int rc = take_params(l, k);

            if (rc < 0)
                return rc;
            memcpy(k->prefix, path, sizeof(k->prefix));
            l->param_block = n;
        }
        n++;
    }
    for (int i = 0; n >= 0 && i < l->children; i++) {
        size_t cut = ddp__path_push(path, size, l, i);

        n = list_blocks(l->child[i], path, size, b, n);
        path[cut] = '\0';
    }
    return n;
}

/* The maximum length of a bucket that starts when `rest` elements are left. The
 * last bucket is ready only when backward is done, so nothing overlaps with its
 * reduction and its update: buckets shrink towards it. */
static size_t bucket_room(const struct ddp__params *p, size_t rest)
{
    size_t room = rest / 2;

    if (room > BUCKET_LEN)
        return BUCKET_LEN;
    return room < p->least ? p->least : room;
}

/* The room of a block in its bucket. */
static size_t block_room(const struct ddp__param_block *b)
{
    return (b->len + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
}

/* Last layers first, since backward reaches them first. */
static void assign_buckets(struct ddp__params *p)
{
    size_t len = 0, done = 0, room = bucket_room(p, p->held);
    int b = 0;

    for (int i = p->blocks - 1; i >= 0; i--) {
        struct ddp__param_block *k = &p->block[i];
        size_t size = block_room(k);

        if (len && len + size > room) {
            b++;
            len = 0;
            room = bucket_room(p, p->held - done);
        }
        k->bucket = b;
        k->offset = len;
        len += size;
        done += size;
    }
    p->buckets = p->blocks ? b + 1 : 0;
}

static void fill_span(struct ddp__bucket *k, const struct ddp__param_block *b,
                      int i)
{
    const struct ddp_param *p = &b->param[i];

    k->span[k->spans++] = (struct ddp__span){
        .begin = b->offset + b->param_offset[i],
        .len = ddp__param_len(p),
        .decay = p->role == DDP_WEIGHT,
        .running = p->role == DDP_RUNNING,
        .momentum = p->momentum,
    };
}

static int make_buckets(struct ddp__params *p)
{
    assign_buckets(p);
    p->bucket = calloc((size_t)p->buckets + 1, sizeof(*p->bucket));
    if (!p->bucket)
        return DDP_ENOMEM;
    for (int i = 0; i < p->blocks; i++)
        p->bucket[p->block[i].bucket].len += block_room(&p->block[i]);
    for (int b = 0; b < p->buckets; b++) {
        struct ddp__bucket *k = &p->bucket[b];

        k->span = calloc((size_t)p->blocks * DDP_MAX_PARAMS, sizeof(*k->span));
        if (!k->span)
            return DDP_ENOMEM;
    }
    for (int i = p->blocks - 1; i >= 0; i--)
        for (int j = 0; j < p->block[i].params; j++)
            fill_span(&p->bucket[p->block[i].bucket], &p->block[i], j);
    return 0;
}

static void free_buckets(struct ddp__bucket *bucket, int n)
{
    for (int b = 0; bucket && b < n; b++) {
        ddp__pool_free(bucket[b].w, bucket[b].len * 4);
        free(bucket[b].span);
    }
    free(bucket);
}

static void count_elements(struct ddp__params *p)
{
    for (int i = 0; i < p->blocks; i++) {
        p->total += p->block[i].len;
        p->held += block_room(&p->block[i]);
    }
}

static struct ddp__params *params_new(ddp_chain_t *chain)
{
    struct ddp__params *p = calloc(1, sizeof(*p));
    char path[160] = "";

    if (!p)
        goto nomem;
    p->blocks = list_blocks(chain, path, sizeof(path), NULL, 0);
    p->block = calloc((size_t)p->blocks + 1, sizeof(*p->block));
    if (!p->block)
        goto nomem;
    if (list_blocks(chain, path, sizeof(path), p->block, 0) < 0)
        goto free_p;
    count_elements(p);
    p->least = LEAST_LEN;
    if (make_buckets(p) < 0)
        goto nomem;
    return p;

nomem:
    ddp__fail(DDP_ENOMEM, "out of memory for the chain's parameters");
free_p:
    ddp__params_free(p);
    return NULL;
}

struct ddp__params *ddp__params_of(ddp_chain_t *chain)
{
    if (!chain || chain->rc < 0) {
        ddp__fail(chain ? chain->rc : DDP_EINVAL,
                  "the chain is missing or could not be built: %s",
                  *ddp_errmsg() ? ddp_errmsg() : "it is NULL");
        return NULL;
    }
    if (!chain->params)
        chain->params = params_new(chain);
    return chain->params;
}

void ddp__params_free(struct ddp__params *p)
{
    if (!p)
        return;
    ddp__params_unbind(p);
    free_buckets(p->bucket, p->buckets);
    for (char **text = p->metadata; text && *text; text++)
        free(*text);
    free(p->metadata);
    free(p->block);
    free(p);
}

/* ---- other buckets ------------------------------------------------------ */

/* From buckets that have the same blocks in the same order. */
static void copy_values(struct ddp__params *p, const struct ddp__bucket *from)
{
    size_t at = 0;

    for (int i = p->blocks - 1; i >= 0; i--) {
        const struct ddp__param_block *k = &p->block[i];
        size_t size = block_room(k);

        for (; at == from->len; from++)
            at = 0;
        memcpy(p->bucket[k->bucket].w + k->offset, from->w + at, size * 4);
        at += size;
    }
}

static bool has_memory(const struct ddp__params *p)
{
    for (int b = 0; b < p->buckets; b++)
        if (!p->bucket[b].w)
            return false;
    return p->buckets > 0;
}

/* Large buckets need fewer tasks and transfers, of which each costs a GPU's
 * thread some 10 us; but small networks have too few of them to overlap. */
static size_t large_bucket(const struct ddp__params *p)
{
    size_t part = p->held / 20;

    return part < LEAST_LEN ? LEAST_LEN : part < BUCKET_LEN ? part : BUCKET_LEN;
}

int ddp__params_join(struct ddp__params *p)
{
    struct ddp__bucket *old = p->bucket;
    int n = p->buckets, rc = 0;
    bool copy = has_memory(p);

    if (p->ddp)
        return 0;
    p->least = large_bucket(p);
    if (make_buckets(p) < 0 || (copy && (rc = ddp__params_reserve(p)) < 0)) {
        free_buckets(p->bucket, p->buckets);
        p->least = LEAST_LEN;
        assign_buckets(p);
        p->bucket = old;
        return rc ? rc : ddp__fail(DDP_ENOMEM, "out of memory for buckets");
    }
    if (copy)
        copy_values(p, old);
    free_buckets(old, n);
    return 0;
}

/* ---- names -------------------------------------------------------------- */

/* "prefix.name"; a prefix too long for its array was cut when it was made. */
void ddp__param_name(const struct ddp__param_block *b, int i,
                     char out[DDP__PARAM_NAME])
{
    snprintf(out, DDP__PARAM_NAME, "%.*s%s%s", DDP__PARAM_NAME - 64, b->prefix,
             b->prefix[0] ? "." : "", b->param[i].name);
}

int ddp__params_find(const struct ddp__params *p, const char *name,
                     const struct ddp__param_block **b, int *i)
{
    char full[DDP__PARAM_NAME];

    for (int k = 0; name && k < p->blocks; k++)
        for (int j = 0; j < p->block[k].params; j++) {
            ddp__param_name(&p->block[k], j, full);
            if (strcmp(full, name) == 0) {
                *b = &p->block[k];
                *i = j;
                return 0;
            }
        }
    return ddp__fail(DDP_EINVAL, "the chain has no parameter %s",
                     name ? name : "NULL");
}

int ddp__params_find_for(const struct ddp__params *p, const char *name,
                         const float *values, size_t len,
                         const struct ddp__param_block **b, int *i)
{
    int rc = ddp__params_find(p, name, b, i);

    if (rc < 0)
        return rc;
    if (ddp__param_len(&(*b)->param[*i]) != len)
        return ddp__fail(DDP_ESHAPE, "%s has %zu values; the buffer has %zu",
                         name, ddp__param_len(&(*b)->param[*i]), len);
    if (!values)
        return ddp__fail(DDP_EINVAL, "the buffer for %s is NULL", name);
    return 0;
}

/* The f-th tensor, counted over all blocks in layer order. */
static int find_nth_param(const struct ddp__params *p, int f,
                          const struct ddp__param_block **b, int *i)
{
    for (int k = 0; k < p->blocks; f -= p->block[k++].params)
        if (f < p->block[k].params) {
            *b = &p->block[k];
            *i = f;
            return 0;
        }
    return DDP_EINVAL;
}

int ddp_chain_param(const ddp_chain_t *c, int i, struct ddp_param_info *info)
{
    struct ddp__params *p = ddp__params_of((ddp_chain_t *)c);
    const struct ddp__param_block *b;
    int j;

    if (!p)
        return ddp_errcode();
    if (i < 0 || find_nth_param(p, i, &b, &j) < 0)
        return ddp__fail(DDP_EINVAL, "the chain has no parameter %d", i);
    ddp__param_name(b, j, info->name);
    info->role = b->param[j].role;
    info->ndim = b->param[j].ndim;
    memcpy(info->dim, b->param[j].dim, sizeof(info->dim));
    info->len = ddp__param_len(&b->param[j]);
    return 0;
}

void ddp__params_name(const struct ddp__params *p, size_t place, char *out,
                      size_t size)
{
    int bucket = 0;

    for (; bucket < p->buckets && place >= p->bucket[bucket].len; bucket++)
        place -= p->bucket[bucket].len;
    snprintf(out, size, "?");
    for (int i = 0; i < p->blocks; i++) {
        const struct ddp__param_block *b = &p->block[i];
        int k = b->params - 1;

        if (b->bucket != bucket || place < b->offset ||
            place >= b->offset + b->len)
            continue;
        while (k > 0 && place < b->offset + b->param_offset[k])
            k--;
        snprintf(out, size, "%s%s%s", b->prefix, *b->prefix ? "." : "",
                 b->param[k].name);
    }
}
