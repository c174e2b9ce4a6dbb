/* optimizer.c - an optimizer of the program's own: Lion
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     optimizer [iris.csv]
 *
 * The trainer computes the gradients of a step on all devices; the program
 * changes the weights.
 *
 * Source: Chen et al., Symbolic Discovery of Optimization Algorithms, 2023.
 */
#include <ddp.h>
#include <stdio.h>

enum { TENSORS = 4, MOST = 64 }; /* weights and biases of two layers */
static float momentum[TENSORS][MOST];

/* w -= lr sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g */
static void lion(float *w, float *m, const float *g, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        float c = 0.9f * m[i] + 0.1f * g[i];

        w[i] -= 3e-3f * (float)((c > 0) - (c < 0));
        m[i] = 0.99f * m[i] + 0.01f * g[i];
    }
}

static int update(ddp_trainer_t *trainer, ddp_chain_t *net)
{
    struct ddp_param_info p;
    float w[MOST], g[MOST];
    int rc = 0;

    for (int i = 0; i < TENSORS && rc == 0; i++)
        if ((rc = ddp_chain_param(net, i, &p)) == 0 &&
            (rc = ddp_chain_get(net, p.name, w, p.len)) == 0 &&
            (rc = ddp_trainer_get_gradient(trainer, p.name, g, p.len)) == 0) {
            lion(w, momentum[i], g, p.len);
            rc = ddp_chain_set(net, p.name, w, p.len);
        }
    return rc;
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
    bool good = true;

    ddp_train_config_init(&config); /* no optimizer */
    config.batch = 30;
    config.sub_batch = 15;
    trainer = ddp_trainer_new(ddp, net, iris, &config);
    for (int step = 0; good && step < 300; step++)
        good = ddp_trainer_gradients(trainer, &m) == 0 &&
               update(trainer, net) == 0;
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
