/* check.c - one op at a time on any backend, without StarPU
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "ref/backend.h"

#define X(name) [ROLE_##name] = #name,
const char *const check_role_names[ROLE_COUNT] = {[ROLE_NONE] = "none",
                                                  CHECK_ROLES(X)};
#undef X

/* What the rows of ops.h name their operands.  A name without a role does not
 * compile: add it to CHECK_ROLES. */
#define O(op, name, kind, use) ROLE_##name,
#define X(id, name, traits) [DDP__OP_##id] = {DDP__##id##_OPERANDS(O, id)},
static const enum check_role names[DDP__OP_COUNT][DDP_MAX_BUFFERS] = {
    DDP__OPS(X)};
#undef X
#undef O

/* Names that are the tensor of another role, by the kind of the operand; all
 * others have a tensor of their own. */
static const enum check_role others[ROLE_COUNT][DDP__OPERAND_KINDS] = {
    [ROLE_A][DDP__KIND_ACT] = ROLE_X,
    [ROLE_B][DDP__KIND_ACT] = ROLE_R,
    [ROLE_DST][DDP__KIND_ACT] = ROLE_Y,
    [ROLE_SRC][DDP__KIND_ACT] = ROLE_X,
    [ROLE_DST][DDP__KIND_GRAD] = ROLE_G,
    [ROLE_SRC][DDP__KIND_GRAD] = ROLE_W,
    [ROLE_DST][DDP__KIND_F32] = ROLE_G,
    [ROLE_SRC][DDP__KIND_PARAM] = ROLE_W,
    [ROLE_DST][DDP__KIND_F64] = ROLE_STATS,
};

const enum check_role check_gradient[ROLE_COUNT] = {
    [ROLE_X] = ROLE_DX, [ROLE_Y] = ROLE_DY, [ROLE_W] = ROLE_G,
    [ROLE_R] = ROLE_DR, [ROLE_S] = ROLE_DS,
};

const struct check_kind check_kinds[] = {
    [CHECK_INPUT_U8] = {"input u8", {DDP__OP_INPUT_U8}, 1},
    [CHECK_INPUT_F32] = {"input f32", {DDP__OP_INPUT_F32}, 1},
    [CHECK_CONV] = {"conv",
                    {DDP__OP_CONV_FWD, DDP__OP_CONV_BWD_X, DDP__OP_CONV_BWD_W},
                    3,
                    {ROLE_X, ROLE_W},
                    ROLE_Y},
    [CHECK_CONV_NORM] = {"conv norm", {DDP__OP_CONV_NORM}, 1},
    [CHECK_NORM_CONV] = {"norm conv",
                         {DDP__OP_NORM_CONV_FWD, DDP__OP_NORM_CONV_BWD_W,
                          DDP__OP_NORM_CONV_BWD_X},
                         3,
                         {ROLE_W},
                         ROLE_Y},
    [CHECK_DENSE] = {"dense",
                     {DDP__OP_DENSE_FWD, DDP__OP_DENSE_BWD_X,
                      DDP__OP_DENSE_BWD_W},
                     3,
                     {ROLE_X, ROLE_W},
                     ROLE_Y},
    [CHECK_BN] = {"bn",
                  {DDP__OP_BN_FWD, DDP__OP_BN_BWD},
                  2,
                  {ROLE_X, ROLE_W, ROLE_R},
                  ROLE_Y},
    [CHECK_BN_STAT] = {"bn stat", {DDP__OP_BN_STAT}, 1},
    [CHECK_BN_GATED] = {"bn gated", {DDP__OP_BN_FWD, DDP__OP_BN_GATED_BWD}, 2},
    [CHECK_BN_EVAL] = {"bn eval", {DDP__OP_BN_EVAL}, 1},
    [CHECK_BN_EVAL_BWD] = {"bn eval bwd", {DDP__OP_BN_EVAL_BWD}, 1},
    [CHECK_BN_SYNC] = {"bn sync",
                       {DDP__OP_BN_SUM, DDP__OP_BN_SYNC, DDP__OP_BN_SUM_BWD,
                        DDP__OP_BN_SYNC_BWD},
                       4},
    [CHECK_ACT] =
        {"act", {DDP__OP_ACT_FWD, DDP__OP_ACT_BWD}, 2, {ROLE_X}, ROLE_Y},
    [CHECK_ADD] = {"add", {DDP__OP_ADD}, 1},
    [CHECK_ACC] = {"acc", {DDP__OP_ACC}, 1},
    [CHECK_MAX_POOL] = {"max pool",
                        {DDP__OP_MAX_POOL_FWD, DDP__OP_MAX_POOL_BWD},
                        2,
                        {ROLE_X},
                        ROLE_Y},
    [CHECK_MEAN_POOL] = {"mean pool",
                         {DDP__OP_MEAN_POOL_FWD, DDP__OP_MEAN_POOL_BWD},
                         2,
                         {ROLE_X},
                         ROLE_Y},
    [CHECK_CONCAT] =
        {"concat", {DDP__OP_CONCAT, DDP__OP_SPLIT}, 2, {ROLE_X}, ROLE_Y},
    [CHECK_SCALE] = {"scale",
                     {DDP__OP_SCALE_FWD, DDP__OP_SCALE_BWD},
                     2,
                     {ROLE_X, ROLE_S},
                     ROLE_Y},
    [CHECK_DROPOUT] = {"dropout", {DDP__OP_DROPOUT}, 1},
    [CHECK_LOSS] = {"loss", {DDP__OP_LOSS}, 1, {ROLE_X}, ROLE_STATS},
    [CHECK_MERGE] = {"merge", {DDP__OP_MERGE}, 1},
    [CHECK_MERGE_STATS] = {"merge stats", {DDP__OP_MERGE_STATS}, 1},
    [CHECK_OPTIM] = {"optim", {DDP__OP_SQNORM, DDP__OP_OPTIM}, 2},
    [CHECK_EMA] = {"ema", {DDP__OP_EMA}, 1},
    [CHECK_KEEP] = {"keep", {DDP__OP_KEEP}, 1},
};

/* Whether this call has that operand at all. */
static bool has_operand(const struct check *k, enum ddp__op op,
                        enum check_role role)
{
    const struct ddp__call *c = &k->row.call;

    if (k->row.family == CHECK_BN || k->row.family == CHECK_BN_GATED ||
        k->row.family == CHECK_BN_EVAL || k->row.family == CHECK_BN_SYNC)
        return role == ROLE_MASK                   ? c->bn.mask
               : role == ROLE_R || role == ROLE_DR ? c->bn.residual
                                                   : true;
    if ((op == DDP__OP_LOSS || op == DDP__OP_SCALE_BWD) && role == ROLE_DX)
        return !k->row.no_gradient;
    if (op == DDP__OP_LOSS && role == ROLE_SCALE)
        return false; /* test_loss_scaler.c has it */
    if (op == DDP__OP_OPTIM && role == ROLE_STATE)
        return ddp__optimizer_states(&c->optim.o) > 0;
    if (op == DDP__OP_OPTIM && role == ROLE_NORM)
        return c->optim.o.clip_norm > 0;
    return true;
}

/* The tensor that an activation's slope follows from. */
static enum check_role slope(const struct check *k)
{
    if (k->row.family == CHECK_BN || k->row.family == CHECK_BN_SYNC)
        return k->row.call.bn.mask     ? ROLE_MASK
               : k->row.call.bn.from_x ? ROLE_X
                                       : ROLE_Y;
    return ddp__act_from_y(k->row.call.act) ? ROLE_Y : ROLE_X;
}

enum check_role check_role(const struct check *k, enum ddp__op op, int i)
{
    enum check_role name = names[op][i];
    enum check_role other = others[name][ddp__signature[op].operand[i].kind];

    if (name == ROLE_SLOPE)
        return slope(k);
    if (op == DDP__OP_SCALE_BWD && name == ROLE_X && k->row.call.scaled)
        return ROLE_Y;
    if (other != ROLE_NONE)
        return other;
    return has_operand(k, op, name) ? name : ROLE_NONE;
}

bool check_writes(enum ddp__op op, int i)
{
    struct ddp__call c = {.op = op};

    return ddp__call_access(&c, i, true) != DDP_READ;
}

/* ---- tensors ------------------------------------------------------------ */

static bool is_conv(const struct check_row *r)
{
    return r->family == CHECK_CONV || r->family == CHECK_CONV_NORM ||
           r->family == CHECK_NORM_CONV;
}

static int conv_out(int in, int pads, int kernel, int dilation, int stride)
{
    return (in + pads - dilation * (kernel - 1) - 1) / stride + 1;
}

static struct ddp_shape output_shape(const struct check_row *r)
{
    const struct ddp__conv *c = &r->call.conv;
    const struct ddp__pool *p = &r->call.pool;

    if (r->y.h)
        return r->y;
    if (is_conv(r))
        return (struct ddp_shape){
            conv_out(r->x.h, c->top + c->bottom, c->kh, c->dh, c->sh),
            conv_out(r->x.w, c->left + c->right, c->kw, c->dw, c->sw), r->y.c};
    if (r->family == CHECK_MAX_POOL || r->family == CHECK_MEAN_POOL)
        return (struct ddp_shape){
            conv_out(r->x.h, p->top + p->bottom, p->kh, 1, p->sh),
            conv_out(r->x.w, p->left + p->right, p->kw, 1, p->sw), r->x.c};
    return r->x;
}

static int param_len(const struct check_row *r)
{
    const struct ddp__conv *c = &r->call.conv;
    int len = 0;

    if (is_conv(r))
        return r->y.c * c->kh * c->kw * ddp__conv_in(c, r->x.c) +
               (c->bias ? r->y.c : 0);
    if (r->family == CHECK_DENSE)
        return r->y.c * (r->x.c + (r->call.dense.bias ? 1 : 0));
    if (r->family != CHECK_OPTIM)
        return 4 * r->x.c;
    for (int i = 0; i < r->call.optim.spans; i++)
        len = (int)(r->span[i].begin + r->span[i].len);
    return len;
}

static struct ddp__view vector(enum ddp_dtype type, int len)
{
    return (struct ddp__view){.type = type, .shape = {1, 1, len}};
}

static struct ddp__view per_sample(enum ddp_dtype type, struct ddp_shape shape)
{
    return (struct ddp__view){.type = type, .per_sample = true, .shape = shape};
}

int check_norm_channels(const struct check_row *r)
{
    return r->family == CHECK_NORM_CONV ? r->x.c : r->y.c;
}

/* Of a row of CHECK_LOSS. */
bool check_has_labels(const struct check_row *r)
{
    return ddp__loss_info(r->call.loss.kind)->target == DDP__TARGET_CLASS &&
           !r->shares;
}

static enum ddp_dtype type_of(const struct check *k,
                              enum ddp__operand_kind kind)
{
    const struct ddp__pool *p = &k->row.call.pool;

    switch (kind) {
    case DDP__KIND_U8:
        return DDP_U8;
    case DDP__KIND_INDEX:
        return p->kh * p->kw > 256 ? DDP_I32 : DDP_U8;
    case DDP__KIND_IDS:
        return DDP_I64;
    case DDP__KIND_TARGET:
        return check_has_labels(&k->row) ? DDP_I32 : DDP_F32;
    case DDP__KIND_PARAM:
    case DDP__KIND_GRAD:
    case DDP__KIND_F32:
        return DDP_F32;
    case DDP__KIND_F64:
        return DDP_F64;
    default: /* activations */
        return k->dtype;
    }
}

static struct ddp__view view_of(const struct check *k, enum check_role role,
                                enum ddp_dtype type)
{
    const struct check_row *r = &k->row;
    struct ddp_shape one = {1, 1, 1}, factors = {1, 1, r->x.c};
    struct ddp_shape bits = {r->x.h, r->x.w, r->x.c / 8};

    switch (role) {
    case ROLE_Y:
    case ROLE_DY:
    case ROLE_R:
    case ROLE_DR:
    case ROLE_INDEX:
        return per_sample(type, r->y);
    case ROLE_S:
    case ROLE_DS:
    case ROLE_DM:
        return per_sample(type, factors);
    case ROLE_MASK:
        return per_sample(type, bits);
    case ROLE_IDS:
        return per_sample(type, one);
    case ROLE_TARGET:
        return per_sample(type, check_has_labels(r) ? one : r->x);
    case ROLE_WEIGHT:
        return vector(type, r->cap + 1 + (r->call.loss.positives ? r->x.c : 0));
    case ROLE_STAT:
        return vector(type, 2 * r->x.c + (r->family == CHECK_BN_SYNC));
    case ROLE_SUM:
        return vector(type, 2 * r->x.c + 1);
    case ROLE_DSUM:
        return vector(type, 2 * r->x.c);
    case ROLE_BN:
    case ROLE_BN_G:
        return vector(type, 4 * check_norm_channels(r));
    case ROLE_W:
    case ROLE_G:
        return vector(type, param_len(r));
    case ROLE_STATE:
        return vector(type,
                      param_len(r) * ddp__optimizer_states(&r->call.optim.o));
    case ROLE_STATS:
    case ROLE_SRC: /* of other statistics */
        return vector(type, DDP__STATS);
    case ROLE_NORM:
        return vector(type, DDP__NORMS);
    default: /* as x */
        return per_sample(type, r->x);
    }
}

struct check_tensor *check_tensor(struct check *k, enum check_role role)
{
    return &k->tensor[role];
}

size_t check_len(const struct check_tensor *t, int n)
{
    const struct ddp_shape *s = &t->view.shape;

    return (size_t)(t->view.per_sample ? n : 1) * (size_t)s->h * (size_t)s->w *
           (size_t)s->c;
}

/* Memory of exactly this size, so that a sanitizer sees what a kernel touches
 * beyond, and aligned as the library's is. */
static void *tensor_memory(size_t size)
{
    void *p;

    return posix_memalign(&p, 64, size ? size : 1) ? NULL : p;
}

static bool allocate(struct check *k, enum check_role role,
                     enum ddp__operand_kind kind)
{
    static uint64_t last_id;
    struct check_tensor *t = check_tensor(k, role);

    if (t->data)
        return true;
    t->view = view_of(k, role, type_of(k, kind));
    t->size = check_len(t, k->row.cap) * ddp__dtype_size(t->view.type);
    t->id = ++last_id;
    if (!(t->data = tensor_memory(t->size)))
        return false;
    memset(t->data, 0, t->size);
    return true;
}

static bool allocate_operands(struct check *k, enum ddp__op op)
{
    for (int i = 0; i < ddp__signature[op].operands; i++) {
        enum check_role role = check_role(k, op, i);

        if (role != ROLE_NONE &&
            !allocate(k, role, ddp__signature[op].operand[i].kind))
            return false;
    }
    return true;
}

struct check *check_new(const struct check_row *row, enum ddp_dtype dtype)
{
    const struct check_kind *kind = &check_kinds[row->family];
    struct check *k = calloc(1, sizeof(*k));
    bool good = k != NULL;

    if (!k)
        return NULL;
    k->row = *row;
    k->dtype = dtype;
    k->row.y = output_shape(row);
    for (int i = 0; i < kind->ops; i++)
        good = good && allocate_operands(k, kind->op[i]);
    if (good && kind->slope[0] != ROLE_NONE)
        good = allocate(k, ROLE_DY, DDP__KIND_ACT);
    if (!good) {
        check_free(k);
        return NULL;
    }
    return k;
}

struct check *check_copy(const struct check *k)
{
    struct check *copy = malloc(sizeof(*copy));
    bool good = copy != NULL;

    if (!copy)
        return NULL;
    *copy = *k;
    for (int i = 0; i < ROLE_COUNT; i++) {
        struct check_tensor *t = &copy->tensor[i];

        if (!k->tensor[i].data)
            continue;
        t->data = tensor_memory(t->size);
        good = good && t->data;
        if (t->data)
            memcpy(t->data, k->tensor[i].data, t->size);
    }
    if (!good) {
        check_free(copy);
        return NULL;
    }
    return copy;
}

void check_free(struct check *k)
{
    if (!k)
        return;
    for (int i = 0; i < ROLE_COUNT; i++)
        free(k->tensor[i].data);
    free(k);
}

/* ---- running ------------------------------------------------------------ */

struct ddp__call check_call(const struct check *k, enum ddp__op op)
{
    struct ddp__call c = k->row.call;

    c.op = op;
    c.cap = k->row.cap;
    c.buffers = ddp__signature[op].operands;
    for (int i = 0; i < c.buffers; i++) {
        enum check_role role = check_role(k, op, i);

        if (role != ROLE_NONE)
            c.buf[i] = k->tensor[role].view;
    }
    c.sum &= op == DDP__OP_CONV_BWD_X || op == DDP__OP_SPLIT;
    if (k->row.family == CHECK_OPTIM)
        c.optim.span = k->row.span;
    return c;
}

int (*check_kernel)(const struct ddp__backend *b, struct ddp__task *t,
                    const size_t *size);

int check_run(struct check *k, const struct ddp__backend *b,
              const struct ddp__call *c, int n, bool accumulate)
{
    struct ddp__task t = {.call = c, .n = n, .accumulate = accumulate};
    size_t size[DDP_MAX_BUFFERS] = {0};
    int rc;

    t.plan = c->on[DDP_CPU].plan;
    t.seed = 0x123456789abcdef;
    t.lr = 0.05f;
    for (int i = 0; i < c->buffers; i++) {
        enum check_role role = check_role(k, c->op, i);
        const struct check_tensor *x = &k->tensor[role];

        if (role == ROLE_NONE)
            continue;
        size[i] = x->size;
        t.data[i] = x->data;
        t.size[i] = x->size;
        t.id[i] = x->id;
        t.version[i] = x->version;
    }
    rc = check_kernel && b != &ddp__ref ? check_kernel(b, &t, size)
                                        : b->kernel[c->op](&t);
    for (int i = 0; i < c->buffers; i++)
        if (t.data[i] && check_writes(c->op, i))
            k->tensor[check_role(k, c->op, i)].version++;
    return rc;
}
