/* distill.c - a small network learns from the logits of a large one
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Points of a square belong to class 1 if they lie in a ring.  The teacher sees
 * their classes.  The student's loss has a part of the classes and a part of
 * the teacher's logits, softened by a temperature, as PyTorch's tutorial has
 * them:
 *
 *     (1 - ALPHA) cross_entropy(x, class)
 *     + ALPHA T^2 KLDivLoss(log_softmax(x / T), softmax(teacher / T))
 *
 * Source: Hinton, Vinyals, Dean, Distilling the Knowledge in a Neural Network,
 * 2015.
 */
#include <ddp.h>
#include <math.h>
#include <stdio.h>

enum { SIDE = 40, COUNT = SIDE * SIDE, CLASSES = 2 };
static const double ALPHA = 0.7, T = 3;

/* The teacher's logits, and the class in the place after them. */
static float logits[COUNT][CLASSES];

static int point(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x, r;

    (void)arg;
    (void)key;
    x[0] = 2 * (float)(index % SIDE) / (SIDE - 1) - 1;
    x[1] = 2 * (float)(index / SIDE) / (SIDE - 1) - 1;
    r = x[0] * x[0] + x[1] * x[1];
    s->label = r > 0.2f && r < 0.7f;
    if (!s->target)
        return 0;
    for (int k = 0; k < CLASSES; k++)
        s->target[k] = logits[index][k];
    s->target[CLASSES] = (float)s->label;
    return 0;
}

/* p = softmax(x / t) */
static void soften(const float *x, double t, double p[CLASSES])
{
    double sum = 0, largest = fmax((double)x[0], (double)x[1]);

    for (int k = 0; k < CLASSES; k++)
        sum += p[k] = exp((x[k] - largest) / t);
    for (int k = 0; k < CLASSES; k++)
        p[k] /= sum;
}

/* The sum over n samples of weight times loss; dx: its gradient. */
static double distillation(const float *x, const void *target,
                           const float *weight, int n, int len, float *dx,
                           void *arg)
{
    const float *want = target;
    double hard[CLASSES], soft[CLASSES], taught[CLASSES], sum = 0;

    (void)arg;
    for (int i = 0; i < n; i++, x += len, want += CLASSES + 1) {
        int label = (int)want[CLASSES];

        soften(x, 1, hard);
        soften(x, T, soft);
        soften(want, T, taught);
        sum -= weight[i] * (1 - ALPHA) * log(hard[label]);
        for (int k = 0; k < CLASSES; k++) {
            sum += weight[i] * ALPHA * T * T * taught[k] *
                   log(taught[k] / soft[k]);
            if (dx)
                dx[i * len + k] =
                    (float)(weight[i] *
                            ((1 - ALPHA) * (hard[k] - (k == label)) +
                             ALPHA * T * (soft[k] - taught[k])));
        }
    }
    return sum;
}

static ddp_dataset_t *points(bool taught)
{
    return ddp_dataset_callback(
        &(struct ddp_source){.count = COUNT,
                             .shape = {1, 1, 2},
                             .type = DDP_F32,
                             .classes = taught ? 0 : CLASSES,
                             .target_len = taught ? CLASSES + 1 : 0,
                             .get = point});
}

static bool train(ddp_t *ddp, ddp_chain_t *net, ddp_dataset_t *d, bool taught)
{
    struct ddp_train_config config;
    ddp_trainer_t *trainer;
    bool good;

    ddp_train_config_init(&config);
    config.optimizer = ddp_adam(1e-2f);
    config.sub_batch = 20;
    config.lanes = 2;
    config.epochs = 30;
    if (taught) {
        config.loss = DDP_CUSTOM_LOSS;
        config.loss_fn = distillation;
    }
    trainer = ddp_trainer_new(ddp, net, d, &config);
    good = ddp_trainer_train(trainer) == 0;
    ddp_trainer_free(trainer);
    return good;
}

/* The logits of all points. */
static bool answer(ddp_t *ddp, ddp_chain_t *net, float y[COUNT][CLASSES])
{
    static float x[COUNT][2];

    for (int i = 0; i < COUNT; i++)
        point(NULL, i, 0, &(struct ddp_sample){.x = x[i]});
    return ddp_chain_forward(ddp, net, x, DDP_F32, (struct ddp_shape){1, 1, 2},
                             COUNT, 0, y[0]) == 0;
}

/* How many points the student classifies as the teacher does. */
static int agreement(float y[COUNT][CLASSES])
{
    int same = 0;

    for (int i = 0; i < COUNT; i++)
        same += (y[i][1] > y[i][0]) == (logits[i][1] > logits[i][0]);
    return same;
}

int main(void)
{
    static float y[COUNT][CLASSES];
    ddp_t *ddp = ddp_init(NULL);
    ddp_dataset_t *classes = points(false), *taught = points(true);
    ddp_chain_t *teacher = ddp_chain_new(
        ddp_dense_new(2, 32, NULL), ddp_tanh_new(), ddp_dense_new(32, 32, NULL),
        ddp_tanh_new(), ddp_dense_new(32, CLASSES, NULL), DDP_END);
    ddp_chain_t *student = ddp_chain_new(
        ddp_dense_new(2, 12, NULL), ddp_tanh_new(), ddp_dense_new(12, 12, NULL),
        ddp_tanh_new(), ddp_dense_new(12, CLASSES, NULL), DDP_END);
    bool good = train(ddp, teacher, classes, false) &&
                answer(ddp, teacher, logits) &&
                train(ddp, student, taught, true) && answer(ddp, student, y);

    if (good)
        printf("the student agrees with its teacher on %.1f %%\n",
               100.0 * agreement(y) / COUNT);
    else
        fprintf(stderr, "distill: %s\n", ddp_errmsg());
    ddp_chain_free(student);
    ddp_chain_free(teacher);
    ddp_dataset_free(taught);
    ddp_dataset_free(classes);
    ddp_finish(ddp);
    return !good;
}
