/* test_cuda_host.c - our CUDA kernels on a CPU, against ref
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The bodies of the kernels, and all that leads up to their launch, are the
 * ones of GPUs; here a launch is a loop over items, or over blocks and the
 * threads of each region.  What this does not see: what nvcc makes of it,
 * 16-byte accesses, a missing barrier that a GPU would need.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "check.h"
#include "cuda/backend.h"
#include "cuda/bn_kernels.h"
#include "cuda/launch.h"
#include "cuda/prepare.h"
#include "cuda/rows.h"
#include "cuda/tasks.h"
#include "cuda/weights.h"
#include "gpu/columns.h"
#include "gpu/elementwise.h"
#include "gpu/losses.h"
#include "gpu/norm_step.h"
#include "gpu/pooling.h"
#include "gpu/updates.h"
#include "judge.h"
#include "ref/backend.h"
#include "tap.h"

/* ---- a GPU of one thread ------------------------------------------------ */

/* Shared memory still has the values of the block before. */
#define ITEM(name, params)                                                     \
    int ddp__k_##name(const struct ddp__k_##params *p, void *stream)           \
    {                                                                          \
        (void)stream;                                                          \
        for (size_t i = 0; i < p->items; i++)                                  \
            ddp__k_##name##_item(p, i, p->type);                               \
        return 0;                                                              \
    }
#define BLOCKS(name, params, args)                                             \
    int ddp__k_##name(const struct ddp__k_##params *p, void *stream)           \
    {                                                                          \
        static struct ddp__k_##name##_shared shared;                           \
                                                                               \
        (void)stream;                                                          \
        memset(&shared, 0xff, sizeof(shared));                                 \
        for (unsigned i = 0; i < p->blocks; i++)                               \
            ddp__k_##name##_block args;                                        \
        return 0;                                                              \
    }
#define BLOCK(name, params) BLOCKS(name, params, (p, &shared, i, p->type))
#define PLAIN(name, params) BLOCKS(name, params, (p, &shared, i))
DDP__ELEMENTWISE_ITEMS(ITEM)
DDP__POOLING_ITEMS(ITEM)
DDP__COLUMNS_BLOCKS(BLOCK)
DDP__NORM_BLOCKS(BLOCK)
DDP__NORM_PLAIN(PLAIN)
DDP__LOSSES_BLOCKS(BLOCK)
DDP__LOSSES_PLAIN(PLAIN)
DDP__UPDATES_PLAIN(PLAIN)

/* As much scratch as the kernel asked for: a sanitizer reports more. */
static void *scratch;
static size_t scratch_size;

/* The copy of the weights that OPTIM shall keep up to date. */
static void *kept;
static enum ddp_dtype kept_type;

int ddp__cuda_place(struct ddp__cuda_place *place)
{
    free(scratch);
    if (!(scratch = malloc(scratch_size ? scratch_size : 1)))
        bail_out("out of memory");
    memset(scratch, 0xff, scratch_size);
    *place = (struct ddp__cuda_place){.scratch = scratch};
    return 0;
}

int ddp__cuda_launched(int error, const char *name)
{
    return error ? ddp__fail(DDP_EDEVICE, "%s", name) : 0;
}

void ddp__cuda_needs(size_t size)
{
    scratch_size = size;
}

void *ddp__cuda_copy_begin(const struct ddp__task *t, int i,
                           enum ddp_dtype *type)
{
    (void)t;
    (void)i;
    *type = kept_type;
    return kept;
}

int ddp__cuda_copy_end(const struct ddp__task *t, int i)
{
    (void)t;
    (void)i;
    return 0;
}

static const struct ddp__backend cuda_host = {
    .name = "cuda on the host",
    .kernel =
        {
            [DDP__OP_INPUT_U8] = ddp__cuda_input_u8,
            [DDP__OP_INPUT_F32] = ddp__cuda_input_f32,
            [DDP__OP_BN_FWD] = ddp__cuda_bn_kernels_fwd,
            [DDP__OP_BN_EVAL] = ddp__cuda_bn_kernels_eval,
            [DDP__OP_BN_EVAL_BWD] = ddp__cuda_bn_eval_bwd,
            [DDP__OP_BN_BWD] = ddp__cuda_bn_kernels_bwd,
            [DDP__OP_BN_SUM] = ddp__cuda_bn_sum,
            [DDP__OP_BN_SYNC] = ddp__cuda_bn_sync,
            [DDP__OP_BN_SUM_BWD] = ddp__cuda_bn_sum_bwd,
            [DDP__OP_BN_SYNC_BWD] = ddp__cuda_bn_sync_bwd,
            [DDP__OP_ACT_FWD] = ddp__cuda_act_fwd,
            [DDP__OP_ACT_BWD] = ddp__cuda_act_bwd,
            [DDP__OP_ADD] = ddp__cuda_add,
            [DDP__OP_ACC] = ddp__cuda_acc,
            [DDP__OP_MAX_POOL_FWD] = ddp__cuda_max_pool_fwd,
            [DDP__OP_MAX_POOL_BWD] = ddp__cuda_max_pool_bwd,
            [DDP__OP_MEAN_POOL_FWD] = ddp__cuda_mean_pool_fwd,
            [DDP__OP_MEAN_POOL_BWD] = ddp__cuda_mean_pool_bwd,
            [DDP__OP_CONCAT] = ddp__cuda_concat,
            [DDP__OP_SPLIT] = ddp__cuda_split,
            [DDP__OP_SCALE_FWD] = ddp__cuda_scale_fwd,
            [DDP__OP_SCALE_BWD] = ddp__cuda_scale_bwd,
            [DDP__OP_DROPOUT] = ddp__cuda_dropout,
            [DDP__OP_LOSS] = ddp__cuda_loss,
            [DDP__OP_MERGE] = ddp__cuda_merge,
            [DDP__OP_MERGE_STATS] = ddp__cuda_merge_stats,
            [DDP__OP_SQNORM] = ddp__cuda_sqnorm,
            [DDP__OP_OPTIM] = ddp__cuda_optim,
            [DDP__OP_EMA] = ddp__cuda_ema,
            [DDP__OP_KEEP] = ddp__cuda_keep,
        },
};

/* ---- all rows against ref ----------------------------------------------- */

/* One round: ref's results remain in k. */
static void compare(struct check *k, const struct ddp__call *c, int n,
                    bool accumulate, struct verdict *v)
{
    struct check *mine = check_copy(k);

    if (!mine)
        bail_out("out of memory");
    if (check_run(k, &ddp__ref, c, n, accumulate) < 0)
        bail_out("ref: %s", ddp_errmsg());
    if (!v->failed && check_run(mine, &cuda_host, c, n, accumulate) == 0) {
        judge(mine, k, c, n, v);
    } else if (!v->failed) {
        v->failed = true;
        snprintf(v->why, sizeof(v->why), "%s", ddp_errmsg());
    }
    check_free(mine);
}

/* As in test_ops: three rounds, with other numbers, another n, gradients
 * written or added to. */
static void test_row(const struct check_row *row, enum ddp_dtype dtype)
{
    const struct check_kind *kind = &check_kinds[row->family];
    struct check *k = check_new(row, dtype);
    struct verdict v[CHECK_MAX_OPS] = {{false, ""}};
    const int n[] = {row->n, row->cap, 1};

    if (!k)
        bail_out("out of memory");
    for (int round = 0; round < 3; round++) {
        check_fill(k);
        for (int i = 0; i < kind->ops; i++) {
            struct ddp__call c = check_call(k, kind->op[i]);

            if (ddp__cuda_kernels_prepare(&c) < 0)
                bail_out("prepare: %s", ddp_errmsg());
            compare(k, &c, n[round], round == 1, &v[i]);
        }
    }
    for (int i = 0; i < kind->ops; i++) {
        ok(!v[i].failed, "%s, %s, %s: does as ref",
           ddp__signature[kind->op[i]].name, row->what,
           dtype == DDP_F32    ? "f32"
           : dtype == DDP_BF16 ? "bf16"
                               : "f16");
        if (v[i].failed)
            diag("%s", v[i].why);
    }
    check_free(k);
}

/* Those of cuDNN, cuBLASLt, of CPU workers and of the program are left out. */
static bool is_ours(const struct check_row *r)
{
    return cuda_host.kernel[check_kinds[r->family].op[0]] &&
           r->family != CHECK_BN_GATED && r->family != CHECK_CONV &&
           r->family != CHECK_DENSE &&
           (r->family != CHECK_BN || !r->call.bn.from_x) &&
           (r->family != CHECK_LOSS || r->call.loss.kind != DDP_CUSTOM_LOSS);
}

/* CPU workers write the results of such rows past their caches.  What depends
 * on a type is the same in small rows. */
static bool is_large(const struct check_row *r)
{
    return (int64_t)r->cap * r->x.h * r->x.w * r->x.c > 1 << 18;
}

/* ---- what rows do not reach --------------------------------------------- */

/* Six times which would be infinite; f16 has none of them. */
static const struct check_row huge_values = {CHECK_ACT,
                                             "hardswish of huge values",
                                             .n = 1,
                                             .cap = 1,
                                             .x = {1, 5, 5},
                                             .spread = 3e38,
                                             .call.act = DDP_HARDSWISH};

/* Statistics of values with little spread far from 0, where a sum of squares
 * in f32 would have nothing left of the variance: 1e6 2^-24 is a fifth of it.
 * y is not compared: there the last bit of the mean, 6e-5, shows. */
static void test_far_values(void)
{
    const struct check_row row = {CHECK_BN,
                                  "40x40 values around 1000",
                                  .n = 3,
                                  .cap = 4,
                                  .x = {40, 40, 9},
                                  .mean = 1000,
                                  .call.bn = {.eps = 1e-5f}};
    struct check *want = check_new(&row, DDP_F32), *got;
    struct ddp__call c;
    struct check_difference mean, var;

    if (!want)
        bail_out("out of memory");
    check_fill(want);
    c = check_call(want, DDP__OP_BN_FWD);
    if (!(got = check_copy(want)) || ddp__cuda_kernels_prepare(&c) < 0 ||
        check_run(want, &ddp__ref, &c, 3, false) < 0 ||
        check_run(got, &cuda_host, &c, 3, false) < 0)
        bail_out("%s", ddp_errmsg());
    mean = check_compare(check_tensor(got, ROLE_STAT),
                         check_tensor(want, ROLE_STAT), 0, 9, 0);
    var = check_compare(check_tensor(got, ROLE_STAT),
                        check_tensor(want, ROLE_STAT), 9, 18, 0);
    ok(mean.norm < 1e-7, "bn_fwd, %s: the mean to the last bit but one",
       row.what);
    ok(var.norm < 2e-5, "the variance as close as ever");
    check_free(got);
    check_free(want);
}

static uint64_t drawn;

static float draw(void)
{
    return 2 * ddp__uniform(ddp__philox(3, 0, drawn++).v[0]) - 1;
}

static void *room(size_t size)
{
    void *p = malloc(size ? size : 1);

    if (!p)
        bail_out("out of memory");
    return p;
}

/* Chunks cover all rows, none is empty, and their results fit. */
static bool good_cut(size_t segments, size_t rows, int c)
{
    struct ddp__columns k = ddp__columns(segments, rows, c);
    size_t results = segments * k.chunks * (size_t)c * 2 * sizeof(float);

    return k.segments == segments && k.rows == rows &&
           (k.chunks - 1) * k.chunk < rows && k.chunks * k.chunk >= rows &&
           DDP__THREADS % k.across == 0 &&
           k.tiles * k.across * DDP__WIDTH >= (unsigned)c &&
           results <= ddp__columns_scratch(segments, c);
}

static void test_cuts(void)
{
    static const size_t rows[] = {1, 2, 31, 49, 1000, 12544, 200704, 12845056};
    static const size_t segments[] = {1, 3, 64, 1025};
    bool good = true;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t j = 0; j < sizeof(segments) / sizeof(segments[0]); j++)
            for (int c = 1; c < 4200; c += 1 + c / 3)
                good = good && good_cut(segments[j], rows[i], c);
    ok(good, "rows are cut into blocks that cover them and fit into scratch");
}

/* The outputs over each pixel, by trying them all. */
static bool good_cover(const struct ddp__k_axis *a)
{
    for (int i = 0; i < a->in; i++) {
        struct ddp__k_range r = ddp__k_cover(a, i);

        for (int o = 0; o < a->out; o++) {
            struct ddp__k_window w = ddp__k_window(a, o);
            bool in = w.begin <= i && i < w.end;

            if (in != (o >= r.first && o < r.end))
                return false;
        }
        if (r.first < 0 || r.end > a->out)
            return false;
    }
    return true;
}

static void test_cover(void)
{
    bool good = true, adaptive = true;

    for (int in = 1; in < 14; in++)
        for (int out = 1; out < 14; out++) {
            struct ddp__k_axis a = {in, out, 0, 0, 0, 0, true};

            adaptive = adaptive && good_cover(&a);
            for (int k = 0; k < 5 * 4 * 5; k++) {
                a = (struct ddp__k_axis){in,     out, k % 5 + 1, k / 5 % 4 + 1,
                                         k / 20, 0,   false};
                good = good && good_cover(&a);
            }
        }
    ok(good, "the windows over a pixel are found by a formula");
    ok(adaptive, "those of adaptive pooling as well");
}

/* Rows of 3 values to rows of 8 in bf16, and the gradient back. */
static void test_padding(void)
{
    enum { ROWS = 37, C = 3, WIDE = 8 };
    float *x = room(ROWS * C * sizeof(*x)), *g = room(ROWS * C * sizeof(*g));
    uint16_t *y = room(ROWS * WIDE * sizeof(*y));
    bool good = true, summed = true;

    for (int i = 0; i < ROWS * C; i++) {
        x[i] = draw();
        g[i] = (float)i;
    }
    if (ddp__cuda_convert(x, y, DDP_BF16, ROWS, C, WIDE) < 0 ||
        ddp__cuda_accumulate(y, DDP_BF16, g, ROWS, C, WIDE, true) < 0)
        bail_out("%s", ddp_errmsg());
    for (int i = 0; i < ROWS * WIDE; i++)
        good = good &&
               y[i] == (i % WIDE < C ? ddp__to_bf16(x[i / WIDE * C + i % WIDE])
                                     : 0);
    for (int i = 0; i < ROWS * C; i++)
        summed = summed &&
                 g[i] == (float)i + ddp__from_bf16(y[i / C * WIDE + i % C]);
    ok(good, "weights are rounded and padded with zeros");
    ok(summed, "a padded gradient is added without its padding");
    free(x);
    free(g);
    free(y);
}

/* Images of 3 channels to 8: those past the third are 0. */
static void test_padded_input(void)
{
    enum { PIXELS = 21 };
    uint8_t x[PIXELS * 3];
    float y[PIXELS * 8];
    struct ddp__call c = {
        .op = DDP__OP_INPUT_U8,
        .cap = 1,
        .buffers = 2,
        .buf = {[DDP__INPUT_U8_X] = {DDP_U8, true, {3, 7, 3}, 0},
                [DDP__INPUT_U8_Y] = {DDP_F32, true, {3, 7, 8}, 0}},
        .input = {{0.5f, 0.25f, 0.125f}, {0.5f, 1, 2}}};
    struct ddp__task t = {
        .call = &c,
        .n = 1,
        .data = {[DDP__INPUT_U8_X] = x, [DDP__INPUT_U8_Y] = y}};
    bool good = true;

    for (int i = 0; i < PIXELS * 3; i++)
        x[i] = (uint8_t)(i * 37);
    if (ddp__cuda_input_u8(&t) < 0)
        bail_out("%s", ddp_errmsg());
    for (int i = 0; i < PIXELS * 8; i++) {
        int ch = i % 8, at = i / 8 * 3 + ch;
        double want =
            ch < 3 ? (x[at] / 255.0 - c.input.mean[ch]) / c.input.std[ch] : 0;

        good = good && fabs(y[i] - want) < 1e-6;
    }
    ok(good, "an image of 3 channels is padded to 8");
}

/* The gradient of a bias, against sums in f64: 600 terms below 1 in f32 are
 * off by less than 600 * 600 / 2 * 2^-24 even if all err to one side; the tree
 * errs far less. */
static void test_sum_rows(void)
{
    enum { ROWS = 600, C = 19 };
    float *x = room(ROWS * C * sizeof(*x)), g[C];
    void *parts = room(ddp__columns_scratch(1, C));
    bool good = true;

    for (int i = 0; i < ROWS * C; i++)
        x[i] = draw();
    for (int i = 0; i < C; i++)
        g[i] = 5;
    if (ddp__cuda_sum_rows(x, DDP_F32, g, ROWS, C, true, parts) < 0)
        bail_out("%s", ddp_errmsg());
    for (int i = 0; i < C; i++) {
        double sum = 5;

        for (int r = 0; r < ROWS; r++)
            sum += x[r * C + i];
        good = good && fabs(g[i] - sum) < 1e-4;
    }
    ok(good, "rows are added to the gradient of a bias");
    free(parts);
    free(x);
}

/* Cross entropy of 3 samples of 4 classes with these labels. */
static int loss(const int32_t label[3], float *dx, double scale,
                double stats[DDP__STATS])
{
    float x[12], weight[4] = {1, 2, 3, 6};
    struct ddp__call c = {
        .op = DDP__OP_LOSS, .cap = 3, .buffers = DDP__LOSS_BUFFERS};
    struct ddp__task t = {.call = &c,
                          .n = 3,
                          .data = {[DDP__LOSS_X] = x,
                                   [DDP__LOSS_TARGET] = (void *)label,
                                   [DDP__LOSS_WEIGHT] = weight,
                                   [DDP__LOSS_STATS] = stats,
                                   [DDP__LOSS_DX] = dx,
                                   [DDP__LOSS_SCALE] = dx ? &scale : NULL}};

    c.buf[DDP__LOSS_X] = (struct ddp__view){DDP_F32, true, {1, 1, 4}, 0};
    c.buf[DDP__LOSS_TARGET] = (struct ddp__view){DDP_I32, true, {1, 1, 1}, 0};
    if (dx)
        c.buf[DDP__LOSS_DX] = c.buf[DDP__LOSS_X];
    for (int i = 0; i < 12; i++)
        x[i] = (float)(i * 5 % 7);
    return ddp__cuda_kernels_prepare(&c) < 0 ? -1 : ddp__cuda_loss(&t);
}

static void test_labels(void)
{
    static const int32_t good[] = {1, 0, 3}, none[] = {1, DDP__NO_LABEL, 3};
    static const int32_t bad[] = {1, 4, 3}, negative[] = {1, DDP__NO_LABEL, 3};
    double all[DDP__STATS], some[DDP__STATS], wrong[DDP__STATS];
    float dx[12], dx_bad[12];
    bool scaled = true;

    if (loss(good, NULL, 1, all) < 0 || loss(none, NULL, 1, some) < 0)
        bail_out("%s", ddp_errmsg());
    ok(isfinite(some[DDP__STAT_LOSS]) &&
           some[DDP__STAT_LOSS] < all[DDP__STAT_LOSS] &&
           some[DDP__STAT_COUNT] == 3 && some[DDP__STAT_DIVISOR] == 6,
       "evaluation: a sample without a label counts, without loss");
    if (loss(good, dx, 1, all) < 0 || loss(bad, dx_bad, 1, wrong) < 0)
        bail_out("%s", ddp_errmsg());
    ok(isnan(wrong[DDP__STAT_LOSS]), "a label that is no class: loss NaN");
    ok(memcmp(dx, dx_bad, 4 * sizeof(float)) == 0 &&
           memcmp(dx + 8, dx_bad + 8, 4 * sizeof(float)) == 0,
       "and the gradients of the others as they were");
    ok(dx_bad[4] == 0 && dx_bad[5] == 0 && dx_bad[6] == 0 && dx_bad[7] == 0,
       "and its own 0");
    if (loss(negative, dx_bad, 1, wrong) < 0)
        bail_out("%s", ddp_errmsg());
    ok(isnan(wrong[DDP__STAT_LOSS]), "training: no label is no class either");
    if (loss(good, dx_bad, 8, some) < 0)
        bail_out("%s", ddp_errmsg());
    for (int i = 0; i < 12; i++)
        scaled = scaled && dx_bad[i] == 8 * dx[i];
    ok(scaled && memcmp(all, some, sizeof(all)) == 0,
       "a scale is in the gradients, and not in the loss");
}

/* More spans than a launch takes, of all kinds, with gaps, and not in order:
 * the last third of them come first. */
enum { MANY = 400, LONG = 31 };

static void many_spans(struct ddp__span span[MANY], bool outputs)
{
    for (int i = 0; i < MANY; i++) {
        int at = (i + MANY * 2 / 3) % MANY;

        span[i] = (struct ddp__span){
            .begin = (size_t)at * LONG,
            .len = at % 5 == 0 ? LONG : LONG - 2,
            .unit = outputs && at % 5 == 0 && at % 7 ? LONG : 0,
            .decay = at % 3 == 0,
            .running = at % 7 == 0,
            .momentum = 0.1f};
    }
}

/* What a bucket with these spans has. */
struct bucket {
    float g[MANY * LONG], w[MANY * LONG], state[2 * MANY * LONG];
    uint16_t copy[MANY * LONG];
    double norm[DDP__NORMS];
};

static void run(const struct ddp__backend *b, struct ddp__call *c,
                enum ddp__op op, const double *stats, struct bucket *k)
{
    struct ddp__task t = {.call = c, .n = 1, .lr = 0.1f};
    void *const norm[DDP_MAX_BUFFERS] = {[DDP__SQNORM_G] = k->g,
                                         [DDP__SQNORM_STATS] = (void *)stats,
                                         [DDP__SQNORM_NORM] = k->norm};
    void *const update[DDP_MAX_BUFFERS] = {[DDP__OPTIM_G] = k->g,
                                           [DDP__OPTIM_W] = k->w,
                                           [DDP__OPTIM_STATS] = (void *)stats,
                                           [DDP__OPTIM_STATE] = k->state,
                                           [DDP__OPTIM_NORM] = k->norm};

    c->op = op;
    c->buffers = ddp__signature[op].operands;
    memcpy(t.data, op == DDP__OP_SQNORM ? norm : update, sizeof(t.data));
    if (ddp__cuda_kernels_prepare(c) < 0 || b->kernel[op](&t) < 0)
        bail_out("%s", ddp_errmsg());
}

static void draw_bucket(struct bucket *k)
{
    for (int i = 0; i < MANY * LONG; i++) {
        k->g[i] = draw();
        k->w[i] = draw();
        k->state[i] = draw();
        k->state[MANY * LONG + i] = draw() + 1;
        k->copy[i] = ddp__to_bf16(k->w[i]);
    }
}

/* As close as tolerance() of judge.c asks for. */
static bool close_to(const float *got, const float *want, size_t len)
{
    double error = 0, norm = 0;

    for (size_t i = 0; i < len; i++) {
        error += pow((double)got[i] - want[i], 2);
        norm += pow(want[i], 2);
    }
    return sqrt(error) <= 2e-5 * sqrt(norm);
}

static void test_many_spans(float clip_unit)
{
    static const double stats[DDP__STATS] = {[DDP__STAT_DIVISOR] = 7.5,
                                             [DDP__STAT_COUNT] = 8,
                                             [DDP__STAT_UPDATES] = 2};
    static struct bucket mine, want;
    struct ddp__span span[MANY];
    struct ddp__call c = {.cap = 1,
                          .buf = {{DDP_F32, false, {1, 1, MANY * LONG}, 0},
                                  {DDP_F32, false, {1, 1, MANY * LONG}, 0}},
                          .optim = {.o = {.kind = DDP_ADAMW,
                                          .beta1 = 0.9f,
                                          .beta2 = 0.99f,
                                          .eps = 1e-8f,
                                          .weight_decay = 0.1f,
                                          .clip_norm = 2,
                                          .clip_unit = clip_unit},
                                    .spans = MANY,
                                    .span = span}};
    bool copied = true;

    many_spans(span, clip_unit > 0);
    draw_bucket(&want);
    mine = want;
    kept = mine.copy;
    kept_type = DDP_BF16;
    for (int b = 0; b < 2; b++) {
        run(b ? &ddp__ref : &cuda_host, &c, DDP__OP_SQNORM, stats,
            b ? &want : &mine);
        run(b ? &ddp__ref : &cuda_host, &c, DDP__OP_OPTIM, stats,
            b ? &want : &mine);
    }
    kept = NULL;
    ok(fabs(mine.norm[0] - want.norm[0]) <= 1e-12 * want.norm[0],
       "%d spans out of order%s: the norm is ref's", MANY,
       clip_unit > 0 ? ", outputs clipped" : "");
    ok(close_to(mine.w, want.w, MANY * LONG) &&
           close_to(mine.state, want.state, 2 * MANY * LONG),
       "the weights and the state as well");
    for (int i = 0; i < MANY * LONG; i++)
        copied = copied && mine.copy[i] == ddp__to_bf16(mine.w[i]);
    ok(copied, "a copy in bf16 is kept up to date");
    /* Span 5 is trained, span 14 is not; both fall into many tiles' launch. */
    c.optim.begin = 1000;
    mine.g[5 * LONG + 3] = want.g[5 * LONG + 3] = INFINITY;
    mine.g[14 * LONG + 7] = want.g[14 * LONG + 7] = NAN;
    run(&cuda_host, &c, DDP__OP_SQNORM, stats, &mine);
    run(&ddp__ref, &c, DDP__OP_SQNORM, stats, &want);
    ok(isnan(mine.norm[DDP__NORM_SQUARES]) && isnan(want.norm[0]),
       "values that are not finite: no norm");
    ok(mine.norm[DDP__NORM_TRAINED] == 1001 + 5 * LONG + 3 &&
           mine.norm[DDP__NORM_RUNNING] == 1001 + 14 * LONG + 7 &&
           want.norm[DDP__NORM_TRAINED] == mine.norm[DDP__NORM_TRAINED] &&
           want.norm[DDP__NORM_RUNNING] == mine.norm[DDP__NORM_RUNNING],
       "and where they are");
}

/* Lookahead returns to a weight that the first of two updates made 0. */
static void test_lookahead(void)
{
    static struct bucket k;
    double stats[DDP__STATS] = {[DDP__STAT_DIVISOR] = 4, [DDP__STAT_COUNT] = 4};
    struct ddp__span span = {.begin = 0, .len = 1};
    struct ddp__call c = {
        .cap = 1,
        .buf = {{DDP_F32, false, {1, 1, 1}, 0}, {DDP_F32, false, {1, 1, 1}, 0}},
        .optim = {
            .o = {.kind = DDP_SGD, .lookahead = 1}, .spans = 1, .span = &span}};

    k.g[0] = 4;
    k.w[0] = 0.1f;
    for (int i = 1; i <= 2; i++) {
        stats[DDP__STAT_UPDATES] = i;
        run(&cuda_host, &c, DDP__OP_OPTIM, stats, &k);
    }
    ok(k.w[0] == -0.05f, "lookahead: a weight of 0 is returned to");
}

/* What our kernels leave to others. */
static void test_refusals(void)
{
    struct ddp__call own = {.op = DDP__OP_LOSS,
                            .cap = 1,
                            .buffers = 4,
                            .buf = {{DDP_F32, true, {1, 1, 4}, 0}},
                            .loss = {.kind = DDP_CUSTOM_LOSS}};
    struct ddp__call mixed = {.op = DDP__OP_ADD,
                              .cap = 1,
                              .buffers = 3,
                              .buf = {{DDP_F32, true, {1, 1, 4}, 0},
                                      {DDP_BF16, true, {1, 1, 4}, 0},
                                      {DDP_F32, true, {1, 1, 4}, 0}}};
    struct ddp__call huge = {.op = DDP__OP_ACT_FWD,
                             .cap = 1 << 20,
                             .buffers = 2,
                             .buf = {{DDP_F32, true, {300, 300, 64}, 0},
                                     {DDP_F32, true, {300, 300, 64}, 0}}};

    ok(ddp__cuda_kernels_prepare(&own) == DDP_ENODEV,
       "a loss of the program's own is not for GPUs");
    ok(ddp__cuda_kernels_prepare(&mixed) == DDP_ENODEV,
       "neither are activations of two types");
    ok(ddp__cuda_kernels_prepare(&huge) == DDP_ENODEV,
       "nor more items than 32 bits count");
}

int main(void)
{
    for (int i = 0; i < op_row_count; i++)
        if (is_ours(&op_rows[i])) {
            test_row(&op_rows[i], DDP_F32);
            if (is_large(&op_rows[i]))
                continue;
            test_row(&op_rows[i], DDP_BF16);
            test_row(&op_rows[i], DDP_F16);
        }
    test_far_values();
    test_row(&huge_values, DDP_F32);
    test_cuts();
    test_cover();
    test_padding();
    test_padded_input();
    test_sum_rows();
    test_labels();
    test_many_spans(0);
    test_many_spans(0.002f);
    test_lookahead();
    test_refusals();
    free(scratch);
    return done_testing();
}
