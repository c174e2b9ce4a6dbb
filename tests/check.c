/* check.c - one op at a time on any backend, without StarPU
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/half.h"
#include "base/philox.h"
#include "check.h"
#include "ref/backend.h"

/* The tensor of a family that an operand is: by its name, and by its kind where
 * that tells families apart. */
static const struct {
    const char *operand;
    char letter;
    enum ddp__operand_kind kind; /* OPERAND_KINDS: any */
} tensors[] = {
    {"X", 'u', DDP__KIND_U8},
    {"X", 'j', DDP__KIND_F32},
    {"X", 'x', DDP__OPERAND_KINDS},
    {"Y", 'y', DDP__OPERAND_KINDS},
    {"DY", 'd', DDP__OPERAND_KINDS},
    {"DX", 'e', DDP__OPERAND_KINDS},
    {"W", 'w', DDP__OPERAND_KINDS},
    {"G", 'g', DDP__OPERAND_KINDS},
    {"R", 'r', DDP__OPERAND_KINDS},
    {"DR", 'f', DDP__OPERAND_KINDS},
    {"A", 'x', DDP__OPERAND_KINDS},
    {"B", 'r', DDP__OPERAND_KINDS},
    {"S", 'k', DDP__OPERAND_KINDS},
    {"DS", 'l', DDP__OPERAND_KINDS},
    {"STAT", 's', DDP__OPERAND_KINDS},
    {"MASK", 'b', DDP__OPERAND_KINDS},
    {"INDEX", 'i', DDP__OPERAND_KINDS},
    {"IDS", 'n', DDP__OPERAND_KINDS},
    {"TARGET", 't', DDP__OPERAND_KINDS},
    {"WEIGHT", 'v', DDP__OPERAND_KINDS},
    {"STATS", 'q', DDP__OPERAND_KINDS},
    {"STATE", 'o', DDP__OPERAND_KINDS},
    {"NORM", 'm', DDP__OPERAND_KINDS},
    {"DST", 'y', DDP__KIND_ACT},
    {"SRC", 'x', DDP__KIND_ACT},
    {"DST", 'q', DDP__KIND_F64},
    {"SRC", 'z', DDP__KIND_F64},
    {"DST", 'g', DDP__OPERAND_KINDS},
    {"SRC", 'w', DDP__OPERAND_KINDS},
};

const struct check_kind check_kinds[] = {
    [CHECK_INPUT_U8] = {"input u8", {DDP__OP_INPUT_U8}, 1, "", 'y'},
    [CHECK_INPUT_F32] = {"input f32", {DDP__OP_INPUT_F32}, 1, "", 'y'},
    [CHECK_CONV] = {"conv",
                    {DDP__OP_CONV_FWD, DDP__OP_CONV_BWD_X, DDP__OP_CONV_BWD_W},
                    3,
                    "xewg",
                    'y'},
    [CHECK_DENSE] = {"dense",
                     {DDP__OP_DENSE_FWD, DDP__OP_DENSE_BWD_X,
                      DDP__OP_DENSE_BWD_W},
                     3,
                     "xewg",
                     'y'},
    [CHECK_BN] = {"bn", {DDP__OP_BN_FWD, DDP__OP_BN_BWD}, 2, "xewgrf", 'y'},
    [CHECK_BN_EVAL] = {"bn eval", {DDP__OP_BN_EVAL}, 1, "", 'y'},
    [CHECK_ACT] = {"act", {DDP__OP_ACT_FWD, DDP__OP_ACT_BWD}, 2, "xe", 'y'},
    [CHECK_ADD] = {"add", {DDP__OP_ADD}, 1, "", 'y'},
    [CHECK_ACC] = {"acc", {DDP__OP_ACC}, 1, "", 'y'},
    [CHECK_MAX_POOL] = {"max pool",
                        {DDP__OP_MAX_POOL_FWD, DDP__OP_MAX_POOL_BWD},
                        2,
                        "xe",
                        'y'},
    [CHECK_MEAN_POOL] = {"mean pool",
                         {DDP__OP_MEAN_POOL_FWD, DDP__OP_MEAN_POOL_BWD},
                         2,
                         "xe",
                         'y'},
    [CHECK_CONCAT] = {"concat", {DDP__OP_CONCAT, DDP__OP_SPLIT}, 2, "xe", 'y'},
    [CHECK_SCALE] =
        {"scale", {DDP__OP_SCALE_FWD, DDP__OP_SCALE_BWD}, 2, "xekl", 'y'},
    [CHECK_DROPOUT] = {"dropout", {DDP__OP_DROPOUT}, 1, "", 'y'},
    [CHECK_LOSS] = {"loss", {DDP__OP_LOSS}, 1, "xe", 'q'},
    [CHECK_MERGE] = {"merge", {DDP__OP_MERGE}, 1, "", 'g'},
    [CHECK_MERGE_STATS] = {"merge stats", {DDP__OP_MERGE_STATS}, 1, "", 'q'},
    [CHECK_OPTIM] = {"optim", {DDP__OP_SQNORM, DDP__OP_OPTIM}, 2, "", 'w'},
    [CHECK_EMA] = {"ema", {DDP__OP_EMA}, 1, "", 'g'},
};

/* Whether this call has that operand at all. */
static bool has_operand(const struct check *k, enum ddp__op op, char letter)
{
    const struct ddp__call *c = &k->row.call;

    if (k->row.family == CHECK_BN || k->row.family == CHECK_BN_EVAL)
        return letter == 'b'                    ? c->bn.mask
               : letter == 'r' || letter == 'f' ? c->bn.residual
                                                : true;
    if (op == DDP__OP_LOSS && letter == 'e')
        return !k->row.no_gradient;
    if (op == DDP__OP_OPTIM && letter == 'o')
        return ddp__optimizer_states(&c->optim.o) > 0;
    if (op == DDP__OP_OPTIM && letter == 'm')
        return c->optim.o.clip_norm > 0;
    return true;
}

/* The tensor that an activation's slope follows from. */
static char slope(const struct check *k)
{
    if (k->row.family == CHECK_BN)
        return k->row.call.bn.mask ? 'b' : 'y';
    return ddp__act_from_y(k->row.call.act) ? 'y' : 'x';
}

char check_letter(const struct check *k, enum ddp__op op, int i)
{
    const struct ddp__operand *o = &ddp__signature[op].operand[i];

    if (strcmp(o->name, "SLOPE") == 0)
        return slope(k);
    for (size_t t = 0; t < sizeof(tensors) / sizeof(*tensors); t++)
        if (strcmp(tensors[t].operand, o->name) == 0 &&
            (tensors[t].kind == o->kind ||
             tensors[t].kind == DDP__OPERAND_KINDS))
            return has_operand(k, op, tensors[t].letter) ? tensors[t].letter
                                                         : 0;
    return 0;
}

bool check_writes(enum ddp__op op, int i)
{
    struct ddp__call c = {.op = op};

    return ddp__call_access(&c, i, true) != DDP_READ;
}

/* ---- tensors ------------------------------------------------------------ */

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
    if (r->family == CHECK_CONV)
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

    if (r->family == CHECK_CONV)
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

/* Of a row of CHECK_LOSS. */
static bool has_labels(const struct check_row *r)
{
    return ddp__loss_info(r->call.loss.kind)->target == DDP__TARGET_CLASS;
}

static struct ddp__view view_of(const struct check *k, char letter)
{
    const struct check_row *r = &k->row;
    const struct ddp__pool *p = &r->call.pool;
    struct ddp_shape one = {1, 1, 1}, factors = {1, 1, r->x.c};
    struct ddp_shape bits = {r->x.h, r->x.w, r->x.c / 8};

    switch (letter) {
    case 'y':
    case 'd':
    case 'r':
    case 'f':
        return per_sample(k->dtype, r->y);
    case 'k':
    case 'l':
        return per_sample(k->dtype, factors);
    case 'u':
        return per_sample(DDP_U8, r->x);
    case 'b':
        return per_sample(DDP_U8, bits);
    case 'j':
        return per_sample(DDP_F32, r->x);
    case 'i':
        return per_sample(p->kh * p->kw > 256 ? DDP_I32 : DDP_U8, r->y);
    case 'n':
        return per_sample(DDP_I64, one);
    case 't':
        return has_labels(r) ? per_sample(DDP_I32, one)
                             : per_sample(DDP_F32, r->x);
    case 'v':
        return vector(DDP_F32, r->cap + 1);
    case 's':
        return vector(DDP_F32, 2 * r->x.c);
    case 'w':
    case 'g':
        return vector(DDP_F32, param_len(r));
    case 'o':
        return vector(DDP_F32,
                      param_len(r) * ddp__optimizer_states(&r->call.optim.o));
    case 'q':
    case 'z':
        return vector(DDP_F64, DDP__STATS);
    case 'm':
        return vector(DDP_F64, DDP__NORMS);
    default: /* x, e */
        return per_sample(k->dtype, r->x);
    }
}

struct check_tensor *check_tensor(struct check *k, char letter)
{
    return &k->tensor[letter - 'a'];
}

size_t check_len(const struct check_tensor *t, int n)
{
    const struct ddp_shape *s = &t->view.shape;

    return (size_t)(t->view.per_sample ? n : 1) * (size_t)s->h * (size_t)s->w *
           (size_t)s->c;
}

/* Memory for one tensor, of exactly its size: a sanitizer sees what a kernel
 * touches beyond. */
static bool allocate(struct check *k, char letter)
{
    static uint64_t last_id;
    struct check_tensor *t = check_tensor(k, letter);

    if (t->data)
        return true;
    t->view = view_of(k, letter);
    t->size = check_len(t, k->row.cap) * ddp__dtype_size(t->view.type);
    t->id = ++last_id;
    t->data = calloc(1, t->size ? t->size : 1);
    return t->data != NULL;
}

static bool allocate_operands(struct check *k, enum ddp__op op)
{
    for (int i = 0; i < ddp__signature[op].operands; i++) {
        char letter = check_letter(k, op, i);

        if (letter && !allocate(k, letter))
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
    if (good && strchr(kind->slopes, 'e'))
        good = allocate(k, 'd');
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
    for (int i = 0; i <= 'z' - 'a'; i++) {
        struct check_tensor *t = &copy->tensor[i];

        if (!k->tensor[i].data)
            continue;
        t->data = malloc(t->size ? t->size : 1);
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
    for (int i = 0; i <= 'z' - 'a'; i++)
        free(k->tensor[i].data);
    free(k);
}

/* ---- contents ----------------------------------------------------------- */

double check_get(const struct check_tensor *t, size_t i)
{
    switch (t->view.type) {
    case DDP_F32:
        return ((const float *)t->data)[i];
    case DDP_BF16:
        return ddp__from_bf16(((const uint16_t *)t->data)[i]);
    case DDP_F16:
        return ddp__from_f16(((const uint16_t *)t->data)[i]);
    case DDP_U8:
        return ((const uint8_t *)t->data)[i];
    case DDP_I32:
        return ((const int32_t *)t->data)[i];
    case DDP_I64:
        return (double)((const int64_t *)t->data)[i];
    case DDP_F64:
        break;
    }
    return ((const double *)t->data)[i];
}

void check_set(struct check_tensor *t, size_t i, double value)
{
    switch (t->view.type) {
    case DDP_F32:
        ((float *)t->data)[i] = (float)value;
        break;
    case DDP_BF16:
        ((uint16_t *)t->data)[i] = ddp__to_bf16((float)value);
        break;
    case DDP_F16:
        ((uint16_t *)t->data)[i] = ddp__to_f16((float)value);
        break;
    case DDP_U8:
        ((uint8_t *)t->data)[i] = (uint8_t)value;
        break;
    case DDP_I32:
        ((int32_t *)t->data)[i] = (int32_t)value;
        break;
    case DDP_I64:
        ((int64_t *)t->data)[i] = (int64_t)value;
        break;
    case DDP_F64:
        ((double *)t->data)[i] = value;
        break;
    }
}

/* In low .. high, in steps of 1 / 1024: sums with small powers of two are
 * exact, which finite differences like. */
static double draw(struct check *k, double low, double high)
{
    struct ddp__philox r = ddp__philox(20, 0, k->drawn++);
    double v = low + (high - low) * ddp__uniform(r.v[0]);

    return rint(v * 1024) / 1024;
}

static double draw_x(struct check *k)
{
    double spread = k->row.spread > 0 ? k->row.spread : 1;
    double v = k->row.mean + draw(k, -spread, spread);

    return k->row.ties ? rint(v * 2) / 2 : v;
}

/* scale, shift, mean, var of a batch norm */
static double draw_norm(struct check *k, size_t i)
{
    size_t block = i / (size_t)k->row.x.c;

    return block == 0 || block == 3 ? draw(k, 0.5, 1.5) : draw(k, -1, 1);
}

static double draw_label(struct check *k)
{
    double label = floor(draw(k, 0, k->row.x.c));

    return label < k->row.x.c ? label : k->row.x.c - 1;
}

/* The step's divisor and count are what OPTIM divides by. */
static double draw_stat(struct check *k, size_t i)
{
    if (i == DDP__STAT_DIVISOR)
        return k->row.no_divisor ? 0 : 7.5;
    if (i == DDP__STAT_UPDATES)
        return 3;
    return i == DDP__STAT_COUNT ? 8 : draw(k, -1, 1);
}

/* Element i of the tensor with that letter. */
static double draw_element(struct check *k, char letter, size_t i)
{
    bool norm = k->row.family == CHECK_BN || k->row.family == CHECK_BN_EVAL;

    switch (letter) {
    case 'x':
    case 'j':
        return draw_x(k);
    case 'w':
        return norm ? draw_norm(k, i) : draw(k, -1, 1);
    case 'u':
        return floor(draw(k, 0, 255.9));
    case 'n':
        return 5e9 + 3 * (double)i; /* beyond 32 bits */
    case 't':
        return has_labels(&k->row) ? draw_label(k) : draw_x(k);
    case 'v': /* of samples that count, do not, and of the sub-batch */
        return (int)i == k->row.cap ? 3.25 : i == 2 ? 0 : draw(k, 0.5, 2);
    case 'q':
        return draw_stat(k, i);
    case 'i':
        return 0;
    case 'o':
    case 's':
        return draw(k, 0.125, 1);
    case 'm':
        return 9;
    default:
        return draw(k, -1, 1);
    }
}

void check_fill(struct check *k)
{
    for (char l = 'a'; l <= 'z'; l++) {
        struct check_tensor *t = check_tensor(k, l);

        if (!t->data)
            continue;
        for (size_t i = 0; i < check_len(t, k->row.cap); i++)
            check_set(t, i, draw_element(k, l, i));
        if (l == (k->row.family == CHECK_OPTIM ? 'g' : 'x') && k->row.nan)
            check_set(t, check_len(t, 1) / 2, NAN);
        t->version++;
    }
}

/* ---- running ------------------------------------------------------------ */

struct ddp__call check_call(const struct check *k, enum ddp__op op)
{
    struct ddp__call c = k->row.call;

    c.op = op;
    c.cap = k->row.cap;
    c.buffers = ddp__signature[op].operands;
    for (int i = 0; i < c.buffers; i++) {
        char letter = check_letter(k, op, i);

        if (letter)
            c.buf[i] = k->tensor[letter - 'a'].view;
    }
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
        char letter = check_letter(k, c->op, i);
        struct check_tensor *x = letter ? check_tensor(k, letter) : NULL;

        if (!x)
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
            check_tensor(k, check_letter(k, c->op, i))->version++;
    return rc;
}

/* ---- comparing ---------------------------------------------------------- */

struct check_difference check_compare(const struct check_tensor *got,
                                      const struct check_tensor *want,
                                      size_t begin, size_t end, double floor)
{
    struct check_difference d = {0, 0, begin};
    double a = 0, b = 0, sum = 0;

    for (size_t i = begin; i < end; i++) {
        double x = check_get(got, i), y = check_get(want, i), e = fabs(x - y);

        if ((isnan(x) && isnan(y)) || x == y)
            e = 0;
        else if (isnan(e))
            e = INFINITY;
        if (e > d.worst) {
            d.worst = e;
            d.worst_at = i;
        }
        sum += e * e;
        a += isfinite(x) ? x * x : 0;
        b += isfinite(y) ? y * y : 0;
    }
    floor = fmax(floor, sqrt(fmax(a, b)));
    d.norm = sum == 0 ? 0 : sqrt(sum) / fmax(floor, 1e-30);
    return d;
}

double check_norm(const struct check_tensor *t, int n)
{
    double sum = 0;

    for (size_t i = 0; i < check_len(t, n); i++)
        sum += check_get(t, i) * check_get(t, i);
    return sqrt(sum);
}
