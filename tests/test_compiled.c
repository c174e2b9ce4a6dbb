/* test_compiled.c - outputs of chains that are prepared once
 *
 * What dense layers give is worked out here in double; for convolutions the
 * oracle is ddp_chain_evaluate(), which runs another graph of another engine,
 * one task for each operation.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>

#include "small_net.h"
#include "watch_layer.h"

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

/* ---- one-shot calls ------------------------------------------------------ */

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

int main(void)
{
    start("0");
    test_outputs("a task for each operation");
    ddp_finish(ddp);
    start("");
    diag("%s", ddp_describe(ddp));
    test_outputs("one task");
    test_half(DDP_BF16, "bf16");
    test_half(DDP_F16, "f16");
    test_dense();
    test_bytes();
    test_errors();
    test_kept();
    test_contexts();
    ddp_finish(ddp);
    return done_testing();
}
