/* test_strips.c - a layer of 17 MB: merged, checked and updated in strips
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One worker has no strips: what it computes is what several must.  Usual
 * layers are updated in strips too, so that no worker waits for the last
 * update.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "defaults.h"
#include "huge_loss.h"
#include "sanitized.h"
#include "scratch.h"
#include "tap.h"

/* The layer has 4,423,680 weights; strips begin at 4,194,304. */
enum { IN = 432, HIDDEN = 10240, CLASSES = 5, COUNT = 44 };

struct setting {
    const char *sched, *ncpu;
    struct ddp_optimizer optimizer;
    double ema;
    int bad; /* the sample that is not finite; -1: none */
    int hidden;
    int batch;           /* 0: 22 */
    enum ddp_dtype wire; /* of gradients between ranks, and so of sums */
    bool biases;         /* have a rate of their own */
    bool huge;           /* a sum overflows when it is rounded; bad is >= 0 */
    const char *trace;   /* of a step: a file, or NULL */
};

static int vector(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    const struct setting *of = arg;
    float *x = s->x;

    (void)key;
    s->label = (int32_t)(index % CLASSES);
    for (int i = 0; i < IN; i++)
        x[i] =
            (float)(ddp__philox(7, (uint64_t)index, (uint64_t)i).v[0] % 1000) /
            1000;
    if (index == of->bad && !of->huge) {
        x[0] = 3e38f; /* the loss is finite, its gradient is not */
        s->weight = 1000;
    }
    return 0;
}

/* Samples of the first and of the last lane, whose sums are merged last; that
 * of their bias alone is huge. */
static int huge_vector(void *arg, int64_t index, uint64_t key,
                       struct ddp_sample *s)
{
    vector(arg, index, key, s);
    s->label = index == 0 ? HUGE_FIRST : index == 16 ? HUGE_SECOND : 0;
    if (s->label)
        memset(s->x, 0, IN * sizeof(float));
    return 0;
}

struct result {
    uint32_t crc;
    double norms; /* sum over steps */
    struct ddp_skips skips;
};

static int add_norm(const struct ddp_progress *p, void *arg)
{
    struct result *r = arg;

    if (!p->why)
        r->norms += p->gradient_norm;
    return 0;
}

static ddp_chain_t *mlp(int hidden)
{
    return ddp_chain_new(ddp_dense_new(IN, hidden, NULL), ddp_relu_new(),
                         ddp_dense_new(hidden, CLASSES, NULL), DDP_END);
}

/* Four steps of 6 sub-batches in 5 lanes, or shorter ones. */
static struct result train_on(ddp_t *ddp, const struct setting *s)
{
    struct result r = {0};
    ddp_dataset_t *d = ddp_dataset_callback(&(struct ddp_source){
        .count = COUNT,
        .shape = {1, 1, IN},
        .type = DDP_F32,
        .classes = CLASSES,
        .get = s->huge ? huge_vector : vector,
        .arg = (void *)s,
    });
    const struct ddp_param_group biases = {"*.bias", 0.5f, -1};
    ddp_chain_t *c = mlp(s->hidden);
    ddp_trainer_t *t = ddp_trainer_new(
        ddp, c, d,
        &(struct ddp_train_config){
            TRAIN_DEFAULTS, .optimizer = s->optimizer, .sub_batch = 4,
            .batch = s->batch ? s->batch : 22, .lanes = 5, .wire = s->wire,
            .loss = s->huge ? DDP_CUSTOM_LOSS : DDP_LOGIT_CROSS_ENTROPY,
            .loss_fn = huge_loss, .order = s->huge ? DDP_IN_ORDER : 0,
            .epochs = 2, .seed = 3, .ema_decay = s->ema, .on_step = add_norm,
            .arg = &r, .groups = s->biases ? &biases : NULL,
            .group_count = s->biases, .trace = s->trace, .trace_first = 1});

    if (!t || ddp_trainer_train(t) < 0 || ddp_trainer_skips(t, &r.skips) < 0 ||
        ddp_chain_checksum(c, &r.crc) < 0)
        diag("%s", ddp_errmsg());
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
    return r;
}

static struct result train(const struct setting *s)
{
    struct result r = {0};
    ddp_t *ddp;

    setenv("STARPU_SCHED", s->sched, 1);
    setenv("STARPU_NCPU", s->ncpu, 1);
    if (!(ddp = ddp_init(NULL))) {
        diag("%s", ddp_errmsg());
        return r;
    }
    r = train_on(ddp, s);
    ddp_finish(ddp);
    return r;
}

/* ---- same bits ---------------------------------------------------------- */

static void test_same(const char *what, struct setting s)
{
    static const char *const sched[] = {"ddp", "random", "dmdas", "eager"};
    size_t policies = SANITIZED_ADDRESSES ? 1 : sizeof(sched) / sizeof(*sched);
    struct result one, two;

    s.sched = "ddp";
    s.ncpu = "1";
    one = train(&s);
    s.ncpu = "3";
    for (size_t i = 0; i < policies; i++) {
        s.sched = sched[i];
        two = train(&s);
        ok(one.crc != 0 && two.crc == one.crc,
           "%s, three workers, %s: crc32c %08x, one worker's is %08x", what,
           sched[i], two.crc, one.crc);
        ok(two.norms > 0 && two.norms == one.norms,
           "and the same norms: %.9g, %.9g", two.norms, one.norms);
        ok(two.skips.steps == one.skips.steps &&
               (one.skips.steps > 0) == (s.bad >= 0),
           "and skipped steps: %d", (int)two.skips.steps);
    }
    if (s.bad >= 0)
        ok(strncmp(one.skips.why, two.skips.why, strcspn(one.skips.why, ",")) ==
               0,
           "for the same reason: %s; %s", two.skips.why, one.skips.why);
}

/* Its step has the length of the gradient, which a part does not know. */
static void own_rule(const struct ddp_update *u, void *arg)
{
    double norm = 0;

    (void)arg;
    for (size_t i = 0; i < u->len; i++)
        norm += (double)u->g[i] * (double)u->g[i];
    for (size_t i = 0; i < u->len; i++)
        u->w[i] -= u->lr * u->g[i] * (float)sqrt(norm);
}

/* ---- no worker waits ---------------------------------------------------- */

/* Updates of a bucket in the traced step: by tasks of their own. */
static int count_updates(const char *path, int bucket)
{
    static char line[1 << 20];
    char name[32];
    FILE *f = fopen(path, "r");
    int n = 0;

    snprintf(name, sizeof(name), "\"bucket\":%d,", bucket);
    while (f && fgets(line, sizeof(line), f))
        n += strstr(line, "\"optim\"") && strstr(line, name);
    if (f)
        fclose(f);
    return n;
}

/* Of a layer of 442,368 weights, which is in the last bucket: the others are
 * updated by then, so without strips two of three workers would wait. */
static void test_spread(struct setting s)
{
    struct result one, two;

    s.hidden = 1024;
    s.trace = at("one.json");
    s.ncpu = "1";
    one = train(&s);
    s.trace = at("three.json");
    s.ncpu = "3";
    two = train(&s);
    ok(one.crc != 0 && one.crc == two.crc, "a usual layer: same bits");
    ok(one.norms > 0 && one.norms == two.norms, "and norms");
    is_int(count_updates(at("one.json"), 1), 1, "one worker updates it whole");
    ok(count_updates(at("three.json"), 1) >= 3,
       "each of three workers can update a part of it: %d parts",
       count_updates(at("three.json"), 1));
}

/* Layers of usual size are checked by the task that merges them last, if any
 * does, and if it does not round them afterwards. */
static void test_usual(struct setting s)
{
    s.hidden = 1024;
    s.bad = 30;
    test_same("a usual layer that is not finite", s);
    s.wire = DDP_BF16;
    test_same("rounded to bf16", s);
    s.huge = true;
    test_same("rounded to bf16, which cannot hold it", s);
    s.huge = false;
    s.wire = DDP_F32;
    s.batch = 4;
    test_same("with a sub-batch a step", s);
}

int main(void)
{
    struct setting s = {.optimizer = ddp_momentum(0.01f, 0.9f),
                        .bad = -1,
                        .hidden = HIDDEN,
                        .sched = "ddp"};

    scratch_make();
    test_spread(s);
    s.optimizer.clip_norm = 0.5f;
    test_spread(s);
    s.optimizer.clip_norm = 0;
    s.biases = true;
    test_same("biases with a rate of their own", s);
    s.biases = false;

    s.optimizer.weight_decay = 1e-3f;
    test_same("momentum", s);
    test_usual(s);
    s.ema = 0.9;
    test_same("momentum and averages", s);
    s.ema = 0;
    s.bad = 30;
    test_same("a sample that is not finite", s);
    s.bad = -1;
    s.optimizer.clip_norm = 0.5f;
    test_same("clipped by the norm", s);
    s.optimizer = ddp_adamw(1e-3f, 0.01f);
    test_same("AdamW", s);
    s.optimizer.kind = DDP_LAMB;
    test_same("LAMB, updates of whole layers", s);
    s.optimizer = (struct ddp_optimizer){
        .kind = DDP_CUSTOM_OPTIMIZER, .lr = 0.01f, .update = own_rule};
    test_same("a program's own optimizer, likewise", s);
    return done_testing();
}
