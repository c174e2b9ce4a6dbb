/* iris.c - the smallest whole program: three classes of flowers, four numbers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     ddp-iris [iris.csv]
 */
#include <ddp.h>
#include <stdio.h>
#include <string.h>

/* Called after every pass over the data. */
static int report(const struct ddp_progress *p, void *arg)
{
    (void)arg;
    if ((p->epoch + 1) % 10 == 0)
        printf("epoch %2d: loss %.4f, %.1f %% right\n", (int)p->epoch + 1,
               p->epoch_mean.loss, 100 * p->epoch_mean.top1);
    return 0;
}

/* Only the end is checked: constructors accept the NULL of one that failed,
 * and ddp_errmsg() keeps the first reason. */
static int train(const char *csv)
{
    ddp_t *ddp = ddp_init(NULL);
    ddp_dataset_t *iris = ddp_dataset_csv(csv, "class");
    ddp_chain_t *m =
        ddp_chain_new(ddp_dense_new(4, 8, NULL), ddp_dense_new(8, 16, NULL),
                      ddp_dense_new(16, 3, NULL), DDP_END);
    struct ddp_train_config cfg;
    ddp_trainer_t *t;
    struct ddp_metrics end;
    bool ok;

    ddp_train_config_init(&cfg);
    cfg.optimizer = ddp_adam(1e-3f);
    cfg.sub_batch = 8;
    cfg.lanes = 1;
    cfg.epochs = 50;
    cfg.on_epoch = report;
    t = ddp_trainer_new(ddp, m, iris, &cfg);
    ok = ddp && t && ddp_trainer_train(t) == 0 &&
         ddp_trainer_evaluate(t, iris, &end) == 0;
    if (ok)
        printf("trained on %s: loss %.4f, %.1f %% right\n", ddp_describe(ddp),
               end.loss, 100 * end.top1);
    else
        fprintf(stderr, "ddp-iris: %s\n", ddp_errmsg());
    ddp_trainer_free(t);
    ddp_dataset_free(iris);
    ddp_chain_free(m);
    ddp_finish(ddp);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "ddp-iris: lines on stdout could not be written\n");
        ok = false;
    }
    return !ok;
}

int main(int argc, char **argv)
{
    bool help = argc > 1 && strcmp(argv[1], "--help") == 0;

    if (argc <= 2 && !help && (argc < 2 || argv[1][0] != '-'))
        return train(argc > 1 ? argv[1] : "iris.csv");
    fprintf(help ? stdout : stderr,
            "Usage: ddp-iris [FILE]\n\n"
            "Train a small network on the table FILE, by default iris.csv.\n");
    return help ? 0 : 2;
}
