/* loss.c - a loss of the program's own, and what it is good for
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The samples lie on the line y = 2 x + 1, but for one in ten that is far from
 * it.  Squared errors let these pull the line up; Huber's loss grows linearly
 * with large errors, and finds it.
 */
#include <ddp.h>
#include <math.h>
#include <stdio.h>

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float x = (float)index / 100 - 1;

    (void)arg;
    (void)key;
    *(float *)s->x = x;
    *s->target = 2 * x + 1 + (index % 10 == 0 ? 30 : 0);
    return 0;
}

/* The sum over n samples of weight times loss; dx: its gradient. */
static double huber(const float *x, const void *target, const float *weight,
                    int n, int len, float *dx, void *arg)
{
    const float *y = target;
    double sum = 0;

    (void)arg;
    for (int i = 0; i < n * len; i++) {
        float e = x[i] - y[i], w = weight[i / len];

        sum += w * (fabsf(e) < 1 ? e * e / 2 : fabsf(e) - 0.5f);
        if (dx)
            dx[i] = w * fmaxf(-1, fminf(1, e));
    }
    return sum;
}

/* Fit a line: y = line[0] x + line[1]. */
static int fit(ddp_t *ddp, enum ddp_loss_kind loss, float line[2])
{
    struct ddp_source source = {
        .count = 200, .shape = {1, 1, 1}, .target_len = 1, .get = get};
    ddp_dataset_t *data = ddp_dataset_callback(&source);
    ddp_chain_t *net = ddp_chain_new(ddp_dense_new(1, 1, NULL), DDP_END);
    struct ddp_train_config config;
    ddp_trainer_t *trainer;
    int rc;

    ddp_train_config_init(&config);
    config.loss = loss;
    config.loss_fn = huber; /* of DDP_CUSTOM_LOSS */
    config.optimizer = ddp_sgd(0.2f);
    config.batch = 200;
    config.sub_batch = 50;
    config.epochs = 200;
    trainer = ddp_trainer_new(ddp, net, data, &config);
    if ((rc = ddp_trainer_train(trainer)) == 0 &&
        (rc = ddp_chain_get(net, "0.weight", &line[0], 1)) == 0)
        rc = ddp_chain_get(net, "0.bias", &line[1], 1);
    ddp_trainer_free(trainer);
    ddp_chain_free(net);
    ddp_dataset_free(data);
    return rc;
}

int main(void)
{
    ddp_t *ddp = ddp_init(NULL);
    float a[2], b[2];
    bool good = fit(ddp, DDP_MSE, a) == 0 && fit(ddp, DDP_CUSTOM_LOSS, b) == 0;

    if (good)
        printf("squared errors: y = %.2f x + %.2f\n"
               "Huber's loss:   y = %.2f x + %.2f\n",
               a[0], a[1], b[0], b[1]);
    else
        fprintf(stderr, "loss: %s\n", ddp_errmsg());
    ddp_finish(ddp);
    return !good;
}
