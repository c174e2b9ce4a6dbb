/* loop.c - a training loop of the program's own, which stops early
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     loop [iris.csv]
 *
 * A fifth of each class is held back.  Training ends when their loss has not
 * improved for ten epochs, with the weights of the best one.
 */
#include <ddp.h>
#include <stdio.h>

static const char best_path[] = "loop-best.safetensors";

static ddp_dataset_t *part(const char *csv, enum ddp_split which)
{
    return ddp_dataset_part(ddp_dataset_csv(csv, "class"), which, 0.2, 1);
}

static int train(ddp_trainer_t *trainer, ddp_chain_t *net, ddp_dataset_t *held)
{
    struct ddp_metrics m = {0}, best = {.loss = 1e9};
    int64_t steps = ddp_trainer_epoch_steps(trainer);
    int rc = 0, since = 0, epoch = 0;

    for (; rc == 0 && since < 10 && epoch < 200; epoch++, since++) {
        /* Without metrics a step is only submitted: several overlap. */
        for (int64_t i = 0; i < steps && rc == 0; i++)
            rc = ddp_trainer_step(trainer, NULL);
        if (rc < 0 || (rc = ddp_trainer_evaluate(trainer, held, &m)) < 0 ||
            m.loss >= best.loss)
            continue;
        best = m;
        since = -1;
        rc = ddp_chain_save(net, best_path, NULL);
    }
    if (rc == 0)
        printf("%d epochs, best loss %.4f\n", epoch, best.loss);
    return rc;
}

int main(int argc, char **argv)
{
    const char *csv = argc > 1 ? argv[1] : "iris.csv";
    ddp_t *ddp = ddp_init(NULL);
    ddp_dataset_t *data = part(csv, DDP_TRAIN), *held = part(csv, DDP_VAL);
    ddp_chain_t *net = ddp_chain_new(ddp_dense_new(4, 16, NULL), ddp_relu_new(),
                                     ddp_dense_new(16, 3, NULL), DDP_END);
    struct ddp_train_config config;
    struct ddp_metrics m;
    ddp_trainer_t *trainer;
    bool good;

    ddp_train_config_init(&config);
    config.optimizer = ddp_adam(2e-2f);
    config.batch = 40;
    config.sub_batch = 20;
    trainer = ddp_trainer_new(ddp, net, data, &config);
    good = held && trainer && train(trainer, net, held) == 0 &&
           ddp_chain_load(net, best_path, NULL, NULL) == 0 &&
           ddp_trainer_evaluate(trainer, held, &m) == 0;
    if (good)
        printf("%d flowers held back: loss %.4f, %.1f %% right\n",
               (int)m.samples, m.loss, 100 * m.top1);
    else
        fprintf(stderr, "loop: %s\n", ddp_errmsg());
    ddp_trainer_free(trainer);
    ddp_chain_free(net);
    ddp_dataset_free(held);
    ddp_dataset_free(data);
    ddp_finish(ddp);
    return !good;
}
