/* test_checkpoint_settings.c - runs that a checkpoint does not belong to
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/crc32c.h"
#include "checkpoint_run.h"
#include "defaults.h"
#include "tap.h"

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

/* The checkpoint itself cannot be used. */
static void unusable(struct run r, const char *why, const char *what)
{
    begin(&r);
    ok(ddp_trainer_resume(r.trainer, NULL, NULL) == DDP_EDATA &&
           strstr(ddp_errmsg(), why),
       "%s is refused: %s", what, ddp_errmsg());
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
    unusable(r, "missing or invalid field 'best_evaluation'",
             "a state that lacks a field");
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
    unusable(r, why, name);
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

int main(void)
{
    begin_program();
    test_other_settings();
    test_other_network();
    test_stored_state();
    test_other_format();
    test_bad_numbers();
    test_changed_rate();
    test_changed_length();
    test_changed_batch();
    test_changed_evaluation();
    test_unchangeable();
    end_program();
    return done_testing();
}
