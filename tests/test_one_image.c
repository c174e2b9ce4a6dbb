/* test_one_image.c - workers that share the layers of one image
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Bits must be those of one worker.  What they are is compared with ref, plain
 * C that has no parts: sums of up to 2304 products in f32, added in another
 * order, are off by less than 3e-5 of the largest one, also where Winograd's
 * transforms are in between.  In bf16 weights are rounded by up to 2^-9, ref's
 * before they are multiplied by the norm's factors and others' afterwards; the
 * results of both are rounded and may differ by a unit, 2^-8; Winograd's
 * integers add 2.4e-3 (test_wino.c).
 */
#include "config.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/team.h"
#include "defaults.h"
#include "tap.h"

/* ---- parts ----------------------------------------------------------------
 */

enum { PARTS = 1000, HELPERS = 3 };

struct work {
    atomic_int times[PARTS];
    int fails; /* this part; -1: none */
};

static int count_part(void *arg, int i)
{
    struct work *w = arg;

    atomic_fetch_add(&w->times[i], 1);
    return i == w->fails ? ddp__fail(DDP_EDEVICE, "part %d failed", i) : 0;
}

static bool each_once(const struct work *w)
{
    bool good = true;

    for (int i = 0; i < PARTS; i++)
        good = good && atomic_load(&w->times[i]) == 1;
    return good;
}

static void *help(void *arg)
{
    ddp__team_help(arg);
    return NULL;
}

/* The first part that this thread runs, and the first that a helper does. */
struct firsts {
    pthread_t self;
    atomic_int mine, theirs; /* -1: none yet */
};

/* Waits for the other one, for up to 50 ms. */
static int note_first(void *arg, int i)
{
    static const struct timespec rest = {.tv_nsec = 1000000};
    struct firsts *f = arg;
    bool is_mine = pthread_equal(pthread_self(), f->self);
    int none = -1;

    atomic_compare_exchange_strong(is_mine ? &f->mine : &f->theirs, &none, i);
    for (int k = 0; k < 50 && (f->mine < 0 || f->theirs < 0); k++)
        nanosleep(&rest, NULL);
    return 0;
}

/* Whoever comes begins in its own half, where it wrote before.  A helper that
 * is late may have left before there is a kernel: then another one comes. */
static void test_halves(void)
{
    struct firsts f = {.theirs = -1};

    for (int i = 0; i < 20 && f.theirs < 0; i++) {
        struct ddp__team team = {0};
        pthread_t t;

        f = (struct firsts){pthread_self(), -1, -1};
        ddp__team_enter(&team);
        if (pthread_create(&t, NULL, help, &team) != 0)
            bail_out("no thread");
        ddp__team_each(9, note_first, &f);
        ddp__team_leave();
        pthread_join(t, NULL);
    }
    ok(f.mine == 0 && f.theirs == 4,
       "a helper begins with the second half of the parts (%d, %d)", f.mine,
       f.theirs);
}

static void test_team(void)
{
    static struct work alone = {.fails = -1}, shared[100], bad = {.fails = 7};
    struct ddp__team team = {0};
    pthread_t t[HELPERS];
    bool good = true;

    ok(ddp__team_each(PARTS, count_part, &alone) == 0 && each_once(&alone),
       "without a team each part runs once");
    ddp__team_enter(&team);
    for (int i = 0; i < HELPERS; i++)
        if (pthread_create(&t[i], NULL, help, &team) != 0)
            bail_out("no thread");
    for (int i = 0; i < 100; i++) {
        shared[i].fails = -1;
        good = ddp__team_each(PARTS, count_part, &shared[i]) == 0 && good;
    }
    for (int i = 0; i < 100; i++)
        good = good && each_once(&shared[i]);
    ok(good, "with a team, too");
    ok(ddp__team_each(PARTS, count_part, &bad) == DDP_EDEVICE &&
           !strcmp(ddp_errmsg(), "part 7 failed"),
       "a part that fails, anywhere: %s", ddp_errmsg());
    memset(&alone, 0, sizeof(alone));
    alone.fails = -1;
    ok(ddp__team_each(PARTS, count_part, &alone) == 0 && each_once(&alone),
       "and nothing is left of that");
    ddp__team_leave();
    for (int i = 0; i < HELPERS; i++)
        pthread_join(t[i], NULL);
}

/* ---- layers ---------------------------------------------------------------
 */

enum { DENSE = -1, GATE = -2 }; /* for kernels */

static const struct layer {
    const char *name;
    int size, in, out, kernel, stride, pads[4], dilation, groups;
} layers[] = {
    {"1x1", 56, 64, 256, 1, 1, {0}, 1, 1},
    {"1x1 of stride 2", 57, 128, 128, 1, 2, {0}, 1, 1},
    {"7x7 of stride 2", 112, 3, 64, 7, 2, {3, 3, 3, 3}, 1, 1},
    {"3x3 of stride 2", 56, 128, 128, 3, 2, {1, 1, 1, 1}, 1, 1},
    {"3x3 padded below", 57, 64, 64, 3, 2, {0, 0, 2, 2}, 1, 1},
    {"3x3 with gaps", 28, 256, 64, 3, 1, {2, 2, 2, 2}, 2, 1},
    {"3x3, many tiles", 56, 64, 64, 3, 1, {1, 1, 1, 1}, 1, 1},
    {"3x3, one group", 14, 256, 256, 3, 1, {1, 1, 1, 1}, 1, 1},
    {"depthwise 3x3", 112, 96, 96, 3, 1, {1, 1, 1, 1}, 1, 96},
    {"depthwise 5x5 of stride 2", 112, 96, 96, 5, 2, {2, 2, 2, 2}, 1, 96},
    {"depthwise 5x5 on 7x7", 7, 1152, 1152, 5, 1, {2, 2, 2, 2}, 1, 1152},
    {"1x1 of stride 2 to 7x7", 14, 512, 512, 1, 2, {0}, 1, 1},
    {"1x1 on 7x7", 7, 1152, 200, 1, 1, {0}, 1, 1},
    {"two rows", 2, 2048, 512, 1, 1, {0}, 1, 1},
    {"dense", 1, 1280, 1001, .kernel = DENSE},
    {"squeeze and excitation", 56, 96, 96, .kernel = GATE},
};

enum { LAYERS = sizeof(layers) / sizeof(*layers) };

static ddp_layer_t *conv_of(const struct layer *l)
{
    struct ddp_conv_options o = {CONV_DEFAULTS, .stride = l->stride,
                                 .dilation = l->dilation, .groups = l->groups};

    memcpy(o.pads, l->pads, sizeof(o.pads));
    return ddp_conv_new(l->in, l->out, l->kernel, &o);
}

static ddp_layer_t *gate_of(const struct layer *l)
{
    return ddp_chain_new(ddp_global_mean_pool_new(),
                         ddp_conv_new(l->in, l->out, 1, NULL),
                         ddp_sigmoid_new(), DDP_END);
}

static ddp_chain_t *chain_of(const struct layer *l)
{
    ddp_chain_t *c =
        l->kernel == DENSE ? ddp_chain_new(ddp_dense_new(l->in, l->out, NULL),
                                           ddp_relu_new(), DDP_END)
        : l->kernel == GATE
            ? ddp_chain_new(ddp_channel_scale_new(gate_of(l)), DDP_END)
            : ddp_chain_new(conv_of(l), ddp_batch_norm_new(l->out, NULL),
                            ddp_relu_new(), DDP_END);

    if (!c || ddp_chain_init(c, 5) < 0)
        bail_out("%s: %s", l->name, ddp_errmsg());
    return c;
}

/* Numbers in -1..1, always the same ones. */
static float *image_of(const struct layer *l)
{
    int len = l->size * l->size * l->in;
    float *x = malloc((size_t)len * sizeof(*x));
    uint32_t u = 1;

    for (int i = 0; x && i < len; i++) {
        u = u * 1664525u + 1013904223u;
        x[i] = (float)(u >> 8) * 0x1p-23f - 1;
    }
    return x;
}

/* What a layer gives of its image, several times; owned. */
static float *run_layer(ddp_t *ddp, const struct layer *l, enum ddp_dtype type,
                        size_t *len)
{
    struct ddp_compiled_options o = {COMPILED_DEFAULTS, .dtype = type};
    struct ddp_shape x = {l->size, l->size, l->in}, y;
    ddp_chain_t *c = chain_of(l);
    ddp_compiled_t *p = ddp_compiled_new(ddp, c, x, 1, &o);
    float *image = image_of(l), *out, *again;
    bool good = p && image;

    y = ddp_compiled_shape(p);
    *len = (size_t)y.h * (size_t)y.w * (size_t)y.c;
    out = malloc(*len * sizeof(*out));
    again = malloc(*len * sizeof(*out));
    good = good && ddp_compiled_run(p, image, 1, out) == 0;
    for (int i = 0; good && i < 3; i++)
        good = ddp_compiled_run(p, image, 1, again) == 0 &&
               memcmp(out, again, *len * sizeof(*out)) == 0;
    if (!good)
        bail_out("%s: %s", l->name, ddp_errmsg());
    ddp_compiled_free(p);
    ddp_chain_free(c);
    free(image);
    free(again);
    return out;
}

static void run_layers(const char *backend, int workers, enum ddp_dtype type,
                       float *out[LAYERS], size_t len[LAYERS])
{
    ddp_t *ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .cpus = workers,
                                               .backend = backend, .gpus = 0});

    if (!ddp)
        bail_out("%s", ddp_errmsg());
    for (int i = 0; i < LAYERS; i++)
        out[i] = run_layer(ddp, &layers[i], type, &len[i]);
    ddp_finish(ddp);
}

static double off_by(const float *a, const float *b, size_t len)
{
    double worst = 0, largest = 0;

    for (size_t i = 0; i < len; i++) {
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
        largest = fmax(largest, fabs((double)b[i]));
    }
    return worst / largest;
}

static void test_layers(enum ddp_dtype type)
{
    const char *name = type == DDP_BF16 ? "bf16" : "f32";
    double most = type == DDP_BF16 ? 0x1p-9 + 0x1p-8 + 2.4e-3 : 3e-5;
    float *one[LAYERS], *three[LAYERS], *ref[LAYERS];
    size_t len[LAYERS];

    run_layers("cpu", 1, type, one, len);
    run_layers("cpu", 3, type, three, len);
    run_layers("ref", 1, type, ref, len);
    for (int i = 0; i < LAYERS; i++) {
        double off = off_by(one[i], ref[i], len[i]);

        ok(memcmp(one[i], three[i], len[i] * sizeof(float)) == 0,
           "%s, %s: three workers give the bits of one", layers[i].name, name);
        ok(off < most, "%s, %s: off from ref by %.1e", layers[i].name, name,
           off);
        free(one[i]);
        free(three[i]);
        free(ref[i]);
    }
}

/* Whether CPU workers compute in bf16. */
static bool has_bf16(void)
{
    struct ddp_compiled_options o = {COMPILED_DEFAULTS, .dtype = DDP_BF16};
    ddp_t *ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .cpus = 1});
    ddp_chain_t *c = ddp_chain_new(ddp_relu_new(), DDP_END);
    ddp_compiled_t *p =
        ddp_compiled_new(ddp, c, (struct ddp_shape){1, 1, 1}, 1, &o);
    bool has = p;

    if (!ddp || !c || (!p && ddp_errcode() != DDP_ENODEV))
        bail_out("%s", ddp_errmsg());
    ddp_compiled_free(p);
    ddp_chain_free(c);
    ddp_finish(ddp);
    return has;
}

int main(void)
{
    unsetenv("STARPU_NCPU");
    test_team();
    test_halves();
    test_layers(DDP_F32);
    if (has_bf16())
        test_layers(DDP_BF16);
    else
        skip(2 * LAYERS, "no bf16 arithmetic");
    return done_testing();
}
