/* test_ema.c - averages of the weights: their values, evaluation, files
 *
 * The oracle is the recurrence in double, on the weights after every step;
 * test_optim.c has PyTorch's.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/philox.h"
#include "runtime/context.h"
#include "defaults.h"
#include "remove_tree.h"
#include "tap.h"

enum { SIZE = 6, LEN = SIZE * SIZE * 2, CLASSES = 4, COUNT = 40, STEPS = 12 };
enum { MOST = 1024 }; /* values of all parameters */
#define DECAY 0.8

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    const int64_t *bad = arg;
    float *x = s->x;

    (void)key;
    s->label = (int32_t)(index % CLASSES);
    for (int i = 0; i < LEN; i++)
        x[i] = ddp__uniform(ddp__philox(3, (uint64_t)index, (uint64_t)i).v[0]) +
               (float)(i % CLASSES == s->label);
    if (bad && *bad == index)
        x[0] = INFINITY;
    return 0;
}

/* bad: the number of a sample that is not finite, or NULL. */
static ddp_dataset_t *samples(int64_t *bad)
{
    return ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                     .shape = {SIZE, SIZE, 2},
                                                     .type = DDP_F32,
                                                     .classes = CLASSES,
                                                     .get = get,
                                                     .arg = bad});
}

static ddp_chain_t *net(void)
{
    return ddp_chain_new(ddp_conv_new(2, 4, 3, NULL),
                         ddp_batch_norm_new(4, NULL), ddp_relu_new(),
                         ddp_flatten_new(), ddp_dense_new(64, CLASSES, NULL),
                         DDP_END);
}

static ddp_trainer_t *trainer(ddp_t *ddp, ddp_chain_t *c, ddp_dataset_t *d,
                              double decay)
{
    return ddp_trainer_new(ddp, c, d,
                           &(struct ddp_train_config){
                               TRAIN_DEFAULTS,
                               .optimizer = ddp_momentum(0.1f, 0.9f),
                               .sub_batch = 4, .batch = 16, .lanes = 3,
                               .steps = STEPS, .seed = 7, .ema_decay = decay});
}

/* All parameters, or averages of them with a trainer, one after another. */
static size_t all(ddp_chain_t *c, ddp_trainer_t *t, float *out)
{
    struct ddp_param_info p;
    size_t n = 0;

    for (int i = 0; ddp_chain_param(c, i, &p) == 0; n += p.len, i++)
        if (n + p.len > MOST ||
            (t ? ddp_trainer_ema_get(t, p.name, out + n, p.len)
               : ddp_chain_get(c, p.name, out + n, p.len)))
            bail_out("%s: %s", p.name, ddp_errmsg());
    return n;
}

/* Set all averages, or all weights, to those. */
static bool put(ddp_chain_t *c, ddp_trainer_t *t, const float *in)
{
    struct ddp_param_info p;
    bool good = true;

    for (int i = 0; ddp_chain_param(c, i, &p) == 0; in += p.len, i++)
        good = good && (t ? ddp_trainer_ema_set(t, p.name, in, p.len)
                          : ddp_chain_set(c, p.name, in, p.len)) == 0;
    return good;
}

/* e is rounded to f32 in every step: 12 times 2^-24 of values up to 2. */
static void test_values(ddp_t *ddp, ddp_dataset_t *d, const char *backend)
{
    ddp_chain_t *c = net();
    ddp_trainer_t *t = trainer(ddp, c, d, DECAY);
    float w[MOST], got[MOST], first[MOST];
    double e[MOST], worst = 0, moved = 0;
    struct ddp_metrics m;
    size_t n = all(c, NULL, first);

    for (size_t i = 0; i < n; i++)
        e[i] = first[i];
    for (int k = 0; k < STEPS; k++) {
        if (!t || ddp_trainer_step(t, &m) < 0)
            bail_out("%s", ddp_errmsg());
        all(c, NULL, w);
        for (size_t i = 0; i < n; i++)
            e[i] = DECAY * e[i] + (1 - DECAY) * w[i];
    }
    all(c, t, got);
    for (size_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs(got[i] - e[i]));
        moved = fmax(moved, fabs(got[i] - w[i]));
    }
    ok(worst < 2e-6, "%s: %d steps as the recurrence in double, off by %.2g",
       backend, STEPS, worst);
    ok(moved > 1e-2, "%s: which is not where the weights are", backend);
    ddp_trainer_free(t);
    ddp_chain_free(c);
}

/* A bf16 has the upper half of a float's bits, 8 of them of the number. */
static bool are_rounded(const float *got, const float *of, size_t n)
{
    bool good = true;
    uint32_t bits;

    for (size_t i = 0; i < n; i++) {
        memcpy(&bits, &got[i], sizeof(bits));
        good = good && (bits & 0xffff) == 0 &&
               fabsf(got[i] - of[i]) <= 0x1p-8f * fabsf(of[i]);
    }
    return good;
}

/* Losses are sums in the same order on the same values: equal. */
static void test_evaluation(ddp_t *ddp, ddp_dataset_t *d)
{
    struct ddp_metrics plain, before, after, ema;
    char path[] = "/tmp/test_ema.XXXXXX";
    float e[MOST], got[MOST], w[MOST];
    ddp_chain_t *c = net(), *other = net();
    ddp_trainer_t *t = trainer(ddp, c, d, DECAY);
    size_t n;
    int fd = mkstemp(path);

    ok(t && ddp_trainer_evaluate(t, d, &plain) == 0 &&
           ddp_trainer_evaluate_ema(t, d, &ema) == 0 &&
           !memcmp(&plain, &ema, sizeof(ema)),
       "before the first step, averages are the weights");
    ok(ddp_trainer_train(t) == 0 && ddp_trainer_evaluate(t, d, &before) == 0 &&
           ddp_trainer_evaluate_ema(t, d, &ema) == 0 &&
           ddp_trainer_evaluate(t, d, &after) == 0 &&
           !memcmp(&before, &after, sizeof(after)),
       "their evaluation leaves that of the weights as it is");
    n = all(c, t, e);
    all(c, NULL, w);
    ok(fd >= 0 && ddp_trainer_ema_save(t, path, NULL) == 0 &&
           ddp_chain_load(other, path, NULL, NULL) == 0 &&
           all(other, NULL, got) == n && !memcmp(got, e, n * sizeof(*e)),
       "a file has them, under the parameters' names");
    ok(ddp_trainer_ema_save(
           t, path,
           &(struct ddp_save_options){SAVE_DEFAULTS, .dtype = DDP_BF16}) == 0 &&
           ddp_chain_load(other, path, NULL, NULL) == 0 &&
           all(other, NULL, got) == n && are_rounded(got, e, n),
       "or rounded to bf16");
    ok(put(c, NULL, e) && ddp_trainer_evaluate(t, d, &after) == 0 &&
           !memcmp(&ema, &after, sizeof(ema)) &&
           memcmp(&before, &ema, sizeof(ema)) != 0,
       "a chain with the averages as weights evaluates equally");
    close(fd);
    unlink(path);
    ddp_trainer_free(t);
    ddp_chain_free(other);
    ddp_chain_free(c);
}

/* A run in two halves, the second of which gets what the first left; SGD has
 * no other state. */
static void test_resume(ddp_t *ddp, ddp_dataset_t *d)
{
    struct ddp_train_config cfg = {
        TRAIN_DEFAULTS,    .optimizer = ddp_sgd(0.1f), .batch = COUNT,
        .sub_batch = 8,    .keep_weights = true,       .order = DDP_IN_ORDER,
        .ema_decay = DECAY};
    float w[MOST], e[MOST], want[MOST], got[MOST];
    ddp_chain_t *c = net(), *second = net();
    ddp_trainer_t *t, *u;
    struct ddp_metrics m;
    size_t n = all(c, NULL, w);

    put(second, NULL, w);
    t = ddp_trainer_new(ddp, c, d, &cfg);
    u = ddp_trainer_new(ddp, second, d, &cfg);
    if (!t || !u)
        bail_out("%s", ddp_errmsg());
    ok(ddp_trainer_step(t, &m) == 0 && ddp_trainer_step(t, &m) == 0,
       "two steps");
    all(c, NULL, w);
    all(c, t, e);
    ok(put(second, NULL, w) && put(second, u, e) && all(second, u, got) == n &&
           !memcmp(got, e, n * sizeof(*e)),
       "averages can be set");
    ok(ddp_trainer_step(t, &m) == 0 && ddp_trainer_step(u, &m) == 0 &&
           all(c, t, want) == n && all(second, u, got) == n &&
           !memcmp(got, want, n * sizeof(*want)),
       "and training continues from there, to the bit");
    ddp_trainer_free(t);
    ddp_trainer_free(u);
    ddp_chain_free(c);
    ddp_chain_free(second);
}

/* ---- steps that are not applied ----------------------------------------- */

/* Steps of 16, 16 and 8 samples, the second of which has one that is infinite.
 * Averages trail behind: had it moved them, they would be nearer the weights.
 */
static void test_skip(ddp_t *ddp, const char *backend)
{
    int64_t bad = 20;
    ddp_dataset_t *d = samples(&bad);
    ddp_chain_t *c = net();
    ddp_trainer_t *t = ddp_trainer_new(
        ddp, c, d,
        &(struct ddp_train_config){TRAIN_DEFAULTS,
                                   .optimizer = ddp_momentum(0.1f, 0.9f),
                                   .sub_batch = 4, .batch = 16,
                                   .order = DDP_IN_ORDER, .ema_decay = DECAY});
    float w[MOST], before[MOST], after[MOST];
    struct ddp_metrics m;
    size_t n;

    if (!t || ddp_trainer_step(t, &m) < 0)
        bail_out("%s", ddp_errmsg());
    n = all(c, NULL, w);
    all(c, t, before);
    ok(!m.skipped && memcmp(before, w, n * sizeof(*w)) != 0 &&
           ddp_trainer_step(t, &m) == 0 && m.skipped && all(c, t, after) == n &&
           !memcmp(after, before, n * sizeof(*after)),
       "%s: a step that is not applied leaves averages as they are", backend);
    ok(ddp_trainer_step(t, &m) == 0 && !m.skipped && all(c, t, after) == n &&
           memcmp(after, before, n * sizeof(*after)) != 0,
       "%s: the next one moves them", backend);
    ddp_trainer_free(t);
    ddp_chain_free(c);
    ddp_dataset_free(d);
}

/* ---- checkpoints -------------------------------------------------------- */

static ddp_trainer_t *saving(ddp_t *ddp, ddp_chain_t *c, ddp_dataset_t *d,
                             const char *dir, double decay)
{
    return ddp_trainer_new(
        ddp, c, d,
        &(struct ddp_train_config){
            TRAIN_DEFAULTS, .optimizer = ddp_momentum(0.1f, 0.9f),
            .sub_batch = 4, .batch = 16, .lanes = 3, .steps = STEPS, .seed = 7,
            .checkpoint = {.dir = dir, .keep = 3}, .ema_decay = decay});
}

/* Resume in another trainer: the averages of the checkpoint, then those of the
 * run that was not cut. */
static void resume(ddp_t *ddp, ddp_dataset_t *d, const char *dir,
                   const float *cut, const float *whole)
{
    ddp_chain_t *c = net();
    ddp_trainer_t *t = saving(ddp, c, d, dir, DECAY);
    float got[MOST];
    size_t n;

    ok(t && ddp_trainer_resume(t, NULL, NULL) == 1 && (n = all(c, t, got)) &&
           !memcmp(got, cut, n * sizeof(*got)),
       "a checkpoint has the averages, to the bit");
    ok(t && ddp_trainer_train(t) == 0 && (n = all(c, t, got)) &&
           !memcmp(got, whole, n * sizeof(*got)),
       "and a run that resumes from it ends with those of a whole one");
    ddp_trainer_free(t);
    ddp_chain_free(c);
}

static void test_checkpoint(ddp_t *ddp, ddp_dataset_t *d)
{
    char dir[] = "/tmp/test_ema.XXXXXX", path[64];
    static const double other[] = {0, 0.5};
    float cut[MOST], whole[MOST], got[MOST];
    ddp_chain_t *c = net();
    ddp_trainer_t *t = trainer(ddp, c, d, DECAY);
    struct ddp_metrics m;
    bool good;

    if (!mkdtemp(dir) || !t || ddp_trainer_train(t) < 0)
        bail_out("%s", ddp_errmsg());
    all(c, t, whole);
    ddp_trainer_free(t);
    ddp_chain_free(c);

    c = net();
    good = (t = saving(ddp, c, d, dir, DECAY)) != NULL;
    for (int i = 0; i < STEPS / 2; i++)
        good = good && ddp_trainer_step(t, &m) == 0;
    all(c, t, cut);
    ok(good && ddp_trainer_checkpoint(t) == 0, "half a run is saved");
    ddp_trainer_free(t);
    snprintf(path, sizeof(path), "%s/latest/ema.safetensors", dir);
    ok(ddp_chain_load(c, path, NULL, NULL) == 0 &&
           !memcmp(got, cut, all(c, NULL, got) * sizeof(*got)),
       "its averages can be loaded as weights");
    for (int i = 0; i < 2; i++) {
        t = saving(ddp, c, d, dir, other[i]);
        ok(t && ddp_trainer_resume(t, NULL, NULL) == DDP_EINVAL &&
               strstr(ddp_errmsg(), "ema_decay is 0.8"),
           "with another decay it is another run: %s", ddp_errmsg());
        ddp_trainer_free(t);
    }
    ddp_chain_free(c);
    resume(ddp, d, dir, cut, whole);
    remove_tree(dir);
}

static void test_errors(ddp_t *ddp, ddp_dataset_t *d)
{
    ddp_chain_t *c = net();
    ddp_trainer_t *t = trainer(ddp, c, d, 0);
    struct ddp_metrics m;
    float w[4];

    ok(t && ddp_trainer_ema_get(t, "1.bias", w, 4) == DDP_EINVAL &&
           ddp_trainer_ema_set(t, "1.bias", w, 4) == DDP_EINVAL &&
           ddp_trainer_ema_save(t, "/tmp/none", NULL) == DDP_EINVAL &&
           ddp_trainer_evaluate_ema(t, d, &m) == DDP_EINVAL,
       "without ema_decay there are none: %s", ddp_errmsg());
    ddp_trainer_free(t);
    t = trainer(ddp, c, d, DECAY);
    ok(t && ddp_trainer_ema_get(t, "none", w, 4) == DDP_EINVAL &&
           ddp_trainer_ema_get(t, "1.bias", w, 3) == DDP_ESHAPE,
       "a name and a size must fit");
    ddp_trainer_free(t);
    ok(!trainer(ddp, c, d, 1) && !trainer(ddp, c, d, -0.5) &&
           !trainer(ddp, c, d, NAN) && ddp_errcode() == DDP_EINVAL,
       "decay is below 1: %s", ddp_errmsg());
    ddp_chain_free(c);
}

/* ---- the same bits ------------------------------------------------------ */

static void test_bits(ddp_dataset_t *d)
{
    static const char *const sched[] = {NULL, "eager", "lws"};
    static const char *const ncpu[] = {"1", "2", "2"};
    float e[3][MOST] = {{0}};
    uint32_t crc[4] = {0};
    size_t n = 0;

    for (int i = 0; i < 4; i++) { /* the last one without averages */
        ddp_chain_t *c = net();
        ddp_trainer_t *t;
        ddp_t *ddp;

        setenv("STARPU_NCPU", ncpu[i % 3], 1);
        if (sched[i % 3])
            setenv("STARPU_SCHED", sched[i % 3], 1);
        if (!(ddp = ddp_init(NULL)) ||
            !(t = trainer(ddp, c, d, i < 3 ? DECAY : 0)) ||
            ddp_trainer_train(t) < 0 || ddp_chain_checksum(c, &crc[i]) < 0)
            bail_out("%s", ddp_errmsg());
        if (i < 3)
            n = all(c, t, e[i]);
        ddp_trainer_free(t);
        ddp_chain_free(c);
        ddp_finish(ddp);
    }
    ok(n && !memcmp(e[0], e[1], sizeof(e[0])) &&
           !memcmp(e[0], e[2], sizeof(e[0])),
       "averages have the same bits on 1 and 2 workers, under 3 schedulers");
    ok(crc[0] == crc[1] && crc[0] == crc[3],
       "and change nothing about the weights");
}

int main(void)
{
    static const char *const backend[] = {"cpu", "ref"};
    ddp_dataset_t *d = samples(NULL);

    for (int i = 0; i < 2; i++) {
        ddp_t *ddp = ddp_init(
            &(struct ddp_config){START_DEFAULTS, .backend = backend[i]});

        if (!ddp)
            bail_out("%s", ddp_errmsg());
        test_values(ddp, d, backend[i]);
        test_skip(ddp, backend[i]);
        if (i == 0) {
            test_checkpoint(ddp, d);
            test_evaluation(ddp, d);
            test_resume(ddp, d);
            test_errors(ddp, d);
        }
        ddp_finish(ddp);
    }
    test_bits(d);
    ddp_dataset_free(d);
    return done_testing();
}
