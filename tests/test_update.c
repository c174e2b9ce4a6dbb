/* test_update.c - ref's losses and optimizers on numbers worked out by hand
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Losses are compared with logarithms of small fractions, optimizers with
 * PyTorch's formulas written out once more, in double and per weight.
 */
#include "config.h"
#include "cpu/backend.h"
#include "hand.h"

/* ---- losses ------------------------------------------------------------- */

/* Logits 0 and log 3: the second class has probability 3/4. */
static void test_cross_entropy(void)
{
    float x[] = {0, logf(3), logf(3), 0}, dx[4] = {0};
    float weight[] = {1, 2, 0, 3.5f}; /* room for 3 samples, then the share */
    int32_t label[] = {1, 1};
    double stats[DDP__STATS] = {0};
    struct ddp__call c = {.cap = 3,
                          .buf = {image(1, 1, 2),
                                  of_type(DDP_I32, image(1, 1, 1)), vector(4),
                                  vector(DDP__STATS), image(1, 1, 2)}};

    RUN(LOSS, &c, 2, x, label, weight, stats, dx);
    is_near(stats[DDP__STAT_LOSS], log(4 / 3.0) + 2 * log(4), 1e-6,
            "cross entropy: the weighted sum");
    ok(IS(dx, 0.25f, -0.25f, 1.5f, -1.5f),
       "cross entropy: the gradient is weighted, not divided");
    ok(stats[DDP__STAT_DIVISOR] == 3.5 && stats[DDP__STAT_COUNT] == 2 &&
           stats[DDP__STAT_TOP1] == 1 && stats[DDP__STAT_TOP5] == 2,
       "cross entropy: divisor, samples and right answers");
    RUN_ADDING(LOSS, &c, 1, x, label, weight, stats);
    ok(stats[DDP__STAT_COUNT] == 3 && stats[DDP__STAT_TOP1] == 2 &&
           stats[DDP__STAT_DIVISOR] == 7,
       "cross entropy: statistics are added when the task accumulates");
    c.loss.smoothing = 0.2f;
    RUN(LOSS, &c, 1, x, label, weight, stats, dx);
    is_near(stats[DDP__STAT_LOSS], 0.1 * log(4) + 0.9 * log(4 / 3.0), 1e-6,
            "cross entropy: smoothed");
    ok(IS(dx, 0.15f, -0.15f), "cross entropy: the smoothed gradient");
}

/* Logits that exp() cannot take: of 5000 and 0 the second has loss 5000. */
static void test_large_logits(void)
{
    float x[] = {5000, 0, -5000, -5000}, weight[] = {1, 1, 2}, dx[4] = {0};
    int32_t label[] = {1, 0};
    double stats[DDP__STATS] = {0};
    struct ddp__call c = {.buf = {image(1, 1, 2),
                                  of_type(DDP_I32, image(1, 1, 1)), vector(3),
                                  vector(DDP__STATS), image(1, 1, 2)}};

    RUN(LOSS, &c, 2, x, label, weight, stats, dx);
    is_near(stats[DDP__STAT_LOSS], 5000 + log(2), 1e-3,
            "cross entropy: of large logits");
    ok(IS(dx, 1, -1, -0.5f, 0.5f), "cross entropy: and their gradient");
}

/* With a gradient, and so in training, a label must be a class; evaluation
 * bears a sample without one, which adds nothing. */
static void test_labels(void)
{
    float x[] = {0, 0, 0}, weight[] = {1, 1}, dx[3] = {0};
    int32_t no_label = DDP__NO_LABEL;
    double stats[DDP__STATS] = {0};
    struct ddp__call c = {
        .buf = {image(1, 1, 3), of_type(DDP_I32, image(1, 1, 1))}};

    c.buf[DDP__LOSS_DX] = image(1, 1, 3);
    for (int32_t label = -1; label <= 3; label += 4) {
        ok(RUN(LOSS, &c, 1, x, &label, weight, stats, dx) == DDP_EDATA,
           "cross entropy: label %d of 3 classes is refused", label);
        ok(strstr(ddp_errmsg(), "label") != NULL, "and the message names it");
    }
    ok(RUN(LOSS, &c, 1, x, &no_label, weight, stats) == 0 &&
           stats[DDP__STAT_LOSS] == 0 && stats[DDP__STAT_TOP10] == 0,
       "cross entropy: evaluation bears samples without a label");
}

/* Twelve equal logits: the label's rank is the number of lower classes. */
static void test_top_k(void)
{
    float x[12] = {0}, weight[] = {1, 1};
    int32_t label[] = {0, 1, 4, 5, 9, 10};
    int want[][3] = {{1, 1, 1}, {0, 1, 1}, {0, 1, 1},
                     {0, 0, 1}, {0, 0, 1}, {0, 0, 0}};
    struct ddp__call c = {
        .buf = {image(1, 1, 12), of_type(DDP_I32, image(1, 1, 1))}};
    double s[DDP__STATS] = {0};

    for (size_t i = 0; i < LEN(label); i++) {
        RUN(LOSS, &c, 1, x, &label[i], weight, s);
        ok(s[DDP__STAT_TOP1] == want[i][0] && s[DDP__STAT_TOP5] == want[i][1] &&
               s[DDP__STAT_TOP10] == want[i][2],
           "top-k: of equal logits the lower class wins, label %d", label[i]);
    }
    for (int i = 0; i < 12; i++)
        x[i] = NAN;
    RUN(LOSS, &c, 1, x, &label[0], weight, s);
    ok(s[DDP__STAT_TOP1] == 0 && s[DDP__STAT_TOP10] == 0,
       "top-k: logits that are not numbers are not right");
    ok(isnan(s[DDP__STAT_LOSS]), "cross entropy: of NaN is NaN");
}

/* Of shares, the largest is the class; without any there is none. */
static void test_shares(void)
{
    float x[] = {0, logf(3), 0, 0}, weight[] = {1, 1, 2}, dx[4];
    float share[] = {0.25f, 0.75f, 0, 0};
    double stats[DDP__STATS] = {0};
    struct ddp__call c = {.cap = 2,
                          .buf = {image(1, 1, 2), image(1, 1, 2), vector(3),
                                  vector(DDP__STATS), image(1, 1, 2)}};

    RUN(LOSS, &c, 2, x, share, weight, stats, dx);
    is_near(stats[DDP__STAT_LOSS], 0.25 * log(4) + 0.75 * log(4 / 3.0), 1e-6,
            "shares: the loss");
    ok(IS(dx, 0, 0, 0, 0), "shares: those that are predicted");
    ok(stats[DDP__STAT_TOP1] == 1 && stats[DDP__STAT_COUNT] == 2,
       "shares: the largest is the right answer, and 0 is none");
}

static void test_squared_error(void)
{
    float x[] = {1, 2, 3}, target[] = {0, 0, 1}, weight[] = {2, 1}, dx[3] = {0};
    double stats[DDP__STATS] = {0};
    struct ddp__call c = {.buf = {image(1, 1, 3), image(1, 1, 3), vector(2),
                                  vector(DDP__STATS), image(1, 1, 3)},
                          .loss = {.kind = DDP_MSE}};

    RUN(LOSS, &c, 1, x, target, weight, stats, dx);
    is_near(stats[DDP__STAT_LOSS], 6, 1e-6, "squared error: a mean, weighted");
    ok(IS(dx, 4 / 3.0f, 8 / 3.0f, 8 / 3.0f), "squared error: the gradient");
}

/* ---- updates ------------------------------------------------------------ */

enum { WEIGHTS = 6 };

/* A weight and its state in double, by the formulas of PyTorch's manual; of
 * AdaBelief and Lion, by those of their papers. */
struct model {
    double w, m, v, x;
};

static void update_adam(struct model *s, const struct ddp_optimizer *o,
                        double lr, double g, int64_t t)
{
    double m, v;

    s->m = (double)o->beta1 * s->m + (1 - (double)o->beta1) * g;
    s->v = (double)o->beta2 * s->v + (1 - (double)o->beta2) * g * g;
    m = s->m / (1 - pow(o->beta1, (double)t));
    v = s->v / (1 - pow(o->beta2, (double)t));
    s->w -= lr * m / (sqrt(v) + o->eps);
}

static void update_amsgrad(struct model *s, const struct ddp_optimizer *o,
                           double lr, double g, int64_t t)
{
    s->m = (double)o->beta1 * s->m + (1 - (double)o->beta1) * g;
    s->v = (double)o->beta2 * s->v + (1 - (double)o->beta2) * g * g;
    s->x = fmax(s->x, s->v);
    s->w -= lr * s->m / (1 - pow(o->beta1, (double)t)) /
            (sqrt(s->x / (1 - pow(o->beta2, (double)t))) + o->eps);
}

/* x is 1 less than the product of all mu so far, so that it begins with 0. */
static void update_nadam(struct model *s, const struct ddp_optimizer *o,
                         double lr, double g, int64_t t)
{
    double mu = o->beta1 * (1 - 0.5 * pow(0.96, 0.004 * (double)t));
    double next = o->beta1 * (1 - 0.5 * pow(0.96, 0.004 * (double)(t + 1)));
    double product = (s->x + 1) * mu, root;

    s->x = product - 1;
    s->m = (double)o->beta1 * s->m + (1 - (double)o->beta1) * g;
    s->v = (double)o->beta2 * s->v + (1 - (double)o->beta2) * g * g;
    root = sqrt(s->v / (1 - pow(o->beta2, (double)t))) + o->eps;
    s->w -= lr * (1 - mu) / (1 - product) * g / root;
    s->w -= lr * next / (1 - product * next) * s->m / root;
}

static void update_nadamw(struct model *s, const struct ddp_optimizer *o,
                          double lr, double g, int64_t t)
{
    double b1 = o->beta1, b2 = o->beta2;

    s->m = b1 * s->m + (1 - b1) * g;
    s->v = b2 * s->v + (1 - b2) * g * g;
    s->w -= lr * (b1 * s->m + (1 - b1) * g) / (1 - pow(b1, (double)t)) /
            (sqrt(s->v / (1 - pow(b2, (double)t))) + o->eps);
}

static void update_radam(struct model *s, const struct ddp_optimizer *o,
                         double lr, double g, int64_t t)
{
    double b2 = o->beta2, power = pow(b2, (double)t), most = 2 / (1 - b2) - 1;
    double rho = most - 2 * (double)t * power / (1 - power), m, r;

    s->m = (double)o->beta1 * s->m + (1 - (double)o->beta1) * g;
    s->v = b2 * s->v + (1 - b2) * g * g;
    m = s->m / (1 - pow(o->beta1, (double)t));
    if (rho > 5) {
        r = (rho - 4) * (rho - 2) * most;
        r = sqrt(r / ((most - 4) * (most - 2) * rho));
        m *= r * sqrt(1 - power) / (sqrt(s->v) + o->eps);
    }
    s->w -= lr * m;
}

static void update_adabelief(struct model *s, const struct ddp_optimizer *o,
                             double lr, double g, int64_t t)
{
    double b2 = o->beta2;

    s->m = (double)o->beta1 * s->m + (1 - (double)o->beta1) * g;
    s->v = b2 * s->v + (1 - b2) * (g - s->m) * (g - s->m) + o->eps;
    s->w -= lr * s->m / (1 - pow(o->beta1, (double)t)) /
            (sqrt(s->v / (1 - pow(b2, (double)t))) + o->eps);
}

static void update_lion(struct model *s, const struct ddp_optimizer *o,
                        double lr, double g)
{
    double c = (double)o->beta1 * s->m + (1 - (double)o->beta1) * g;

    s->w -= c > 0 ? lr : c < 0 ? -lr : 0;
    s->m = (double)o->beta2 * s->m + (1 - (double)o->beta2) * g;
}

static void update_adadelta(struct model *s, const struct ddp_optimizer *o,
                            double lr, double g)
{
    double b2 = o->beta2, d;

    s->m = b2 * s->m + (1 - b2) * g * g;
    d = sqrt(s->v + o->eps) / sqrt(s->m + o->eps) * g;
    s->v = b2 * s->v + (1 - b2) * d * d;
    s->w -= lr * d;
}

/* Of a span of n weights at once, as timm has LAMB and LARS: with decay the
 * whole span's norms, without it Adam and momentum. */
static double norm_of(const double *x, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

static void update_layerwise(struct model *s, int n,
                             const struct ddp_optimizer *o, double lr,
                             const double *g, double decay, int64_t t)
{
    double w[WEIGHTS], d[WEIGHTS], trust = 1;

    for (int i = 0; i < n; i++) {
        w[i] = s[i].w;
        d[i] = g[i];
        if (o->kind != DDP_LAMB)
            continue;
        s[i].w = 0;
        update_adam(&s[i], o, -1, g[i], t); /* w is the step */
        d[i] = s[i].w + decay * w[i];
        s[i].w = w[i];
    }
    if (decay > 0 && o->kind == DDP_LAMB)
        trust = norm_of(w, n) / norm_of(d, n);
    else if (decay > 0)
        trust = 0.001 * norm_of(w, n) / (norm_of(d, n) + decay * norm_of(w, n));
    for (int i = 0; i < n; i++) {
        if (o->kind == DDP_LARS)
            d[i] = s[i].m =
                o->momentum * s[i].m + trust * (d[i] + decay * w[i]);
        s[i].w -= lr * (o->kind == DDP_LAMB ? trust : 1) * d[i];
    }
}

static void update(struct model *s, const struct ddp_optimizer *o, double lr,
                   double g, double decay, int64_t t)
{
    if (o->kind == DDP_ADAMW || o->kind == DDP_ADABELIEF ||
        o->kind == DDP_LION || o->kind == DDP_NADAMW)
        s->w *= 1 - lr * decay;
    else
        g += decay * s->w;
    switch (o->kind) {
    case DDP_SGD:
        s->w -= lr * g;
        break;
    case DDP_MOMENTUM:
        s->m = o->momentum * s->m + g;
        s->w -= lr * s->m;
        break;
    case DDP_MOMENTUM_FLUX:
        s->m = o->momentum * s->m + lr * g;
        s->w -= s->m;
        break;
    case DDP_NESTEROV:
        s->m = o->momentum * s->m + g;
        s->w -= lr * (g + o->momentum * s->m);
        break;
    case DDP_ADAM:
    case DDP_ADAMW:
        update_adam(s, o, lr, g, t);
        break;
    case DDP_RMSPROP:
        s->v = (double)o->beta2 * s->v + (1 - (double)o->beta2) * g * g;
        s->w -= lr * g / (sqrt(s->v) + o->eps);
        break;
    case DDP_AMSGRAD:
        update_amsgrad(s, o, lr, g, t);
        break;
    case DDP_NADAM:
        update_nadam(s, o, lr, g, t);
        break;
    case DDP_RADAM:
        update_radam(s, o, lr, g, t);
        break;
    case DDP_ADABELIEF:
        update_adabelief(s, o, lr, g, t);
        break;
    case DDP_LION:
        update_lion(s, o, lr, g);
        break;
    case DDP_ADAGRAD:
        s->v += g * g;
        s->w -= lr * g / (sqrt(s->v) + o->eps);
        break;
    case DDP_ADADELTA:
        update_adadelta(s, o, lr, g);
        break;
    case DDP_NADAMW:
        update_nadamw(s, o, lr, g, t);
        break;
    case DDP_RMSPROP_TF:
        if (t == 1)
            s->v = 1;
        s->v += (1 - (double)o->beta2) * (g * g - s->v);
        s->m = o->momentum * s->m + lr * g / sqrt(s->v + o->eps);
        s->w -= s->m;
        break;
    case DDP_LAMB: /* update_layerwise() */
    case DDP_LARS:
    case DDP_ADAMP: /* test_optim */
    case DDP_CUSTOM_OPTIMIZER:
        break;
    }
}

enum { STEPS = 20 };

/* A weight that decays, one that does not, two running values, and two more
 * that decay; gradients are sums over a divisor of 4. */
static const struct ddp__span spans[] = {
    {.begin = 0, .len = 1, .decay = true},
    {.begin = 1, .len = 1},
    {.begin = 2, .len = 2, .running = true, .momentum = 0.25f},
    {.begin = 4, .len = 2, .decay = true},
};

static void gradient_of_step(float g[WEIGHTS], int step)
{
    for (int i = 0; i < WEIGHTS; i++)
        g[i] = (float)(4 * sin(3 * i + 1.7 * step));
}

static int run_optim(const struct ddp_optimizer *o, float lr, int64_t t,
                     float *g, float *w, double *stats, float *state,
                     double *norm)
{
    struct ddp__call c = {.buf = {vector(WEIGHTS), vector(WEIGHTS)},
                          .optim = {*o, LEN(spans), spans}};
    struct ddp__task task = {.call = &c, .n = 1, .lr = lr};

    c.op = DDP__OP_OPTIM;
    c.buffers = DDP__OPTIM_BUFFERS;
    task.data[DDP__OPTIM_G] = g;
    task.data[DDP__OPTIM_W] = w;
    task.data[DDP__OPTIM_STATS] = stats;
    stats[DDP__STAT_UPDATES] = (double)t;
    if (o->kind != DDP_SGD)
        task.data[DDP__OPTIM_STATE] = state;
    if (o->clip_norm > 0)
        task.data[DDP__OPTIM_NORM] = norm;
    return ddp__ref_optim(&task);
}

static double clip_of(const struct ddp_optimizer *o, const float *g)
{
    double sum = 0;

    for (int i = 0; i < WEIGHTS; i++)
        if (i != 2 && i != 3)
            sum += (g[i] / 4.0) * (g[i] / 4.0);
    return o->clip_norm > 0 ? fmin(1, o->clip_norm / (sqrt(sum) + 1e-6)) : 1;
}

static void model_step(struct model s[WEIGHTS], const struct ddp_optimizer *o,
                       float lr, const float *g, int64_t t)
{
    double clip = clip_of(o, g), d[WEIGHTS];

    for (int i = 0; i < WEIGHTS; i++)
        d[i] = g[i] / 4.0 * clip;
    if (o->kind == DDP_LAMB || o->kind == DDP_LARS)
        for (size_t k = 0; k < LEN(spans); k++)
            if (!spans[k].running)
                update_layerwise(&s[spans[k].begin], (int)spans[k].len, o, lr,
                                 &d[spans[k].begin],
                                 spans[k].decay ? o->weight_decay : 0, t);
    for (int i = 0; i < WEIGHTS; i++) {
        bool decays = i != 1 || o->decay_all;

        if (i == 2 || i == 3)
            s[i].w = 0.75 * s[i].w + 0.25 * g[i] / 8;
        else
            update(&s[i], o, lr, d[i], decays ? o->weight_decay : 0, t);
    }
}

/* Weights and states are f32, rounded once a step: off by at most
 * STEPS 2^-24 of their size, 1.2e-6; times two for Adam's quotient. */
static void test_optimizer(const char *name, struct ddp_optimizer o)
{
    float w[WEIGHTS] = {0}, g[WEIGHTS] = {0}, state[3 * WEIGHTS] = {0};
    double stats[DDP__STATS] = {[DDP__STAT_DIVISOR] = 4, [DDP__STAT_COUNT] = 8};
    double norm[DDP__NORMS], worst = 0;
    struct model s[WEIGHTS] = {{0, 0, 0, 0}};
    struct ddp__call sq = {.buf = {vector(WEIGHTS)},
                           .optim = {o, LEN(spans), spans}};

    for (int i = 0; i < WEIGHTS; i++)
        s[i].w = w[i] = 1 + 0.25f * (float)i;
    for (int t = 1; t <= STEPS; t++) {
        float lr = 0.1f / (float)t;

        gradient_of_step(g, t);
        RUN(SQNORM, &sq, 1, g, stats, norm);
        run_optim(&o, lr, t, g, w, stats, state, norm);
        model_step(s, &o, lr, g, t);
        for (int i = 0; i < WEIGHTS; i++)
            worst = fmax(worst, fabs(w[i] - s[i].w));
    }
    is_near(worst, 0, 2.5e-6, "%s: %d steps as the formula in double", name,
            STEPS);
}

static void test_optimizers(void)
{
    test_optimizer("sgd", (struct ddp_optimizer){.weight_decay = 0.1f});
    test_optimizer("sgd, clipped", (struct ddp_optimizer){.clip_norm = 0.5f});
    test_optimizer(
        "sgd, all decays",
        (struct ddp_optimizer){.weight_decay = 0.1f, .decay_all = true});
    test_optimizer("momentum", (struct ddp_optimizer){.kind = DDP_MOMENTUM,
                                                      .momentum = 0.9f,
                                                      .weight_decay = 0.1f});
    test_optimizer("momentum of Flux",
                   (struct ddp_optimizer){.kind = DDP_MOMENTUM_FLUX,
                                          .momentum = 0.9f,
                                          .clip_norm = 1});
    test_optimizer("nesterov", (struct ddp_optimizer){.kind = DDP_NESTEROV,
                                                      .momentum = 0.9f,
                                                      .weight_decay = 0.1f});
    test_optimizer("adam", (struct ddp_optimizer){.kind = DDP_ADAM,
                                                  .beta1 = 0.9f,
                                                  .beta2 = 0.999f,
                                                  .eps = 1e-8f,
                                                  .weight_decay = 0.1f});
    test_optimizer("adamw", (struct ddp_optimizer){.kind = DDP_ADAMW,
                                                   .beta1 = 0.9f,
                                                   .beta2 = 0.99f,
                                                   .eps = 1e-8f,
                                                   .weight_decay = 0.1f,
                                                   .clip_norm = 0.5f});
    test_optimizer("rmsprop", (struct ddp_optimizer){.kind = DDP_RMSPROP,
                                                     .beta2 = 0.9f,
                                                     .eps = 1e-6f});
}

/* Those that came later, each with its usual settings and a weight decay. */
static void test_more_optimizers(void)
{
    static const struct {
        const char *name;
        enum ddp_optimizer_kind kind;
        float beta1, beta2, eps;
    } row[] = {
        {"amsgrad", DDP_AMSGRAD, 0.9f, 0.9f, 1e-8f},
        {"nadam", DDP_NADAM, 0.9f, 0.999f, 1e-8f},
        {"radam", DDP_RADAM, 0.9f, 0.9f, 1e-8f}, /* rho > 5 from step 6 on */
        {"adabelief", DDP_ADABELIEF, 0.9f, 0.999f, 1e-8f},
        {"lion", DDP_LION, 0.9f, 0.99f, 0},
        {"adagrad", DDP_ADAGRAD, 0, 0, 1e-10f},
        {"adadelta", DDP_ADADELTA, 0, 0.9f, 1e-6f},
        {"lamb", DDP_LAMB, 0.9f, 0.999f, 1e-6f},
        {"lars", DDP_LARS, 0, 0, 0},
        {"nadamw", DDP_NADAMW, 0.9f, 0.999f, 1e-8f},
        {"rmsproptf", DDP_RMSPROP_TF, 0, 0.9f, 1e-3f},
    };

    for (size_t i = 0; i < LEN(row); i++)
        test_optimizer(row[i].name,
                       (struct ddp_optimizer){.kind = row[i].kind,
                                              .beta1 = row[i].beta1,
                                              .beta2 = row[i].beta2,
                                              .eps = row[i].eps,
                                              .momentum = 0.9f,
                                              .weight_decay = 0.1f});
}

/* Adam's first step is lr times the sign of the gradient. */
static void test_first_steps(void)
{
    float g[WEIGHTS] = {4, -8, 16, 0, 1, -1}, w[WEIGHTS] = {0};
    float state[2 * WEIGHTS] = {0}, before[WEIGHTS] = {0};
    double stats[DDP__STATS] = {[DDP__STAT_DIVISOR] = 4, [DDP__STAT_COUNT] = 8};
    struct ddp_optimizer o = {
        .kind = DDP_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f};

    run_optim(&o, 0.5f, 1, g, w, stats, state, NULL);
    ok(IS(w, -0.5f, 0.5f, 0.5f, 0, -0.5f, 0.5f),
       "adam: the first step is lr long; a running value moves to its mean");
    memset(w, 0, sizeof(w));
    o.kind = DDP_SGD;
    run_optim(&o, 0.5f, 1, g, w, stats, NULL, NULL);
    ok(IS(w, -0.5f, 1, 0.5f, 0, -0.125f, 0.125f),
       "sgd: lr times the gradient over the divisor");
    stats[DDP__STAT_DIVISOR] = 0;
    o.weight_decay = 1;
    memcpy(before, w, sizeof(w));
    run_optim(&o, 0.5f, 1, g, w, stats, NULL, NULL);
    ok(memcmp(w, before, sizeof(w)) == 0,
       "optim: without a divisor nothing changes");
}

/* Weights that the first of two updates makes 0 are at half of the second. */
static void test_lookahead(const struct ddp__backend *b)
{
    static const struct ddp__span span = {.begin = 0, .len = 2};
    float g[] = {8, -4}, w[] = {2, -1}, slow[2] = {0};
    double stats[DDP__STATS] = {[DDP__STAT_DIVISOR] = 4, [DDP__STAT_COUNT] = 4};
    struct ddp__call c = {
        .op = DDP__OP_OPTIM,
        .buffers = DDP__OPTIM_BUFFERS,
        .buf = {vector(2), vector(2)},
        .optim = {{.kind = DDP_SGD, .lookahead = 1}, 1, &span}};
    struct ddp__task t = {.call = &c, .n = 1, .lr = 1};

    t.data[DDP__OPTIM_G] = g;
    t.data[DDP__OPTIM_W] = w;
    t.data[DDP__OPTIM_STATS] = stats;
    t.data[DDP__OPTIM_STATE] = slow;
    for (int i = 1; i <= 2; i++) {
        stats[DDP__STAT_UPDATES] = i;
        b->kernel[DDP__OP_OPTIM](&t);
    }
    ok(IS(w, -1, 0.5f), "lookahead of %s: a weight of 0 is returned to",
       b->name);
}

static void test_sums(void)
{
    float a[] = {1, 2}, b[] = {10, 20};
    double s[] = {1, 0x1p-40}, more[] = {0x1p-40, 1};
    struct ddp__call c = {.buf = {vector(2), vector(2)}};

    RUN(MERGE, &c, 1, a, b);
    ok(IS(a, 11, 22), "merge: dst += src");
    RUN(MERGE_STATS, &c, 1, s, more);
    ok(s[0] == 1 + 0x1p-40 && s[1] == s[0], "merge_stats: in double");
}

int main(void)
{
    test_cross_entropy();
    test_large_logits();
    test_labels();
    test_top_k();
    test_shares();
    test_squared_error();
    test_optimizers();
    test_more_optimizers();
    test_first_steps();
    test_sums();
    test_lookahead(&ddp__ref);
    test_lookahead(&ddp__cpu);
    return done_testing();
}
