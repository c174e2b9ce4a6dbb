/* params.c - the parameters of a chain: names, buckets, values
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/philox.h"
#include "graph/layer.h"
#include "graph/params.h"
#include "runtime/context.h"

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
static size_t bucket_room(size_t rest)
{
    size_t room = rest / 2;

    if (room > BUCKET_LEN)
        return BUCKET_LEN;
    return room < LEAST_LEN ? LEAST_LEN : room;
}

/* The room of a block in its bucket. */
static size_t block_room(const struct ddp__param_block *b)
{
    return (b->len + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
}

/* Last layers first, since backward reaches them first. */
static void assign_buckets(struct ddp__params *p)
{
    size_t len = 0, done = 0, room;
    int b = 0;

    for (int i = 0; i < p->blocks; i++) {
        p->total += p->block[i].len;
        p->held += block_room(&p->block[i]);
    }
    room = bucket_room(p->held);
    for (int i = p->blocks - 1; i >= 0; i--) {
        struct ddp__param_block *k = &p->block[i];
        size_t size = block_room(k);

        if (len && len + size > room) {
            b++;
            len = 0;
            room = bucket_room(p->held - done);
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
    for (int b = 0; p->bucket && b < p->buckets; b++) {
        ddp__pool_free(p->bucket[b].w, p->bucket[b].len * 4);
        free(p->bucket[b].span);
    }
    for (char **text = p->metadata; text && *text; text++)
        free(*text);
    free(p->metadata);
    free(p->bucket);
    free(p->block);
    free(p);
}

/* ---- initial values ----------------------------------------------------- */

/* A normal number by Box and Muller's transform of two uniform ones. */
static float normal(struct ddp__philox r)
{
    double u = ((double)r.v[0] + 1) * 0x1p-32, v = (double)r.v[1] * 0x1p-32;

    return (float)(sqrt(-2 * log(u)) * cos(2 * M_PI * v));
}

static void init_param(const struct ddp_param *p, uint64_t key, float *w)
{
    for (size_t k = 0; k < ddp__param_len(p); k++) {
        struct ddp__philox r = ddp__philox(key, 0, k);

        w[k] = p->std > 0     ? p->std * normal(r)
               : p->bound > 0 ? p->bound * (2 * ddp__uniform(r.v[0]) - 1)
                              : p->fill;
    }
}

static float *param_memory(const struct ddp__params *p,
                           const struct ddp__param_block *b, int i)
{
    return p->bucket[b->bucket].w + b->offset + b->param_offset[i];
}

/* The values of a parameter do not depend on which others are initialised. */
static void init_unset(struct ddp__params *p, uint64_t seed)
{
    for (int k = 0; k < p->blocks; k++)
        for (int j = 0; j < p->block[k].params; j++)
            if (!p->block[k].set[j])
                init_param(&p->block[k].param[j],
                           ddp__key(seed, (uint64_t)k, (uint64_t)j),
                           param_memory(p, &p->block[k], j));
}

static void forget_set(struct ddp__params *p)
{
    for (int k = 0; k < p->blocks; k++)
        memset(p->block[k].set, 0, sizeof(p->block[k].set));
}

int ddp__params_reserve(struct ddp__params *p)
{
    for (int b = 0; b < p->buckets && !p->valued; b++) {
        struct ddp__bucket *k = &p->bucket[b];

        if (!k->w && !(k->w = ddp__pool_alloc(k->len * 4)))
            return ddp__fail(DDP_ENOMEM, "out of memory for %zu parameters",
                             p->total);
        memset(k->w, 0, k->len * 4);
    }
    p->valued = true;
    return 0;
}

/* If no values were set, use those of seed 0. */
static int need_values(struct ddp__params *p)
{
    int rc;

    if (p->valued)
        return 0;
    if ((rc = ddp__params_reserve(p)) == 0)
        init_unset(p, 0);
    return rc;
}

/* ---- StarPU's hold on them ---------------------------------------------- */

/* The context ends before the chain does. */
static void unbind_params(struct ddp__bound *b)
{
    ddp__params_unbind((struct ddp__params *)b);
}

int ddp__params_bind(struct ddp__params *p, ddp_t *ddp)
{
    int rc;

    if (p->ddp == ddp)
        return 0;
    if (p->ddp)
        return ddp__fail(DDP_EINVAL, "the chain belongs to another context");
    if ((rc = need_values(p)) < 0)
        return rc;
    for (int b = 0; b < p->buckets; b++)
        ddp__handle_register(&p->bucket[b].handle, p->bucket[b].w,
                             p->bucket[b].len * 4);
    p->ddp = ddp;
    p->bound.unbind = unbind_params;
    ddp__context_bind(ddp, &p->bound);
    return 0;
}

struct ddp__kept *ddp__params_take(struct ddp__params *p,
                                   void (*free)(struct ddp__kept *k))
{
    struct ddp__kept **at = &p->kept, *k;

    while (*at && (*at)->free != free)
        at = &(*at)->next;
    if ((k = *at))
        *at = k->next;
    return k;
}

void ddp__params_keep(struct ddp__params *p, struct ddp__kept *k)
{
    struct ddp__kept *old = ddp__params_take(p, k->free);

    if (old)
        old->free(old);
    k->next = p->kept;
    p->kept = k;
}

void ddp__params_unbind(struct ddp__params *p)
{
    struct ddp__kept *k;

    if (!p->ddp)
        return;
    while ((k = p->kept)) {
        p->kept = k->next;
        k->free(k);
    }
    for (int b = 0; b < p->buckets; b++)
        ddp__handle_unregister(&p->bucket[b].handle);
    ddp__context_unbind(p->ddp, &p->bound);
    p->ddp = NULL;
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

int ddp__params_begin(struct ddp__params *p, bool write)
{
    if (!p->ddp)
        return need_values(p);
    for (int b = 0; b < p->buckets; b++)
        if (!ddp__handle_open(&p->bucket[b].handle, write, "weights")) {
            while (b-- > 0)
                ddp__handle_close(&p->bucket[b].handle);
            return ddp_errcode();
        }
    return 0;
}

void ddp__params_end(struct ddp__params *p)
{
    for (int b = 0; p->ddp && b < p->buckets; b++)
        ddp__handle_close(&p->bucket[b].handle);
}

/* ---- one tensor --------------------------------------------------------- */

/* Where element (o, i, y, x) of PyTorch's order is in ours (o, y, x, i).  A
 * matrix that reads flattened pixels has its columns in the order (i, y, x). */
static size_t element_place(const struct ddp_param *p, size_t k)
{
    size_t in = (size_t)p->dim[1], hw = (size_t)p->pixels, o, i, r;

    if (p->ndim == 4)
        hw = (size_t)p->dim[2] * (size_t)p->dim[3];
    else if (p->ndim == 2 && hw > 1)
        in /= hw;
    else
        return k;
    o = k / (in * hw);
    i = k / hw % in;
    r = k % hw;
    return (o * hw + r) * in + i;
}

void ddp__param_export(const struct ddp_param *p, const float *in, float *out)
{
    for (size_t k = 0; k < ddp__param_len(p); k++)
        out[k] = in[element_place(p, k)];
}

void ddp__param_import(const struct ddp_param *p, const float *in, float *out)
{
    for (size_t k = 0; k < ddp__param_len(p); k++)
        out[element_place(p, k)] = in[k];
}

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

    for (int k = 0; k < p->blocks; k++)
        for (int j = 0; j < p->block[k].params; j++) {
            ddp__param_name(&p->block[k], j, full);
            if (strcmp(full, name) == 0) {
                *b = &p->block[k];
                *i = j;
                return 0;
            }
        }
    return ddp__fail(DDP_EINVAL, "the chain has no parameter %s", name);
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

static int find_sized(struct ddp__params *p, const char *name, size_t len,
                      const struct ddp__param_block **b, int *i)
{
    int rc;

    if (!p)
        return ddp_errcode();
    if ((rc = ddp__params_find(p, name, b, i)) < 0)
        return rc;
    if (ddp__param_len(&(*b)->param[*i]) != len)
        return ddp__fail(DDP_ESHAPE, "%s has %zu values; the buffer has %zu",
                         name, ddp__param_len(&(*b)->param[*i]), len);
    return 0;
}

int ddp_chain_get(ddp_chain_t *c, const char *name, float *out, size_t len)
{
    struct ddp__params *p = ddp__params_of(c);
    const struct ddp__param_block *b;
    int i, rc;

    if ((rc = find_sized(p, name, len, &b, &i)) < 0 ||
        (rc = ddp__params_begin(p, false)) < 0)
        return rc;
    ddp__param_export(&b->param[i], param_memory(p, b, i), out);
    ddp__params_end(p);
    return 0;
}

int ddp_chain_set(ddp_chain_t *c, const char *name, const float *in, size_t len)
{
    struct ddp__params *p = ddp__params_of(c);
    const struct ddp__param_block *b;
    int i, rc;

    if ((rc = find_sized(p, name, len, &b, &i)) < 0 ||
        (rc = ddp__params_begin(p, true)) < 0)
        return rc;
    ddp__param_import(&b->param[i], in, param_memory(p, b, i));
    p->block[b - p->block].set[i] = true;
    ddp__params_end(p);
    return 0;
}

/* ---- all of them -------------------------------------------------------- */

int ddp__params_init_rest(struct ddp__params *p, uint64_t seed)
{
    int rc;

    if ((rc = ddp__params_reserve(p)) < 0 ||
        (rc = ddp__params_begin(p, true)) < 0)
        return rc;
    init_unset(p, seed);
    ddp__params_end(p);
    return 0;
}

int ddp_chain_init(ddp_chain_t *c, uint64_t seed)
{
    struct ddp__params *p = ddp__params_of(c);

    if (!p)
        return ddp_errcode();
    forget_set(p);
    return ddp__params_init_rest(p, seed);
}

int ddp_chain_checksum(ddp_chain_t *c, uint32_t *crc)
{
    struct ddp__params *p = ddp__params_of(c);
    int rc;

    if (!p)
        return ddp_errcode();
    if ((rc = ddp__params_begin(p, false)) < 0)
        return rc;
    *crc = 0;
    for (int i = 0; i < p->blocks; i++)
        *crc = ddp__crc32c(*crc, param_memory(p, &p->block[i], 0),
                           p->block[i].len * sizeof(float));
    ddp__params_end(p);
    return 0;
}
