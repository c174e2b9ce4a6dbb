/* test_device.c - a new kind of device is a folder and a row
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The folder is tests/dummy; the row is added to a copy of device_rows.h when
 * this test is built.  All else is the library's.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "ddp_layer.h"
#include "dummy/dummy.h"
#include "defaults.h"
#include "runtime/device_list.h"
#include "tap.h"
#include "train/trainer.h"

enum {
    LEN = 6,
    CLASSES = 3,
    COUNT = 24,
    STEPS = 3,
    LANES = 2,
    WEIGHTS = LEN * CLASSES
};

static void test_list(void)
{
    bool used[DDP_DEVICE_KINDS] = {false}, distinct = true, there = false;
    int n = 0;

    for (; ddp__devices[n]; n++) {
        distinct = distinct && !used[ddp__devices[n]->kind];
        used[ddp__devices[n]->kind] = true;
        there = there || strcmp(ddp__devices[n]->name, "dummy") == 0;
    }
    ok(there && distinct, "%d devices, the dummy among them, each of a kind",
       n);
    ok(n > 1 && !ddp__devices[n - 1]->find &&
           ddp__devices[n - 1]->kind == DDP_CPU,
       "the CPU is the last");
}

/* ---- training ------------------------------------------------------------ */

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    (void)key;
    s->label = (int32_t)(index % CLASSES);
    for (int i = 0; i < LEN; i++)
        x[i] = (float)((index * 7 + i * 5) % 11) / 11;
    return 0;
}

static ddp_dataset_t *data_new(struct ddp_shape shape)
{
    return ddp_dataset_callback(&(struct ddp_source){
        .count = COUNT, .shape = shape, .classes = CLASSES, .get = get});
}

static ddp_trainer_t *trainer_new(ddp_t *ddp, ddp_chain_t *chain,
                                  ddp_dataset_t *data)
{
    return ddp_trainer_new(ddp, chain, data,
                           &(struct ddp_train_config){
                               TRAIN_DEFAULTS, .loss = DDP_LOGIT_CROSS_ENTROPY,
                               .optimizer = ddp_sgd(0.1f), .sub_batch = 4,
                               .lanes = LANES, .seed = 1, .steps = STEPS});
}

/* A dense layer and a relu: the dummy can do one of them. */
static bool train(ddp_t *ddp, float *w)
{
    ddp_dataset_t *data = data_new((struct ddp_shape){1, 1, LEN});
    ddp_chain_t *chain = ddp_chain_new(ddp_dense_new(LEN, CLASSES, NULL),
                                       ddp_relu_new(), DDP_END);
    ddp_trainer_t *t = trainer_new(ddp, chain, data);
    bool good = t && ddp_trainer_train(t) == 0 &&
                ddp_chain_get(chain, "0.weight", w, WEIGHTS) == 0;

    if (!good)
        diag("%s", ddp_errmsg());
    ddp_trainer_free(t);
    ddp_dataset_free(data);
    ddp_chain_free(chain);
    return good;
}

static void test_none(float *w)
{
    ddp_t *ddp =
        ddp_init(&(struct ddp_config){START_DEFAULTS, .backend = "ref"});

    ok(ddp && train(ddp, w) && ddp_gpu_worker_count(ddp) == 0 &&
           strstr(ddp_describe(ddp), "no dummy is plugged in") &&
           dummy_calls.started == 0 && dummy_calls.dense_fwd == 0,
       "without a dummy the CPU trains: %s",
       ddp ? ddp_describe(ddp) : ddp_errmsg());
    ddp_finish(ddp);
    ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .gpus = 1});
    ok(!ddp && strstr(ddp_errmsg(), "no dummy is plugged in"),
       "one that is asked for is missed: %s", ddp_errmsg());
}

static void test_found(const float *want)
{
    ddp_t *ddp =
        ddp_init(&(struct ddp_config){START_DEFAULTS, .backend = "ref"});
    struct ddp_gpu_info info = {.name = ""};
    float w[WEIGHTS];

    ok(ddp && strstr(ddp_describe(ddp), "2 dummy workers on ") &&
           strstr(ddp_describe(ddp), "(made of nothing 1.0), input by") &&
           dummy_calls.configured == 2,
       "dummies are found and described: %s",
       ddp ? ddp_describe(ddp) : ddp_errmsg());
    ok(ddp_gpu_count(ddp, &info) > 0 && strcmp(info.name, "Dummy 1") == 0,
       "so is the first of them");
    ok(train(ddp, w) && dummy_calls.started == 1, "they train");
    is_int(dummy_calls.dense_fwd, STEPS * LANES,
           "by their own kernel, once for each sub-batch");
    ok(memcmp(w, want, sizeof(w)) == 0,
       "and the CPU the rest, to the weights of plain C");
    ddp_finish(ddp);
    ok(dummy_calls.stopped == 1, "they are stopped");
}

static void test_left_out(void)
{
    ddp_t *ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .gpus = 0});

    ok(ddp && ddp_gpu_worker_count(ddp) == 0 && dummy_calls.configured == 0,
       "they can be left out");
    ddp_finish(ddp);
    setenv("DUMMY_COUNT", "1", 1);
    ddp = ddp_init(NULL);
    ok(ddp && dummy_calls.configured == 1, "their variable has their number");
    ddp_finish(ddp);
    unsetenv("DUMMY_COUNT");
}

/* ---- a kernel of the program ----------------------------------------------
 */

static atomic_int on_cpu, on_dummy;

static int copy(const struct ddp_kernel_args *a)
{
    const struct ddp_shape s = a->buf[0].shape;

    memcpy(a->buf[1].data, a->buf[0].data,
           (size_t)a->n * (size_t)s.h * (size_t)s.w * (size_t)s.c *
               sizeof(float));
    return 0;
}

static int copy_cpu(const struct ddp_kernel_args *a)
{
    atomic_fetch_add(&on_cpu, 1);
    return copy(a);
}

static int copy_dummy(const struct ddp_kernel_args *a)
{
    atomic_fetch_add(&on_dummy, 1);
    return copy(a);
}

static int copy_shape(const ddp_layer_t *l, struct ddp_shape x,
                      struct ddp_shape *y)
{
    (void)l;
    *y = x;
    return 0;
}

static ddp_value_t *copy_forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    static const struct ddp_kernel k = {
        "copy", {[DDP_CPU] = copy_cpu, [DUMMY] = copy_dummy}};
    ddp_value_t *y = ddp_graph_value(g, ddp_value_shape(x), DDP_F32);
    const struct ddp_record r = {.layer = l, .x = x, .y = y};

    ddp_graph_call(g, &k, NULL, 2, (ddp_value_t *[]){x, y},
                   (enum ddp_access[]){DDP_READ, DDP_WRITE});
    return ddp_graph_record(g, &r);
}

static ddp_value_t *copy_backward(ddp_layer_t *l, ddp_graph_t *g,
                                  const struct ddp_record *r, ddp_value_t *dy)
{
    (void)l;
    (void)g;
    (void)r;
    return dy;
}

static void test_kernel(void)
{
    static const struct ddp_layer_ops ops = {.kind = "copy",
                                             .shape = copy_shape,
                                             .forward = copy_forward,
                                             .backward = copy_backward};
    const float x[LEN] = {1, 2, 3, 4, 5, 6};
    ddp_chain_t *chain =
        ddp_chain_new(ddp_layer_new(sizeof(struct ddp_layer), &ops), DDP_END);
    ddp_t *ddp = ddp_init(NULL);
    float y[LEN] = {0};

    ok(ddp_chain_forward(ddp, chain, x, DDP_F32, (struct ddp_shape){1, 1, LEN},
                         1, 0, y) == 0 &&
           memcmp(x, y, sizeof(x)) == 0 && on_dummy == 1 && on_cpu == 0,
       "a layer's kernel for the dummy is run: %s", ddp_errmsg());
    ddp_chain_free(chain);
    ddp_finish(ddp);
}

/* ---- operations that accelerators do without ----------------------------- */

/* A norm whose result a gate scales. */
static ddp_chain_t *gated_chain(void)
{
    enum { C = 4 };
    ddp_layer_t *gate =
        ddp_chain_new(ddp_global_mean_pool_new(), ddp_conv_new(C, C, 1, NULL),
                      ddp_sigmoid_new(), DDP_END);

    return ddp_chain_new(
        ddp_conv_new(LEN / 2, C, 1, NULL), ddp_batch_norm_new(C, NULL),
        ddp_silu_new(), ddp_channel_scale_new(gate), ddp_global_mean_pool_new(),
        ddp_dense_new(C, CLASSES, NULL), DDP_END);
}

static int count(const ddp_graph_t *g, enum ddp__op op)
{
    int n = 0;

    for (int i = 0; i < g->nodes; i++)
        n += g->node[i]->call.op == op;
    return n;
}

/* Whether the norm's backward is to multiply by the gate.  CPU workers have a
 * kernel for that, accelerators have none: with one, the CPU's part of a step
 * has the operations of the other part. */
static void test_gates(bool multiplies, const char *by)
{
    ddp_t *ddp =
        ddp_init(&(struct ddp_config){START_DEFAULTS, .backend = "ref"});
    ddp_dataset_t *data = data_new((struct ddp_shape){2, 1, LEN / 2});
    ddp_chain_t *chain = gated_chain();
    ddp_trainer_t *t = trainer_new(ddp, chain, data);

    if (!t)
        bail_out("%s: %s", by, ddp_errmsg());
    is_int(count(t->engine->graph, DDP__OP_BN_GATED_BWD), multiplies,
           "%s: norms that multiply by a gate", by);
    is_int(count(t->engine->graph, DDP__OP_BN_BWD), !multiplies,
           "%s: norms that do not", by);
    ddp_trainer_free(t);
    ddp_dataset_free(data);
    ddp_chain_free(chain);
    ddp_finish(ddp);
}

int main(void)
{
    float w[WEIGHTS];

    test_list();
    test_none(w);
    test_gates(true, "CPU workers");
    setenv("DUMMY_DEVICES", "2", 1);
    test_found(w);
    test_left_out();
    test_kernel();
    test_gates(false, "dummies");
    setenv("DDP_HYBRID", "1", 1);
    test_gates(false, "dummies and CPU workers");
    unsetenv("DDP_HYBRID");
    return done_testing();
}
