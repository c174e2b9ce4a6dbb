/* test_ops.c - every op of every backend, on the rows of op_rows.c
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * ref, which defines the ops, is tested against itself by finite differences:
 * backward must be the slope of forward.  The other backends are tested
 * against ref.  test_ref.c has numbers worked out by hand.
 */
#include "config.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "judge.h"
#include "ref/backend.h"
#include "runtime/devices.h"
#include "sanitized.h"
#include "tap.h"
#ifdef TEST_CUDA
#include "cuda/backend.h"
#include "cuda/variant.h"
#include "on_gpu.h"
#endif

/* Compiled for the backends of CPU workers, once more for products and pools on
 * processors without AVX-512, and products on those without AVX2, where oneDNN
 * has those of few rows, and for CUDA's. */
#ifdef TEST_CUDA
static const struct ddp__backend *const backends[] = {&ddp__cuda, &ddp__ref,
                                                      NULL};
#else
extern const struct ddp__device ddp__device_cpu;
#define backends ddp__device_cpu.backends
#endif

/* Instead of the library's. */
#ifdef TEST_AVX2
#include "cpu/isa.h"
#include "cpu/onednn/onednn_library.h"
#include "cpu/product/skinny_lanes.h"
#include "cpu/wino/wino_lanes.h"

static int lanes = 8; /* of vectors, at most */

int __real_ddp__skinny_lanes(void);
int __wrap_ddp__skinny_lanes(void);
int __wrap_ddp__skinny_lanes(void)
{
#ifdef HAVE_ONEDNN
    return __real_ddp__skinny_lanes() < lanes ? 0 : lanes;
#else
    return 0;
#endif
}

int __real_ddp__wino_lanes(void);
int __wrap_ddp__wino_lanes(void);
int __wrap_ddp__wino_lanes(void)
{
#ifdef HAVE_ONEDNN
    return __real_ddp__wino_lanes() < lanes ? 0 : lanes;
#else
    return 0;
#endif
}

bool __wrap_ddp__avx512_here(void);
bool __wrap_ddp__avx512_here(void)
{
    return false;
}

bool __wrap_ddp__avx512_bf16_here(void);
bool __wrap_ddp__avx512_bf16_here(void)
{
    return false;
}
#endif

/* How the names of kinds begin that are tried; none: of all. */
static char **chosen;

static bool is_tried(const struct check_row *r)
{
    const char *name = check_kinds[r->family].name;

#ifdef TEST_AVX2
    if (r->family != CHECK_CONV && r->family != CHECK_DENSE &&
        (lanes == 0 ||
         (r->family != CHECK_MAX_POOL && r->family != CHECK_MEAN_POOL &&
          r->family != CHECK_ACT && r->family != CHECK_ADD)))
        return false;
#endif
    for (char **word = chosen; *word; word++)
        if (!strncmp(name, *word, strlen(*word)))
            return true;
    return !*chosen;
}

/* One op of a row: a call for ref, and one for each other backend. */
enum { MAX_BACKENDS = 8 };
struct trial {
    struct ddp__call call[MAX_BACKENDS];
    bool able[MAX_BACKENDS];
    struct verdict verdict[MAX_BACKENDS];
};

static int backend_count(void)
{
    int n = 0;

    while (n < MAX_BACKENDS && backends[n])
        n++;
    return n;
}

/* Whether backend b takes the call. */
static bool prepare(struct trial *t, int b)
{
    const struct ddp__backend *be = backends[b];
    int rc;

    if (be == &ddp__ref || !be->kernel[t->call[b].op])
        return false;
    rc = be->prepare ? be->prepare(&t->call[b], &t->call[b].on[DDP_CPU].plan)
                     : 0;
    if (rc < 0 && rc != DDP_ENODEV) {
        t->verdict[b].failed = true;
        snprintf(t->verdict[b].why, sizeof(t->verdict[b].why), "prepare: %s",
                 ddp_errmsg());
    }
    return rc == 0;
}

static void open_trial(struct trial *t, const struct check *k, enum ddp__op op)
{
    memset(t, 0, sizeof(*t));
    for (int b = 0; b < backend_count(); b++) {
        t->call[b] = check_call(k, op);
        t->able[b] = prepare(t, b);
    }
}

static void close_trial(struct trial *t)
{
    for (int b = 0; b < backend_count(); b++) {
        const struct ddp__backend *be = backends[b];
        void *plan = t->call[b].on[DDP_CPU].plan;

        if (plan)
            be->release(plan);
    }
}

/* The op on ref, whose results remain in k, and on the others. */
static void try_op(struct trial *t, struct check *k, int n, bool accumulate)
{
    struct check *before = check_copy(k);

    if (!before)
        bail_out("out of memory");
    if (check_run(k, &ddp__ref, &t->call[0], n, accumulate) < 0)
        bail_out("ref: %s", ddp_errmsg());
    for (int b = 0; b < backend_count(); b++) {
        struct verdict *v = &t->verdict[b];
        struct check *mine;

        if (!t->able[b] || v->failed)
            continue;
        if (!(mine = check_copy(before)))
            bail_out("out of memory");
        if (check_run(mine, backends[b], &t->call[b], n, accumulate) < 0) {
            v->failed = true;
            snprintf(v->why, sizeof(v->why), "%s", ddp_errmsg());
        } else {
            judge(mine, k, &t->call[b], n, v);
        }
        check_free(mine);
    }
    check_free(before);
}

static void report(const struct trial *t, const struct check *k)
{
    const char *type = k->dtype == DDP_BF16 ? "bf16" : "f32";

    for (int b = 0; b < backend_count(); b++) {
        const struct ddp__backend *be = backends[b];
        const char *op = ddp__signature[t->call[b].op].name;

        if (be == &ddp__ref)
            continue;
        if (!t->able[b] && !t->verdict[b].failed) {
            skip(1, "%s, %s, %s: not done by %s", op, k->row.what, type,
                 be->name);
            continue;
        }
        ok(!t->verdict[b].failed, "%s, %s, %s: %s does as ref", op, k->row.what,
           type, be->name);
        if (t->verdict[b].failed)
            diag("%s", t->verdict[b].why);
    }
}

/* Backends against ref.  The same prepared calls see three rounds: with other
 * numbers, another n, and gradients written or added to; and where two operands
 * are kept as one, a round with another norm for the same weights. */
static void test_backends(const struct check_row *row, enum ddp_dtype dtype)
{
    const struct check_kind *kind = &check_kinds[row->family];
    struct check *k = check_new(row, dtype);
    struct trial t[CHECK_MAX_OPS];
    const int n[] = {row->n, row->cap, 1};

    if (!k)
        bail_out("out of memory");
    for (int i = 0; i < kind->ops; i++)
        open_trial(&t[i], k, kind->op[i]);
    for (int round = 0; round < 3; round++) {
        check_fill(k);
        for (int i = 0; i < kind->ops; i++)
            try_op(&t[i], k, n[round], round == 1);
    }
    if (row->family == CHECK_CONV_NORM) {
        check_fill_one(k, ROLE_BN);
        try_op(&t[0], k, row->n, false);
    }
    for (int i = 0; i < kind->ops; i++) {
        report(&t[i], k);
        close_trial(&t[i]);
    }
    check_free(k);
}

#ifndef TEST_CUDA
/* ---- finite differences ------------------------------------------------- */

/* Steps are powers of two, and x and w are multiples of 2^-10: x + h is
 * exact. */
static const double h = 1.0 / 32;

/* sum of y d in double, or the loss */
static double objective(struct check *k, const struct ddp__call *forward)
{
    struct check_tensor *y = check_tensor(k, ROLE_Y);
    struct check_tensor *d = check_tensor(k, ROLE_DY);
    double sum = 0;

    if (check_run(k, &ddp__ref, forward, k->row.n, false) < 0)
        bail_out("ref: %s", ddp_errmsg());
    if (check_kinds[k->row.family].objective == ROLE_STATS)
        return check_get(check_tensor(k, ROLE_STATS), DDP__STAT_LOSS);
    for (size_t i = 0; i < check_len(y, k->row.n); i++)
        sum += check_get(y, i) * check_get(d, i);
    return sum;
}

/* The slope by four points, whose error is of order h^4. */
static double slope(struct check *k, const struct ddp__call *forward,
                    struct check_tensor *x, size_t i)
{
    static const double factor[] = {1, -8, 8, -1};
    static const double at[] = {-2, -1, 1, 2};
    double x0 = check_get(x, i), sum = 0;

    for (int j = 0; j < 4; j++) {
        check_set(x, i, x0 + at[j] * h);
        sum += factor[j] * objective(k, forward);
    }
    check_set(x, i, x0);
    return sum / (12 * h);
}

/* Away from the kinks of act by more than 2 h. */
static double off_kinks(double x)
{
    static const double kink[] = {-3, 0, 3, 6};

    for (int i = 0; i < 4; i++)
        if (fabs(x - kink[i]) < 0.1)
            return kink[i] + 0.125;
    return x;
}

/* Shift whole channels to one side of the kinks of relu and relu6; scales are
 * small enough for them to remain there. */
static void steady_norm(struct check *k)
{
    static const double shift[] = {3, -5, 11};
    struct check_tensor *w = check_tensor(k, ROLE_W);
    struct check_tensor *r = check_tensor(k, ROLE_R);
    size_t c = (size_t)k->row.x.c;

    for (size_t i = 0; i < c; i++) {
        check_set(w, i, 0.25 + check_get(w, i) / 4);
        check_set(w, c + i, shift[i % 3]);
    }
    for (size_t i = 0; i < check_len(r, k->row.cap); i++)
        check_set(r, i, check_get(r, i) / 4);
}

/* All different, by 8 h at least, in an order that looks random: 7919 is a
 * prime, so its multiples modulo len go through all remainders. */
static void spread_out(struct check_tensor *x, size_t len)
{
    for (size_t i = 0; i < len; i++)
        check_set(x, i, ((double)(i * 7919 % len) - (double)len / 2) / 4);
}

/* Differences across a kink mean nothing: move the numbers away from it. */
static void avoid_kinks(struct check *k)
{
    struct check_tensor *x = check_tensor(k, ROLE_X);

    if (k->row.family == CHECK_BN &&
        (k->row.call.bn.act == DDP_RELU || k->row.call.bn.act == DDP_RELU6))
        steady_norm(k);
    if (k->row.family == CHECK_MAX_POOL)
        spread_out(x, check_len(x, k->row.cap));
    if (k->row.family == CHECK_ACT)
        for (size_t i = 0; i < check_len(x, k->row.cap); i++)
            check_set(x, i, off_kinks(check_get(x, i)));
}

/* Elements of g that are slopes of w: not the running statistics. */
static size_t trained_len(const struct check *k, enum check_role role)
{
    if (k->row.family == CHECK_BN && role == ROLE_W)
        return 2 * (size_t)k->row.x.c;
    return check_len(&k->tensor[role], k->row.n);
}

/* Elements whose slopes are computed.  Each runs forward four times on the same
 * shapes. */
enum { TRIES = SANITIZED_ADDRESSES ? 6 : 48 };

/* dx, as backward left it in k, against differences on a copy.
 *
 * Tolerance: y is rounded to f32, which adds up to about sqrt(len) 2^-25 |d|
 * in the objective and that over h in the slope: 1e-5 of it.  h^4 / 30 times
 * the fifth derivative is 1e-6 for the curved functions at hand, more for a
 * batch norm of few values. */
static void test_slope(struct check *k, const struct ddp__call *forward,
                       enum check_role x)
{
    const struct check_tensor *dx = check_tensor(k, check_gradient[x]);
    size_t len = trained_len(k, x), tries = len < TRIES ? len : TRIES;
    struct check *copy = check_copy(k);
    double sum = 0, a = 0, b = 0, error;

    if (!copy)
        bail_out("out of memory");
    for (size_t j = 0; j < tries; j++) {
        size_t i = j * len / tries;
        double want = slope(copy, forward, check_tensor(copy, x), i);
        double got = check_get(dx, i);

        sum += (got - want) * (got - want);
        a += got * got;
        b += want * want;
    }
    check_free(copy);
    error = sqrt(sum) / fmax(sqrt(fmax(a, b)), 1e-3);
    ok(error < 1e-4, "ref, %s, %s: %s is the slope of the objective in %s",
       check_kinds[k->row.family].name, k->row.what,
       check_role_names[check_gradient[x]], check_role_names[x]);
    if (!(error < 1e-4))
        diag("off by %.3g of the norm", error);
}

/* Rows whose forward is smooth, and not more than backward is about; not the
 * large ones, on which differences take long and show no more. */
static bool has_slopes(const struct check_row *r)
{
    if (r->n * r->x.h * r->x.w * r->x.c > 10000)
        return false;
    if (r->ties || r->nan || r->spread > 100 || r->mean > 10 || r->call.sum)
        return false;
    if (r->family == CHECK_CONV)
        return r->call.conv.act == DDP_IDENTITY;
    if (r->family == CHECK_DENSE)
        return r->call.dense.act == DDP_IDENTITY;
    if (r->family == CHECK_BN)
        return r->n * r->x.h * r->x.w > 2;
    return !r->no_gradient;
}

static void test_ref(const struct check_row *row)
{
    const struct check_kind *kind = &check_kinds[row->family];
    struct check *k;
    struct ddp__call forward, c;

    if (!has_slopes(row))
        return;
    if (!(k = check_new(row, DDP_F32)))
        bail_out("out of memory");
    k->coarse = true;
    check_fill(k);
    avoid_kinks(k);
    forward = check_call(k, kind->op[0]);
    for (int i = 0; i < kind->ops; i++) {
        c = check_call(k, kind->op[i]);
        if (check_run(k, &ddp__ref, &c, row->n, false) < 0)
            bail_out("ref: %s", ddp_errmsg());
    }
    for (const enum check_role *x = kind->slope; *x != ROLE_NONE; x++)
        if (k->tensor[*x].data && k->tensor[check_gradient[*x]].data)
            test_slope(k, &forward, *x);
    check_free(k);
}

static void start(void)
{
    static const struct ddp__machine machine = {.cores = 1};

    for (int i = 0; i < op_row_count; i++)
        if (is_tried(&op_rows[i]))
            test_ref(&op_rows[i]);
#if defined(TEST_AVX2) && defined(HAVE_ONEDNN) && defined(__x86_64__)
    setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
    ok(!__builtin_cpu_supports("avx2") || !strcmp(ddp__dnn_isa(), "AVX2"),
       "oneDNN uses %s", ddp__dnn_isa());
#endif
    for (int b = 0; b < backend_count(); b++)
        if (backends[b]->init && backends[b]->init(&machine) < 0)
            bail_out("%s: %s", backends[b]->name, ddp_errmsg());
}

static void stop(void)
{
    for (int b = 0; b < backend_count(); b++)
        if (backends[b]->fini)
            backends[b]->fini();
}
#else
static void start(void)
{
    int rc = on_gpu_enter();

    if (rc == 0)
        skip_all("there is no GPU");
    if (rc < 0)
        bail_out("%s", ddp_errmsg());
    check_kernel = on_gpu_run;
    if (ddp__cudnn_targets_ready() == 0)
        diag("batch norm with masks, f32 and bf16: %s, %s",
             ddp__cuda_masks_fit(ddp__cudnn_targets, DDP_F32)
                 ? "cuDNN"
                 : "our own kernels",
             ddp__cuda_masks_fit(ddp__cudnn_targets, DDP_BF16)
                 ? "cuDNN"
                 : "our own kernels");
}

static void stop(void)
{
    on_gpu_leave();
}
#endif

/* Rows that compare the kernels of an optimizer, and of a loss. */
static int optimizer_rows(enum ddp_optimizer_kind kind)
{
    int n = 0;

    for (int i = 0; i < op_row_count; i++)
        n += op_rows[i].family == CHECK_OPTIM &&
             op_rows[i].call.optim.o.kind == kind;
    return n;
}

static int loss_rows(enum ddp_loss_kind kind)
{
    int n = 0;

    for (int i = 0; i < op_row_count; i++)
        n += op_rows[i].family == CHECK_LOSS &&
             op_rows[i].call.loss.kind == kind;
    return n;
}

/* A kind that the library's tables have and the rows do not fails here. */
static void test_tables(void)
{
    const struct ddp_optimizer_info *o;
    const struct ddp__loss_info *l;

    for (int k = 0; (o = ddp_optimizer_info((enum ddp_optimizer_kind)k)); k++)
        ok(optimizer_rows((enum ddp_optimizer_kind)k) > 0 &&
               (int)o->defaults.kind == k && o->lr > 0,
           "the optimizer %s has rows", o->name);
    for (int k = 0; (l = ddp__loss_info((enum ddp_loss_kind)k)); k++)
        ok(loss_rows((enum ddp_loss_kind)k) > 0, "the loss %s has rows",
           l->name);
}

static void test_rows(void)
{
    for (int i = 0; i < op_row_count; i++) {
        if (!is_tried(&op_rows[i]))
            continue;
        test_backends(&op_rows[i], DDP_F32);
        test_backends(&op_rows[i], DDP_BF16);
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    chosen = argv + 1;
    start();
    test_tables();
    test_rows();
#ifdef TEST_AVX2
    lanes = 0;
    test_rows();
#endif
    stop();
    return done_testing();
}
