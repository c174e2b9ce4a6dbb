/* test_layers.c - layers and chains of layers against PyTorch
 *
 * oracle_layers.py computes in f64 what follows from random x, dy and
 * parameters; layer_cases.c has the same chains.  Each is run on both CPU
 * backends: as a pullback, again, in other sub-batches, in evaluation, and as
 * a trainer's step, where the input needs no gradient.
 *
 * Tolerance: f32 rounds at 2^-24 = 6e-8, and a sum of k products is off by
 * about sqrt(k) 2^-24.  The longest sums here have 300 terms and pass through
 * 6 layers at most, where batch norm may amplify by 1 / sigma of its input, 3
 * or so: 300^0.5 * 6e-8 * 6 * 3 = 2e-5, of the norm of the whole tensor.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "defaults.h"
#include "layer_cases.h"
#include "oracle.h"
#include "tap.h"
#include "train/trainer.h"

enum { MAX_PARAMS = 64 };
#define TOLERANCE 2e-5

/* One case on one backend. */
struct run {
    ddp_t *ddp;
    ddp_chain_t *chain;
    const struct oracle *o;
    const char *backend, *name;
    const struct oracle_tensor *x, *dy, *y; /* n samples each */
    struct ddp_shape shape;
    int n, sub;
    float *got; /* room for any tensor of the case; owned */
    bool norms; /* batch norm: sub-batches matter */
};

/* Is `got` what the script has as case/kind/param? */
static bool agrees(struct run *r, const char *kind, const char *param,
                   const float *got)
{
    const struct oracle_tensor *want =
        oracle_find(r->o, "%s/%s%s", r->name, kind, param);
    double d = want ? oracle_distance(got, want->data, want->len) : -1;

    if (d >= 0 && d <= TOLERANCE)
        return true;
    diag("%s %s: %s%s is off by %.3g", r->backend, r->name, kind, param, d);
    return false;
}

/* ---- setting up --------------------------------------------------------- */

static bool set_params(struct run *r)
{
    struct ddp_param_info p;
    int set = 0;

    for (int i = 0; ddp_chain_param(r->chain, i, &p) == 0; i++) {
        const struct oracle_tensor *t =
            oracle_find(r->o, "%s/p/%s", r->name, p.name);

        r->norms = r->norms || p.role == DDP_RUNNING;
        if (!t || t->len != p.len || t->ndim != p.ndim ||
            memcmp(t->dim, p.dim, (size_t)p.ndim * sizeof(int)) != 0 ||
            ddp_chain_set(r->chain, p.name, t->data, t->len) < 0) {
            diag("%s: parameter %s: %s", r->name, p.name, ddp_errmsg());
            return false;
        }
        set++;
    }
    for (int i = 0; i < r->o->tensors; i++) {
        const char *name = r->o->tensor[i].name;
        size_t len = strlen(r->name);

        if (strncmp(name, r->name, len) == 0 &&
            strncmp(name + len, "/p/", 3) == 0)
            set--;
    }
    return set == 0;
}

static bool set_up(struct run *r)
{
    const struct oracle_tensor *sub = oracle_find(r->o, "%s/sub", r->name);
    size_t most = 0;

    r->x = oracle_find(r->o, "%s/x", r->name);
    r->dy = oracle_find(r->o, "%s/dy", r->name);
    r->y = oracle_find(r->o, "%s/y", r->name);
    if (!r->chain || !sub || !r->x || !r->dy || !r->y)
        return ok(0, "%s %s: can be built, and the script has it: %s",
                  r->backend, r->name, ddp_errmsg());
    r->n = r->x->dim[0];
    r->sub = (int)sub->data[0];
    r->shape = (struct ddp_shape){r->x->dim[1], r->x->dim[2], r->x->dim[3]};
    for (int i = 0; i < r->o->tensors; i++)
        if (r->o->tensor[i].len > most)
            most = r->o->tensor[i].len;
    r->got = malloc(most * sizeof(float));
    return ok(r->got && set_params(r),
              "%s %s: parameters have PyTorch's names and shapes", r->backend,
              r->name);
}

/* ---- pullbacks ---------------------------------------------------------- */

static bool check_gradients(struct run *r, ddp_pullback_t *p)
{
    struct ddp_param_info info;
    bool good = true;

    for (int i = 0; ddp_chain_param(r->chain, i, &info) == 0; i++) {
        if (info.role == DDP_RUNNING)
            continue;
        if (ddp_pullback_get_gradient(p, info.name, r->got, info.len) < 0) {
            diag("%s %s: %s: %s", r->backend, r->name, info.name, ddp_errmsg());
            good = false;
        } else {
            good = agrees(r, "g/", info.name, r->got) && good;
        }
    }
    return good;
}

static bool pull(struct run *r, ddp_pullback_t *p)
{
    if (ddp_pullback_backward(p, r->dy->data, r->got) < 0) {
        diag("%s %s: %s", r->backend, r->name, ddp_errmsg());
        return false;
    }
    return agrees(r, "dx", "", r->got) && check_gradients(r, p);
}

/* Forward, dx and gradients; then dx once more, to the bit. */
static void test_pullback(struct run *r, int sub)
{
    float *first = malloc(r->x->len * sizeof(float));
    ddp_pullback_t *p;
    bool good, same;

    memset(r->got, 0xff, r->y->len * sizeof(float));
    p = ddp_pullback_new(r->ddp, r->chain, r->x->data, r->shape, r->n, sub,
                         r->got);
    if (!p)
        diag("%s %s: %s", r->backend, r->name, ddp_errmsg());
    good = p && agrees(r, "y", "", r->got);
    good = p && pull(r, p) && good;
    ok(good, "%s %s: y, dx and gradients in sub-batches of %d", r->backend,
       r->name, sub);
    same = p && ddp_pullback_backward(p, r->dy->data, first) == 0 &&
           ddp_pullback_backward(p, r->dy->data, r->got) == 0 &&
           memcmp(first, r->got, r->x->len * sizeof(float)) == 0 &&
           check_gradients(r, p);
    ok(same, "%s %s: pulled twice, the same", r->backend, r->name);
    ddp_pullback_free(p);
    free(first);
}

static void test_evaluation(struct run *r)
{
    memset(r->got, 0xff, r->y->len * sizeof(float));
    ok(ddp_chain_forward(r->ddp, r->chain, r->x->data, DDP_F32, r->shape, r->n,
                         2, r->got) == 0 &&
           agrees(r, "eval", "", r->got),
       "%s %s: evaluation", r->backend, r->name);
}

/* ---- training ----------------------------------------------------------- */

/* The script's samples, with dy as their targets. */
static int get(void *arg, int64_t i, uint64_t key, struct ddp_sample *s)
{
    const struct run *r = arg;
    size_t x = r->x->len / (size_t)r->n, y = r->dy->len / (size_t)r->n;

    (void)key;
    memcpy(s->x, r->x->data + (size_t)i * x, x * sizeof(float));
    memcpy(s->target, r->dy->data + (size_t)i * y, y * sizeof(float));
    return 0;
}

/* The sum of y times dy, whose gradient is dy. */
static double loss(const float *y, const void *target, const float *weight,
                   int n, int len, float *dx, void *arg)
{
    const float *dy = target;
    double sum = 0;

    (void)arg;
    for (int i = 0; i < n * len; i++) {
        sum += (double)y[i] * dy[i] * weight[i / len];
        if (dx)
            dx[i] = dy[i] * weight[i / len];
    }
    return sum;
}

static bool loss_agrees(const struct run *r, double got)
{
    double want = 0, size = 0;

    for (size_t i = 0; i < r->y->len; i++) {
        want += (double)r->y->data[i] * r->dy->data[i] / r->n;
        size += fabs((double)r->y->data[i] * r->dy->data[i]) / r->n;
    }
    if (fabs(got - want) <= TOLERANCE * size)
        return true;
    diag("%s %s: loss %.9g, expected %.9g", r->backend, r->name, got, want);
    return false;
}

/* A trainer's gradients are means, the script's are sums. */
static bool check_trainer_gradients(struct run *r, ddp_trainer_t *t)
{
    struct ddp_param_info p;
    bool good = true;

    for (int i = 0; ddp_chain_param(r->chain, i, &p) == 0; i++) {
        if (p.role == DDP_RUNNING)
            continue;
        if (ddp_trainer_get_gradient(t, p.name, r->got, p.len) < 0) {
            diag("%s %s: %s", r->backend, r->name, ddp_errmsg());
            good = false;
            continue;
        }
        for (size_t k = 0; k < p.len; k++)
            r->got[k] *= (float)r->n;
        good = agrees(r, "g/", p.name, r->got) && good;
    }
    return good;
}

/* After a step with learning rate 0 weights are what they were, and running
 * statistics have moved. */
static bool check_step(struct run *r)
{
    struct ddp_param_info p;
    bool good = true;

    for (int i = 0; ddp_chain_param(r->chain, i, &p) == 0; i++) {
        bool running = p.role == DDP_RUNNING;

        good = ddp_chain_get(r->chain, p.name, r->got, p.len) == 0 &&
               agrees(r, running ? "r/" : "p/", p.name, r->got) && good;
    }
    return good;
}

static bool train(struct run *r, ddp_trainer_t *t)
{
    struct ddp_metrics m = {0};
    bool good = true;

    if (ddp_trainer_gradients(t, &m) < 0) {
        diag("%s %s: %s", r->backend, r->name, ddp_errmsg());
        return false;
    }
    good = m.samples == r->n && loss_agrees(r, m.loss);
    good = check_trainer_gradients(r, t) && good;
    return ddp_trainer_step(t, &m) == 0 && check_step(r) && good;
}

static void test_training(struct run *r)
{
    ddp_dataset_t *d = ddp_dataset_callback(&(struct ddp_source){
        .count = r->n,
        .shape = r->shape,
        .type = DDP_F32,
        .target_len = (int)(r->dy->len / (size_t)r->n),
        .get = get,
        .arg = r,
    });
    ddp_trainer_t *t = ddp_trainer_new(
        r->ddp, r->chain, d,
        &(struct ddp_train_config){
            TRAIN_DEFAULTS, .loss = DDP_CUSTOM_LOSS, .loss_fn = loss,
            .optimizer = {.kind = DDP_SGD}, .sub_batch = r->sub, .batch = r->n,
            .order = DDP_IN_ORDER, .keep_weights = true});

    if (!t)
        diag("%s %s: %s", r->backend, r->name, ddp_errmsg());
    ok(t && train(r, t), "%s %s: a trainer's loss, gradients and statistics",
       r->backend, r->name);
    ddp_trainer_free(t);
    ddp_dataset_free(d);
}

/* ---- all of them -------------------------------------------------------- */

static void test_case(struct run *r)
{
    if (set_up(r)) {
        test_pullback(r, r->sub);
        if (!r->norms)
            test_pullback(r, 2);
        test_evaluation(r);
        test_training(r);
    }
    ddp_chain_free(r->chain);
    free(r->got);
}

static void test_backend(const struct oracle *o, const char *backend)
{
    ddp_t *ddp =
        ddp_init(&(struct ddp_config){START_DEFAULTS, .backend = backend});
    char name[64];

    if (!ddp) {
        skip(1, "backend %s: %s", backend, ddp_errmsg());
        return;
    }
    diag("%s", ddp_describe(ddp));
    for (int i = 0;; i++) {
        struct run r = {.ddp = ddp, .o = o, .backend = backend, .name = name};

        if (!layer_case(i, name, &r.chain))
            break;
        test_case(&r);
    }
    ddp_finish(ddp);
}

int main(void)
{
    struct oracle *o;

    if (oracle_missing())
        skip_all("%s", oracle_missing());
    if (!(o = oracle_new("oracle_layers.py", NULL)))
        bail_out("oracle_layers.py failed");
    test_backend(o, "cpu");
    test_backend(o, "ref");
    oracle_free(o);
    return done_testing();
}
