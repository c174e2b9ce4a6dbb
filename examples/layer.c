/* layer.c - a layer of the program's own, with a weight and two kernels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * "prelu" computes y = x for positive x and y = slope x for others.  It learns
 * the slope 0.3 from samples.
 */
#include <ddp_layer.h>
#include <stdio.h>

/* ---- kernels: one sub-batch of n samples -------------------------------- */

static int values(const struct ddp_kernel_args *a)
{
    return a->n * a->buf[0].shape.h * a->buf[0].shape.w * a->buf[0].shape.c;
}

static int run(const struct ddp_kernel_args *a)
{
    const float *x = a->buf[0].data, *slope = a->buf[1].data;
    float *y = a->buf[2].data;

    for (int i = 0; i < values(a); i++)
        y[i] = x[i] > 0 ? x[i] : *slope * x[i];
    return 0;
}

/* A lane adds the gradients of its sub-batches: all but the first accumulate.
 * Without a buffer for dx nothing in front of the layer needs it. */
static int run_back(const struct ddp_kernel_args *a)
{
    const float *x = a->buf[0].data, *slope = a->buf[1].data;
    const float *dy = a->buf[2].data;
    float *g = a->buf[3].data, *dx = a->buffers > 4 ? a->buf[4].data : NULL;
    float sum = 0;

    for (int i = 0; i < values(a); i++) {
        sum += x[i] > 0 ? 0 : dy[i] * x[i];
        if (dx)
            dx[i] = x[i] > 0 ? dy[i] : dy[i] * *slope;
    }
    *g = a->accumulate ? *g + sum : sum;
    return 0;
}

/* ---- the layer ---------------------------------------------------------- */

static int shape(const ddp_layer_t *l, struct ddp_shape x, struct ddp_shape *y)
{
    (void)l;
    *y = x;
    return 0;
}

static int params(const ddp_layer_t *l, struct ddp_param p[DDP_MAX_PARAMS])
{
    (void)l;
    p[0] = (struct ddp_param){"weight", DDP_WEIGHT, 1, {1}, .fill = 0.9f};
    return 1;
}

static ddp_value_t *forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    static const struct ddp_kernel kernel = {"prelu", {[DDP_CPU] = run}};
    ddp_value_t *y = ddp_graph_value(g, ddp_value_shape(x), DDP_F32);

    if (ddp_graph_call(g, &kernel, NULL, 3,
                       (ddp_value_t *[]){x, ddp_graph_param(g, l), y},
                       (enum ddp_access[]){DDP_READ, DDP_READ, DDP_WRITE}) < 0)
        return NULL;
    return ddp_graph_record(g,
                            &(struct ddp_record){.layer = l, .x = x, .y = y});
}

static ddp_value_t *backward(ddp_layer_t *l, ddp_graph_t *g,
                             const struct ddp_record *r, ddp_value_t *dy)
{
    static const struct ddp_kernel kernel = {"prelu_bwd",
                                             {[DDP_CPU] = run_back}};
    bool needed = ddp_value_needs_gradient(r->x);
    ddp_value_t *dx =
        needed ? ddp_graph_value(g, ddp_value_shape(r->x), DDP_F32) : NULL;

    return ddp_graph_call(g, &kernel, NULL, needed ? 5 : 4,
                          (ddp_value_t *[]){r->x, ddp_graph_param(g, l), dy,
                                            ddp_graph_param_gradient(g, l), dx},
                          (enum ddp_access[]){DDP_READ, DDP_READ, DDP_READ,
                                              DDP_WRITE, DDP_WRITE}) < 0
               ? NULL
               : dx;
}

static ddp_layer_t *prelu_new(void)
{
    static const struct ddp_layer_ops ops = {.kind = "prelu",
                                             .shape = shape,
                                             .params = params,
                                             .forward = forward,
                                             .backward = backward};

    return ddp_layer_new(sizeof(ddp_layer_t), &ops);
}

/* ---- what it learns ----------------------------------------------------- */

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float x = (float)index / 50 - 1;

    (void)arg;
    (void)key;
    *(float *)s->x = x;
    *s->target = x > 0 ? x : 0.3f * x;
    return 0;
}

int main(void)
{
    struct ddp_source source = {
        .count = 100, .shape = {1, 1, 1}, .target_len = 1, .get = get};
    ddp_t *ddp = ddp_init(NULL);
    ddp_dataset_t *data = ddp_dataset_callback(&source);
    ddp_chain_t *net = ddp_chain_new(prelu_new(), DDP_END);
    struct ddp_train_config config;
    ddp_trainer_t *trainer;
    float slope;
    bool good;

    ddp_train_config_init(&config);
    config.loss = DDP_MSE;
    config.optimizer = ddp_sgd(0.5f);
    config.sub_batch = 10;
    config.lanes = 2;
    config.batch = 50;
    config.epochs = 50;
    trainer = ddp_trainer_new(ddp, net, data, &config);
    good = ddp_trainer_train(trainer) == 0 &&
           ddp_chain_get(net, "0.weight", &slope, 1) == 0;
    if (good)
        printf("slope %.4f\n", slope);
    else
        fprintf(stderr, "layer: %s\n", ddp_errmsg());
    ddp_trainer_free(trainer);
    ddp_chain_free(net);
    ddp_dataset_free(data);
    ddp_finish(ddp);
    return !good;
}
