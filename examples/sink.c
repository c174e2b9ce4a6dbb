/* sink.c - write a record of a run: a line for each step and evaluation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     sink [iris.csv]
 */
#include <ddp.h>
#include <stdio.h>

static void on_step(const struct ddp_progress *p, void *file)
{
    fprintf(file, "step,%lld,%.6f,%.6f\n", (long long)p->step, p->now.loss,
            p->lr);
}

static void on_eval(const struct ddp_evaluation *e, void *file)
{
    fprintf(file, "eval,%lld,%.6f,\n", (long long)e->step, e->result.loss);
}

static void on_end(int rc, void *file)
{
    fprintf(file, "end,,,%s\n", rc < 0 ? ddp_errmsg() : "");
    fflush(file);
}

int main(int argc, char **argv)
{
    struct ddp_sink sink = {.on_step = on_step,
                            .on_eval = on_eval,
                            .on_end = on_end,
                            .arg = stdout};
    ddp_t *ddp = ddp_init(NULL);
    ddp_dataset_t *iris =
        ddp_dataset_csv(argc > 1 ? argv[1] : "iris.csv", "class");
    ddp_chain_t *net = ddp_chain_new(ddp_dense_new(4, 3, NULL), DDP_END);
    struct ddp_train_config config;
    struct ddp_metrics m;
    ddp_trainer_t *trainer;
    bool good;

    ddp_train_config_init(&config);
    config.optimizer = ddp_sgd(0.1f);
    config.batch = 50;
    config.sub_batch = 25;
    config.epochs = 2;
    ddp_schedule_init(&config.schedule, DDP_LINEAR, 2);
    config.sinks = &sink;
    config.sink_count = 1;
    trainer = ddp_trainer_new(ddp, net, iris, &config);
    good = ddp_trainer_train(trainer) == 0 &&
           ddp_trainer_evaluate(trainer, iris, &m) == 0;
    if (!good)
        fprintf(stderr, "sink: %s\n", ddp_errmsg());
    ddp_trainer_free(trainer);
    ddp_chain_free(net);
    ddp_dataset_free(iris);
    ddp_finish(ddp);
    return !good;
}
