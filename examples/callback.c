/* callback.c - samples that the program computes, instead of files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Points of a square belong to class 1 if they lie in a ring.
 */
#include <ddp.h>
#include <stdio.h>

/* Fill in sample `index`.  Several threads call this at once.  key is random,
 * and another one in each epoch: use it to augment samples. */
static int get_point(void *arg, int64_t index, uint64_t key,
                     struct ddp_sample *s)
{
    int side = *(const int *)arg;
    float *x = s->x, r;

    x[0] = 2 * (float)(index % side) / (float)(side - 1) - 1;
    x[1] = 2 * (float)(index / side) / (float)(side - 1) - 1;
    r = x[0] * x[0] + x[1] * x[1];
    s->label = r > 0.2f && r < 0.7f;
    x[0] += 0.01f * ((float)(key & 0xff) / 255 - 0.5f);
    return 0;
}

int main(void)
{
    int side = 40;
    struct ddp_source source = {.count = 40 * 40,
                                .shape = {1, 1, 2},
                                .type = DDP_F32,
                                .classes = 2,
                                .get = get_point,
                                .arg = &side};
    ddp_t *ddp = ddp_init(NULL);
    ddp_dataset_t *points = ddp_dataset_callback(&source);
    ddp_chain_t *net = ddp_chain_new(
        ddp_dense_new(2, 32, NULL), ddp_tanh_new(), ddp_dense_new(32, 32, NULL),
        ddp_tanh_new(), ddp_dense_new(32, 2, NULL), DDP_END);
    struct ddp_train_config config;
    struct ddp_metrics m;
    ddp_trainer_t *trainer;
    bool good;

    ddp_train_config_init(&config);
    config.optimizer = ddp_adam(1e-2f);
    config.sub_batch = 20;
    config.lanes = 2;
    config.epochs = 30;
    trainer = ddp_trainer_new(ddp, net, points, &config);
    good = ddp_trainer_train(trainer) == 0 &&
           ddp_trainer_evaluate(trainer, points, &m) == 0;
    if (good)
        printf("%s: %.1f %% right\n", ddp_dataset_describe(points),
               100 * m.top1);
    else
        fprintf(stderr, "callback: %s\n", ddp_errmsg());
    ddp_trainer_free(trainer);
    ddp_chain_free(net);
    ddp_dataset_free(points);
    ddp_finish(ddp);
    return !good;
}
