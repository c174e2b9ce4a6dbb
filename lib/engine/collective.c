/* collective.c - what a program's ranks compute together
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * In the tree over ranks, so that all of them get the same bits.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "engine/exchange.h"
#include "engine/ranks.h"
#include "graph/param_values.h"
#include "graph/params_bind.h"
#include "runtime/context.h"
#include "runtime/lock.h"

enum { PART = 4 << 20 }; /* bytes */

/* ---- two values as one -------------------------------------------------- */

#define COMBINE(name, type, value)                                             \
    static void name(void *to, const void *from, size_t n)                     \
    {                                                                          \
        const type *b = from;                                                  \
        type *a = to;                                                          \
                                                                               \
        for (size_t i = 0; i < n; i++)                                         \
            a[i] = (type)(value);                                              \
    }
#define COMBINE_ALL(suffix, sum_type, type)                                    \
    COMBINE(sum_##suffix, sum_type, a[i] + b[i])                               \
    COMBINE(product_##suffix, sum_type, a[i] * b[i])                           \
    COMBINE(least_##suffix, type, b[i] < a[i] ? b[i] : a[i])                   \
    COMBINE(most_##suffix, type, b[i] > a[i] ? b[i] : a[i])

/* Integers wrap around. */
COMBINE_ALL(f32, float, float)
COMBINE_ALL(f64, double, double)
COMBINE_ALL(u8, uint8_t, uint8_t)
COMBINE_ALL(i32, uint32_t, int32_t)
COMBINE_ALL(i64, uint64_t, int64_t)

/* A type's functions, and for each what leaves the other value as it is. */
static const struct kind {
    enum ddp_dtype type;
    size_t size;
    ddp__add_f *add[DDP_MAX + 1];
    union {
        float f32;
        double f64;
        uint8_t u8;
        int32_t i32;
        int64_t i64;
    } none[DDP_MAX + 1];
} kinds[] = {
    {DDP_F32,
     4,
     {sum_f32, sum_f32, product_f32, least_f32, most_f32},
     {{.f32 = -0.0f},
      {.f32 = -0.0f},
      {.f32 = 1},
      {.f32 = INFINITY},
      {.f32 = -INFINITY}}},
    {DDP_F64,
     8,
     {sum_f64, sum_f64, product_f64, least_f64, most_f64},
     {{.f64 = -0.0},
      {.f64 = -0.0},
      {.f64 = 1},
      {.f64 = INFINITY},
      {.f64 = -INFINITY}}},
    {DDP_U8,
     1,
     {sum_u8, NULL, product_u8, least_u8, most_u8},
     {{.u8 = 0}, {.u8 = 0}, {.u8 = 1}, {.u8 = UINT8_MAX}, {.u8 = 0}}},
    {DDP_I32,
     4,
     {sum_i32, NULL, product_i32, least_i32, most_i32},
     {{.i32 = 0},
      {.i32 = 0},
      {.i32 = 1},
      {.i32 = INT32_MAX},
      {.i32 = INT32_MIN}}},
    {DDP_I64,
     8,
     {sum_i64, NULL, product_i64, least_i64, most_i64},
     {{.i64 = 0},
      {.i64 = 0},
      {.i64 = 1},
      {.i64 = INT64_MAX},
      {.i64 = INT64_MIN}}},
};

static const struct kind *kind_of(enum ddp_dtype type, enum ddp_reduction op)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (kinds[i].type == type && (unsigned)op <= DDP_MAX &&
            kinds[i].add[op])
            return &kinds[i];
    ddp__fail(DDP_EINVAL, (unsigned)op > DDP_MAX
                              ? "no reduction has this number"
                              : "ranks reduce f32, f64, u8, i32 and i64; the "
                                "mean only of f32 and f64");
    return NULL;
}

static void fill_none(const struct kind *k, enum ddp_reduction op, void *data,
                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        memcpy((char *)data + i * k->size, &k->none[op], k->size);
}

static void divide(const struct kind *k, void *data, size_t count, int parts)
{
    float *f32 = data;
    double *f64 = data;

    for (size_t i = 0; i < count; i++)
        if (k->type == DDP_F32)
            f32[i] /= (float)parts;
        else
            f64[i] /= parts;
}

/* ---- one that is under way ---------------------------------------------- */

struct ddp_request {
    struct ddp__net_op op; /* first */
    ddp_t *ddp;            /* not owned, like data */
    const struct kind *kind;
    enum ddp_reduction reduction;
    void *data, **piece; /* piece: by rank; owned */
    size_t count, done;  /* elements */
    bool busy;           /* x is under way */
    struct ddp__exchange x;
    struct ddp__lock lock;
    bool over;
    int rc;
    struct ddp__error error; /* if rc < 0 */
};

static int begin_part(struct ddp_request *r, struct ddp__wire *w)
{
    size_t most = PART / r->kind->size, left = r->count - r->done;
    struct ddp__split s = {w->count, w->count, w->count};

    r->x = (struct ddp__exchange){.piece = r->piece,
                                  .sum = r->data,
                                  .begin = r->done,
                                  .end = r->done + (left < most ? left : most),
                                  .size = r->kind->size,
                                  .add = r->kind->add[r->reduction]};
    r->busy = true;
    return ddp__exchange_begin(&r->x, w, &s, r->op.tag);
}

/* One part after another, which may so have the same tag. */
static int poll_request(struct ddp__net_op *op, struct ddp__wire *w)
{
    struct ddp_request *r = (struct ddp_request *)op;
    int rc = 1;

    while (rc == 1 && r->done < r->count) {
        rc = r->busy ? 0 : begin_part(r, w);
        if (rc == 0)
            rc = ddp__exchange_poll(&r->x);
        if (rc == 1) {
            r->done = r->x.end;
            r->busy = false;
            ddp__exchange_end(&r->x);
        }
    }
    return rc;
}

static void end_request(struct ddp__net_op *op, int rc)
{
    struct ddp_request *r = (struct ddp_request *)op;

    ddp__lock_acquire(&r->lock);
    r->rc = rc;
    r->error = ddp__error_save();
    r->over = true;
    ddp__lock_notify(&r->lock);
    ddp__lock_release(&r->lock);
}

static ddp_request_t *new_request(ddp_t *ddp, void *data, size_t count,
                                  const struct kind *k, enum ddp_reduction op)
{
    struct ddp_request *r = calloc(1, sizeof(*r));
    int ranks = ddp->net.wire.count;

    if (!r || !(r->piece = calloc((size_t)ranks, sizeof(*r->piece)))) {
        free(r);
        ddp__fail(DDP_ENOMEM, "out of memory for a request");
        return NULL;
    }
    r->op.poll = poll_request;
    r->op.done = end_request;
    r->ddp = ddp;
    r->kind = k;
    r->reduction = op;
    r->data = r->piece[ddp->net.wire.rank] = data;
    r->count = count;
    ddp__lock_init(&r->lock);
    return r;
}

ddp_request_t *ddp_allreduce_begin(ddp_t *ddp, void *data, size_t count,
                                   enum ddp_dtype type, enum ddp_reduction op)
{
    const struct kind *k;
    ddp_request_t *r;

    if (!ddp || (!data && count)) {
        ddp__fail_null(!ddp ? "ddp" : "data");
        return NULL;
    }
    if (!(k = kind_of(type, op)) || !(r = new_request(ddp, data, count, k, op)))
        return NULL;
    r->over = ddp->net.wire.count == 1;
    if (!r->over) {
        ddp__net_add(&ddp->net, &r->op, 1);
        ddp__net_ready(&ddp->net, &r->op);
    }
    return r;
}

int ddp_request_test(ddp_request_t *r, bool *done)
{
    if (!r || !done)
        return ddp__fail_null(!r ? "request" : "done");
    ddp__lock_acquire(&r->lock);
    *done = r->over;
    ddp__lock_release(&r->lock);
    return 0;
}

int ddp_request_wait(ddp_request_t *r)
{
    int rc;

    if (!r)
        return ddp__fail_null("request");
    ddp__lock_acquire(&r->lock);
    while (!r->over)
        ddp__lock_wait(&r->lock);
    ddp__lock_release(&r->lock);
    if ((rc = r->rc) < 0)
        ddp__error_restore(&r->error);
    else if (r->reduction == DDP_MEAN)
        divide(r->kind, r->data, r->count, r->ddp->net.wire.count);
    ddp__lock_fini(&r->lock);
    free(r->piece);
    free(r);
    return rc;
}

/* ---- and waited for ----------------------------------------------------- */

int ddp_allreduce(ddp_t *ddp, void *data, size_t count, enum ddp_dtype type,
                  enum ddp_reduction op)
{
    ddp_request_t *r = ddp_allreduce_begin(ddp, data, count, type, op);

    return r ? ddp_request_wait(r) : ddp_errcode();
}

/* Who takes no part gives what changes nothing. */
int ddp_allreduce_optional(ddp_t *ddp, void *data, size_t count,
                           enum ddp_dtype type, enum ddp_reduction op,
                           bool take_part, int *parts)
{
    const struct kind *k;
    int32_t some = take_part;
    char *copy;
    int rc;

    if (!ddp || !parts || (!data && count))
        return ddp__fail_null(!ddp ? "ddp" : !parts ? "parts" : "data");
    if (!(k = kind_of(type, op)))
        return DDP_EINVAL;
    if (!(copy = malloc(count * k->size + 1)))
        return ddp__fail(DDP_ENOMEM, "out of memory for %zu values", count);
    if (take_part)
        memcpy(copy, data, count * k->size);
    else
        fill_none(k, op, copy, count);
    rc = ddp_allreduce(ddp, &some, 1, DDP_I32, DDP_SUM);
    if (rc == 0)
        rc = ddp_allreduce(ddp, copy, count, type,
                           op == DDP_MEAN ? DDP_SUM : op);
    if (rc == 0 && some > 0) {
        if (op == DDP_MEAN)
            divide(k, copy, count, some);
        memcpy(data, copy, count * k->size);
    }
    *parts = rc == 0 ? some : 0;
    free(copy);
    return rc;
}

static int check_root(const ddp_t *ddp, int root)
{
    int ranks = ddp->net.wire.count;

    return root >= 0 && root < ranks
               ? 0
               : ddp__fail(DDP_EINVAL, "rank %d, expected 0 to %d", root,
                           ranks - 1);
}

int ddp_allreduce_to(ddp_t *ddp, const void *from, void *to, size_t count,
                     enum ddp_dtype type, enum ddp_reduction op)
{
    const struct kind *k;

    if (!ddp || (count && (!from || !to)))
        return ddp__fail_null(!ddp ? "ddp" : !from ? "from" : "to");
    if (!(k = kind_of(type, op)))
        return DDP_EINVAL;
    if (count)
        memmove(to, from, count * k->size);
    return ddp_allreduce(ddp, to, count, type, op);
}

/* The others need a place for the result, too. */
static int reduce_to(ddp_t *ddp, const void *from, void *to, size_t count,
                     const struct kind *k, enum ddp_reduction op, bool is_root)
{
    void *own = is_root ? NULL : malloc(count * k->size + 1);
    int rc;

    if (!is_root && !own)
        return ddp__fail(DDP_ENOMEM, "out of memory for %zu values", count);
    rc = ddp_allreduce_to(ddp, from, is_root ? to : own, count, k->type, op);
    free(own);
    return rc;
}

int ddp_reduce_to(ddp_t *ddp, const void *from, void *to, size_t count,
                  enum ddp_dtype type, enum ddp_reduction op, int root)
{
    const struct kind *k;
    bool is_root;

    if (!ddp || (count && !from))
        return ddp__fail_null(!ddp ? "ddp" : "from");
    if (check_root(ddp, root) < 0 || !(k = kind_of(type, op)))
        return DDP_EINVAL;
    is_root = ddp->net.wire.rank == root;
    if (is_root && count && !to)
        return ddp__fail_null("to");
    return reduce_to(ddp, from, to, count, k, op, is_root);
}

int ddp_reduce(ddp_t *ddp, void *data, size_t count, enum ddp_dtype type,
               enum ddp_reduction op, int root)
{
    if (!ddp || (!data && count))
        return ddp__fail_null(!ddp ? "ddp" : "data");
    return ddp_reduce_to(ddp, data, data, count, type, op, root);
}

/* The sum of the root's bytes and of zeros. */
ddp_request_t *ddp_bcast_begin(ddp_t *ddp, void *data, size_t bytes, int root)
{
    if (!ddp || (!data && bytes)) {
        ddp__fail_null(!ddp ? "ddp" : "data");
        return NULL;
    }
    if (check_root(ddp, root) < 0)
        return NULL;
    if (ddp->net.wire.rank != root && bytes)
        memset(data, 0, bytes);
    return ddp_allreduce_begin(ddp, data, bytes, DDP_U8, DDP_SUM);
}

int ddp_bcast(ddp_t *ddp, void *data, size_t bytes, int root)
{
    ddp_request_t *r = ddp_bcast_begin(ddp, data, bytes, root);

    return r ? ddp_request_wait(r) : ddp_errcode();
}

int ddp_bcast_to(ddp_t *ddp, const void *from, void *to, size_t bytes, int root)
{
    if (!ddp || (!to && bytes))
        return ddp__fail_null(!ddp ? "ddp" : "to");
    if (check_root(ddp, root) < 0)
        return DDP_EINVAL;
    if (ddp->net.wire.rank == root && bytes) {
        if (!from)
            return ddp__fail_null("from");
        memmove(to, from, bytes);
    }
    return ddp_bcast(ddp, to, bytes, root);
}

int ddp_barrier(ddp_t *ddp)
{
    return ddp ? ddp__ranks_agree(ddp, 0) : ddp__fail_null("ddp");
}

/* ---- weights ------------------------------------------------------------ */

static int64_t identity(const struct ddp__params *p)
{
    char name[DDP__PARAM_NAME];
    uint32_t crc = 0;

    for (int k = 0; k < p->blocks; k++)
        for (int i = 0; i < p->block[k].params; i++) {
            uint64_t len = ddp__param_len(&p->block[k].param[i]);

            ddp__param_name(&p->block[k], i, name);
            crc = ddp__crc32c(crc, name, strlen(name));
            crc = ddp__crc32c(crc, &len, sizeof(len));
        }
    return crc;
}

/* Before anything is sent that would not fit. */
static int check_same(ddp_t *ddp, const struct ddp__params *p)
{
    int64_t mine = identity(p), most = mine;
    int rc = ddp_allreduce(ddp, &most, 1, DDP_I64, DDP_MAX);

    if (rc == 0 && most != mine)
        rc = ddp__fail(DDP_EINVAL,
                       "the network has other parameters than on other ranks");
    return ddp__ranks_agree(ddp, rc);
}

static void mark_set(struct ddp__params *p)
{
    for (int k = 0; k < p->blocks; k++)
        for (int i = 0; i < p->block[k].params; i++)
            p->block[k].set[i] = true;
}

static int begin_sync(struct ddp__params *p)
{
    int rc = p ? ddp__params_need_values(p) : ddp_errcode();

    return rc < 0 ? rc : ddp__params_begin(p, true);
}

int ddp_chain_sync(ddp_t *ddp, ddp_chain_t *chain, int root)
{
    struct ddp__params *p;
    int rc;

    if (!ddp || !chain)
        return ddp__fail_null(!ddp ? "ddp" : "chain");
    p = ddp__params_of(chain);
    if ((rc = check_root(ddp, root)) < 0 ||
        (rc = ddp__ranks_agree(ddp, begin_sync(p))) < 0)
        return rc;
    rc = check_same(ddp, p);
    for (int b = 0; b < p->buckets && rc == 0; b++)
        rc = ddp_bcast(ddp, p->bucket[b].w, p->bucket[b].len * 4, root);
    ddp__params_end(p);
    if (rc == 0)
        mark_set(p);
    return rc;
}
