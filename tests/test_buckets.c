/* test_buckets.c - parameters that fill two buckets are clipped, checked and
 * updated as one
 *
 * The oracle is the network written out in double: two dense layers, and the
 * mean over samples of their squared errors.  Gradients are f32 sums of a few
 * thousand terms: 1e-5 of the norm of each parameter's leaves some hundred
 * roundings.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "defaults.h"
#include "graph/params_bind.h"
#include "number.h"
#include "scratch.h"
#include "tap.h"
#include "train/trainer.h"

#define TOLERANCE 1e-5

/* The first layer does not fit into the bucket of the last one. */
enum { IN = 64, HIDDEN = 4096, OUT = 3, COUNT = 7, PARAMS = 4 };

static float w1[HIDDEN * IN], b1[HIDDEN], w2[OUT * HIDDEN], b2[OUT];
static double gw1[HIDDEN * IN], gb1[HIDDEN], gw2[OUT * HIDDEN], gb2[OUT];

/* The parameters before the first step, and their gradients then. */
static const struct param {
    const char *name;
    size_t len;
    float *w;
    double *g;
    float spread; /* of the weights */
} param[PARAMS] = {
    {"0.weight", HIDDEN *IN, w1, gw1, 0.05f},
    {"0.bias", HIDDEN, b1, gb1, 0.05f},
    {"1.weight", OUT *HIDDEN, w2, gw2, 0.1f},
    {"1.bias", OUT, b2, gb2, 0.1f},
};

/* ---- the oracle --------------------------------------------------------- */

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    (void)key;
    for (int i = 0; i < IN; i++)
        x[i] = number((uint32_t)(index * 1000 + i));
    for (int i = 0; i < OUT; i++)
        s->target[i] = number((uint32_t)(index * 1000 + 500 + i));
    return 0;
}

static void add_sample(int index)
{
    static double h[HIDDEN], dh[HIDDEN];
    float x[IN], target[OUT];

    get(NULL, index, 0, &(struct ddp_sample){.x = x, .target = target});
    for (int k = 0; k < HIDDEN; k++) {
        h[k] = b1[k];
        dh[k] = 0;
        for (int i = 0; i < IN; i++)
            h[k] += (double)w1[k * IN + i] * x[i];
    }
    for (int o = 0; o < OUT; o++) {
        double y = b2[o];

        for (int k = 0; k < HIDDEN; k++)
            y += w2[o * HIDDEN + k] * h[k];
        y = 2 * (y - target[o]) / OUT / COUNT; /* now the gradient */
        gb2[o] += y;
        for (int k = 0; k < HIDDEN; k++) {
            gw2[o * HIDDEN + k] += y * h[k];
            dh[k] += y * w2[o * HIDDEN + k];
        }
    }
    for (int k = 0; k < HIDDEN; k++) {
        gb1[k] += dh[k];
        for (int i = 0; i < IN; i++)
            gw1[k * IN + i] += dh[k] * x[i];
    }
}

static double norm(const double *x, size_t len)
{
    double sum = 0;

    for (size_t i = 0; i < len; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

/* Fill the tables; the norm of all gradients. */
static double make_oracle(void)
{
    double first, all = 0;

    for (int p = 0; p < PARAMS; p++)
        for (size_t i = 0; i < param[p].len; i++)
            param[p].w[i] =
                param[p].spread * number((uint32_t)((size_t)p * 1000000 + i));
    for (int i = 0; i < COUNT; i++)
        add_sample(i);
    for (int p = 0; p < PARAMS; p++)
        all = hypot(all, norm(param[p].g, param[p].len));
    first = hypot(norm(gw1, HIDDEN * IN), norm(gb1, HIDDEN));
    ok(first > 0.2 * all && first < 0.98 * all,
       "both layers have their part of the norm: %.3g of %.3g", first, all);
    return all;
}

/* ---- a run -------------------------------------------------------------- */

struct run {
    ddp_dataset_t *data;
    ddp_chain_t *chain;
    ddp_trainer_t *trainer;
};

/* Two lanes, of two sub-batches each, the last of which has one sample. */
static struct run begin_with(ddp_t *ddp, struct ddp_optimizer o,
                             const struct ddp_param_group *frozen,
                             const char *dir)
{
    struct run r = {
        .data = ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                          .shape = {1, 1, IN},
                                                          .type = DDP_F32,
                                                          .target_len = OUT,
                                                          .get = get}),
        .chain = ddp_chain_new(ddp_dense_new(IN, HIDDEN, NULL),
                               ddp_dense_new(HIDDEN, OUT, NULL), DDP_END)};

    for (int p = 0; p < PARAMS; p++)
        if (ddp_chain_set(r.chain, param[p].name, param[p].w, param[p].len) < 0)
            bail_out("%s", ddp_errmsg());
    r.trainer = ddp_trainer_new(
        ddp, r.chain, r.data,
        &(struct ddp_train_config){
            TRAIN_DEFAULTS, .loss = DDP_MSE, .optimizer = o, .sub_batch = 2,
            .batch = COUNT, .lanes = 2, .order = DDP_IN_ORDER,
            .ema_decay = 0.75, .groups = frozen, .group_count = frozen != NULL,
            .checkpoint = {.dir = dir, .keep = 1}});
    if (!r.trainer)
        bail_out("%s", ddp_errmsg());
    return r;
}

static struct run begin(ddp_t *ddp, struct ddp_optimizer o)
{
    return begin_with(ddp, o, NULL, NULL);
}

static void end(struct run *r)
{
    ddp_trainer_free(r->trainer);
    ddp_dataset_free(r->data);
    ddp_chain_free(r->chain);
}

/* ---- tests -------------------------------------------------------------- */

/* |got - want - scale g| / |scale g|, where want NULL is 0. */
static double way_off(const struct param *p, const float *got,
                      const float *want, double scale)
{
    double off = 0;

    for (size_t i = 0; i < p->len; i++) {
        double d = got[i] - (want ? want[i] : 0) - scale * p->g[i];

        off += d * d;
    }
    return sqrt(off) / fabs(scale) / norm(p->g, p->len);
}

static void test_gradients(ddp_t *ddp, const char *how)
{
    struct run r = begin(ddp, ddp_sgd(1));
    float *g = malloc(HIDDEN * IN * sizeof(*g));
    struct ddp_metrics m;

    is_int(r.trainer->engine->params->buckets, 2, "%s: two buckets", how);
    is_int(ddp_trainer_gradients(r.trainer, &m), 0, "%s: gradients", how);
    for (int p = 0; p < PARAMS; p++) {
        int rc =
            ddp_trainer_get_gradient(r.trainer, param[p].name, g, param[p].len);

        is_near(rc < 0 ? INFINITY : way_off(&param[p], g, NULL, 1), 0,
                TOLERANCE, "%s: the gradient of %s", how, param[p].name);
    }
    free(g);
    end(&r);
}

/* A step of SGD, clipped to a norm: -lr min(1, clip / norm) times the gradient;
 * averages go a quarter of the way.  The step is of 1e-3 for a weight of 0.05,
 * which f32 rounds at 2e-9. */
static void test_clip(ddp_t *ddp, const char *how, double all, double clip)
{
    struct ddp_optimizer o = ddp_sgd(0.5f);
    double scale = -0.5 * fmin(1, clip / all);
    float *w = malloc(HIDDEN * IN * sizeof(*w));
    struct ddp_metrics m;
    struct run r;

    o.clip_norm = (float)clip;
    r = begin(ddp, o);
    is_int(ddp_trainer_step(r.trainer, &m), 0, "%s: a step clipped to %.3g",
           how, clip);
    for (int p = 0; p < PARAMS; p++) {
        const struct param *q = &param[p];
        double off = INFINITY;

        if (ddp_chain_get(r.chain, q->name, w, q->len) == 0)
            off = way_off(q, w, q->w, scale);
        is_near(off, 0, TOLERANCE, "%s: where %s has gone", how, q->name);
        off = INFINITY;
        if (ddp_trainer_ema_get(r.trainer, q->name, w, q->len) == 0)
            off = way_off(q, w, q->w, scale / 4);
        is_near(off, 0, 4 * TOLERANCE, "%s: and its average", how);
    }
    free(w);
    end(&r);
}

/* One value of one parameter is infinite: nothing is updated. */
static void spoil_gradient(struct run *r, const struct param *p)
{
    float *g = malloc(p->len * sizeof(*g));
    struct ddp_metrics m;

    if (ddp_trainer_gradients(r->trainer, &m) < 0 ||
        ddp_trainer_get_gradient(r->trainer, p->name, g, p->len) < 0)
        bail_out("%s", ddp_errmsg());
    g[p->len - 1] = INFINITY;
    if (ddp_trainer_set_gradient(r->trainer, p->name, g, p->len) < 0)
        bail_out("%s", ddp_errmsg());
    free(g);
}

static void test_infinity(ddp_t *ddp, const char *how)
{
    struct run r = begin(ddp, ddp_sgd(1));
    uint32_t before = 0, after = 0;
    struct ddp_skips skips;
    char first[64];

    ddp_chain_checksum(r.chain, &before);
    for (int p = 0; p < PARAMS; p++) {
        spoil_gradient(&r, &param[p]);
        is_int(ddp_trainer_update(r.trainer), 0,
               "%s: a gradient of %s that is infinite", how, param[p].name);
        ddp_trainer_skips(r.trainer, &skips);
        ddp_chain_checksum(r.chain, &after);
        ok(skips.steps == p + 1 && after == before, "%s: changes no weight",
           how);
        snprintf(first, sizeof(first), "first at %s,", param[p].name);
        ok(strstr(skips.why, first), "%s: and is named: %s", how, skips.why);
    }
    end(&r);
}

/* What is frozen needs no memory for the optimizer, and a run resumes without
 * it. */
static void test_frozen(ddp_t *ddp, const char *how)
{
    const struct ddp_param_group frozen[] = {{"0", 0, -1}};
    struct run r = begin_with(ddp, ddp_adam(0.01f), frozen, at(how));
    const struct ddp__engine *e = r.trainer->engine;
    uint32_t want = 0, got = 0;
    size_t len = 0;
    int rc;

    for (int b = 0; b < e->params->buckets; b++)
        len += e->state[b].size / sizeof(float);
    is_int((int)len, 2 * (int)e->params->bucket[e->params->block[1].bucket].len,
           "%s: state of the second layer", how);
    rc = ddp_trainer_step(r.trainer, NULL);
    if (rc == 0 && (rc = ddp_trainer_checkpoint(r.trainer)) == 0)
        rc = ddp_trainer_step(r.trainer, NULL);
    ddp_chain_checksum(r.chain, &want);
    end(&r);
    r = begin_with(ddp, ddp_adam(0.01f), frozen, at(how));
    ok(rc == 0 && ddp_trainer_resume(r.trainer, NULL, NULL) == 1 &&
           ddp_trainer_step(r.trainer, NULL) == 0,
       "%s: a checkpoint without it", how);
    ddp_chain_checksum(r.chain, &got);
    ok(got == want, "%s: and the same bits after it", how);
    end(&r);
}

/* ---- larger buckets ----------------------------------------------------- */

/* Layers that share the last buckets, in which most of them are. */
enum { LAYERS = 100, SIDE = 256 };

static ddp_chain_t *make_deep(void)
{
    ddp_chain_t *c = ddp_chain_new(ddp_dense_new(SIDE, SIDE, NULL), DDP_END);

    for (int i = 1; i < LAYERS; i++)
        ddp_chain_add(c, ddp_dense_new(SIDE, SIDE, NULL));
    return c;
}

static void fill_bias(int layer, float *b)
{
    for (int i = 0; i < SIDE; i++)
        b[i] = number((uint32_t)(layer * SIDE + i));
}

/* Layers whose bias is not what it was made. */
static int count_changed(ddp_chain_t *c)
{
    float want[SIDE], got[SIDE];
    char name[32];
    int n = 0;

    for (int l = 0; l < LAYERS; l++) {
        snprintf(name, sizeof(name), "%d.bias", l);
        fill_bias(l, want);
        n += ddp_chain_get(c, name, got, SIDE) < 0 ||
             memcmp(want, got, sizeof(got)) != 0;
    }
    return n;
}

static void test_join(void)
{
    ddp_chain_t *c = make_deep();
    struct ddp__params *p = ddp__params_of(c);
    uint32_t before = 0, after = 0;
    int buckets = p->buckets;
    float b[SIDE];
    char name[32];

    for (int l = 0; l < LAYERS; l++) {
        snprintf(name, sizeof(name), "%d.bias", l);
        fill_bias(l, b);
        ddp_chain_set(c, name, b, SIDE);
    }
    ddp_chain_checksum(c, &before);
    is_int(ddp__params_join(p), 0, "larger buckets");
    ok(p->buckets < buckets, "are fewer: %d of %d", p->buckets, buckets);
    is_int(count_changed(c), 0, "and leave the values that were set");
    ddp_chain_checksum(c, &after);
    ok(after == before, "and those that were not");
    ddp_chain_free(c);
}

/* What a context holds is known by its buckets. */
static void test_held(ddp_t *ddp)
{
    ddp_chain_t *c = make_deep();
    struct ddp__params *p = ddp__params_of(c);
    int buckets = p->buckets, rc = ddp__params_bind(p, ddp, true);

    is_int(rc == 0 ? ddp__params_join(p) : rc, 0, "buckets of a context");
    is_int(p->buckets, buckets, "remain as they are");
    ddp_chain_free(c);
}

int main(void)
{
    double all = make_oracle();

    scratch_make();
    test_join();

    for (int i = 0; i < BACKENDS; i++) {
        const char *backend = backends[i];
        ddp_t *ddp = begin_backend(i);

        if (!ddp)
            continue;
        test_gradients(ddp, backend);
        test_clip(ddp, backend, all, 0.1 * all);
        test_clip(ddp, backend, all, 2 * all);
        test_infinity(ddp, backend);
        test_frozen(ddp, backend);
        test_held(ddp);
        ddp_finish(ddp);
    }
    return done_testing();
}
