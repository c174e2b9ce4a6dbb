/* flowers.c - ranks that see different flowers, and not equally many
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     mpirun -n 3 flowers iris.csv [PARTS_OF_RANK...]
 *
 * Each rank trains on its own part of the table, in batches of 8, until all
 * have ended their epoch: a rank without a batch takes no part in a step.  With
 * three ranks each part is one class.  Of it a rank takes the first of so many
 * parts (1: all).
 *
 * Source: DistributedFluxML.jl, test/runtests.jl, Iris.
 */
#include <ddp.h>
#include <stdio.h>
#include <stdlib.h>

static int print_epoch(const struct ddp_progress *p, void *ddp)
{
    if (ddp_rank(ddp) == 0)
        printf("epoch %d: loss %.4f\n", (int)p->epoch + 1, p->epoch_mean.loss);
    return 0;
}

/* Trains, evaluates on all flowers, and prints what came of it. */
static int run(ddp_t *ddp, ddp_chain_t *net, ddp_dataset_t *own,
               ddp_dataset_t *all)
{
    struct ddp_train_config cfg;
    struct ddp_metrics m;
    ddp_trainer_t *t;
    uint32_t crc;
    bool good;

    ddp_train_config_init(&cfg);
    cfg.optimizer = ddp_adam(1e-3f);
    cfg.own_data = true;
    cfg.batch = cfg.sub_batch = 8;
    cfg.epochs = 50;
    cfg.on_epoch = print_epoch;
    cfg.arg = ddp;
    t = ddp_trainer_new(ddp, net, own, &cfg);
    good = t && ddp_trainer_train(t) == 0 &&
           ddp_trainer_evaluate(t, all, &m) == 0 &&
           ddp_chain_checksum(net, &crc) == 0;
    if (good)
        printf("rank %d: %d steps, loss %.4f, %.1f %% right, weights %08x\n",
               ddp_rank(ddp), (int)ddp_trainer_steps(t), m.loss, 100 * m.top1,
               crc);
    else
        fprintf(stderr, "flowers: %s\n", ddp_errmsg());
    ddp_trainer_free(t);
    return !good;
}

int main(int argc, char **argv)
{
    ddp_t *ddp = ddp_init(NULL);
    const char *csv = argc > 1 ? argv[1] : "iris.csv";
    int rank = ddp ? ddp_rank(ddp) : 0, rc;
    int parts = argc > 2 + rank ? atoi(argv[2 + rank]) : 1;
    ddp_dataset_t *all = ddp_dataset_csv(csv, "class");
    ddp_dataset_t *own = ddp_dataset_shard(ddp_dataset_csv(csv, "class"), rank,
                                           ddp ? ddp_rank_count(ddp) : 1);
    ddp_chain_t *net =
        ddp_chain_new(ddp_dense_new(4, 8, NULL), ddp_dense_new(8, 16, NULL),
                      ddp_dense_new(16, 3, NULL), DDP_END);

    own = ddp_dataset_shard(own, 0, parts);
    rc = run(ddp, net, own, all);
    ddp_chain_free(net);
    ddp_dataset_free(own);
    ddp_dataset_free(all);
    ddp_finish(ddp);
    return rc;
}
