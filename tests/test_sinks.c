/* test_sinks.c - who records a run hears of all of it, in order
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "defaults.h"
#include "tap.h"

enum { LEN = 6, WIDE = 300000, CLASSES = 3, COUNT = 20, BATCH = 8 };

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    (void)arg;
    (void)key;
    s->label = (int32_t)(index % CLASSES);
    for (int i = 0; i < LEN; i++)
        ((float *)s->x)[i] = (float)((index * 7 + i * 3) % 11) / 11;
    return 0;
}

/* ---- a sink ------------------------------------------------------------- */

/* Letters of what was heard, and the last values. */
struct heard {
    char events[64];
    int64_t begin, step, evaluated;
    struct ddp_metrics result;
    double loss, norm; /* norm: of the first step */
    int rc;
};

static void note(struct heard *h, char c)
{
    size_t n = strlen(h->events);

    if (n + 1 < sizeof(h->events))
        h->events[n] = c;
}

static void on_run(const ddp_trainer_t *t, void *arg)
{
    struct heard *h = arg;

    note(h, 'r');
    h->begin = ddp_trainer_steps(t);
}

static void on_step(const struct ddp_progress *p, void *arg)
{
    struct heard *h = arg;

    note(h, 's');
    h->step = p->step;
    h->loss = p->now.loss;
    if (p->step == 1)
        h->norm = p->gradient_norm;
}

static void on_eval(const struct ddp_evaluation *e, void *arg)
{
    struct heard *h = arg;

    note(h, e->averages ? 'a' : 'e');
    h->evaluated = e->step;
    h->result = e->result;
}

/* Its own failure must not hide that of the run. */
static void on_end(int rc, void *arg)
{
    struct heard *h = arg;

    note(h, 'x');
    h->rc = rc;
    ddp_chain_load(NULL, NULL, NULL, NULL);
}

static struct ddp_sink sink(struct heard *h)
{
    return (struct ddp_sink){.on_run = on_run,
                             .on_step = on_step,
                             .on_eval = on_eval,
                             .on_end = on_end,
                             .arg = h};
}

/* ---- runs --------------------------------------------------------------- */

struct run {
    ddp_t *ddp;
    ddp_dataset_t *data;
    ddp_chain_t *chain;
    ddp_trainer_t *trainer;
    double loss; /* of the step that the program heard of last */
    int64_t stop;
    float clip;
};

static int program(const struct ddp_progress *p, void *arg)
{
    struct run *r = arg;

    r->loss = p->now.loss;
    return p->step == r->stop;
}

static void begin(struct run *r, const struct ddp_sink *s, int n)
{
    struct ddp_train_config cfg = {
        TRAIN_DEFAULTS,     .optimizer = ddp_sgd(0.1f),
        .sub_batch = 4,     .batch = BATCH,
        .epochs = 2,        .ema_decay = 0.5,
        .on_step = program, .arg = r,
        .sinks = s,         .sink_count = n};

    cfg.optimizer.clip_norm = r->clip;
    r->data = ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                        .shape = {1, 1, LEN},
                                                        .type = DDP_F32,
                                                        .classes = CLASSES,
                                                        .get = get});
    r->chain = ddp_chain_new(ddp_dense_new(LEN, CLASSES, NULL), DDP_END);
    r->trainer = ddp_trainer_new(r->ddp, r->chain, r->data, &cfg);
}

static void end(struct run *r)
{
    ddp_trainer_free(r->trainer);
    ddp_chain_free(r->chain);
    ddp_dataset_free(r->data);
}

static void test_whole_run(struct run *r)
{
    struct heard h[2] = {{.rc = 1}, {.rc = 1}};
    struct ddp_metrics m;

    r->stop = -1;
    begin(r, (const struct ddp_sink[]){sink(&h[0]), {0}, sink(&h[1])}, 3);
    is_int(ddp_trainer_train(r->trainer), 0, "a run with three sinks");
    is_str(h[0].events, "rssssssx", "its events");
    is_str(h[1].events, h[0].events, "another sink hears the same");
    is_int(h[0].begin, 0, "it begins at step 0");
    is_int(h[0].step, 6, "and ends after step 6");
    is_int(h[0].rc, 0, "well");
    ok(h[0].loss == r->loss && r->loss > 0, "the program has the same loss");
    ddp_trainer_evaluate(r->trainer, r->data, &m);
    ok(!memcmp(&m, &h[1].result, sizeof(m)) && h[1].evaluated == 6,
       "an evaluation after it");
    ddp_trainer_evaluate_ema(r->trainer, r->data, &m);
    ok(!memcmp(&m, &h[1].result, sizeof(m)), "one of the averages");
    is_str(h[1].events, "rssssssxea", "the two are distinguished");
    end(r);
}

static void test_stopped_run(struct run *r)
{
    struct heard h = {.rc = 1};
    const struct ddp_sink s = sink(&h);

    r->stop = 2;
    begin(r, &s, 1);
    is_int(ddp_trainer_train(r->trainer), DDP_ESTOPPED,
           "a run that is stopped");
    is_int(h.rc, DDP_ESTOPPED, "the sink hears why");
    ok(strstr(ddp_errmsg(), "stopped after step"), "so does the program: %s",
       ddp_errmsg());
    r->stop = -1;
    is_int(ddp_trainer_train(r->trainer), 0, "it continues");
    ok(h.begin >= 2 && h.rc == 0, "the sink hears from where");
    end(r);
}

/* ---- what a step reports ------------------------------------------------ */

/* The norm of what a trainer says that the gradients of its next step are. */
static double norm_of_next(struct run *r)
{
    static const char *const name[] = {"0.weight", "0.bias"};
    static const size_t len[] = {LEN * CLASSES, CLASSES};
    float g[LEN * CLASSES];
    double sum = 0;

    if (ddp_trainer_gradients(r->trainer, NULL) < 0)
        return NAN;
    for (int k = 0; k < 2; k++) {
        if (ddp_trainer_get_gradient(r->trainer, name[k], g, len[k]) < 0)
            return NAN;
        for (size_t i = 0; i < len[k]; i++)
            sum += (double)g[i] * g[i];
    }
    return sqrt(sum);
}

/* Sums of gradients are f32: 24 bits, of at most 21 values. */
static void test_norm(struct run *r, float clip)
{
    struct heard h = {.rc = 1};
    const struct ddp_sink s = sink(&h);
    double want;

    r->stop = -1;
    r->clip = clip;
    begin(r, &s, 1);
    want = norm_of_next(r);
    end(r);
    begin(r, &s, 1);
    ddp_trainer_train(r->trainer);
    ok(fabs(h.norm - want) <= 1e-5 * want && want > 0,
       "the norm of the gradients, clipped at %g: %.9g, by themselves %.9g",
       (double)clip, h.norm, want);
    end(r);
    r->clip = 0;
}

struct facts {
    bool good;
    double most; /* of the busy shares: those of one step may all be 0 */
    double worked, part[DDP_STEP_PARTS]; /* seconds, of all steps */
};

static int check_facts(const struct ddp_progress *p, void *arg)
{
    struct facts *f = arg;

    for (int i = 0; i < p->workers; i++) {
        f->most = fmax(f->most, p->busy[i]);
        f->worked += p->busy[i] * p->step_seconds;
    }
    for (int k = 0; k < DDP_STEP_PARTS; k++)
        f->part[k] += p->part_seconds[k];
    f->good = f->good && p->workers > 0 && p->loss_scale == 1 &&
              p->memory_peak > 1 << 20;
    return 0;
}

/* The parts are all that workers did, but for the ends of steps, which compute
 * nothing but wake the program: of the network here, a small part. */
static void check_parts(const struct facts *f)
{
    double sum = 0;
    bool all = true;

    for (int k = 0; k < DDP_STEP_PARTS; k++) {
        sum += f->part[k];
        all = all && (k == DDP_PART_MERGE || f->part[k] > 0);
    }
    ok(all && sum <= f->worked * (1 + 1e-9) && sum > f->worked / 2,
       "parts of the steps: %.3g s of %.3g s", sum, f->worked);
}

static void test_facts(struct run *r)
{
    struct ddp_train_config cfg = {TRAIN_DEFAULTS, .optimizer = ddp_sgd(0.1f),
                                   .sub_batch = 4, .batch = BATCH,
                                   .epochs = 3,    .on_step = check_facts};
    struct facts f = {.good = true};
    char name[64];

    begin(r, NULL, 0);
    cfg.arg = &f;
    ddp_trainer_free(r->trainer);
    ddp_chain_free(r->chain);
    r->chain = ddp_chain_new(ddp_dense_new(LEN, WIDE, NULL),
                             ddp_dense_new(WIDE, CLASSES, NULL), DDP_END);
    r->trainer = ddp_trainer_new(r->ddp, r->chain, r->data, &cfg);
    ok(ddp_trainer_train(r->trainer) == 0 && f.good && f.most > 0,
       "a step reports workers, memory and the loss scale");
    check_parts(&f);
    end(r);
    ok(ddp_worker_name(r->ddp, 0, name, sizeof(name)) == 0 && *name,
       "the first worker has a name: %s", name);
    is_int(ddp_worker_name(r->ddp, 100000, name, sizeof(name)), DDP_EINVAL,
           "there are not so many");
}

static void test_misuse(struct run *r)
{
    begin(r, NULL, 1);
    ok(!r->trainer && strstr(ddp_errmsg(), "sinks is NULL, expected 1"),
       "no list: %s", ddp_errmsg());
    end(r);
    begin(r, NULL, -1);
    ok(!r->trainer && strstr(ddp_errmsg(), "sink_count is -1"), "minus one: %s",
       ddp_errmsg());
    end(r);
}

/* ---- event files -------------------------------------------------------- */

/* Protocol Buffers refuse text that is not UTF-8, and TensorBoard then the
 * whole folder. */
static void test_not_utf8(void)
{
    char top[] = "/tmp/ddp-test-sinks-XXXXXX", dir[64], file[] = "/*",
         data[512];
    ddp_log_t *log;
    size_t len = 0;
    glob_t found;
    FILE *f;

    if (!mkdtemp(top))
        bail_out("mkdtemp: %s", strerror(errno));
    snprintf(dir, sizeof(dir), "%s/tb", top);
    log = ddp_log_new(DDP_LOG_TENSORBOARD, dir);
    ok(ddp_log_set(log, "data", "/a\xff/b") == 0,
       "a setting that is not UTF-8, such as a path");
    ok(ddp_log_set(log, "da\xffta", "1") == DDP_EINVAL,
       "a name that is not is refused: %s", ddp_errmsg());
    ok(ddp_log_scalar(log, "v\xff", 1, 2) == DDP_EINVAL, "and so is a tag: %s",
       ddp_errmsg());
    ok(ddp_log_scalar(log, "v", 1, 2) == 0, "others follow");
    ddp_log_free(log);
    strcat(dir, file);
    if (glob(dir, 0, NULL, &found) == 0 &&
        (f = fopen(found.gl_pathv[0], "r"))) {
        len = fread(data, 1, sizeof(data), f);
        fclose(f);
        remove(found.gl_pathv[0]);
    }
    globfree(&found);
    ok(memmem(data, len, "/a?/b", 5) && !memmem(data, len, "/a\xff", 3),
       "the file has a question mark in place of the byte");
    dir[strlen(dir) - strlen(file)] = '\0';
    remove(dir);
    remove(top);
}

int main(void)
{
    struct run r = {.ddp = ddp_init(&(struct ddp_config){START_DEFAULTS})};

    if (!r.ddp)
        bail_out("%s", ddp_errmsg());
    test_whole_run(&r);
    test_stopped_run(&r);
    test_norm(&r, 0);
    test_norm(&r, 0.01f);
    test_facts(&r);
    test_misuse(&r);
    test_not_utf8();
    ddp_finish(r.ddp);
    return done_testing();
}
