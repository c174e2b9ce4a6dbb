/* square.c - ranks with samples of their own learn y = x^2 together
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     mpirun -n 2 square
 *
 * Source: FluxMPI.jl README, quick start.  Its Init is ddp_init(), its
 * synchronize! ddp_chain_sync(), its DistributedOptimizer ddp_trainer_apply().
 */
#include <ddp.h>
#include <stdio.h>

enum { SAMPLES = 16, STEPS = 100 };

static float x[SAMPLES], y[SAMPLES], out[SAMPLES], dy[SAMPLES];

/* All samples; those of a rank are a shard of them. */
static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    int64_t count = *(int64_t *)arg;

    (void)key;
    *(float *)s->x = (float)index / (float)count;
    *s->target = *(float *)s->x * *(float *)s->x;
    return 0;
}

static ddp_dataset_t *samples(int64_t *count)
{
    return ddp_dataset_callback(&(struct ddp_source){.count = *count,
                                                     .shape = {1, 1, 1},
                                                     .target_len = 1,
                                                     .get = get,
                                                     .arg = count});
}

static int gradient(const char *name, float *g, size_t len, void *pullback)
{
    return ddp_pullback_get_gradient(pullback, name, g, len);
}

/* Returns the sum of this rank's losses, or a negative code. */
static double step(ddp_trainer_t *t, ddp_pullback_t *p)
{
    double loss = 0;
    int rc = ddp_pullback_forward(p, x, out);

    for (int i = 0; i < SAMPLES; i++) {
        loss += (out[i] - y[i]) * (out[i] - y[i]);
        dy[i] = 2 * (out[i] - y[i]);
    }
    if (rc == 0 && (rc = ddp_pullback_backward(p, dy, NULL)) == 0)
        rc = ddp_trainer_apply(t, gradient, p, SAMPLES);
    return rc < 0 ? rc : loss;
}

static int learn(ddp_t *ddp, ddp_trainer_t *t, ddp_pullback_t *p)
{
    int64_t count = (int64_t)SAMPLES * ddp_rank_count(ddp);
    double loss = 0;

    for (int k = 1; k <= STEPS && loss >= 0; k++) {
        if ((loss = step(t, p)) < 0 ||
            ddp_allreduce(ddp, &loss, 1, DDP_F64, DDP_SUM) < 0)
            return -1;
        if (ddp_rank(ddp) == 0 && k % 20 == 0)
            printf("step %d: loss %.6f\n", k, loss / (double)count);
    }
    return 0;
}

int main(void)
{
    ddp_t *ddp = ddp_init(NULL);
    int64_t count = (int64_t)SAMPLES * (ddp ? ddp_rank_count(ddp) : 1);
    ddp_dataset_t *all = samples(&count);
    ddp_dataset_t *own =
        ddp_dataset_shard(samples(&count), ddp_rank(ddp), ddp_rank_count(ddp));
    ddp_chain_t *net =
        ddp_chain_new(ddp_dense_new(1, 256, NULL), ddp_tanh_new(),
                      ddp_dense_new(256, 512, NULL), ddp_tanh_new(),
                      ddp_dense_new(512, 256, NULL), ddp_tanh_new(),
                      ddp_dense_new(256, 1, NULL), DDP_END);
    struct ddp_train_config cfg;
    ddp_trainer_t *t;
    ddp_pullback_t *p;
    int32_t label;
    bool good;

    for (int i = 0; own && i < SAMPLES; i++)
        if (ddp_dataset_get(own, i, 0, &x[i], &label) == 0)
            y[i] = x[i] * x[i];
    ddp_train_config_init(&cfg);
    cfg.loss = DDP_MSE;
    cfg.optimizer = ddp_adam(1e-3f);
    good = ddp && ddp_chain_init(net, (uint64_t)ddp_rank(ddp)) == 0 &&
           ddp_chain_sync(ddp, net, 0) == 0;
    t = ddp_trainer_new(ddp, net, all, &cfg);
    p = ddp_pullback_new(ddp, net, x, (struct ddp_shape){1, 1, 1}, SAMPLES, 0,
                         NULL);
    good = good && t && p && learn(ddp, t, p) == 0;
    if (!good)
        fprintf(stderr, "square: %s\n", ddp_errmsg());
    ddp_pullback_free(p);
    ddp_trainer_free(t);
    ddp_dataset_free(own);
    ddp_dataset_free(all);
    ddp_chain_free(net);
    ddp_finish(ddp);
    return !good;
}
