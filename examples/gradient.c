/* gradient.c - change the gradients of a step before they are applied
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     gradient [iris.csv]
 *
 * Every value is clipped to -0.01..0.01, so that with plain SGD no weight moves
 * by more than 0.01 times the learning rate.  The trainer's own clip_norm
 * clips the norm of all gradients together.
 */
#include <ddp.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LEN = 64 }; /* of the first layer's weights */
static const float most = 0.01f, rate = 0.5f;

static int clip(ddp_trainer_t *trainer, ddp_chain_t *net)
{
    struct ddp_param_info p;
    float g[LEN];
    int rc = 0;

    for (int i = 0; rc == 0 && ddp_chain_param(net, i, &p) == 0; i++)
        if ((rc = ddp_trainer_get_gradient(trainer, p.name, g, p.len)) == 0) {
            for (size_t k = 0; k < p.len; k++)
                g[k] = fmaxf(-most, fminf(most, g[k]));
            rc = ddp_trainer_set_gradient(trainer, p.name, g, p.len);
        }
    return rc;
}

/* One step; *moved: how far the weight that moved most did. */
static int step(ddp_trainer_t *trainer, ddp_chain_t *net, struct ddp_metrics *m,
                float *moved)
{
    float before[LEN], after[LEN];

    *moved = 0;
    if (ddp_chain_get(net, "0.weight", before, LEN) < 0 ||
        ddp_trainer_gradients(trainer, m) < 0 || clip(trainer, net) < 0 ||
        ddp_trainer_update(trainer) < 0 ||
        ddp_chain_get(net, "0.weight", after, LEN) < 0)
        return -1;
    for (int i = 0; i < LEN; i++)
        *moved = fmaxf(*moved, fabsf(after[i] - before[i]));
    return 0;
}

int main(int argc, char **argv)
{
    ddp_t *ddp = ddp_init(NULL);
    ddp_dataset_t *iris =
        ddp_dataset_csv(argc > 1 ? argv[1] : "iris.csv", "class");
    ddp_chain_t *net = ddp_chain_new(ddp_dense_new(4, 16, NULL), ddp_relu_new(),
                                     ddp_dense_new(16, 3, NULL), DDP_END);
    struct ddp_train_config config;
    struct ddp_metrics m;
    ddp_trainer_t *trainer;
    float moved;
    bool good;

    ddp_train_config_init(&config);
    config.optimizer = ddp_sgd(rate);
    config.batch = 30;
    config.sub_batch = 15;
    trainer = ddp_trainer_new(ddp, net, iris, &config);
    good = step(trainer, net, &m, &moved) == 0;
    if (good)
        printf("step 1: loss %.4f, weights moved by %.6f at most\n", m.loss,
               moved);
    for (int i = 2; good && i <= 100; i++)
        good = step(trainer, net, &m, &moved) == 0;
    if (good)
        printf("step 100: loss %.4f\n", m.loss);
    else
        fprintf(stderr, "gradient: %s\n", ddp_errmsg());
    ddp_trainer_free(trainer);
    ddp_chain_free(net);
    ddp_dataset_free(iris);
    ddp_finish(ddp);
    return !good;
}
