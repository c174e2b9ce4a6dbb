/* test_tracing.c - the trace and the graph of some steps
 *
 * What they must have follows from the run: a task for each sub-batch and part
 * of a step, one after another on a worker, after those that it waits for.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "defaults.h"
#include "tap.h"

enum { LEN = 6, CLASSES = 3, COUNT = 48, BATCH = 16, SUB = 4, STEPS = 6 };

static char dir[] = "/tmp/ddp-test-tracing-XXXXXX";
static char json_path[64], dot_path[64];

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    (void)arg;
    (void)key;
    s->label = (int32_t)(index % CLASSES);
    for (int i = 0; i < LEN; i++)
        ((float *)s->x)[i] = (float)((index * 7 + i * 3) % 11) / 11;
    return 0;
}

/* Train with a trace from a step on; the checksum of the weights. */
static int train(ddp_t *ddp, const char *trace, const char *graph,
                 int64_t first, int64_t steps, uint32_t *crc)
{
    const struct ddp_source source = {.count = COUNT,
                                      .shape = {1, 1, LEN},
                                      .type = DDP_F32,
                                      .classes = CLASSES,
                                      .get = get};
    struct ddp_train_config cfg = {
        TRAIN_DEFAULTS,          .optimizer = ddp_adam(0.01f),
        .sub_batch = SUB,        .batch = BATCH,
        .steps = STEPS,          .trace = trace,
        .graph = graph,          .trace_first = first,
        .trace_steps = steps,    .lanes = 2,
        .optimizer.clip_norm = 1};
    ddp_dataset_t *data = ddp_dataset_callback(&source);
    ddp_chain_t *chain =
        ddp_chain_new(ddp_dense_new(LEN, 8, NULL), ddp_relu_new(),
                      ddp_dense_new(8, CLASSES, NULL), DDP_END);
    ddp_trainer_t *t = ddp_trainer_new(ddp, chain, data, &cfg);
    int rc = t ? ddp_trainer_train(t) : ddp_errcode();

    if (crc && ddp_chain_checksum(chain, crc) < 0)
        *crc = 0;
    ddp_trainer_free(t);
    ddp_chain_free(chain);
    ddp_dataset_free(data);
    return rc;
}

/* ---- reading ------------------------------------------------------------ */

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s ? s : "";
}

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static long long arg(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(json_object_get(o, "args"), key));
}

static bool is(const json_t *e, const char *phase, const char *cat)
{
    return !strcmp(text(e, "ph"), phase) &&
           (!cat || !strcmp(text(e, "cat"), cat));
}

static int count(const json_t *all, const char *phase, const char *cat)
{
    int n = 0;

    for (size_t i = 0; i < json_array_size(all); i++)
        n += is(json_array_get(all, i), phase, cat);
    return n;
}

/* Pairs of tasks of a worker that ran at the same time; times are rounded to
 * nanoseconds. */
static int overlaps(const json_t *all)
{
    int n = 0;

    for (size_t i = 0; i < json_array_size(all); i++)
        for (size_t k = 0; k < i; k++) {
            const json_t *a = json_array_get(all, i);
            const json_t *b = json_array_get(all, k);

            n += is(a, "X", NULL) && is(b, "X", NULL) &&
                 number(a, "tid") == number(b, "tid") &&
                 number(a, "ts") + 0.002 < number(b, "ts") + number(b, "dur") &&
                 number(b, "ts") + 0.002 < number(a, "ts") + number(a, "dur");
        }
    return n;
}

/* Sub-batches of a step that have a task of a phase. */
static int sub_batches(const json_t *all, const char *cat, long long step)
{
    unsigned seen = 0;

    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *e = json_array_get(all, i);

        if (is(e, "X", cat) && arg(e, "step") == step)
            seen |= 1u << arg(e, "sub_batch");
    }
    return __builtin_popcount(seen);
}

/* Arrows that end before they begin. */
static int backward_arrows(const json_t *all)
{
    int n = 0;

    for (size_t i = 0; i + 1 < json_array_size(all); i++) {
        const json_t *a = json_array_get(all, i);
        const json_t *b = json_array_get(all, i + 1);

        if (is(a, "s", NULL))
            n += !is(b, "f", NULL) || number(a, "id") != number(b, "id") ||
                 number(a, "ts") > number(b, "ts") + 0.002;
    }
    return n;
}

/* When a task was ready, something that it waited for ended there. */
static bool explained(const json_t *all, const json_t *e)
{
    const json_t *args = json_object_get(e, "args");
    double ready = number(e, "ts") - number(args, "ready_for_us");

    if (!strcmp(text(args, "after"), "submission"))
        return fabs(ready - number(args, "submitted")) < 0.003 ||
               number(args, "ready_for_us") == 0;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *a = json_array_get(all, i);

        if (is(a, "X", text(args, "after")) &&
            fabs(number(a, "ts") + number(a, "dur") - ready) < 0.003)
            return true;
    }
    return false;
}

static int unexplained(const json_t *all)
{
    int n = 0;

    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *e = json_array_get(all, i);

        n +=
            is(e, "X", NULL) && !is(e, "X", "submission") && !explained(all, e);
    }
    return n;
}

static long long extreme_step(const json_t *all, bool last)
{
    long long step = last ? -1 : 1000000;

    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *e = json_array_get(all, i);
        long long s = arg(e, "step");

        if (is(e, "X", NULL) && (last ? s > step : s < step))
            step = s;
    }
    return step;
}

/* ---- tests -------------------------------------------------------------- */

static json_t *load(json_t **root)
{
    json_error_t error;

    *root = json_load_file(json_path, 0, &error);
    ok(*root != NULL, "the trace is JSON%s%s", *root ? "" : ": ",
       *root ? "" : error.text);
    return json_object_get(*root, "traceEvents");
}

static void test_trace(ddp_t *ddp)
{
    uint32_t plain = 1, traced = 2;
    json_t *root, *all;

    train(ddp, NULL, NULL, 0, 0, &plain);
    is_int(train(ddp, json_path, dot_path, 2, 3, &traced), 0,
           "training with a trace");
    ok(plain == traced, "has the weights of training without one");
    all = load(&root);
    is_int((int)extreme_step(all, false), 2, "it begins with the step");
    is_int((int)extreme_step(all, true), 4, "and ends with the last one");
    for (int s = 2; s < 5; s++)
        ok(sub_batches(all, "input", s) == BATCH / SUB &&
               sub_batches(all, "forward", s) == BATCH / SUB &&
               sub_batches(all, "backward", s) == BATCH / SUB,
           "step %d has input and both passes of all sub-batches", s);
    ok(count(all, "X", "merge") >= 3 && count(all, "X", "update") >= 6,
       "merges of two lanes, decisions and updates");
    is_int(count(all, "X", "submission"), 3, "three steps were submitted");
    is_int(overlaps(all), 0, "a worker does one thing at a time");
    ok(count(all, "s", "bucket") >= 9 &&
           count(all, "s", "bucket") == count(all, "f", "bucket"),
       "%d arrows of a bucket", count(all, "s", "bucket"));
    is_int(backward_arrows(all), 0, "none goes back in time");
    is_int(unexplained(all), 0, "a task is ready when another ends");
    json_decref(root);
}

static void test_short_run(ddp_t *ddp)
{
    json_t *root, *all;

    unlink(json_path);
    is_int(train(ddp, json_path, NULL, 100, 2, NULL), 0,
           "a run of fewer steps");
    all = load(&root);
    ok(extreme_step(all, false) == STEPS - 2 &&
           extreme_step(all, true) == STEPS - 1,
       "has its last steps");
    json_decref(root);
}

/* Each task once, and no edge to an earlier one. */
static void test_graph(void)
{
    FILE *f = fopen(dot_path, "r");
    char line[512], first[512] = "";
    int nodes = 0, edges = 0, wrong = 0, a, b;

    while (f && fgets(line, sizeof(line), f)) {
        if (!*first)
            snprintf(first, sizeof(first), "%s", line);
        if (sscanf(line, " t%d -> t%d", &a, &b) == 2) {
            edges++;
            wrong += a >= b;
        } else {
            nodes += sscanf(line, " t%d [", &a) == 1 && strchr(line, '[');
        }
    }
    if (f)
        fclose(f);
    is_str(first, "digraph step {\n", "a graph for Graphviz");
    ok(nodes >= 3 * BATCH / SUB + 4 && edges >= nodes - BATCH / SUB,
       "of %d tasks, which wait for each other: %d edges", nodes, edges);
    is_int(wrong, 0, "none waits for a later one");
}

static void test_misuse(ddp_t *ddp)
{
    is_int(train(ddp, "/nowhere/trace.json", NULL, 0, 1, NULL), DDP_EIO,
           "a file that cannot be written");
    ok(strstr(ddp_errmsg(), "cannot write /nowhere/trace.json: "),
       "is named: %s", ddp_errmsg());
    is_int(train(ddp, json_path, NULL, 0, -1, NULL), DDP_EINVAL, "minus one");
}

int main(void)
{
    ddp_t *ddp = ddp_init(&(struct ddp_config){START_DEFAULTS});

    if (!ddp || !mkdtemp(dir))
        bail_out("%s", ddp_errmsg());
    snprintf(json_path, sizeof(json_path), "%s/trace.json", dir);
    snprintf(dot_path, sizeof(dot_path), "%s/step.dot", dir);
    test_trace(ddp);
    test_graph();
    test_short_run(ddp);
    test_misuse(ddp);
    unlink(json_path);
    unlink(dot_path);
    rmdir(dir);
    ddp_finish(ddp);
    return done_testing();
}
