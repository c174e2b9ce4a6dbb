/* test_compiled.c - chains prepared once: same outputs, requests side by side
 *
 * What dense layers give is worked out here in double; for convolutions the
 * oracle is ddp_chain_evaluate(), which runs another graph of another engine,
 * one task for each operation.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "defaults.h"
#include "ddp_layer.h"
#include "number.h"
#include "tap.h"

enum { SIDE = 6, X_LEN = SIDE * SIDE * 3, CLASSES = 5, COUNT = 11, BATCH = 4 };

static const struct ddp_shape image = {SIDE, SIDE, 3};
static ddp_t *ddp;

static float *samples(void)
{
    float *x = malloc(COUNT * X_LEN * sizeof(*x));

    for (int i = 0; x && i < COUNT * X_LEN; i++)
        x[i] = number((uint32_t)i);
    return x;
}

static ddp_chain_t *net(void)
{
    struct ddp_conv_options pad = {CONV_DEFAULTS, .pad = 1};
    ddp_chain_t *c = ddp_chain_new(
        ddp_conv_new(3, 8, 3, &pad), ddp_batch_norm_new(8, NULL),
        ddp_relu_new(), ddp_skip_new(ddp_conv_new(8, 8, 3, &pad), DDP_END),
        ddp_dropout_new(0.5f), ddp_max_pool_new(2, NULL), ddp_flatten_new(),
        ddp_dense_new(SIDE * SIDE * 2, CLASSES, NULL), DDP_END);

    if (!c || ddp_chain_init(c, 3) < 0)
        bail_out("%s", ddp_errmsg());
    return c;
}

/* ---- outputs ------------------------------------------------------------- */

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    (void)key;
    memcpy(s->x, (float *)arg + index * X_LEN, X_LEN * sizeof(float));
    s->label = 0;
    return 0;
}

static int keep(const struct ddp_prediction *a, void *arg)
{
    memcpy((float *)arg + a->index * CLASSES, a->output,
           CLASSES * sizeof(float));
    return 0;
}

/* The outputs of an evaluation in sub-batches of `sub`. */
static bool evaluate(ddp_chain_t *c, enum ddp_dtype type, float *x, int sub,
                     float *y)
{
    ddp_dataset_t *d =
        ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                  .shape = image,
                                                  .type = DDP_F32,
                                                  .classes = CLASSES,
                                                  .get = get,
                                                  .arg = x});
    int rc = ddp_chain_evaluate(ddp, c, d,
                                &(struct ddp_evaluate_config){
                                    EVALUATE_DEFAULTS, .sub_batch = sub,
                                    .dtype = type, .on_sample = keep, .arg = y},
                                NULL);

    ddp_dataset_free(d);
    return rc == 0;
}

/* All samples in requests of a batch, the last one being smaller. */
static bool run_all(ddp_compiled_t *p, const float *x, float *y)
{
    bool good = true;

    for (int i = 0; i < COUNT; i += BATCH)
        good = ddp_compiled_run(p, x + i * X_LEN,
                                COUNT - i < BATCH ? COUNT - i : BATCH,
                                y + i * CLASSES) == 0 &&
               good;
    return good;
}

static void test_outputs(const char *how)
{
    float *x = samples(), want[COUNT * CLASSES], y[COUNT * CLASSES];
    ddp_chain_t *c = net();
    ddp_compiled_t *p = ddp_compiled_new(ddp, c, image, BATCH, NULL);
    struct ddp_shape shape = ddp_compiled_shape(p);

    ok(p && shape.h == 1 && shape.w == 1 && shape.c == CLASSES,
       "%s: a compiled chain, and the shape of its output", how);
    ok(p && evaluate(c, DDP_F32, x, BATCH, want) && run_all(p, x, y) &&
           memcmp(y, want, sizeof(y)) == 0,
       "%s: a run gives what an evaluation does, to the bit", how);
    ddp_chain_init(c, 4);
    ok(p && run_all(p, x, y) && memcmp(y, want, sizeof(y)) != 0 &&
           evaluate(c, DDP_F32, x, BATCH, want) &&
           memcmp(y, want, sizeof(y)) == 0,
       "%s: with the weights that the chain has now", how);
    memset(y, 0, sizeof(y));
    ok(ddp_chain_forward(ddp, c, x, DDP_F32, image, COUNT, BATCH, y) == 0 &&
           memcmp(y, want, sizeof(y)) == 0,
       "%s: and so does ddp_chain_forward()", how);
    ddp_compiled_free(p);
    ddp_chain_free(c);
    free(x);
}

/* Activations of half the size; the output is f32 for both. */
static void test_half(enum ddp_dtype type, const char *name)
{
    struct ddp_compiled_options o = {COMPILED_DEFAULTS, .dtype = type};
    float *x = samples(), want[COUNT * CLASSES], y[COUNT * CLASSES];
    ddp_chain_t *c = net();
    ddp_compiled_t *p = ddp_compiled_new(ddp, c, image, BATCH, &o);

    if (!p && ddp_errcode() == DDP_ENODEV)
        skip(1, "%s: %s", name, ddp_errmsg());
    else
        ok(p && evaluate(c, type, x, BATCH, want) && run_all(p, x, y) &&
               memcmp(y, want, sizeof(y)) == 0,
           "%s: a run gives what an evaluation does, to the bit", name);
    ddp_compiled_free(p);
    ddp_chain_free(c);
    free(x);
}

/* Sums of 4 products in f32, off by less than 4 roundings of 2^-24 each. */
static void test_dense(void)
{
    ddp_chain_t *c = ddp_chain_new(ddp_dense_new(4, 3, NULL), DDP_END);
    float w[12], b[3], x[8], y[6], worst = 0;
    ddp_compiled_t *p =
        ddp_compiled_new(ddp, c, (struct ddp_shape){1, 1, 4}, 2, NULL);
    int rc = p ? 0 : ddp_errcode();

    for (uint32_t i = 0; i < 12; i++)
        w[i] = number(i);
    for (uint32_t i = 0; i < 8; i++)
        x[i] = number(100 + i);
    for (uint32_t i = 0; i < 3; i++)
        b[i] = number(200 + i);
    if (rc == 0 && (rc = ddp_chain_set(c, "0.weight", w, 12)) == 0 &&
        (rc = ddp_chain_set(c, "0.bias", b, 3)) == 0)
        rc = ddp_compiled_run(p, x, 2, y);
    for (int k = 0; rc == 0 && k < 6; k++) {
        double sum = (double)b[k % 3];

        for (int i = 0; i < 4; i++)
            sum += (double)w[k % 3 * 4 + i] * (double)x[k / 3 * 4 + i];
        worst = fmaxf(worst, (float)fabs(sum - (double)y[k]));
    }
    ok(rc == 0 && worst <= 0x1p-20f, "a dense layer as worked out by hand");
    ddp_compiled_free(p);
    ddp_chain_free(c);
}

static void test_bytes(void)
{
    uint8_t x[4] = {0, 1, 128, 255};
    ddp_chain_t *c = ddp_chain_new(ddp_relu_new(), DDP_END);
    ddp_compiled_t *p = ddp_compiled_new(
        ddp, c, (struct ddp_shape){1, 1, 2}, 2,
        &(struct ddp_compiled_options){COMPILED_DEFAULTS, .type = DDP_U8});
    float y[4];

    ok(p && ddp_compiled_run(p, x, 2, y) == 0 && y[0] == 0 &&
           fabsf(y[1] - 1) < 1e-6f && fabsf(y[2] - 128) < 1e-4f &&
           fabsf(y[3] - 255) < 1e-4f,
       "bytes are numbers from 0 to 255");
    ddp_compiled_free(p);
    ddp_chain_free(c);
}

/* ---- a layer that counts and fails ----------------------------------------
 */

struct watch {
    ddp_layer_t layer; /* first */
    int graphs;        /* that it has been put into */
    atomic_bool hold;  /* its kernel waits */
};

static int same(const ddp_layer_t *l, struct ddp_shape x, struct ddp_shape *y)
{
    (void)l;
    *y = x;
    return 0;
}

/* y = x, unless that begins with a negative number. */
static int copy(const struct ddp_kernel_args *a)
{
    const struct watch *l = a->arg;
    const float *x = a->buf[0].data;

    while (atomic_load(&l->hold))
        ;
    memcpy(a->buf[1].data, x, (size_t)a->n * sizeof(*x));
    return *x < 0;
}

static const struct ddp_kernel kernel = {.name = "copy",
                                         .on = {[DDP_CPU] = copy}};

static ddp_value_t *forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    ddp_value_t *y = ddp_graph_value(g, ddp_value_shape(x), DDP_F32);

    ((struct watch *)l)->graphs++;
    ddp_graph_call(g, &kernel, l, 2, (ddp_value_t *[]){x, y},
                   (enum ddp_access[]){DDP_READ, DDP_WRITE});
    return ddp_graph_record(g,
                            &(struct ddp_record){.layer = l, .x = x, .y = y});
}

static ddp_value_t *backward(ddp_layer_t *l, ddp_graph_t *g,
                             const struct ddp_record *r, ddp_value_t *dy)
{
    ddp_value_t *dx = ddp_graph_value(g, ddp_value_shape(dy), DDP_F32);

    (void)r;
    ddp_graph_call(g, &kernel, l, 2, (ddp_value_t *[]){dy, dx},
                   (enum ddp_access[]){DDP_READ, DDP_WRITE});
    return dx;
}

static const struct ddp_layer_ops ops = {
    .kind = "watch", .shape = same, .forward = forward, .backward = backward};

static const struct ddp_shape one = {1, 1, 1};

static ddp_chain_t *watched(struct watch **w)
{
    ddp_chain_t *c;

    *w = (struct watch *)ddp_layer_new(sizeof(**w), &ops);
    if (!*w || !(c = ddp_chain_new(&(*w)->layer, DDP_END)))
        bail_out("%s", ddp_errmsg());
    return c;
}

/* ---- slices ----------------------------------------------------------------
 */

enum { WIDE = 64 * 64 * 8, OUTPUTS = 3, MANY = 19 };

/* A layer that notes what goes through it. */
struct tally {
    ddp_layer_t layer; /* first */
    atomic_int calls, most;
};

static int note_samples(const struct ddp_kernel_args *a)
{
    struct tally *l = (struct tally *)a->arg;

    atomic_fetch_add(&l->calls, 1);
    if (a->n > atomic_load(&l->most))
        atomic_store(&l->most, a->n);
    memcpy(a->buf[1].data, a->buf[0].data, (size_t)a->n * WIDE * sizeof(float));
    return 0;
}

static ddp_value_t *tally_forward(ddp_layer_t *l, ddp_graph_t *g,
                                  ddp_value_t *x)
{
    static const struct ddp_kernel noting = {.name = "note",
                                             .on = {[DDP_CPU] = note_samples}};
    ddp_value_t *y = ddp_graph_value(g, ddp_value_shape(x), DDP_F32);

    ddp_graph_call(g, &noting, l, 2, (ddp_value_t *[]){x, y},
                   (enum ddp_access[]){DDP_READ, DDP_WRITE});
    return ddp_graph_record(g,
                            &(struct ddp_record){.layer = l, .x = x, .y = y});
}

/* Whole numbers, so that sums are exact: numbers below 2^24. */
static float whole(int i)
{
    return (float)(i % 7 - 3);
}

static bool exact(const float *x, const float *y)
{
    for (int n = 0; n < MANY; n++)
        for (int k = 0; k < OUTPUTS; k++) {
            int64_t sum = 0;

            for (int i = 0; i < WIDE; i++)
                sum += (int64_t)whole(k * WIDE + i) * (int64_t)x[n * WIDE + i];
            if ((double)y[n * OUTPUTS + k] != (double)sum)
                return false;
        }
    return true;
}

/* Three times as many weights as a sample has numbers: slices of 8 would write
 * enough, and 19 samples make three of up to 7, where batches are sliced. */
static void test_slices(bool may)
{
    static const struct ddp_layer_ops noting = {.kind = "tally",
                                                .shape = same,
                                                .forward = tally_forward,
                                                .backward = backward};
    struct tally *t = (struct tally *)ddp_layer_new(sizeof(*t), &noting);
    ddp_chain_t *c = ddp_chain_new(&t->layer, ddp_flatten_new(),
                                   ddp_dense_new(WIDE, OUTPUTS, NULL), DDP_END);
    float *x = malloc(MANY * WIDE * sizeof(*x)), y[MANY * OUTPUTS] = {0};
    float *w = malloc(OUTPUTS * WIDE * sizeof(*w)), b[OUTPUTS] = {0};
    ddp_compiled_t *p =
        ddp_compiled_new(ddp, c, (struct ddp_shape){64, 64, 8}, MANY, NULL);

    for (int i = 0; i < MANY * WIDE; i++)
        x[i] = (float)(i % 5 - i / WIDE % 3);
    for (int i = 0; i < OUTPUTS * WIDE; i++)
        w[i] = whole(i);
    ok(p && ddp_chain_set(c, "2.weight", w, OUTPUTS * WIDE) == 0 &&
           ddp_chain_set(c, "2.bias", b, OUTPUTS) == 0 &&
           ddp_compiled_run(p, x, MANY, y) == 0 && exact(x, y),
       "a large batch as worked out by hand");
    if (may && strstr(ddp_describe(ddp), " AMX,"))
        ok(t->most == 7 && t->calls == 3, "in slices: %d of up to %d samples",
           t->calls, t->most);
    else
        ok(t->most == MANY && t->calls == 1, "at once: %d of up to %d samples",
           t->calls, t->most);
    ddp_compiled_free(p);
    ddp_chain_free(c);
    free(x);
    free(w);
}

/* ---- requests -------------------------------------------------------------
 */

static void test_requests(void)
{
    struct ddp_compiled_options o = {COMPILED_DEFAULTS, .requests = 3};
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    struct watch *w;
    ddp_chain_t *c = watched(&w);
    ddp_compiled_t *p = ddp_compiled_new(ddp, c, one, 1, &o);
    int64_t r[4] = {-1, -1, -1, -1};
    bool good = p != NULL;

    atomic_store(&w->hold, true);
    for (int i = 0; i < 3; i++)
        good = good && ddp_compiled_submit(p, &x[i], 1, &y[i], &r[i]) == 0;
    ok(good, "three requests are in flight");
    ok(p && ddp_compiled_submit(p, &x[3], 1, &y[3], &r[3]) == DDP_EBUSY,
       "a fourth is refused: %s", ddp_errmsg());
    atomic_store(&w->hold, false);
    ok(p && ddp_compiled_wait(p, r[1]) == 0 && y[1] == 2,
       "the second one is waited for");
    ok(p && ddp_compiled_wait(p, r[1]) == DDP_EINVAL,
       "but not a second time: %s", ddp_errmsg());
    ok(p && ddp_compiled_submit(p, &x[3], 1, &y[3], &r[3]) == 0,
       "there is room for another");
    ok(p && ddp_compiled_wait(p, r[3]) == 0 &&
           ddp_compiled_wait(p, r[2]) == 0 && ddp_compiled_wait(p, r[0]) == 0 &&
           y[0] == 1 && y[2] == 3 && y[3] == 4,
       "the others, in another order");
    ok(p && ddp_compiled_submit(p, x, 1, y, r) == 0 &&
           ddp_compiled_wait(p, r[0] + 1) == DDP_EINVAL &&
           ddp_compiled_wait(p, -1) == DDP_EINVAL,
       "requests that there are not");
    ddp_compiled_free(p); /* with one in flight */
    ddp_chain_free(c);
}

static void test_failure(void)
{
    float x[3] = {1, -1, 3}, y[3] = {0};
    struct watch *w;
    ddp_chain_t *c = watched(&w);
    ddp_compiled_t *p = ddp_compiled_new(
        ddp, c, one, 1,
        &(struct ddp_compiled_options){COMPILED_DEFAULTS, .requests = 3});
    int64_t r[3] = {-1, -1, -1};

    for (int i = 0; p && i < 3; i++)
        ddp_compiled_submit(p, &x[i], 1, &y[i], &r[i]);
    ok(p && ddp_compiled_wait(p, r[0]) == 0 && y[0] == 1 &&
           ddp_compiled_wait(p, r[2]) == 0 && y[2] == 3,
       "requests around one that fails are done");
    ok(p && ddp_compiled_wait(p, r[1]) == DDP_EDEVICE && y[1] == 0,
       "which gets the reason, and no output: %s", ddp_errmsg());
    ok(p && ddp_compiled_run(p, x, 1, y + 1) == 0 && y[1] == 1,
       "the next request in its place is done");
    ok(ddp_chain_forward(ddp, c, x, DDP_F32, one, 3, 1, y) == DDP_EDEVICE &&
           strstr(ddp_errmsg(), "copy"),
       "ddp_chain_forward() fails as well");
    x[1] = 1;
    ok(ddp_chain_forward(ddp, c, x, DDP_F32, one, 3, 1, y) == 0 && y[2] == 3,
       "and not the next time");
    ddp_compiled_free(p);
    ddp_chain_free(c);
}

static void test_errors(void)
{
    struct ddp_compiled_options o = {COMPILED_DEFAULTS, .type = DDP_I32},
                                few = {COMPILED_DEFAULTS, .requests = -1};
    ddp_chain_t *c = net();
    ddp_compiled_t *p = ddp_compiled_new(ddp, c, image, BATCH, NULL);
    float x[X_LEN] = {0}, y[CLASSES];
    int64_t r;

    ok(!ddp_compiled_new(NULL, c, image, 1, NULL) &&
           !ddp_compiled_new(ddp, NULL, image, 1, NULL),
       "no context, or no chain");
    ok(!ddp_compiled_new(ddp, c, image, 0, NULL), "%s", ddp_errmsg());
    ok(!ddp_compiled_new(ddp, c, image, 1, &o), "%s", ddp_errmsg());
    ok(!ddp_compiled_new(ddp, c, image, 1, &few), "%s", ddp_errmsg());
    ok(!ddp_compiled_new(ddp, c, (struct ddp_shape){0, 1, 1}, 1, NULL), "%s",
       ddp_errmsg());
    ok(!ddp_compiled_new(ddp, c, (struct ddp_shape){6, 6, 4}, 1, NULL), "%s",
       ddp_errmsg());
    ok(ddp_compiled_run(p, x, BATCH + 1, y) == DDP_EINVAL &&
           ddp_compiled_submit(p, x, 0, y, &r) == DDP_EINVAL,
       "%s", ddp_errmsg());
    ok(ddp_compiled_run(p, NULL, 1, y) == DDP_EINVAL &&
           ddp_compiled_run(p, x, 1, NULL) == DDP_EINVAL,
       "%s", ddp_errmsg());
    ok(ddp_compiled_run(NULL, x, 1, y) == DDP_EINVAL &&
           ddp_compiled_wait(NULL, 0) == DDP_EINVAL &&
           ddp_compiled_shape(NULL).c == 0,
       "nothing was compiled");
    ddp_compiled_free(p);
    ddp_compiled_free(NULL);
    ddp_chain_free(c);
}

/* ---- threads ---------------------------------------------------------------
 */

enum { THREADS = 4, TIMES = 150 };

struct user {
    pthread_t thread;
    ddp_compiled_t *p;
    const float *x, *want;
    int first;
    bool good;
};

/* One sample after another, each thread beginning with another one; every
 * third is submitted, with another meanwhile if there is room. */
static void *use(void *arg)
{
    struct user *u = arg;
    float y[CLASSES];
    int64_t r;
    int rc;

    u->good = true;
    for (int i = u->first; i < u->first + TIMES; i++) {
        int k = i % COUNT;

        memset(y, 0, sizeof(y));
        rc = i % 3 ? DDP_EBUSY
                   : ddp_compiled_submit(u->p, u->x + k * X_LEN, 1, y, &r);
        if (rc == DDP_EBUSY)
            rc = ddp_compiled_run(u->p, u->x + k * X_LEN, 1, y);
        else if (rc == 0)
            rc = ddp_compiled_wait(u->p, r);
        u->good = u->good && rc == 0 &&
                  memcmp(y, u->want + k * CLASSES, sizeof(y)) == 0;
    }
    return NULL;
}

static void test_threads(int requests)
{
    float *x = samples(), want[COUNT * CLASSES];
    ddp_chain_t *c = net();
    ddp_compiled_t *p =
        ddp_compiled_new(ddp, c, image, BATCH,
                         &(struct ddp_compiled_options){COMPILED_DEFAULTS,
                                                        .requests = requests});
    struct user u[THREADS];
    bool good = p && evaluate(c, DDP_F32, x, 1, want);

    for (int i = 0; good && i < THREADS; i++) {
        u[i] = (struct user){.p = p, .x = x, .want = want, .first = 3 * i};
        if (pthread_create(&u[i].thread, NULL, use, &u[i]) != 0)
            bail_out("no thread");
    }
    for (int i = 0; good && i < THREADS; i++)
        pthread_join(u[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        good = good && u[i].good;
    ok(good, "%d threads share %d requests: each gets its own outputs", THREADS,
       requests);
    ddp_compiled_free(p);
    ddp_chain_free(c);
    free(x);
}

/* ---- one-shot calls ---------------------------------------------------------
 */

static void test_kept(void)
{
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
    struct watch *w;
    ddp_chain_t *c = watched(&w);
    bool good = true;

    for (int i = 0; i < 3; i++)
        good = ddp_chain_forward(ddp, c, x, DDP_F32, one, 6, 2, y) == 0 &&
               memcmp(x, y, sizeof(y)) == 0 && good;
    is_int(w->graphs, 1, "three calls of ddp_chain_forward() build one graph");
    good = ddp_chain_forward(ddp, c, x, DDP_F32, one, 3, 2, y) == 0 && good;
    is_int(w->graphs, 1, "so does one of fewer samples");
    good = ddp_chain_forward(ddp, c, x, DDP_F32, one, 6, 3, y) == 0 && good;
    good = ddp_chain_forward(ddp, c, x, DDP_F32, (struct ddp_shape){1, 1, 1}, 1,
                             0, y) == 0 &&
           good;
    is_int(w->graphs, 3, "other sub-batches build others");
    ok(good, "and all are done");
    ddp_chain_free(c);
}

/* A chain outlives a context, and what was kept for that does not. */
static void test_contexts(void)
{
    float *x = samples(), y[2][CLASSES];
    ddp_chain_t *c = net();
    bool good =
        ddp_chain_forward(ddp, c, x, DDP_F32, image, 1, 0, y[0]) == 0 &&
        (ddp_pullback_free(ddp_pullback_new(ddp, c, x, image, 1, 0, NULL)), 1);

    ddp_finish(ddp);
    if (!(ddp = ddp_init(NULL)))
        bail_out("%s", ddp_errmsg());
    ok(good && ddp_chain_forward(ddp, c, x, DDP_F32, image, 1, 0, y[1]) == 0 &&
           memcmp(y[0], y[1], sizeof(y[0])) == 0,
       "a chain goes from one context to another");
    ddp_chain_free(c);
    free(x);
}

/* ---- pullbacks
 * --------------------------------------------------------------- */

/* Outputs and gradients of a pullback at work, one after another. */
struct pulled {
    float y[3 * CLASSES], dx[3 * X_LEN], dw[SIDE * SIDE * 2 * CLASSES];
};

static bool pull(ddp_pullback_t *p, struct pulled *out)
{
    float dy[3 * CLASSES];

    for (uint32_t i = 0; i < 3 * CLASSES; i++)
        dy[i] = number(900 + i);
    return p && ddp_pullback_backward(p, dy, out->dx) == 0 &&
           ddp_pullback_get_gradient(p, "7.weight", out->dw,
                                     SIDE * SIDE * 2 * CLASSES) == 0;
}

/* By a pullback of its own, of a chain that has not been used before. */
static bool pull_once(const float *x, struct pulled *out)
{
    ddp_chain_t *c = net();
    ddp_pullback_t *p = ddp_pullback_new(ddp, c, x, image, 3, 2, out->y);
    bool good = pull(p, out);

    ddp_pullback_free(p);
    ddp_chain_free(c);
    return good;
}

static void test_pullback(void)
{
    float *x = samples(), w = 0;
    static struct pulled want[2], got;
    ddp_chain_t *c = net();
    ddp_pullback_t *p = ddp_pullback_new(ddp, c, x, image, 3, 2, got.y), *q;

    ok(pull_once(x, &want[0]) && pull_once(x + 3 * X_LEN, &want[1]) &&
           memcmp(&want[0], &want[1], sizeof(got)) != 0,
       "two pullbacks of different samples");
    ok(pull(p, &got) && memcmp(&got, &want[0], sizeof(got)) == 0,
       "a pullback is used for the first samples");
    ok(p && ddp_pullback_forward(p, x + 3 * X_LEN, got.y) == 0 &&
           ddp_pullback_get_gradient(p, "7.weight", &w, 1) < 0 &&
           pull(p, &got) && memcmp(&got, &want[1], sizeof(got)) == 0,
       "and again for the others, to the same bits");
    q = ddp_pullback_new(ddp, c, x, image, 3, 2, got.y);
    ok(pull(q, &got) && memcmp(&got, &want[0], sizeof(got)) == 0,
       "another one at the same time");
    ddp_pullback_free(p);
    ddp_pullback_free(q);
    p = ddp_pullback_new(ddp, c, x + 3 * X_LEN, image, 3, 2, got.y);
    ok(pull(p, &got) && memcmp(&got, &want[1], sizeof(got)) == 0,
       "one made of what a freed one has left");
    ok(ddp_pullback_forward(NULL, x, NULL) == DDP_EINVAL &&
           ddp_pullback_forward(p, NULL, NULL) == DDP_EINVAL,
       "no pullback, or no samples");
    ddp_pullback_free(p);
    ddp_chain_free(c);
    free(x);
}

/* Both passes of two pullbacks, held in flight. */
static void test_pullback_in_flight(void)
{
    const float x[2] = {1, 2}, dy[2] = {3, 4};
    float y[2] = {0}, dx[2] = {0};
    struct watch *w;
    ddp_chain_t *c = watched(&w);
    ddp_pullback_t *p[2];
    bool good = true;

    for (int i = 0; i < 2; i++)
        p[i] = ddp_pullback_new(ddp, c, x, one, 1, 0, NULL);
    atomic_store(&w->hold, true);
    for (int i = 0; i < 2; i++)
        good = good && ddp_pullback_submit_forward(p[i], &x[i], &y[i]) == 0;
    ok(good && y[0] == 0 && y[1] == 0, "two pullbacks are in flight");
    ok(ddp_pullback_submit_forward(p[0], x, y) == DDP_EBUSY &&
           ddp_pullback_submit_backward(p[0], dy, dx) == DDP_EBUSY &&
           ddp_pullback_get_gradient(p[0], "0.w", dx, 1) == DDP_EBUSY,
       "one at a time each: %s", ddp_errmsg());
    atomic_store(&w->hold, false);
    ok(good && ddp_pullback_wait(p[1]) == 0 && y[1] == 2 &&
           ddp_pullback_wait(p[0]) == 0 && y[0] == 1,
       "they are waited for in any order");
    ok(ddp_pullback_wait(p[0]) == DDP_EINVAL, "once: %s", ddp_errmsg());
    atomic_store(&w->hold, true);
    for (int i = 0; i < 2; i++)
        good = good && ddp_pullback_submit_backward(p[i], &dy[i], &dx[i]) == 0;
    ok(good && dx[0] == 0 && dx[1] == 0, "backward as well");
    atomic_store(&w->hold, false);
    ok(good && ddp_pullback_wait(p[0]) == 0 && ddp_pullback_wait(p[1]) == 0 &&
           dx[0] == 3 && dx[1] == 4,
       "and waited for");
    for (int i = 0; i < 2; i++)
        ddp_pullback_free(p[i]);
    ddp_chain_free(c);
}

/* A pass that fails, waited for or not, leaves nothing for the next one. */
static void test_pullback_failure(void)
{
    const float x = 1, bad = -1;
    char before[256];
    float y = 0;
    struct watch *w;
    ddp_chain_t *c = watched(&w);
    ddp_pullback_t *p = ddp_pullback_new(ddp, c, &x, one, 1, 0, NULL);

    ok(ddp_pullback_submit_forward(p, &bad, &y) == 0 &&
           ddp_pullback_wait(p) == DDP_EDEVICE && y == 0,
       "a pass fails when it is waited for: %s", ddp_errmsg());
    ok(ddp_pullback_submit_backward(p, &x, &y) == DDP_EINVAL,
       "no backward pass without a forward pass: %s", ddp_errmsg());
    snprintf(before, sizeof(before), "%s", ddp_errmsg());
    ok(ddp_pullback_submit_forward(p, &bad, &y) == 0, "a second failure");
    ddp_pullback_free(p);
    ok(strcmp(ddp_errmsg(), before) == 0, "which nobody waits for");
    p = ddp_pullback_new(ddp, c, &x, one, 1, 0, &y);
    ok(p && y == 1 && w->graphs == 1, "and the next one has its memory");
    ok(ddp_pullback_submit_forward(NULL, &x, &y) == DDP_EINVAL &&
           ddp_pullback_submit_backward(NULL, &x, &y) == DDP_EINVAL &&
           ddp_pullback_get_gradient(NULL, "0.w", &y, 1) == DDP_EINVAL &&
           ddp_pullback_wait(NULL) == DDP_EINVAL,
       "no pullback");
    ddp_pullback_free(p);
    ddp_chain_free(c);
}

static void start(const char *segment_us)
{
    setenv("DDP_SEGMENT_US", segment_us, 1);
    if (!(ddp = ddp_init(NULL)))
        bail_out("%s", ddp_errmsg());
}

int main(void)
{
    start("0");
    test_outputs("a task for each operation");
    test_slices(false);
    test_requests();
    test_failure();
    test_threads(2);
    test_pullback();
    test_pullback_in_flight();
    test_pullback_failure();
    ddp_finish(ddp);
    start("");
    diag("%s", ddp_describe(ddp));
    test_outputs("one task");
    test_half(DDP_BF16, "bf16");
    test_half(DDP_F16, "f16");
    test_dense();
    test_slices(true);
    test_bytes();
    test_requests();
    test_failure();
    test_errors();
    test_threads(1);
    test_threads(3);
    test_threads(8);
    test_kept();
    test_contexts();
    test_pullback();
    test_pullback_in_flight();
    test_pullback_failure();
    ddp_finish(ddp);
    return done_testing();
}
