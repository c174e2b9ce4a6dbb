/* test_mix.c - mixup and cutmix: distributions, pixels, targets, equal bits
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Formulas are those of timm's mixup.py, written out once more.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "base/random.h"
#include "defaults.h"
#include "tap.h"
#include "train/loader.h"

enum { DRAWS = 20000, COUNT = 37, SIDE = 6, CLASSES = 5 };

/* ---- draws -------------------------------------------------------------- */

/* Of Beta(a, a): mean 1/2, variance 1 / (4 (2 a + 1)); of means of DRAWS both
 * are off by 5 deviations at most. */
static void test_beta(double a)
{
    double mean = 0, square = 0, variance = 1 / (4 * (2 * a + 1));
    bool inside = true;

    for (uint64_t i = 0; i < DRAWS; i++) {
        double x = (double)ddp__draw_beta(i, a);

        inside &= x >= 0 && x <= 1;
        mean += x / DRAWS;
        square += (x - 0.5) * (x - 0.5) / DRAWS;
    }
    ok(inside, "Beta(%g): from 0 to 1", a);
    is_near(mean, 0.5, 5 * sqrt(variance / DRAWS), "Beta(%g): the mean", a);
    is_near(square, variance, 5 * 0.25 / sqrt(DRAWS), "Beta(%g): variance", a);
}

static void test_shares(void)
{
    double mean[3] = {0}, off = 0;

    for (uint64_t i = 0; i < DRAWS; i++) {
        float share[3];

        ddp__draw_shares(i, 1, 3, share);
        off = fmax(off, fabs((double)(share[0] + share[1] + share[2]) - 1));
        for (int k = 0; k < 3; k++)
            mean[k] += (double)share[k] / DRAWS;
    }
    ok(off < 1e-6, "shares: their sum is 1");
    for (int k = 0; k < 3; k++)
        is_near(mean[k], 1 / 3.0, 5 * sqrt(1 / 18.0 / DRAWS),
                "shares: the mean of number %d", k);
}

static void test_normal(void)
{
    double mean = 0, square = 0;

    for (uint64_t i = 0; i < DRAWS; i++) {
        double x = (double)ddp__draw_normal(i);

        mean += x / DRAWS;
        square += x * x / DRAWS;
    }
    is_near(mean, 0, 5 / sqrt(DRAWS), "normal: the mean");
    is_near(square, 1, 5 * sqrt(2.0 / DRAWS), "normal: the variance");
}

/* ---- plans -------------------------------------------------------------- */

/* How often a sub-batch is mixed, and by a box. */
static void test_choices(void)
{
    struct ddp__mix m = {0.2, 1, 0.7, 0.4, 0};
    struct ddp_shape shape = {32, 24, 3};
    double mixed = 0, cut = 0, own = 0;
    bool good = true;

    for (uint64_t i = 0; i < DRAWS; i++) {
        struct ddp__mixture p = ddp__mix_plan(&m, i, shape);
        double area = (double)(p.w * p.h) / (32 * 24);

        mixed += (double)(p.own < 1) / DRAWS;
        cut += (double)p.cut / DRAWS;
        own += p.cut ? (double)p.own : 0;
        good &= p.x >= 0 && p.y >= 0 && p.x + p.w <= 24 && p.y + p.h <= 32;
        good &= !p.cut || fabs((double)p.own - (1 - area)) < 1e-6;
    }
    ok(good, "a box is in the image, and has the share that its samples get");
    is_near(cut, 0.28, 5 * sqrt(0.28 * 0.72 / DRAWS), "0.7 x 0.4: by a box");
    /* A share that is 1 in f32, and a box of no pixel, mix nothing. */
    ok(mixed < 0.7 + 0.017 && mixed > 0.63, "0.7: mixed at all");
    /* A box at an edge is smaller: rand_bbox() of timm has 0.704 here. */
    is_near(own / (cut * DRAWS), 0.704, 0.02, "boxes: the mean share");
}

static void test_one_kind(void)
{
    struct ddp__mix up = {1, 0, 1, 0.9, 0}, cut = {0, 1, 1, 0, 0};
    struct ddp_shape shape = {8, 8, 1};
    int boxes = 0, others = 0;

    for (uint64_t i = 0; i < 100; i++) {
        boxes += ddp__mix_plan(&up, i, shape).cut;
        others += !ddp__mix_plan(&cut, i, shape).cut;
    }
    ok(boxes == 0 && others == 0, "mixup alone, and cutmix alone");
}

/* ---- sub-batches -------------------------------------------------------- */

static uint8_t pixel(int64_t sample, int i)
{
    return (uint8_t)(sample * 31 + i * 7);
}

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    (void)arg;
    (void)key;
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        ((uint8_t *)s->x)[i] = pixel(index, i);
    s->label = (int32_t)(index % CLASSES);
    return s->target ? DDP_EINVAL : 0; /* there is no room for targets */
}

static ddp_dataset_t *samples(void)
{
    return ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                     .shape = {SIDE, SIDE, 3},
                                                     .type = DDP_U8,
                                                     .classes = CLASSES,
                                                     .get = get});
}

/* A sub-batch of 7, as the loader fills it. */
struct batch {
    uint8_t x[7 * SIDE * SIDE * 3];
    int64_t ids[7];
    float target[7 * CLASSES], weight[8];
};

static void fill(struct ddp__loader *l, uint64_t number, int n, struct batch *b)
{
    struct ddp__view x = {DDP_U8, true, {SIDE, SIDE, 3}, 0};
    struct ddp__view target = {DDP_F32, true, {1, 1, CLASSES}, 0};
    struct ddp__call c = {.op = DDP__OP_HOST, .cap = 7};
    struct ddp__task t = {.call = &c,
                          .n = n,
                          .seed = number,
                          .data = {[DDP__FILL_X] = b->x,
                                   [DDP__FILL_IDS] = b->ids,
                                   [DDP__FILL_TARGET] = b->target,
                                   [DDP__FILL_WEIGHT] = b->weight}};

    c.buf[DDP__FILL_X] = x;
    c.buf[DDP__FILL_TARGET] = target;
    if (ddp__loader_fill(&t, l) < 0)
        bail_out("%s", ddp_errmsg());
}

static bool in_box(const struct ddp__mixture *m, int i)
{
    int x = i / 3 % SIDE, y = i / 3 / SIDE;

    return x >= m->x && x < m->x + m->w && y >= m->y && y < m->y + m->h;
}

/* FastCollateMixup: np.rint of f32 products. */
static uint8_t mixed(const struct ddp__mixture *m, int64_t a, int64_t b, int i)
{
    float own = m->own;

    if (m->cut)
        return in_box(m, i) ? pixel(b, i) : pixel(a, i);
    return (uint8_t)rintf((float)pixel(a, i) * own +
                          (float)pixel(b, i) * (1 - own));
}

static bool is_mixed(const struct batch *b, int n, const struct ddp__mixture *m)
{
    bool good = true;

    for (int s = 0; s < n; s++) {
        int64_t mine = b->ids[s], other = b->ids[n - 1 - s];

        for (int i = 0; i < SIDE * SIDE * 3; i++)
            good &= b->x[s * SIDE * SIDE * 3 + i] == mixed(m, mine, other, i);
        for (int k = 0; k < CLASSES; k++) {
            float want = (mine % CLASSES == k ? m->own : 0) +
                         (other % CLASSES == k ? 1 - m->own : 0);

            good &= fabsf(b->target[s * CLASSES + k] - want) < 1e-6f;
        }
    }
    return good;
}

/* The key is that of the sub-batch, so its plan is found by trying: one of the
 * 20 keys of an epoch. */
static void test_pixels(double mixup, double cutmix)
{
    ddp_dataset_t *d = samples();
    struct ddp__loader l = ddp__loader(d, 14, 7);
    struct batch b;
    int good = 0, all = 0;

    l.shuffle = l.replace = l.shares = true;
    l.seed = 3;
    l.mix = (struct ddp__mix){mixup, cutmix, 1, 0.5, 2};
    for (uint64_t number = 0; number < 6; number++) {
        uint64_t key = ddp__key(3, (uint64_t)1 << 62, number);
        struct ddp__mixture m =
            ddp__mix_plan(&l.mix, key, (struct ddp_shape){SIDE, SIDE, 3});
        int n = number == 5 ? 2 : 7; /* the last of 37 */

        fill(&l, number, n, &b);
        good += is_mixed(&b, n, &m);
        all++;
    }
    ok(good == all, "mixup %g, cutmix %g: pixels and shares as timm has them",
       mixup, cutmix);
    fill(&l, 12, 7, &b); /* of the third epoch */
    ok(is_mixed(&b, 7, &(struct ddp__mixture){.own = 1}),
       "and from the epoch on that ends it, as they are");
    ddp_dataset_free(d);
}

/* ---- training ----------------------------------------------------------- */

static ddp_chain_t *net(void)
{
    return ddp_chain_new(ddp_flatten_new(),
                         ddp_dense_new(SIDE * SIDE * 3, CLASSES, NULL),
                         DDP_END);
}

/* The weights after two epochs on so many workers. */
static bool train(int cpus, double mixup, float smoothing, float *w)
{
    struct ddp_train_config cfg = {
        TRAIN_DEFAULTS,  .optimizer = ddp_adam(1e-2f),
        .batch = 14,     .sub_batch = 7,
        .epochs = 2,     .mixup = mixup,
        .cutmix = mixup, .label_smoothing = smoothing,
        .seed = 5};
    ddp_t *ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .cpus = cpus});
    ddp_dataset_t *d = samples();
    ddp_chain_t *c = net();
    ddp_trainer_t *t = ddp_trainer_new(ddp, c, d, &cfg);
    int rc = ddp_trainer_train(t);

    if (rc == 0)
        rc = ddp_chain_get(c, "1.bias", w, CLASSES);
    if (rc < 0)
        diag("%s", ddp_errmsg());
    ddp_trainer_free(t);
    ddp_chain_free(c);
    ddp_dataset_free(d);
    ddp_finish(ddp);
    return rc == 0;
}

static void test_training(void)
{
    float one[CLASSES], two[CLASSES], plain[CLASSES];

    ok(train(1, 0.4, 0.1f, one) && train(2, 0.4, 0.1f, two) &&
           !memcmp(one, two, sizeof(one)),
       "the same bits on one worker and two");
    ok(train(2, 0, 0.1f, plain) && memcmp(one, plain, sizeof(one)) != 0,
       "and others without mixing");
}

/* A batch that the program asks for: what the loader fills, which is checked
 * above. */
static void test_batch(void)
{
    struct ddp_train_config cfg = {TRAIN_DEFAULTS, .optimizer = ddp_adam(1e-2f),
                                   .batch = 14,    .sub_batch = 7,
                                   .epochs = 2,    .mixup = 0.4,
                                   .cutmix = 1,    .seed = 5};
    ddp_t *ddp = ddp_init(NULL);
    ddp_dataset_t *d = samples();
    ddp_chain_t *c = net();
    ddp_trainer_t *t = ddp_trainer_new(ddp, c, d, &cfg);
    struct ddp__loader l = ddp__loader(d, 14, 7);
    struct batch b;
    uint8_t x[sizeof(b.x)];
    int32_t label[7];
    bool same = true;

    l.shuffle = l.replace = l.shares = true;
    l.seed = 5;
    l.mix = (struct ddp__mix){0.4, 1, 1, 0.5, 0};
    for (int64_t step = 0; step < 6; step++) {
        int n = ddp_trainer_batch(t, step, x, label);

        fill(&l, (uint64_t)(step * 2), 7, &b);
        same &= n == 7 && !memcmp(x, b.x, sizeof(x));
        for (int i = 0; i < n; i++)
            for (int k = 0; k < CLASSES; k++)
                same &= b.target[i * CLASSES + label[i]] >=
                        b.target[i * CLASSES + k];
    }
    ok(same, "the first sub-batch of each step, as the network gets it");
    ok(ddp_trainer_batch(t, -1, x, label) == DDP_EINVAL, "step -1: %s",
       ddp_errmsg());
    ddp_trainer_free(t);
    ddp_chain_free(c);
    ddp_dataset_free(d);
    ddp_finish(ddp);
}

int main(void)
{
    test_beta(0.1);
    test_beta(0.8);
    test_beta(1);
    test_beta(3);
    test_shares();
    test_normal();
    test_choices();
    test_one_kind();
    test_pixels(0.8, 0);
    test_pixels(0, 1);
    test_pixels(0.8, 1);
    test_training();
    test_batch();
    return done_testing();
}
