/* optimizer.c - an optimizer of the program's own: Lion
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     optimizer [iris.csv]
 *
 * The trainer computes the gradients of a step on all devices, and a function
 * of the program changes the weights.  What it keeps is in checkpoints, too.
 *
 * Source: Chen et al., Symbolic Discovery of Optimization Algorithms, 2023.
 */
#include <ddp.h>
#include <stdio.h>

/* w -= lr sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g */
static void lion(const struct ddp_update *u, void *arg)
{
    float *m = u->state[0];

    (void)arg;
    for (size_t i = 0; i < u->len; i++) {
        float c = 0.9f * m[i] + 0.1f * u->g[i];

        u->w[i] -= u->lr * (float)((c > 0) - (c < 0));
        m[i] = 0.99f * m[i] + 0.01f * u->g[i];
    }
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
    bool good;

    ddp_train_config_init(&config);
    config.optimizer = (struct ddp_optimizer){.kind = DDP_CUSTOM_OPTIMIZER,
                                              .lr = 3e-3f,
                                              .update = lion,
                                              .update_states = 1};
    config.steps = 300;
    config.batch = 30;
    config.sub_batch = 15;
    trainer = ddp_trainer_new(ddp, net, iris, &config);
    good = ddp_trainer_train(trainer) == 0;
    good = good && ddp_trainer_evaluate(trainer, iris, &m) == 0;
    if (good)
        printf("loss %.4f, %.1f %% right\n", m.loss, 100 * m.top1);
    else
        fprintf(stderr, "optimizer: %s\n", ddp_errmsg());
    ddp_trainer_free(trainer);
    ddp_chain_free(net);
    ddp_dataset_free(iris);
    ddp_finish(ddp);
    return !good;
}
