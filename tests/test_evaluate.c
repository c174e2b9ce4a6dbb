/* test_evaluate.c - answers one by one, mirror images, images without classes
 *
 * The oracle is ddp_chain_forward() on the samples, put in memory by the test;
 * what is counted and averaged is worked out here once more.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/philox.h"
#include "defaults.h"
#include "make_image.h"
#include "runtime/context.h"
#include "tap.h"

enum { H = 6, W = 7, C = 3, LEN = H * W * C, CLASSES = 12, COUNT = 450 };
enum { SUB = 8, LANES = 2 };

static const struct ddp_shape shape = {H, W, C};

/* ---- data --------------------------------------------------------------- */

static float value(int64_t index, int i)
{
    return ddp__uniform(ddp__philox(5, (uint64_t)index, (uint64_t)i).v[0]) * 2 -
           1;
}

static int32_t class_of(int64_t index)
{
    return (int32_t)(index * 5 % 11);
}

/* Sample 13 cannot be read. */
static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    (void)key;
    if (index == 13 && arg)
        return DDP_EDATA;
    for (int i = 0; i < LEN; i++)
        x[i] = value(index, i);
    s->label = class_of(index);
    return 0;
}

static ddp_dataset_t *samples(int classes, void *bad)
{
    return ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                     .shape = shape,
                                                     .type = DDP_F32,
                                                     .classes = classes,
                                                     .get = get,
                                                     .arg = bad});
}

/* All samples, or their mirror images. */
static float *all(bool flip)
{
    float *x = calloc(COUNT * LEN, sizeof(*x));

    for (int i = 0; x && i < COUNT * LEN; i++) {
        int k = i % LEN, c = k % C, w = k / C % W, h = k / C / W;

        x[i] = value(i / LEN, (h * W + (flip ? W - 1 - w : w)) * C + c);
    }
    return x;
}

static ddp_chain_t *net(void)
{
    ddp_chain_t *c = ddp_chain_new(
        ddp_conv_new(C, 8, 3,
                     &(struct ddp_conv_options){CONV_DEFAULTS, .pad = 1}),
        ddp_batch_norm_new(8, NULL), ddp_relu_new(), ddp_dropout_new(0.5f),
        ddp_flatten_new(), ddp_dense_new(H * W * 8, CLASSES, NULL), DDP_END);

    if (!c || ddp_chain_init(c, 11) < 0)
        bail_out("%s", ddp_errmsg());
    return c;
}

/* The outputs of ddp_chain_forward(), in sub-batches of the same sizes. */
static float *forward(ddp_t *ddp, ddp_chain_t *c, bool flip)
{
    float *x = all(flip), *y = calloc(COUNT * CLASSES, sizeof(*y));

    if (!x || !y ||
        ddp_chain_forward(ddp, c, x, DDP_F32, shape, COUNT, SUB, y) < 0)
        bail_out("%s", ddp_errmsg());
    free(x);
    return y;
}

/* ---- answers ------------------------------------------------------------ */

struct seen {
    int n, stop; /* answers so far, and after how many to stop */
    bool in_order, labels, whole;
    int bad;
    float y[COUNT * CLASSES];
};

static int take(const struct ddp_prediction *a, void *arg)
{
    struct seen *s = arg;

    s->in_order = s->in_order && a->index == s->n;
    s->whole = s->whole && a->len == CLASSES;
    if (a->bad)
        s->bad = s->n + 1;
    else
        s->labels = s->labels && a->label == class_of(a->index);
    if (s->n < COUNT && a->len == CLASSES)
        memcpy(s->y + s->n * CLASSES, a->output, sizeof(float) * CLASSES);
    return ++s->n == s->stop;
}

static int answer(ddp_t *ddp, ddp_chain_t *c, ddp_dataset_t *d,
                  enum ddp_tta tta, enum ddp_dtype dtype, struct seen *s,
                  struct ddp_metrics *m)
{
    int stop = s->stop;

    *s = (struct seen){
        .stop = stop, .in_order = true, .labels = true, .whole = true};
    return ddp_chain_evaluate(
        ddp, c, d,
        &(struct ddp_evaluate_config){EVALUATE_DEFAULTS, .sub_batch = SUB,
                                      .lanes = LANES, .dtype = dtype,
                                      .tta = tta, .on_sample = take, .arg = s},
        m);
}

/* Loss and top-k of outputs, in double. */
static struct ddp_metrics judged(const float *y)
{
    struct ddp_metrics m = {.samples = COUNT};

    for (int i = 0; i < COUNT; i++, y += CLASSES) {
        double sum = 0, own = y[class_of(i)];
        int rank = 0;

        for (int k = 0; k < CLASSES; k++) {
            sum += exp(y[k] - own);
            rank += y[k] > own;
        }
        m.loss += log(sum) / COUNT;
        m.top1 += (rank < 1) / (double)COUNT;
        m.top5 += (rank < 5) / (double)COUNT;
        m.top10 += (rank < 10) / (double)COUNT;
    }
    return m;
}

/* Shares are sums of 1 / COUNT, the loss is computed in f32: 2^-24 of terms. */
static bool same_metrics(const struct ddp_metrics *a,
                         const struct ddp_metrics *b)
{
    return a->samples == b->samples && fabs(a->loss - b->loss) < 1e-5 &&
           fabs(a->top1 - b->top1) < 1e-9 && fabs(a->top5 - b->top5) < 1e-9 &&
           fabs(a->top10 - b->top10) < 1e-9;
}

static void test_answers(ddp_t *ddp, const char *backend)
{
    ddp_dataset_t *d = samples(CLASSES, NULL);
    ddp_chain_t *c = net();
    float *y = forward(ddp, c, false);
    struct ddp_metrics m = {0}, want = judged(y);
    struct seen s = {0};

    ok(answer(ddp, c, d, DDP_TTA_NONE, DDP_F32, &s, &m) == 0 && s.n == COUNT &&
           s.in_order && s.whole && !s.bad,
       "%s: every sample is answered once, in order", backend);
    ok(s.labels, "%s: with its class", backend);
    ok(!memcmp(s.y, y, sizeof(s.y)),
       "%s: as ddp_chain_forward() does, to the bit", backend);
    ok(same_metrics(&m, &want), "%s: and the metrics are those of the answers",
       backend);
    s.stop = 3;
    ok(answer(ddp, c, d, DDP_TTA_NONE, DDP_F32, &s, &m) == DDP_ESTOPPED &&
           s.n == 3,
       "%s: the callback can stop it", backend);
    free(y);
    ddp_chain_free(c);
    ddp_dataset_free(d);
}

/* Half the sum: both are exact but for one rounding, of the sum. */
static void test_flip(ddp_t *ddp, const char *backend)
{
    ddp_dataset_t *d = samples(CLASSES, NULL);
    ddp_chain_t *c = net();
    float *y = forward(ddp, c, false), *z = forward(ddp, c, true);
    struct ddp_metrics m = {0}, other = {0}, want;
    struct ddp_train_config cfg = {TRAIN_DEFAULTS, .sub_batch = SUB,
                                   .lanes = LANES, .keep_weights = true,
                                   .tta = DDP_TTA_FLIP};
    struct seen s = {0};
    ddp_trainer_t *t;

    ok(memcmp(y, z, sizeof(s.y)) != 0, "%s: mirror images differ", backend);
    for (int i = 0; i < COUNT * CLASSES; i++)
        y[i] = (y[i] + z[i]) / 2;
    want = judged(y);
    ok(answer(ddp, c, d, DDP_TTA_FLIP, DDP_F32, &s, &m) == 0 &&
           !memcmp(s.y, y, sizeof(s.y)),
       "%s: flip gives the mean of both, to the bit", backend);
    ok(same_metrics(&m, &want), "%s: and judges it", backend);
    t = ddp_trainer_new(ddp, c, d, &cfg);
    ok(t && ddp_trainer_evaluate(t, d, &other) == 0 &&
           !memcmp(&other, &m, sizeof(m)),
       "%s: a trainer's evaluation does the same", backend);
    ddp_trainer_free(t);
    free(y);
    free(z);
    ddp_chain_free(c);
    ddp_dataset_free(d);
}

/* Eight bits of every value, through three layers: 2^-9 each, times three. */
static void test_bf16(ddp_t *ddp, const char *backend)
{
    ddp_dataset_t *d = samples(CLASSES, NULL);
    ddp_chain_t *c = net();
    struct seen exact = {0}, s = {0};
    double off = 0, norm = 0;

    answer(ddp, c, d, DDP_TTA_FLIP, DDP_F32, &exact, NULL);
    if (answer(ddp, c, d, DDP_TTA_FLIP, DDP_BF16, &s, NULL) == DDP_ENODEV) {
        skip(1, "%s", ddp_errmsg());
    } else {
        for (int i = 0; i < COUNT * CLASSES; i++) {
            off += pow((double)s.y[i] - exact.y[i], 2);
            norm += pow(exact.y[i], 2);
        }
        ok(s.n == COUNT && sqrt(off / norm) < 6e-3,
           "%s: answers in bf16 are near, off by %.2g", backend,
           sqrt(off / norm));
    }
    ddp_chain_free(c);
    ddp_dataset_free(d);
}

/* How many of the samples but `without` have their class among the k largest
 * outputs. */
static int right(const float *y, int without, int k)
{
    int n = 0;

    for (int i = 0; i < COUNT; i++) {
        const float *row = y + (size_t)i * CLASSES;
        int larger = 0;

        for (int j = 0; j < CLASSES; j++)
            larger += row[j] > row[class_of(i)];
        n += i != without && larger < k;
    }
    return n;
}

static void test_bad(ddp_t *ddp, const char *backend)
{
    ddp_dataset_t *d = samples(CLASSES, &ddp);
    ddp_chain_t *c = net();
    float *y = forward(ddp, c, false);
    struct ddp_metrics m = {0};
    struct seen s = {0};

    ok(answer(ddp, c, d, DDP_TTA_NONE, DDP_F32, &s, &m) == 0 && s.bad == 14 &&
           s.n == COUNT && m.samples == COUNT - 1,
       "%s: a sample that cannot be read is marked, the others are evaluated",
       backend);
    ok(right(y, 13, 5) > 0 &&
           fabs(m.top1 * (COUNT - 1) - right(y, 13, 1)) < 1e-9 &&
           fabs(m.top5 * (COUNT - 1) - right(y, 13, 5)) < 1e-9,
       "%s: it is not in the means: top5 %g", backend, m.top5);
    ok(ddp_chain_evaluate(ddp, c, d, NULL, &m) == 0 && m.samples == COUNT - 1,
       "%s: nor in those of a second evaluation", backend);
    free(y);
    ok(ddp_chain_evaluate(
           ddp, c, d,
           &(struct ddp_evaluate_config){EVALUATE_DEFAULTS, .tta = 7},
           &m) == DDP_EINVAL &&
           ddp_chain_evaluate(ddp, c, d,
                              &(struct ddp_evaluate_config){EVALUATE_DEFAULTS,
                                                            .sub_batch = -1},
                              &m) == DDP_EINVAL,
       "%s: a wrong configuration is refused", backend);
    ddp_chain_free(c);
    ddp_dataset_free(d);
}

/* ---- losses ------------------------------------------------------------- */

static int get_values(void *arg, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    float *x = s->x;

    (void)key;
    (void)arg;
    for (int i = 0; i < LEN; i++)
        x[i] = value(index, i);
    for (int i = 0; i < CLASSES; i++)
        s->target[i] = value(index, LEN + i);
    return 0;
}

/* The mean over all values of all samples. */
static double mean_square(const float *y)
{
    double sum = 0;

    for (int i = 0; i < COUNT * CLASSES; i++) {
        double d = (double)y[i] - value(i / CLASSES, LEN + i % CLASSES);

        sum += d * d;
    }
    return sum / (COUNT * CLASSES);
}

/* The mean over samples of -sum of q log softmax(y), of any q. */
static double mean_entropy(const float *y)
{
    double loss = 0;

    for (int n = 0; n < COUNT; n++, y += CLASSES) {
        double sum = 0;

        for (int i = 0; i < CLASSES; i++)
            sum += exp((double)y[i]);
        for (int i = 0; i < CLASSES; i++)
            loss += value(n, LEN + i) * (log(sum) - (double)y[i]);
    }
    return loss / COUNT;
}

/* Sums of 5400 f32 squares of values that are off by 1e-6 at most. */
static void test_losses(ddp_t *ddp, const char *backend)
{
    ddp_dataset_t *d =
        ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                  .shape = shape,
                                                  .type = DDP_F32,
                                                  .target_len = CLASSES,
                                                  .get = get_values});
    struct ddp_evaluate_config mse = {EVALUATE_DEFAULTS, .sub_batch = SUB,
                                      .loss = DDP_MSE};
    ddp_chain_t *c = net();
    float *y = forward(ddp, c, false);
    struct ddp_metrics m = {0};

    ok(ddp_chain_evaluate(ddp, c, d, &mse, &m) == 0 && m.samples == COUNT &&
           fabs(m.loss - mean_square(y)) < 1e-5 * mean_square(y),
       "%s: the mean squared error of values", backend);
    ok(ddp_chain_evaluate(ddp, c, d, NULL, &m) == 0 &&
           fabs(m.loss - mean_entropy(y)) < 1e-5 * fabs(mean_entropy(y)),
       "%s: the cross entropy of values, as shares of classes", backend);
    ddp_dataset_free(d);
    d = samples(CLASSES, NULL);
    ok(ddp_chain_evaluate(ddp, c, d, &mse, &m) == DDP_EINVAL,
       "%s: the squared error of classes is refused: %s", backend,
       ddp_errmsg());
    mse.loss = (enum ddp_loss_kind)99;
    ok(ddp_chain_evaluate(ddp, c, d, &mse, &m) == DDP_EINVAL,
       "%s: and so is an unknown loss: %s", backend, ddp_errmsg());
    ddp_dataset_free(d);
    ddp_chain_free(c);
    free(y);
}

/* A regression whose loss was forgotten would train nothing. */
static void test_one_value(ddp_t *ddp)
{
    ddp_dataset_t *d =
        ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                  .shape = shape,
                                                  .type = DDP_F32,
                                                  .target_len = 1,
                                                  .get = get_values});
    ddp_chain_t *c =
        ddp_chain_new(ddp_flatten_new(), ddp_dense_new(LEN, 1, NULL), DDP_END);
    struct ddp_metrics m;

    ok(ddp_chain_evaluate(ddp, c, d, NULL, &m) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "DDP_MSE"),
       "cross entropy of one value is refused: %s", ddp_errmsg());
    ddp_dataset_free(d);
    ddp_chain_free(c);
}

/* ---- images by their paths ---------------------------------------------- */

enum { SIZE = 16 };
static char top[] = "/tmp/test_evaluate.XXXXXX";

static void put(const char *name, uint32_t seed)
{
    struct bytes b = make_photo(40, 32, seed);
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", top, name);
    if (!write_file(path, b.data, seed ? b.len : 7))
        bail_out("cannot write %s", path);
    free(b.data);
}

struct paths {
    ddp_dataset_t *d;
    char text[1024]; /* "NAME ", bad ones "!NAME ", without the folder */
    float y[8][4];
    int n;
};

static int take_path(const struct ddp_prediction *a, void *arg)
{
    struct paths *p = arg;
    const char *path = ddp_dataset_path(p->d, a->index);
    size_t len = strlen(p->text);

    snprintf(p->text + len, sizeof(p->text) - len, "%s%s ", a->bad ? "!" : "",
             path + (strncmp(path, top, strlen(top)) ? 0 : strlen(top) + 1));
    if (p->n < 8 && a->label == -1)
        memcpy(p->y[p->n++], a->output, sizeof(p->y[0]));
    return 0;
}

/* The answer to a sample by hand: pixels, the mean colour, one dense layer. */
static void by_hand(ddp_t *ddp, ddp_chain_t *c, ddp_dataset_t *d, int64_t index,
                    float y[4])
{
    static const float mean[] = {0.5f, 0.25f, 0.125f}, std[] = {0.5f, 2, 1};
    uint8_t u[SIZE * SIZE * 3];
    float x[SIZE * SIZE * 3], z[4];
    struct ddp_shape s = {SIZE, SIZE, 3};

    if (ddp_dataset_get(d, index, 0, u, NULL) < 0)
        bail_out("%s", ddp_errmsg());
    memset(y, 0, sizeof(z));
    for (int flip = 0; flip < 2; flip++) {
        for (int i = 0; i < SIZE * SIZE * 3; i++) {
            int ch = i % 3, w = i / 3 % SIZE, h = i / 3 / SIZE;

            w = flip ? SIZE - 1 - w : w;
            x[i] =
                ((float)u[(h * SIZE + w) * 3 + ch] / 255 - mean[ch]) / std[ch];
        }
        if (ddp_chain_forward(ddp, c, x, DDP_F32, s, 1, 1, z) < 0)
            bail_out("%s", ddp_errmsg());
        for (int k = 0; k < 4; k++)
            y[k] += z[k] / 2;
    }
}

/* Sums of 768 products in f32: 2e-5 of their size, as in test_ops. */
static void test_images(ddp_t *ddp)
{
    char a[128], dir[128], none[128];
    const char *path[] = {a, dir, none, a};
    ddp_chain_t *c = ddp_chain_new(
        ddp_flatten_new(), ddp_dense_new(SIZE * SIZE * 3, 4, NULL), DDP_END);
    struct paths p = {0};
    int64_t index[] = {0, 1, 2, 5};
    double off = 0;

    snprintf(a, sizeof(a), "%s/one.jpg", top);
    snprintf(dir, sizeof(dir), "%s/dir///", top);
    snprintf(none, sizeof(none), "%s/none.jpg", top);
    p.d = ddp_dataset_images(
        path, 4,
        &(struct ddp_image_options){IMAGE_DEFAULTS, .size = SIZE, .max_bad = 1,
                                    .mean = {0.5f, 0.25f, 0.125f},
                                    .std = {0.5f, 2, 1}});
    ok(p.d && ddp_dataset_count(p.d) == 6 && ddp_dataset_classes(p.d) == 0,
       "images: files, a folder's files, and one that is not there");
    ok(p.d && ddp_chain_evaluate(ddp, c, p.d,
                                 &(struct ddp_evaluate_config){
                                     EVALUATE_DEFAULTS, .sub_batch = 4,
                                     .tta = DDP_TTA_FLIP,
                                     .on_sample = take_path, .arg = &p},
                                 NULL) == 0,
       "images: they are answered: %s", ddp_errmsg());
    is_str(p.text,
           "one.jpg dir/a.jpg dir/b.jpg !dir/sub/broken.jpg !none.jpg one.jpg ",
           "images: in order, bad ones marked");
    for (int i = 0; i < 4 && p.n == 6; i++) {
        float y[4];

        by_hand(ddp, c, p.d, index[i], y);
        for (int k = 0; k < 4; k++)
            off = fmax(off, fabs(y[k] - p.y[index[i]][k]));
    }
    ok(p.n == 6 && off < 2e-5 * 4, "images: as by hand, off by %.2g", off);
    ddp_dataset_free(p.d);
    ok(!ddp_dataset_images(path, 0, NULL) && ddp_errcode() == DDP_EDATA,
       "images: none at all is an error");
    ok(!ddp_dataset_images(&(const char *){""}, 1, NULL) &&
           ddp_errcode() == DDP_EINVAL,
       "images: an empty path too");
    ddp_chain_free(c);
}

static void make_files(void)
{
    char path[128];

    if (!mkdtemp(top))
        bail_out("no folder under /tmp");
    snprintf(path, sizeof(path), "%s/dir", top);
    mkdir(path, 0777);
    snprintf(path, sizeof(path), "%s/dir/sub", top);
    mkdir(path, 0777);
    put("one.jpg", 1);
    put("dir/b.jpg", 2);
    put("dir/a.jpg", 3);
    put("dir/sub/broken.jpg", 0);
    put("dir/text.txt", 0);
}

static void remove_files(void)
{
    static const char *const name[] = {
        "one.jpg",      "dir/b.jpg", "dir/a.jpg", "dir/sub/broken.jpg",
        "dir/text.txt", "dir/sub",   "dir",       ""};
    char path[128];

    for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", top, name[i]);
        remove(path);
    }
}

/* ---- the same bits ------------------------------------------------------ */

static void test_bits(void)
{
    static const char *const sched[] = {NULL, "eager", "lws"};
    static const char *const ncpu[] = {"1", "2", "2"};
    struct seen s[3] = {{0}};

    for (int i = 0; i < 3; i++) {
        ddp_dataset_t *d = samples(CLASSES, NULL);
        ddp_chain_t *c = net();
        ddp_t *ddp;

        setenv("STARPU_NCPU", ncpu[i], 1);
        if (sched[i])
            setenv("STARPU_SCHED", sched[i], 1);
        if (!(ddp = ddp_init(NULL)) ||
            answer(ddp, c, d, DDP_TTA_FLIP, DDP_F32, &s[i], NULL) < 0)
            diag("%s", ddp_errmsg());
        ddp_chain_free(c);
        ddp_dataset_free(d);
        ddp_finish(ddp);
    }
    ok(s[0].n == COUNT && !memcmp(s[0].y, s[1].y, sizeof(s[0].y)) &&
           !memcmp(s[0].y, s[2].y, sizeof(s[0].y)),
       "answers have the same bits on 1 and 2 workers, under 3 schedulers");
}

int main(void)
{
    static const char *const backend[] = {"cpu", "ref"};

    make_files();
    for (int i = 0; i < 2; i++) {
        ddp_t *ddp = ddp_init(
            &(struct ddp_config){START_DEFAULTS, .backend = backend[i]});

        if (!ddp)
            bail_out("%s", ddp_errmsg());
        test_answers(ddp, backend[i]);
        test_flip(ddp, backend[i]);
        test_bf16(ddp, backend[i]);
        test_bad(ddp, backend[i]);
        test_losses(ddp, backend[i]);
        if (i == 0) {
            test_one_value(ddp);
            test_images(ddp);
        }
        ddp_finish(ddp);
    }
    remove_files();
    test_bits();
    return done_testing();
}
