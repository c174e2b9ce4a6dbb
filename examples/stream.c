/* stream.c - samples that arrive through a pipe, as many as there are
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     stream 'zcat points.gz' 10
 *
 * Lines "x y class" of a shell command, which is run again for each epoch.
 */
#include <ddp.h>
#include <stdio.h>
#include <stdlib.h>

struct source {
    const char *command;
    FILE *pipe;
};

/* Read the next line.  One thread calls this, in order. */
static int next_point(void *arg, int64_t epoch, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    struct source *src = arg;
    float *x = s->x;
    int fields, status;

    (void)epoch;
    (void)key;
    if (index == 0 && !src->pipe)
        src->pipe = popen(src->command, "r");
    if (!src->pipe)
        return DDP_EIO;
    fields = fscanf(src->pipe, "%f %f %d", &x[0], &x[1], &s->label);
    if (fields == 3)
        return 0;
    status = pclose(src->pipe);
    src->pipe = NULL;
    return fields == EOF && status == 0 ? DDP_STREAM_END : DDP_EDATA;
}

static int print_epoch(const struct ddp_progress *p, void *arg)
{
    (void)arg;
    printf("epoch %lld: %lld samples, %.1f %% right\n", (long long)p->epoch,
           (long long)p->epoch_mean.samples, 100 * p->epoch_mean.top1);
    return 0;
}

int main(int argc, char **argv)
{
    struct source source = {argc > 1 ? argv[1] : "cat", NULL};
    ddp_t *ddp = ddp_init(NULL);
    struct ddp_stream stream;
    struct ddp_train_config config;
    ddp_dataset_t *points;
    ddp_chain_t *net;
    ddp_trainer_t *trainer;
    int rc;

    ddp_stream_init(&stream);
    stream.shape = (struct ddp_shape){1, 1, 2};
    stream.classes = 2;
    stream.next = next_point;
    stream.arg = &source;
    stream.window = 200; /* neighbours are seldom in the same step */
    points = ddp_dataset_stream(&stream);
    net = ddp_chain_new(ddp_dense_new(2, 32, NULL), ddp_tanh_new(),
                        ddp_dense_new(32, 32, NULL), ddp_tanh_new(),
                        ddp_dense_new(32, 2, NULL), DDP_END);
    ddp_train_config_init(&config);
    config.optimizer = ddp_adam(1e-2f);
    config.sub_batch = 20;
    config.lanes = 2;
    config.epochs = argc > 2 ? atoi(argv[2]) : 1;
    config.on_epoch = print_epoch;
    trainer = ddp_trainer_new(ddp, net, points, &config);
    rc = ddp_trainer_train(trainer);
    if (rc != 0)
        fprintf(stderr, "stream: %s\n", ddp_errmsg());
    ddp_trainer_free(trainer);
    ddp_chain_free(net);
    ddp_dataset_free(points);
    ddp_finish(ddp);
    return rc != 0;
}
