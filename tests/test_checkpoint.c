/* test_checkpoint.c - a run that resumes from a checkpoint is the same run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The oracle is the run that nothing interrupted: the CRC of its weights, the
 * bytes of its optimizer's state, its metrics, to the bit.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/crc32c.h"
#include "base/philox.h"
#include "checkpoint/writer.h"
#include "crash.h"
#include "graph/graph.h"
#include "runtime/context.h"
#include "runtime/lost.h"
#include "defaults.h"
#include "tap.h"
#include "train/trainer.h"

/* Three steps an epoch, the last one smaller; twelve in all. */
enum { SIZE = 6, CLASSES = 3, COUNT = 20, BATCH = 8, EPOCHS = 4, STEPS = 12 };

static ddp_t *ddp;
static char top[64], dir[96], copies[96];

/* ---- a small run -------------------------------------------------------- */

static int fail_input; /* the n-th sample read from now fails; 0: none */

static int image(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    if (fail_input > 0 && --fail_input == 0)
        return DDP_EIO;
    s->label = (int32_t)(index % CLASSES);
    for (int i = 0; i < SIZE * SIZE; i++) {
        struct ddp__philox r = ddp__philox(key, (uint64_t)index, (uint64_t)i);

        x[i] = ddp__uniform(r.v[0]) + (i % CLASSES == s->label);
    }
    return 0;
}

static ddp_dataset_t *images(int64_t count)
{
    return ddp_dataset_callback(&(struct ddp_source){
        .count = count,
        .shape = {SIZE, SIZE, 1},
        .type = DDP_F32,
        .classes = CLASSES,
        .get = image,
    });
}

/* A custom layer that returns its input, under an option. */
struct custom {
    ddp_layer_t layer;
    double degree;
};

static int custom_shape(const ddp_layer_t *l, struct ddp_shape x,
                        struct ddp_shape *y)
{
    (void)l;
    *y = x;
    return 0;
}

enum {
    COPIES = 2
}; /* of degree: a kernel that copies, on a worker that dies */

static int until_death; /* the n-th copy from now; 0: none */
static int until_loss;  /* of a device that is not there */
static int dead = -1;   /* the worker on which it and all later ones fail */

static int copy(const struct ddp_kernel_args *a)
{
    struct ddp_shape s = a->buf[0].shape;

    if (until_loss > 0 && --until_loss == 0)
        ddp__lost_note("a_copy", 214, false);
    if (until_death > 0 && --until_death == 0)
        dead = starpu_worker_get_id();
    if (starpu_worker_get_id() == dead)
        return 1;
    memcpy(a->buf[1].data, a->buf[0].data,
           sizeof(float) * (size_t)(a->n * s.h * s.w * s.c));
    return 0;
}

static ddp_value_t *custom_forward(ddp_layer_t *l, ddp_graph_t *g,
                                   ddp_value_t *x)
{
    static const struct ddp_kernel kernel = {"copy", {[DDP_CPU] = copy}};
    struct ddp_record r = {.layer = l, .x = x, .y = x};

    if (((struct custom *)l)->degree != COPIES)
        return x;
    r.y = ddp_graph_value(g, ddp_value_shape(x), ddp_value_type(x));
    ddp_graph_call(g, &kernel, NULL, 2, (ddp_value_t *[]){x, r.y},
                   (enum ddp_access[]){DDP_READ, DDP_WRITE});
    return ddp_graph_record(g, &r);
}

static ddp_value_t *custom_backward(ddp_layer_t *l, ddp_graph_t *g,
                                    const struct ddp_record *r, ddp_value_t *dy)
{
    (void)l;
    (void)g;
    (void)r;
    return dy;
}

static int custom_options(const ddp_layer_t *l,
                          struct ddp_option o[DDP_MAX_OPTIONS])
{
    o[0] =
        (struct ddp_option){"degree", ((const struct custom *)l)->degree, NULL};
    return 1;
}

static ddp_layer_t *custom_new(double degree)
{
    static const struct ddp_layer_ops ops = {
        .kind = "custom",
        .shape = custom_shape,
        .forward = custom_forward,
        .backward = custom_backward,
        .options = custom_options,
    };
    ddp_layer_t *l = ddp_layer_new(sizeof(struct custom), &ops);

    if (l)
        ((struct custom *)l)->degree = degree;
    return l;
}

/* What may differ from network to network without another shape. */
struct variant {
    int width;
    float eps, dropout;
    enum ddp_act act;
    double degree;
    bool extra; /* one more activation at the end */
};

static ddp_chain_t *network(const struct variant *v)
{
    ddp_chain_t *c =
        ddp_chain_new(ddp_conv_new(1, v->width, 3, NULL),
                      ddp_batch_norm_new(v->width,
                                         &(struct ddp_batch_norm_options){
                                             NORM_DEFAULTS, .eps = v->eps}),
                      ddp_act_new(v->act), custom_new(v->degree),
                      ddp_global_mean_pool_new(), ddp_dropout_new(v->dropout),
                      ddp_dense_new(v->width, CLASSES, NULL), DDP_END);

    if (v->extra)
        ddp_chain_add(c, ddp_tanh_new());
    return c;
}

/* A trainer and what it was made of. */
struct run {
    ddp_dataset_t *data;
    ddp_chain_t *chain;
    ddp_trainer_t *trainer;
    struct ddp_train_config cfg;
    int64_t count;
    int64_t eval_count; /* samples that it evaluates on; 0: the program's
                           business */
    ddp_dataset_t *eval_data;
    struct variant network;
    int64_t stop_at;     /* on_step stops after it; 0: never */
    int64_t ask_at;      /* on_step asks for a checkpoint */
    bool evaluates;      /* after every epoch */
    int epochs_reported; /* calls of on_epoch */
    double epoch_loss;   /* of the last one */
};

static int on_step(const struct ddp_progress *p, void *arg)
{
    struct run *r = arg;

    if (p->step == r->ask_at && ddp_trainer_checkpoint(r->trainer) < 0)
        return 1;
    return r->stop_at && p->step >= r->stop_at;
}

static int on_epoch(const struct ddp_progress *p, void *arg)
{
    struct run *r = arg;
    struct ddp_metrics m;

    r->epochs_reported++;
    r->epoch_loss = p->epoch_mean.loss;
    return r->evaluates && ddp_trainer_evaluate(r->trainer, r->data, &m) < 0;
}

static struct run usual(void)
{
    return (struct run){
        .count = COUNT,
        .network = {.width = 4,
                    .eps = 1e-5f,
                    .dropout = 0.2f,
                    .act = DDP_RELU,
                    .degree = 1},
        .cfg =
            {
                TRAIN_DEFAULTS,
                .optimizer = ddp_momentum(0.1f, 0.9f),
                .schedule = {.kind = DDP_COSINE},
                .batch = BATCH,
                .sub_batch = 2,
                .lanes = 2,
                .epochs = EPOCHS,
                .seed = 5,
                .on_step = on_step,
                .on_epoch = on_epoch,
            },
    };
}

static bool begin(struct run *r)
{
    r->data = images(r->count);
    r->chain = network(&r->network);
    r->eval_data = r->eval_count ? images(r->eval_count) : NULL;
    r->cfg.eval_data = r->eval_data;
    r->cfg.arg = r;
    r->trainer = ddp_trainer_new(ddp, r->chain, r->data, &r->cfg);
    return r->trainer;
}

static uint32_t checksum(const struct run *r)
{
    uint32_t crc = 0;

    if (ddp_chain_checksum(r->chain, &crc) < 0)
        diag("%s", ddp_errmsg());
    return crc;
}

static void end(struct run *r)
{
    ddp_trainer_free(r->trainer);
    ddp_dataset_free(r->data);
    ddp_dataset_free(r->eval_data);
    ddp_chain_free(r->chain);
}

/* Train a run to its end and return the checksum; 0 after a failure. */
static uint32_t finish(struct run *r)
{
    int rc = ddp_trainer_train(r->trainer);
    uint32_t crc = rc < 0 ? 0 : checksum(r);

    if (rc < 0)
        diag("%s", ddp_errmsg());
    end(r);
    return crc;
}

/* What the run ends with when nothing happens to it. */
static uint32_t undisturbed(struct run r)
{
    r.cfg.checkpoint.dir = NULL;
    r.stop_at = r.ask_at = 0;
    return begin(&r) ? finish(&r) : 0;
}

/* Resume from the folder, or start again; the checksum at the end. */
static uint32_t resume(struct run r, struct ddp_checkpoint *c)
{
    r.stop_at = r.ask_at = 0;
    if (!begin(&r) || ddp_trainer_resume(r.trainer, NULL, c) < 0) {
        diag("%s", ddp_errmsg());
        end(&r);
        return 0;
    }
    return finish(&r);
}

/* ---- files -------------------------------------------------------------- */

static void shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *fmt, ...)
{
    char cmd[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(cmd, sizeof(cmd), fmt, ap);
    va_end(ap);
    if (system(cmd) != 0)
        diag("%s: failed", cmd);
}

static void clean(void)
{
    shell("rm -rf '%s' '%s'", dir, copies);
}

static bool there(const char *name)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

static const char *step_path(int64_t step, const char *file)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/step-%012lld/%s", dir, (long long)step,
             file);
    return path;
}

/* Whether there is an incomplete checkpoint. */
static bool has_leftovers(void)
{
    char command[256];

    snprintf(command, sizeof(command), "ls -A '%s' | grep -q '^[.]tmp'", dir);
    return system(command) == 0;
}

/* Change the last byte of a file: of a number, where it has tensors. */
static void spoil(const char *path)
{
    int fd = open(path, O_RDWR);
    struct stat st;
    char byte;

    if (fd < 0 || fstat(fd, &st) < 0 ||
        pread(fd, &byte, 1, st.st_size - 1) != 1)
        diag("%s: cannot be spoilt", path);
    byte = (char)(byte ^ 1);
    if (pwrite(fd, &byte, 1, st.st_size - 1) != 1)
        diag("%s: cannot be spoilt", path);
    close(fd);
}

/* ---- resuming ----------------------------------------------------------- */

/* Stopped at the given steps, one run each. */
static void test_bits(struct ddp_optimizer o, const char *name, int stops,
                      const int *at)
{
    struct run r = usual();
    struct ddp_checkpoint c;
    uint32_t want;

    r.cfg.optimizer = o;
    want = undisturbed(r);
    r.cfg.checkpoint.dir = dir;
    for (int i = 0; i < stops; i++) {
        struct run cut = r;

        clean();
        cut.stop_at = at[i];
        ok(begin(&cut) && ddp_trainer_train(cut.trainer) == DDP_ESTOPPED &&
               ddp_trainer_checkpoint(cut.trainer) == 0,
           "%s: stopped at step %d, with a checkpoint", name, at[i]);
        end(&cut);
        is_int(resume(r, &c), want, "%s: the weights are those of one run",
               name);
        ok(c.step >= at[i] && c.step < STEPS, "%s: it resumed from step %d",
           name, (int)c.step);
    }
}

/* A third state; a product over all steps, which the step number must give. */
static void test_adam_variants(void)
{
    struct ddp_optimizer o = ddp_adam(0.01f);
    const int stop = 5;

    o.kind = DDP_AMSGRAD;
    test_bits(o, "amsgrad", 1, &stop);
    o.kind = DDP_NADAM;
    test_bits(o, "nadam", 1, &stop);
    o.lookahead = 4;
    o.clip_unit = 0.02f;
    test_bits(o, "nadam, lookahead, outputs clipped", 1, &stop);
}

/* Byte by byte: state of the optimizer, and the metrics of the epoch. */
static void test_state(void)
{
    struct run whole = usual(), part = usual();
    char once[512];

    clean();
    whole.cfg.checkpoint.dir = part.cfg.checkpoint.dir = dir;
    begin(&whole);
    ddp_trainer_train(whole.trainer);
    end(&whole);
    snprintf(once, sizeof(once), "%s/once", top);
    shell("rm -rf '%s'; mv '%s' '%s'", once, dir, once);
    part.stop_at = 7;
    begin(&part);
    ddp_trainer_train(part.trainer);
    ddp_trainer_checkpoint(part.trainer);
    end(&part);
    part.stop_at = 0;
    begin(&part);
    is_int(ddp_trainer_resume(part.trainer, NULL, NULL), 1, "it resumes");
    is_int(ddp_trainer_resume(part.trainer, NULL, NULL), DDP_EINVAL,
           "a trainer under way cannot resume from elsewhere");
    ddp_trainer_train(part.trainer);
    is_int(part.epochs_reported, EPOCHS, "each epoch is reported once");
    ok(part.epoch_loss == whole.epoch_loss,
       "the mean of an epoch has the steps before and after");
    end(&part);
    for (int i = 0; i < 2; i++) {
        const char *file = i ? "optim.safetensors" : "model.safetensors";
        char cmd[1200];

        snprintf(cmd, sizeof(cmd), "cmp -s '%s/latest/%s' '%s/latest/%s'", dir,
                 file, once, file);
        is_int(system(cmd), 0, "the same bytes in %s", file);
    }
    shell("rm -rf '%s'", once);
}

/* A stop between the last step of an epoch and its callback. */
static void test_epoch_told_once(void)
{
    struct run r = usual();

    clean();
    r.cfg.checkpoint.dir = dir;
    r.stop_at = 6;
    begin(&r);
    is_int(ddp_trainer_train(r.trainer), DDP_ESTOPPED,
           "stopped as an epoch ends");
    is_int(r.epochs_reported, 1, "its callback was not called");
    ddp_trainer_checkpoint(r.trainer);
    end(&r);
    r.stop_at = 0;
    r.epochs_reported = 0;
    begin(&r);
    ddp_trainer_resume(r.trainer, NULL, NULL);
    finish(&r);
    is_int(r.epochs_reported, 3, "it is called when the run resumes");
}

static void test_own_loop(void)
{
    struct run r = usual();
    uint32_t want = undisturbed(r);
    struct ddp_checkpoint c;

    clean();
    r.cfg.checkpoint.dir = dir;
    begin(&r);
    for (int i = 0; i < 4; i++)
        ddp_trainer_step(r.trainer, NULL);
    is_int(ddp_trainer_checkpoint(r.trainer), 0, "a checkpoint in one's loop");
    end(&r);
    is_int(resume(r, &c), want, "ddp_trainer_train() continues from it");
    is_int(c.step, 4, "from the step submitted last");
}

/* ---- which there are ---------------------------------------------------- */

static void test_kept(void)
{
    struct run r = usual();
    uint32_t want = undisturbed(r);
    struct ddp_checkpoint c;

    clean();
    r.cfg.checkpoint =
        (struct ddp_checkpoint_config){.dir = dir, .steps = 1, .keep = 2};
    begin(&r);
    is_int(finish(&r), want, "checkpoints change no weight");
    ok(there("step-000000000011") && there("step-000000000012") &&
           !there("step-000000000010"),
       "the newest are kept");
    ok(there("latest/model.safetensors") && !there("best"),
       "latest leads to one of them; nothing was evaluated");
    clean();
    r.cfg.checkpoint.keep_epochs = 2;
    r.cfg.checkpoint.steps = 0;
    r.evaluates = true;
    begin(&r);
    finish(&r);
    ok(there("step-000000000006") && there("step-000000000012"),
       "those of every other epoch are kept");
    ok(there("best/model.safetensors"), "best leads to the best one");
    begin(&r);
    is_int(ddp_trainer_resume(r.trainer, NULL, &c), 1, "a run that is over");
    ok(c.step == STEPS && c.best > 0 && c.best % 3 == 0 &&
           c.evaluated == STEPS && c.evaluation.samples == COUNT &&
           c.best_evaluation.top1 >= c.evaluation.top1,
       "remembers its evaluations");
    is_int(finish(&r), want, "and has nothing left to do");
    begin(&r);
    is_int(ddp_trainer_train(r.trainer), DDP_EINVAL,
           "another run is not mixed in");
    end(&r);
    clean();
    r = usual();
    r.cfg.checkpoint.dir = dir;
    r.ask_at = 5;
    begin(&r);
    is_int(finish(&r), want, "a callback may ask for one");
    ok(there("step-000000000006") || there("step-000000000005"),
       "it is of the steps under way then");
}

/* ---- other runs --------------------------------------------------------- */

static void refused(struct run r, const char *difference)
{
    uint32_t before;

    r.stop_at = 0;
    begin(&r);
    before = checksum(&r);
    is_int(ddp_trainer_resume(r.trainer, NULL, NULL), DDP_EINVAL,
           "another run is refused");
    ok(strstr(ddp_errmsg(), dir) && strstr(ddp_errmsg(), difference),
       "by \"%s\": %s", difference, ddp_errmsg());
    is_int(checksum(&r), before, "the weights are as they were");
    end(&r);
}

/* A run that is stopped, with a checkpoint of so many steps. */
static void stop_after(struct run r, int steps)
{
    clean();
    r.cfg.checkpoint.dir = dir;
    begin(&r);
    for (int i = 0; i < steps; i++)
        ddp_trainer_step(r.trainer, NULL);
    is_int(ddp_trainer_checkpoint(r.trainer), 0, "a checkpoint of step %d",
           steps);
    end(&r);
}

static void test_other_settings(void)
{
    struct run r = usual(), other;

    stop_after(r, 4);
    r.cfg.checkpoint.dir = dir;
    other = r;
    other.cfg.lanes = 4;
    refused(other, "lanes is 2, in this run 4");
    other = r;
    other.cfg.sub_batch = 4;
    refused(other, "sub_batch is 2, in this run 4");
    other = r;
    other.cfg.batch = 10;
    refused(other, "batch is 8, in this run 10");
    other = r;
    other.cfg.seed = UINT64_MAX;
    refused(other, "seed is 5, in this run 18446744073709551615");
    other = r;
    other.cfg.order = DDP_IN_ORDER;
    refused(other, "order is shuffle, in this run in_order");
    other = r;
    other.count = 21;
    refused(other, "data.samples is 20, in this run 21");
    other = r;
    other.cfg.optimizer = ddp_adam(0.1f);
    refused(other, "optimizer.kind is momentum, in this run adam");
    other = r;
    other.cfg.optimizer.decay_all = true;
    refused(other, "optimizer.decay_all is false, in this run true");
    other = r;
    other.cfg.optimizer.lr = 0.10000001f; /* the next float after 0.1f */
    refused(other,
            "optimizer.lr is 0.10000000149011612, in this run 0.1000000");
    other = r;
    other.cfg.schedule.kind = DDP_LINEAR;
    refused(other, "schedule.kind is cosine, in this run linear");
    other = r;
    other.cfg.epochs = 5;
    refused(other, "schedule.steps is 12, in this run 15");
    other = r;
    other.cfg.ema_decay = 0.9;
    refused(other, "ema_decay is 0, in this run 0.9");
}

/* All but the first leave every shape as it is. */
static void test_other_network(void)
{
    struct run r = usual(), other;

    stop_after(r, 4);
    r.cfg.checkpoint.dir = dir;
    other = r;
    other.network.width = 5;
    refused(other, "layer 0 (conv): 0.weight is [4, 1, 3, 3], in this run "
                   "[5, 1, 3, 3]");
    other = r;
    other.network.eps = 1e-3f;
    refused(other, "layer 1 (batch_norm): eps is 1e-05, in this run 0.001");
    other = r;
    other.network.act = DDP_SILU;
    refused(other, "layer 2 (activation): function is relu, in this run silu");
    other = r;
    other.network.degree = 2;
    refused(other, "layer 3 (custom): degree is 1, in this run 2");
    other = r;
    other.network.dropout = 0.3f;
    refused(other, "layer 5 (dropout): p is 0.2, in this run 0.3");
    other = r;
    other.network.extra = true;
    refused(other,
            "layer 7 (activation): kind is absent, in this run activation");
}

/* ---- trainer.json, by hand ---------------------------------------------- */

static json_t *load_json(const char *path)
{
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);

    if (!json)
        bail_out("%s: line %d: %s", path, error.line, error.text);
    return json;
}

/* Replace a checkpoint's state and its entry of the manifest. */
static void store_state(int64_t step, const json_t *state)
{
    char *text = json_dumps(state, JSON_INDENT(2)), crc[16];
    json_t *manifest = load_json(step_path(step, "MANIFEST.json"));
    json_t *files = json_object_get(manifest, "files");

    snprintf(crc, sizeof(crc), "%08x", ddp__crc32c(0, text, strlen(text)));
    json_object_set_new(files, "trainer.json",
                        json_pack("{s:I, s:s}", "size",
                                  (json_int_t)strlen(text), "crc32c", crc));
    json_dump_file(manifest, step_path(step, "MANIFEST.json"), 0);
    json_dump_file(state, step_path(step, "trainer.json"), JSON_INDENT(2));
    json_decref(manifest);
    free(text);
}

/* The state that an earlier build wrote is one that this build writes, and
 * resumes from.  When this test fails, checkpoints of released versions cannot
 * be used any more: read both formats, or increase FORMAT in
 * lib/checkpoint/state.c, mention it in the notes, and store the new state
 * here. */
static void test_stored_state(void)
{
    struct run r = usual();
    uint32_t want = undisturbed(r);
    struct ddp_checkpoint c;
    json_t *stored, *now;
    char path[512];
    const char *key;
    json_t *value;

    stop_after(r, 4);
    snprintf(path, sizeof(path), "%s/tests/checkpoint_format_2.json",
             getenv("srcdir") ? getenv("srcdir") : ".");
    stored = load_json(path);
    now = load_json(step_path(4, "trainer.json"));
    json_object_foreach(stored, key, value)
    {
        ok(json_object_get(now, key), "trainer.json has '%s'", key);
    }
    is_int((long)json_object_size(now), (long)json_object_size(stored),
           "and nothing else");
    ok(json_equal(json_object_get(now, "settings"),
                  json_object_get(stored, "settings")),
       "the settings are described as ever");
    ok(json_equal(json_object_get(now, "network"),
                  json_object_get(stored, "network")),
       "so is the network");
    store_state(4, stored);
    r.cfg.checkpoint.dir = dir;
    is_int(resume(r, &c), want, "a run resumes from the stored state");
    is_int(c.step, 4, "at its step");
    ok(strstr(c.notice, "ran on a device of the past, ") &&
           strstr(c.notice, "bits may differ"),
       "that other devices wrote it is reported: %s", c.notice);
    json_decref(stored);
    json_decref(now);
}

static void test_other_format(void)
{
    struct run r = usual();
    json_t *state;

    stop_after(r, 4);
    state = load_json(step_path(4, "trainer.json"));
    json_object_set_new(state, "format", json_integer(1));
    json_object_set_new(state, "library", json_string("libddp 0.0.9"));
    store_state(4, state);
    r.cfg.checkpoint.dir = dir;
    refused(r, "has format 1, which this version (format 2) does not read: "
               "resume with the version that wrote it (libddp 0.0.9), ");
    json_object_set_new(state, "format", json_integer(2));
    json_object_del(state, "best_evaluation");
    store_state(4, state);
    begin(&r);
    ok(ddp_trainer_resume(r.trainer, NULL, NULL) == DDP_EDATA &&
           strstr(ddp_errmsg(), "missing or invalid field 'best_evaluation'"),
       "a state that lacks a field: %s", ddp_errmsg());
    end(&r);
    json_decref(state);
}

/* Change one number of a checkpoint's state. */
static void refuse_number(const char *object, const char *name, json_t *value,
                          const char *why)
{
    json_t *state = load_json(step_path(4, "trainer.json"));
    json_t *o = object ? json_object_get(state, object) : state;
    json_t *good = json_deep_copy(state);
    struct run r = usual();

    json_object_set_new(o, name, value);
    store_state(4, state);
    r.cfg.checkpoint.dir = dir;
    begin(&r);
    ok(ddp_trainer_resume(r.trainer, NULL, NULL) == DDP_EDATA &&
           strstr(ddp_errmsg(), why),
       "%s is refused: %s", name, ddp_errmsg());
    end(&r);
    store_state(4, good);
    json_decref(good);
    json_decref(state);
}

static void test_bad_numbers(void)
{
    struct run r = usual();
    uint32_t want = undisturbed(r);
    struct ddp_checkpoint c;

    stop_after(r, 4);
    refuse_number(NULL, "seconds", json_null(), "invalid field 'seconds'");
    refuse_number(NULL, "seconds", json_integer(-1), "invalid field 'seconds'");
    refuse_number(NULL, "changes", json_true(), "invalid field 'changes'");
    refuse_number(NULL, "on_epoch_step", json_integer(INT64_MAX),
                  "invalid field 'on_epoch_step'");
    refuse_number("loss_scaler", "loss_scale", json_integer(0),
                  "the loss scale is 0, expected a finite number above 0");
    refuse_number("loss_scaler", "updates", json_integer(-1),
                  "a count of steps is -1");
    r.cfg.checkpoint.dir = dir;
    is_int(resume(r, &c), want, "the numbers before are resumed from");
}

/* ---- other devices ------------------------------------------------------ */

/* Channels that the images of a run have when they go into its network. */
static int image_channels(const struct run *r)
{
    const ddp_graph_t *g = r->trainer->engine->graph;

    for (int i = 0; i < g->nodes; i++)
        if (g->node[i]->call.op == DDP__OP_INPUT_F32)
            return g->node[i]->buf[1]->shape.c;
    return 0;
}

/* On GPUs images of f16 get eight channels; ref, which computes the same bits
 * then, has CPUs do as GPUs. */
static void test_widened(void)
{
    struct run r = usual(), cut;
    struct ddp_checkpoint c;
    uint32_t want;

    r.cfg.dtype = DDP_F16;
    want = undisturbed(r);
    for (int i = 0; i < 2; i++) {
        cut = r;
        clean();
        cut.cfg.checkpoint.dir = dir;
        ddp->channels = i ? 0 : 8;
        begin(&cut);
        is_int(image_channels(&cut), i ? 1 : 8, "images as %s have them",
               i ? "CPUs" : "GPUs");
        for (int s = 0; s < 5; s++)
            ddp_trainer_step(cut.trainer, NULL);
        is_int(ddp_trainer_checkpoint(cut.trainer), 0, "a checkpoint");
        end(&cut);
        ddp->channels = i ? 8 : 0;
        cut.stop_at = 0;
        is_int(resume(cut, &c), want, "resumed with the others: the same bits");
        ok(c.step == 5 && !*c.notice, "at step 5, without a notice: %s",
           c.notice);
    }
    ddp->channels = 0;
}

/* Where the schedule does not span the run, the run may become longer. */
static void test_longer(void)
{
    struct run r = usual(), more;
    struct ddp_checkpoint c;

    clean();
    r.cfg.schedule.kind = DDP_CONSTANT;
    more = r;
    more.cfg.epochs = EPOCHS + 2;
    r.cfg.checkpoint.dir = dir;
    begin(&r);
    finish(&r);
    r.cfg.epochs = EPOCHS + 2;
    is_int(resume(r, &c), undisturbed(more), "a run that is made longer");
    is_int(c.step, STEPS, "continues where it ended");
}

/* ---- changed knowingly -------------------------------------------------- */

/* Resume from `from` with these changes; the code. */
static int change(const struct run *r, const char *from, const char *changed,
                  struct ddp_checkpoint *c)
{
    return ddp_trainer_resume_with(
        r->trainer, from,
        &(struct ddp_resume_options){RESUME_DEFAULTS, .changed = changed}, c);
}

/* The rate is halved after step 4: exactly, so that it does not matter where
 * the factor is. */
static double halved(int64_t step, double epoch, double epochs, void *arg)
{
    (void)epoch;
    (void)epochs;
    (void)arg;
    return step < 4 ? 1 : 0.5;
}

static void test_changed_rate(void)
{
    struct run r = usual(), custom = usual();
    struct ddp_checkpoint c;
    uint32_t want;

    custom.cfg.schedule =
        (struct ddp_schedule){.kind = DDP_CUSTOM_SCHEDULE, .fn = halved};
    want = undisturbed(custom);
    r.cfg.schedule.kind = DDP_CONSTANT;
    stop_after(r, 4);
    r.cfg.checkpoint.dir = dir;
    r.cfg.optimizer.lr *= 0.5f;
    begin(&r);
    is_int(ddp_trainer_resume(r.trainer, NULL, &c), DDP_EINVAL,
           "another rate is refused");
    ok(!strcmp(c.changed, "optimizer.lr") && !*c.changes, "by name: %s",
       c.changed);
    is_int(change(&r, NULL, "batch,optimizer.lr", &c), 1,
           "it is accepted if it is named");
    ok(!strcmp(c.changed, "optimizer.lr") &&
           !strcmp(c.changes, "optimizer.lr is 0.1, in this run 0.05"),
       "both values are reported: %s", c.changes);
    is_int(finish(&r), want, "the weights are those of a run that changes it");
}

/* A run that is over becomes longer, twice; its checkpoints say so. */
static void test_changed_length(void)
{
    struct run r = usual();
    struct ddp_checkpoint c;
    json_t *state, *changes;

    clean();
    r.cfg.checkpoint.dir = dir;
    begin(&r);
    finish(&r);
    for (int i = 1; i <= 2; i++) {
        r.cfg.epochs = EPOCHS + i;
        begin(&r);
        is_int(change(&r, NULL, "schedule", &c), 1, "a run is made longer");
        ok(finish(&r), "and trained to its new end");
    }
    state = load_json(step_path(STEPS + 6, "trainer.json"));
    changes = json_object_get(state, "changes");
    is_int((long)json_array_size(changes), 2,
           "a checkpoint lists both changes");
    for (int i = 0; i < 2; i++) {
        json_t *one = json_array_get(changes, (size_t)i);
        const char *text = json_string_value(json_object_get(one, "settings"));

        is_int((long)json_integer_value(json_object_get(one, "step")),
               STEPS + 3 * i, "after which step");
        ok(text && !strcmp(text, i ? "schedule.steps is 15, in this run 18"
                                   : "schedule.steps is 12, in this run 15"),
           "and which: %s", text ? text : "none");
    }
    json_decref(state);
}

/* Where epochs have other steps, they are renumbered, in another folder. */
static void test_changed_batch(void)
{
    struct run r = usual();
    struct ddp_checkpoint c;
    char other[128];

    stop_after(r, 5);
    r.cfg.checkpoint.dir = dir;
    r.cfg.batch = 4; /* five steps an epoch instead of three */
    begin(&r);
    ok(change(&r, NULL, "batch,schedule", &c) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "an epoch had 3 steps and has 5 now") &&
           !*c.changed,
       "checkpoints are not mixed up: %s", ddp_errmsg());
    end(&r);
    snprintf(other, sizeof(other), "%s/other", top);
    r.cfg.checkpoint.dir = other;
    begin(&r);
    is_int(change(&r, dir, "batch,schedule", &c), 1, "into another folder");
    is_int(c.step, 8, "one epoch and two thirds are done");
    is_int(ddp_trainer_train(r.trainer), 0, "the run continues");
    is_int(ddp_trainer_steps(r.trainer), 20, "to its end");
    end(&r);
    shell("rm -rf '%s'", other);
}

/* Data that a run evaluates on decide no weight, but which ones are best. */
static void test_changed_evaluation(void)
{
    struct run r = usual();
    uint32_t want = undisturbed(r);
    struct ddp_checkpoint c;

    r.eval_count = COUNT;
    stop_after(r, 4);
    r.cfg.checkpoint.dir = dir;
    r.eval_count = COUNT + 1;
    refused(r, "other settings: eval_data.samples is 20, in this run 21");
    begin(&r);
    is_int(change(&r, NULL, "eval_data", &c), 1, "accepted if it is named");
    ok(!strcmp(c.changes, "eval_data.samples is 20, in this run 21"),
       "and reported: %s", c.changes);
    is_int(finish(&r), want, "the weights are the same");
    r.eval_count = 0;
    stop_after(r, 4);
    r.cfg.checkpoint.dir = dir;
    r.eval_count = COUNT;
    is_int(resume(r, &c), want,
           "a run that evaluated nothing so far may begin to");
}

static void refuse_change(struct run r, const char *changed, const char *why)
{
    struct ddp_checkpoint c;

    begin(&r);
    ok(change(&r, NULL, changed, &c) == DDP_EINVAL &&
           strstr(ddp_errmsg(), why) && !*c.changed,
       "\"%s\" is refused: %s", changed, ddp_errmsg());
    end(&r);
}

static void test_unchangeable(void)
{
    struct run r = usual(), other;

    stop_after(r, 4);
    r.cfg.checkpoint.dir = dir;
    refuse_change(r, "lr", "'lr' is not a setting that a run can change");
    refuse_change(r, "batch,optimizer.kind", "'optimizer.kind' is not");
    other = r;
    other.cfg.optimizer = ddp_adam(0.1f);
    refuse_change(other, "optimizer", "optimizer.kind is momentum");
    other = r;
    other.cfg.ema_decay = 0.9;
    refuse_change(other, "ema_decay", "ema_decay is 0, in this run 0.9");
    other = r;
    other.cfg.optimizer.lookahead = 4;
    refuse_change(other, "optimizer.lookahead",
                  "lookahead is absent, in this run 4");
    other = r;
    other.network.dropout = 0.3f;
    refuse_change(other, "batch", "layer 5 (dropout): p is 0.2");
}

/* ---- damage ------------------------------------------------------------- */

static void test_damaged(void)
{
    static const char *const file[] = {"model.safetensors", "optim.safetensors",
                                       "trainer.json", "MANIFEST.json"};
    struct run r = usual();
    uint32_t want = undisturbed(r);
    struct ddp_checkpoint c;
    char kept[512], before[2048];

    clean();
    r.cfg.checkpoint.dir = dir;
    r.cfg.checkpoint.steps = 2;
    r.stop_at = 8;
    begin(&r);
    ddp_trainer_train(r.trainer);
    ddp_trainer_checkpoint(r.trainer);
    end(&r);
    ddp_model_new("none such", NULL);
    snprintf(before, sizeof(before), "%s", ddp_errmsg());
    snprintf(kept, sizeof(kept), "%s/kept", top);
    shell("rm -rf '%s'; cp -a '%s' '%s'", kept, dir, kept);
    for (int i = 0; i < 16; i += getenv("DDP_LONG") ? 1 : 5) {
        const char *path = step_path(8, file[i % 4]);

        shell("rm -rf '%s'; cp -a '%s' '%s'", dir, kept, dir);
        if (i < 4)
            spoil(path);
        else if (i < 8)
            shell("truncate -s -1 '%s'", path);
        else if (i < 12)
            unlink(path);
        else
            shell("rm '%s'; mkfifo '%s'", path, path);
        is_int(resume(r, &c), want, "%s damaged: the one before does it",
               file[i % 4]);
        ok(c.step == 6 && c.skipped == 1 && strstr(c.why, dir),
           "and the reason is reported: %s", c.why);
        ok(!strcmp(ddp_errmsg(), before),
           "what succeeded leaves the message as it was: %s", ddp_errmsg());
    }
    shell("rm -rf '%s'; mv '%s' '%s'", dir, kept, dir);
    for (int s = 4; s <= 8; s += 2)
        spoil(step_path(s, "model.safetensors"));
    begin(&r);
    is_int(ddp_trainer_resume(r.trainer, NULL, NULL), DDP_EDATA,
           "none is whole: nothing is thrown away");
    end(&r);
}

/* What somebody copied or put there is replaced if it is a checkpoint, and not
 * in the way. */
static void test_strange_folders(void)
{
    struct run r = usual();
    uint32_t want = undisturbed(r);
    struct ddp_checkpoint c;
    struct stat st;
    char link[256];

    r.cfg.checkpoint.dir = dir;
    r.cfg.checkpoint.steps = 1;
    for (int i = 0; i < 2; i++) {
        stop_after(r, 4);
        snprintf(link, sizeof(link), "%s/latest", dir);
        shell("rm '%s'", link);
        if (i)
            mkdir(link, 0777);
        else
            shell("cp -a '%s' '%s'", step_path(4, ""), link);
        is_int(resume(r, &c), want, "a folder named latest is not in the way");
        is_int(lstat(link, &st), 0, "it is there");
        is_int(S_ISLNK(st.st_mode), i == 0, i ? "as it was" : "replaced");
    }
    stop_after(r, 4);
    shell("mkdir -p '%s/.tmp-step-000000000005/a/b'; "
          "touch '%s/.tmp-step-000000000005/a/b/c'",
          dir, dir);
    is_int(resume(r, &c), want, "a folder in one that was being written");
    ok(!there(".tmp-step-000000000005"), "it is removed");
}

static void test_one_writer(void)
{
    struct run a = usual(), b = usual();

    clean();
    a.cfg.checkpoint.dir = b.cfg.checkpoint.dir = dir;
    begin(&a);
    is_int(ddp_trainer_resume(a.trainer, NULL, NULL), 0, "an empty folder");
    begin(&b);
    is_int(ddp_trainer_train(b.trainer), DDP_EINVAL,
           "a second writer is refused");
    ok(strstr(ddp_errmsg(), "another trainer of this process, since 20"),
       "the message names the first, and since when: %s", ddp_errmsg());
    shell("echo 77 elsewhere 2026-01-02T03:04:05Z >'%s/.writer'", dir);
    crash.no_locks = true;
    is_int(ddp_trainer_train(b.trainer), DDP_EINVAL, "a lock of elsewhere");
    ok(strstr(ddp_errmsg(), "process 77 on the machine elsewhere, since "
                            "2026-01-02T03:04:05Z, last renewed 20") &&
           strstr(ddp_errmsg(), "Z, is writing"),
       "the message names the machine, and when it was last seen: %s",
       ddp_errmsg());
    shell("echo none >'%s/.writer'", dir);
    is_int(ddp_trainer_train(b.trainer), DDP_EINVAL, "a lock of nobody");
    ok(strstr(ddp_errmsg(), "another process, perhaps on another machine, is"),
       "the message guesses: %s", ddp_errmsg());
    crash.no_locks = false;
    end(&b);
    end(&a);
}

/* ---- a writer on another machine ---------------------------------------- */

static void put_writer(void)
{
    shell("echo 77 elsewhere 2026-01-02T03:04:05Z another-boot >'%s/.writer'",
          dir);
}

static char writer_path[128];

static struct timespec writer_time(void)
{
    struct stat st = {0};

    snprintf(writer_path, sizeof(writer_path), "%s/.writer", dir);
    stat(writer_path, &st);
    return st.st_mtim;
}

static bool later(struct timespec a, struct timespec b)
{
    return a.tv_sec > b.tv_sec ||
           (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

static atomic_bool renewing;

/* As that process would. */
static void *renew_writer(void *arg)
{
    const struct timespec t = {0, 30000000};

    while (renewing) {
        utimensat(AT_FDCWD, arg, NULL, 0);
        nanosleep(&t, NULL);
    }
    return NULL;
}

/* Where the file system's lock does not reach, as here, who writes is seen by
 * the file that it renews. */
static void test_elsewhere(void)
{
    struct run r = usual();
    const struct timespec t = {0, 300000000};
    struct timespec before;
    pthread_t thread;
    int rc;

    clean();
    ddp__writer_renew_ms = 100;
    shell("mkdir '%s'", dir);
    put_writer();
    before = writer_time();
    r.cfg.checkpoint.dir = dir;
    begin(&r);
    renewing = true;
    pthread_create(&thread, NULL, renew_writer, writer_path);
    rc = ddp_trainer_resume(r.trainer, NULL, NULL);
    renewing = false;
    pthread_join(thread, NULL);
    ok(rc == DDP_EINVAL &&
           strstr(ddp_errmsg(), "process 77 on the machine elsewhere, since "
                                "2026-01-02T03:04:05Z, last renewed 20"),
       "a writer on another machine that lives: %s", ddp_errmsg());
    is_int(ddp_trainer_resume(r.trainer, NULL, NULL), 0,
           "one that does not is succeeded");
    before = writer_time();
    for (int i = 0; i < 100 && !later(writer_time(), before); i++)
        nanosleep(&t, NULL); /* at once, but on a busy machine */
    ok(later(writer_time(), before), "who succeeds renews its own file");
    put_writer();
    ddp_trainer_step(r.trainer, NULL);
    ok(ddp_trainer_checkpoint(r.trainer) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "process 77 on the machine elsewhere"),
       "who has been succeeded writes no checkpoint: %s", ddp_errmsg());
    before = writer_time();
    nanosleep(&t, NULL);
    ok(!later(writer_time(), before), "nor renews another's file");
    end(&r);
    ok(there(".writer"), "nor removes it");
    ddp__writer_renew_ms = 1000000;
    shell("touch -d '3 hours ago' '%s'", writer_path);
    begin(&r);
    is_int(ddp_trainer_resume(r.trainer, NULL, NULL), 0,
           "one that has been silent for hours is succeeded at once");
    end(&r);
    ok(!there(".writer"), "a run that ends leaves no file");
    ddp__writer_renew_ms = 10000;
}

/* ---- input that fails --------------------------------------------------- */

/* Fail at this sample of the run: the steps before are not lost. */
static int64_t fail_reading(struct run r, int at, uint32_t want, int *wrong)
{
    struct ddp_checkpoint c;
    int64_t steps;
    bool good;
    int rc;

    clean();
    begin(&r);
    fail_input = at;
    rc = ddp_trainer_train(r.trainer);
    steps = ddp_trainer_steps(r.trainer);
    good = rc == DDP_EIO && strstr(ddp_errmsg(), ", reading input: ") &&
           !strstr(ddp_errmsg(), "the checkpoint of step ") == (steps == 0);
    if (!good)
        diag("%d: %s", rc, ddp_errmsg());
    end(&r);
    if (resume(r, &c) != want || c.step != steps || !good) {
        diag("sample %d: %d steps, resumed from step %d", at, (int)steps,
             (int)c.step);
        ++*wrong;
    }
    return steps;
}

static void test_bad_input(void)
{
    struct run r = usual();
    uint32_t want = undisturbed(r);
    int64_t most = 0, steps;
    int wrong = 0;

    r.cfg.checkpoint.dir = dir;
    for (int at = 1; at <= EPOCHS * COUNT; at += getenv("DDP_LONG") ? 1 : 9) {
        steps = fail_reading(r, at, want, &wrong);
        most = steps > most ? steps : most;
    }
    is_int(wrong, 0,
           "input that fails: all steps before are in a checkpoint, "
           "from which the run resumes to the same weights");
    ok(most > STEPS / 2, "of up to %d steps", (int)most);
}

/* A step that failed is not counted, so the next call makes it. */
static void test_failed_step(void)
{
    struct run r = usual();
    uint32_t want = undisturbed(r);
    int failures = 0;

    begin(&r);
    fail_input = 31;
    while (ddp_trainer_steps(r.trainer) < STEPS && failures < 9)
        failures += ddp_trainer_step(r.trainer, NULL) < 0;
    failures += ddp_trainer_wait(r.trainer) < 0;
    is_int(failures, 1, "a step fails");
    is_int(checksum(&r), want, "made again, it leads to the same weights");
    end(&r);
}

/* A worker dies in the middle of a run: the step fails, what was made before is
 * in a checkpoint, and without that worker the run continues from there. */
static void test_dead_worker(void)
{
    struct run r = usual();
    struct ddp_checkpoint c;
    uint32_t want;
    int64_t steps;
    int rc;

    clean();
    r.network.degree = COPIES;
    r.cfg.checkpoint.dir = dir;
    want = undisturbed(r);
    begin(&r);
    until_death = 22; /* of 40 sub-batches */
    rc = ddp_trainer_train(r.trainer);
    steps = ddp_trainer_steps(r.trainer);
    ok(rc == DDP_EDEVICE && steps > 0 && steps < STEPS &&
           strstr(ddp_errmsg(), ", copy on CPU ") &&
           strstr(ddp_errmsg(), "has all steps that were made"),
       "a worker that dies ends the run: %s", ddp_errmsg());
    end(&r);
    dead = -1;
    ok(resume(r, &c) == want && c.step == steps,
       "which resumes without it after step %d, to the same weights",
       (int)steps);
}

static bool nothing_broken(int device, char *words, size_t size)
{
    (void)device;
    (void)words;
    (void)size;
    return false;
}

static bool first_is_nan(ddp_chain_t *c)
{
    struct ddp_param_info info;
    float w[256];

    if (ddp_chain_param(c, 0, &info) < 0 || info.len > 256 ||
        ddp_chain_get(c, info.name, w, info.len) < 0) {
        diag("%s", ddp_errmsg());
        return false;
    }
    for (size_t i = 0; i < info.len; i++)
        if (!isnan(w[i]))
            return false;
    return true;
}

/* A device fails under StarPU: nothing that is in memory is used any more, and
 * the run resumes from a file. */
static void test_lost_device(void)
{
    static const struct ddp__backend backend = {.broken = nothing_broken};
    static const struct ddp__backend *const backends[] = {&backend, NULL};
    const struct ddp__device device = {.memory = STARPU_CUDA_RAM,
                                       .backends = backends};
    struct run r = usual();
    struct ddp_checkpoint c;
    uint32_t want, crc;
    int rc;

    clean();
    r.network.degree = COPIES;
    r.cfg.checkpoint.dir = dir;
    r.cfg.checkpoint.steps = 4;
    want = undisturbed(r);
    begin(&r);
    ddp__lost_watch(&device);
    until_loss = 22; /* of 40 sub-batches: in the seventh step */
    rc = ddp_trainer_train(r.trainer);
    ok(rc == DDP_EDEVICE && strstr(ddp_errmsg(), " was lost: ") &&
           strstr(ddp_errmsg(), " (in a_copy)") &&
           strstr(ddp_errmsg(),
                  "; no checkpoint of the steps so far: weights") &&
           ddp_trainer_steps(r.trainer) == 6,
       "a device that StarPU loses ends the run: %s", ddp_errmsg());
    ok(ddp_chain_checksum(r.chain, &crc) == DDP_EDEVICE &&
           (ddp_trainer_step(r.trainer, NULL) < 0 ||
            ddp_trainer_wait(r.trainer) < 0),
       "the weights cannot be read, nor trained");
    ddp_trainer_free(r.trainer);
    r.trainer = NULL;
    ddp_finish(ddp);
    ok(first_is_nan(r.chain), "those in main memory are NaN in the end");
    end(&r);
    if (!(ddp = ddp_init(NULL)))
        bail_out("%s", ddp_errmsg());
    ok(resume(r, &c) == want && c.step == 4,
       "the run resumes from step 4, to the same weights");
}

/* ---- death and full disks ----------------------------------------------- */

static struct run crash_run(void)
{
    struct run r = usual();

    r.cfg.epochs = 2;
    r.cfg.checkpoint =
        (struct ddp_checkpoint_config){.dir = dir, .steps = 2, .keep = 2};
    r.cfg.checkpoint_failures = 1;
    r.evaluates = true;
    return r;
}

/* Resume, without more than is needed. */
static uint32_t resume_crashed(struct ddp_checkpoint *c)
{
    struct run r = crash_run();

    r.evaluates = false;
    r.cfg.checkpoint.steps = 0;
    return resume(r, c);
}

/* Kill -9 at any call leaves the folder as it was before the call: each such
 * folder is resumed from. */
static void test_death(void)
{
    struct run r = crash_run();
    uint32_t want = undisturbed(r);
    int wrong = 0, fresh = 0, left = 0, points;

    clean();
    mkdir(copies, 0777);
    mkdir(dir, 0777);
    crash.copies = copies;
    crash_begin(CRASH_COPY, dir);
    begin(&r);
    is_int(finish(&r), want, "a run whose every step on disk is kept");
    points = crash.count;
    crash_begin(CRASH_OFF, NULL);
    /* Half a line in the writer's file reads as another machine's process. */
    ddp__writer_renew_ms = 100;
    for (int i = 0; i < points; i++) {
        struct ddp_checkpoint c;

        shell("rm -rf '%s'; mv '%s/%d' '%s'", dir, copies, i, dir);
        if (resume_crashed(&c) != want || c.skipped) {
            diag("killed at call %d: not the same weights", i);
            wrong++;
        }
        left += has_leftovers();
        fresh += c.step == 0;
    }
    ddp__writer_renew_ms = 10000;
    ok(points > 80, "there are %d moments to die at", points);
    is_int(wrong, 0, "at each of them the run resumes to the same weights");
    is_int(left, 0, "and removes what was being written then");
    ok(fresh < points / 2, "from the beginning only before the first is there");
}

/* Whether a failure of a call was reported: it ended the run, or there was time
 * for another checkpoint. */
static bool is_told(const struct run *r, int rc, int error, bool forever)
{
    struct ddp_checkpoint_failures f;

    if (rc == DDP_EIO)
        return strstr(ddp_errmsg(), strerror(error));
    ddp_trainer_checkpoint_failures(r->trainer, &f);
    return rc == 0 && !forever && f.count == 1 && f.in_a_row == 0 &&
           strstr(f.why, strerror(error));
}

static void fail_at(int at, int error, bool forever, uint32_t want, int *wrong)
{
    struct run r = crash_run();
    struct ddp_checkpoint c;
    bool reported, removal;
    int rc;

    clean();
    begin(&r);
    crash.at = at;
    crash.error = error;
    crash.forever = forever;
    crash_begin(CRASH_FAIL, dir);
    rc = ddp_trainer_train(r.trainer);
    crash.mode = CRASH_OFF;
    reported = is_told(&r, rc, error, forever);
    removal = !strcmp(crash.what, "unlink") && !forever;
    end(&r);
    crash.dir = NULL;
    /* What cannot be removed is in nobody's way. */
    if (!(reported || (removal && rc == 0)) || resume_crashed(&c) != want ||
        c.skipped) {
        diag("%s at call %d (%s): %d %s", strerror(error), at, crash.what, rc,
             reported ? "" : ddp_errmsg());
        ++*wrong;
    }
}

static void test_full_disk(void)
{
    int stride = getenv("DDP_LONG") ? 1 : 7, wrong = 0, points;
    struct run r = crash_run();
    uint32_t want = undisturbed(r);

    clean();
    begin(&r);
    crash_begin(CRASH_COUNT, dir);
    finish(&r);
    points = crash.count;
    is_int(crash.unsynced, 0,
           "files and folders are synced before they get "
           "their names, and those before links lead there");
    for (int i = 0; i < points; i += stride)
        fail_at(i, i % 2 ? ENOSPC : EIO, false, want, &wrong);
    is_int(wrong, 0,
           "%d calls that fail: each is reported, and nothing is lost",
           (points + stride - 1) / stride);
    for (int i = 0; i < points; i += 4 * stride)
        fail_at(i, ENOSPC, true, want, &wrong);
    is_int(wrong, 0, "and when all that follow fail as well");
}

/* The disk is full from this call on; how many steps the run makes. */
static int64_t fill_disk(int at, int failures,
                         struct ddp_checkpoint_failures *f)
{
    struct run r = crash_run();
    int64_t steps;

    clean();
    r.cfg.checkpoint_failures = failures;
    r.cfg.checkpoint.steps = 1;
    r.evaluates = false;
    begin(&r);
    crash.at = at;
    crash.error = ENOSPC;
    crash.forever = true;
    crash_begin(CRASH_FAIL, dir);
    is_int(ddp_trainer_train(r.trainer), DDP_EIO, "a full disk: DDP_EIO");
    crash.mode = CRASH_OFF;
    ddp_trainer_checkpoint_failures(r.trainer, f);
    steps = ddp_trainer_steps(r.trainer);
    crash.dir = NULL;
    end(&r);
    return steps;
}

static void test_tolerated(void)
{
    struct run r = crash_run();
    struct ddp_checkpoint_failures f;
    int64_t steps;

    steps = fill_disk(20, 0, &f);
    is_int((long)steps, 6, "a disk that is full does not stop a run");
    ok(f.count > 2 && f.in_a_row == f.count && f.step == 6 &&
           strstr(f.why, "No space left"),
       "every attempt is counted: %lld, the last of step %lld: %s",
       (long long)f.count, (long long)f.step, f.why);
    steps = fill_disk(20, 2, &f);
    ok(steps < 6 && f.count >= 2, "two failures may end it: after %lld steps",
       (long long)steps);
    r.cfg.checkpoint_failures = -1;
    ok(!begin(&r) && strstr(ddp_errmsg(), "checkpoint_failures is -1"),
       "a number below 0 is refused: %s", ddp_errmsg());
    end(&r);
}

int main(void)
{
    static const int stop[] = {5, 6, 1}; /* in an epoch, at its end */

    setenv("STARPU_NCPU", "1", 1); /* two that wait for work take its time */
    snprintf(top, sizeof(top), "%s/ckpt-XXXXXX",
             getenv("TMPDIR") && strlen(getenv("TMPDIR")) < 40
                 ? getenv("TMPDIR")
                 : "/tmp");
    if (!mkdtemp(top) || !(ddp = ddp_init(NULL)))
        bail_out("%s", ddp_errmsg());
    snprintf(dir, sizeof(dir), "%s/run", top);
    snprintf(copies, sizeof(copies), "%s/copies", top);
    test_bits(ddp_sgd(0.1f), "sgd", 1, stop);
    test_bits(ddp_momentum(0.1f, 0.9f), "momentum", 3, stop);
    test_bits(ddp_adamw(0.01f, 0.01f), "adamw", 1, stop);
    test_adam_variants();
    test_bits((struct ddp_optimizer){.kind = DDP_RMSPROP,
                                     .lr = 0.01f,
                                     .beta2 = 0.9f,
                                     .eps = 1e-8f,
                                     .momentum = 0.9f},
              "rmsprop", 1, stop);
    test_state();
    test_epoch_told_once();
    test_own_loop();
    test_kept();
    test_other_settings();
    test_other_network();
    test_stored_state();
    test_other_format();
    test_bad_numbers();
    test_longer();
    test_changed_rate();
    test_changed_length();
    test_changed_batch();
    test_changed_evaluation();
    test_unchangeable();
    test_damaged();
    test_strange_folders();
    test_one_writer();
    test_elsewhere();
    test_bad_input();
    test_failed_step();
    test_dead_worker();
    test_lost_device();
    test_death();
    test_full_disk();
    test_tolerated();
    ddp_finish(ddp);
    if (!(ddp =
              ddp_init(&(struct ddp_config){START_DEFAULTS, .backend = "ref"})))
        bail_out("%s", ddp_errmsg());
    test_widened();
    shell("rm -rf '%s'", top);
    ddp_finish(ddp);
    return done_testing();
}
