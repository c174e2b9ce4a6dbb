/* flowers.c - ranks that see different flowers, and not equally many
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     mpirun -n 3 flowers iris.csv [SAMPLES_OF_RANK...]
 *
 * Each rank trains on its own part of the table, in batches of 8, until all
 * have ended their epoch: a rank without a batch takes no part in a step.  With
 * three ranks each part is one class.
 *
 * Source: DistributedFluxML.jl, test/runtests.jl, Iris.
 */
#include <ddp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 8, EPOCHS = 50, CLASSES = 3 };

/* A batch of this rank. */
static float x[BATCH][4], out[BATCH][CLASSES], dy[BATCH][CLASSES];
static int32_t label[BATCH];

/* The gradient of logit cross entropy of the first n samples; their loss. */
static double loss_of(int n)
{
    double loss = 0;

    memset(dy, 0, sizeof(dy));
    for (int i = 0; i < n; i++) {
        float sum = 0;

        for (int c = 0; c < CLASSES; c++)
            sum += expf(out[i][c]);
        for (int c = 0; c < CLASSES; c++)
            dy[i][c] = expf(out[i][c]) / sum - (c == label[i]);
        loss += logf(sum) - out[i][label[i]];
    }
    return loss;
}

static int gradient(const char *name, float *g, size_t len, void *pullback)
{
    return ddp_pullback_get_gradient(pullback, name, g, len);
}

/* Samples from `first` on; how many there are, or a negative code. */
static int read_batch(ddp_dataset_t *d, int64_t first, int64_t count)
{
    int n = 0, rc = 0;

    for (; n < BATCH && first + n < count && rc == 0; n++)
        rc = ddp_dataset_get(d, first + n, 0, x[n], &label[n]);
    return rc < 0 ? rc : n;
}

/* One batch of each rank that has one; 0: none has. */
static int step(ddp_trainer_t *t, ddp_pullback_t *p, int n, double *loss)
{
    int rc = n > 0 ? ddp_pullback_forward(p, &x[0][0], &out[0][0]) : 0;

    *loss = n > 0 ? loss_of(n) : 0;
    if (rc == 0 && n > 0)
        rc = ddp_pullback_backward(p, &dy[0][0], NULL);
    return rc < 0 ? rc : ddp_trainer_apply(t, gradient, p, n);
}

static int train(ddp_t *ddp, ddp_trainer_t *t, ddp_pullback_t *p,
                 ddp_dataset_t *own, int64_t count)
{
    int rc = 1;

    for (int epoch = 1; epoch <= EPOCHS && rc >= 0; epoch++) {
        double total[2] = {0, (double)count}, loss;

        for (int64_t at = 0; rc != 0; at += BATCH) {
            int n = read_batch(own, at, count);

            if (n < 0 || (rc = step(t, p, n, &loss)) < 0)
                return -1;
            total[0] += loss;
        }
        rc = ddp_allreduce(ddp, total, 2, DDP_F64, DDP_SUM) < 0 ? -1 : 1;
        if (ddp_rank(ddp) == 0 && rc > 0)
            printf("epoch %d: loss %.4f\n", epoch, total[0] / total[1]);
    }
    return rc;
}

static int run(ddp_t *ddp, const char *csv, int64_t most)
{
    ddp_dataset_t *all = ddp_dataset_csv(csv, "class");
    ddp_dataset_t *own = ddp_dataset_shard(ddp_dataset_csv(csv, "class"),
                                           ddp_rank(ddp), ddp_rank_count(ddp));
    ddp_chain_t *net =
        ddp_chain_new(ddp_dense_new(4, 8, NULL), ddp_dense_new(8, 16, NULL),
                      ddp_dense_new(16, CLASSES, NULL), DDP_END);
    int64_t count = own ? ddp_dataset_count(own) : 0;
    struct ddp_train_config cfg;
    struct ddp_metrics m;
    ddp_trainer_t *t;
    ddp_pullback_t *p;
    uint32_t crc;
    bool good;

    ddp_train_config_init(&cfg);
    cfg.optimizer = ddp_adam(1e-3f);
    t = ddp_trainer_new(ddp, net, all, &cfg);
    p = ddp_pullback_new(ddp, net, &x[0][0], (struct ddp_shape){1, 1, 4}, BATCH,
                         0, NULL);
    good = own && t && p &&
           train(ddp, t, p, own, count < most ? count : most) > 0 &&
           ddp_trainer_evaluate(t, all, &m) == 0 &&
           ddp_chain_checksum(net, &crc) == 0;
    if (good)
        printf("rank %d: %d steps, loss %.4f, %.1f %% right, weights %08x\n",
               ddp_rank(ddp), (int)ddp_trainer_steps(t), m.loss, 100 * m.top1,
               crc);
    else
        fprintf(stderr, "flowers: %s\n", ddp_errmsg());
    ddp_pullback_free(p);
    ddp_trainer_free(t);
    ddp_chain_free(net);
    ddp_dataset_free(own);
    ddp_dataset_free(all);
    return !good;
}

int main(int argc, char **argv)
{
    ddp_t *ddp = ddp_init(NULL);
    int rank = ddp ? ddp_rank(ddp) : 0, rc;
    const char *most = argc > 2 + rank ? argv[2 + rank] : "1000000";

    rc = run(ddp, argc > 1 ? argv[1] : "iris.csv", atoll(most));
    ddp_finish(ddp);
    return rc;
}
