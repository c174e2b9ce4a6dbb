/* ranks_program.c - what ranks compute together, for app_ranks.sh
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Rank 0 prints a line for each test point that fails on any rank, and at the
 * end how many were tried.
 */
#include "config.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ddp.h"

enum { LEN = 300000 };

static ddp_t *ddp;
static int rank, ranks, tried, failed;

/* A point passes if it does on all ranks. */
static void check(bool pass, const char *what)
{
    int32_t good = pass;

    tried++;
    if (ddp_allreduce(ddp, &good, 1, DDP_I32, DDP_MIN) < 0 || !good) {
        failed++;
        if (rank == 0)
            printf("not ok: %s: %s\n", what, ddp_errmsg());
    }
}

static void test_sums(void)
{
    static float x[LEN];
    static double d[512];
    int64_t i[3] = {rank + 1, -rank, 1};
    float least = (float)-rank, most = (float)rank, product = 2;
    bool good = true;

    for (int k = 0; k < LEN; k++)
        x[k] = (float)(k % 7 + rank);
    for (int k = 0; k < 512; k++)
        d[k] = rank + 1;
    good = ddp_allreduce(ddp, x, LEN, DDP_F32, DDP_SUM) == 0;
    for (int k = 0; k < LEN; k++)
        good &= x[k] == (float)(k % 7 * ranks + ranks * (ranks - 1) / 2);
    check(good, "a sum of floats");
    good = ddp_allreduce(ddp, d, 512, DDP_F64, DDP_MEAN) == 0;
    for (int k = 0; k < 512; k++)
        good &= fabs(d[k] - (ranks + 1) / 2.0) < 1e-12;
    check(good, "a mean of doubles");
    check(ddp_allreduce(ddp, i, 3, DDP_I64, DDP_SUM) == 0 &&
              i[0] == ranks * (ranks + 1) / 2 &&
              i[1] == -ranks * (ranks - 1) / 2 && i[2] == ranks,
          "a sum of integers");
    check(ddp_allreduce(ddp, &least, 1, DDP_F32, DDP_MIN) == 0 &&
              least == (float)(1 - ranks),
          "a minimum");
    check(ddp_allreduce(ddp, &most, 1, DDP_F32, DDP_MAX) == 0 &&
              most == (float)(ranks - 1),
          "a maximum");
    check(ddp_allreduce(ddp, &product, 1, DDP_F32, DDP_PROD) == 0 &&
              product == ldexpf(1, ranks),
          "a product");
    check(ddp_allreduce(ddp, &most, 1, DDP_BF16, DDP_SUM) == DDP_EINVAL &&
              ddp_allreduce(ddp, i, 1, DDP_I64, DDP_MEAN) == DDP_EINVAL,
          "types that are not reduced");
}

static void test_root(void)
{
    char word[8] = "";
    float x = (float)(rank + 1);

    if (rank == ranks - 1)
        strcpy(word, "root");
    check(ddp_bcast(ddp, word, sizeof(word), ranks - 1) == 0 &&
              !strcmp(word, "root"),
          "a broadcast");
    check(ddp_reduce(ddp, &x, 1, DDP_F32, DDP_SUM, ranks - 1) == 0 &&
              x == (float)(rank == ranks - 1 ? ranks * (ranks + 1) / 2
                                             : rank + 1),
          "a reduction to one rank, whose others keep theirs");
    check(ddp_bcast(ddp, word, 1, ranks) == DDP_EINVAL, "no such root");
    check(ddp_barrier(ddp) == 0, "a barrier");
}

/* Every choice of those who take part. */
static void test_optional(void)
{
    bool good = true;

    for (int mask = 0; mask < 1 << ranks; mask++) {
        int parts = -1, count = 0, sum = 0;
        float x = (float)(rank + 1), mean = x;

        for (int r = 0; r < ranks; r++)
            if (mask >> r & 1) {
                count++;
                sum += r + 1;
            }
        good &= ddp_allreduce_optional(ddp, &x, 1, DDP_F32, DDP_SUM,
                                       mask >> rank & 1, &parts) == 0 &&
                parts == count && x == (float)(count ? sum : rank + 1);
        good &= ddp_allreduce_optional(ddp, &mean, 1, DDP_F32, DDP_MEAN,
                                       mask >> rank & 1, &parts) == 0 &&
                (!count || fabsf(mean - (float)sum / (float)count) < 1e-6f);
    }
    check(good, "sums of those who take part");
}

static void test_requests(void)
{
    static float x[3][LEN];
    ddp_request_t *r[3];
    bool good = true, done = false;

    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < LEN; i++)
            x[k][i] = (float)(k + 1);
        good &= (r[k] = ddp_allreduce_begin(ddp, x[k], LEN, DDP_F32,
                                            DDP_SUM)) != NULL;
    }
    while (good && !done)
        good &= ddp_request_test(r[0], &done) == 0;
    for (int k = 0; good && k < 3; k++)
        good &= ddp_request_wait(r[k]) == 0 &&
                x[k][0] == (float)(ranks * (k + 1)) && x[k][LEN - 1] == x[k][0];
    check(good, "three requests at a time");
}

static void test_chain(void)
{
    ddp_chain_t *c = ddp_chain_new(ddp_dense_new(4, 3, NULL), DDP_END);
    ddp_chain_t *other =
        ddp_chain_new(ddp_dense_new(4, rank == 0 ? 3 : 5, NULL), DDP_END);
    uint32_t crc = 0, first;
    bool good = ddp_chain_init(c, (uint64_t)rank) == 0 &&
                ddp_chain_sync(ddp, c, 0) == 0 &&
                ddp_chain_checksum(c, &crc) == 0;

    first = crc;
    check(good && ddp_bcast(ddp, &first, sizeof(first), 0) == 0 && first == crc,
          "weights of rank 0 on all");
    check(ranks == 1 || ddp_chain_sync(ddp, other, 0) == DDP_EINVAL,
          "another network");
    ddp_chain_free(c);
    ddp_chain_free(other);
}

/* ---- training ----------------------------------------------------------- */

enum { SAMPLES = 48, STEPS = 12 };

static const char *fault; /* what becomes of rank 1 in mid-run, or NULL */

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;
    (void)arg;
    (void)key;

    if (fault && rank == 1 && index > SAMPLES / 2) {
        if (!strcmp(fault, "hang"))
            pause();
        raise(!strcmp(fault, "stop") ? SIGSTOP : SIGKILL);
    }
    for (int i = 0; i < 4; i++)
        x[i] = (float)((index * (i + 3)) % 7);
    s->label = (int32_t)(index % 3);
    return 0;
}

static int train(int64_t steps)
{
    struct ddp_source source = {
        .count = SAMPLES, .shape = {1, 1, 4}, .classes = 3, .get = get};
    ddp_dataset_t *data = ddp_dataset_callback(&source);
    ddp_chain_t *c = ddp_chain_new(ddp_dense_new(4, 3, NULL), DDP_END);
    struct ddp_train_config cfg;
    ddp_trainer_t *t;
    int rc;

    ddp_train_config_init(&cfg);
    cfg.optimizer = ddp_sgd(0.01f);
    cfg.sub_batch = 1;
    cfg.lanes = 4;
    cfg.steps = steps;
    cfg.order = DDP_IN_ORDER;
    t = ddp_trainer_new(ddp, c, data, &cfg);
    rc = t ? ddp_trainer_train(t) : ddp_errcode();
    ddp_trainer_free(t);
    ddp_dataset_free(data);
    ddp_chain_free(c);
    return rc;
}

static void test_status(void)
{
    bool good = train(STEPS) == 0;

    usleep(1200000);
    for (int r = 0; r < ranks; r++) {
        struct ddp_rank_status s;

        good &= ddp_ranks_status(ddp, r, &s) == 0 && s.host[0] &&
                s.phase == DDP_PHASE_PROGRAM && s.step == STEPS && s.loss > 0 &&
                s.phase_s > 0.2 && s.step_s > 0 && s.wait_share >= 0 &&
                s.wait_share <= 1 && s.silent_s < 2;
    }
    check(good, "what each rank does");
    check(ddp_ranks_status(ddp, ranks, &(struct ddp_rank_status){.step = 0}) ==
              DDP_EINVAL,
          "of no other");
}

/* ---- ranks that are lost ------------------------------------------------ */

static void note_lost(const char *why, void *arg)
{
    (void)arg;
    fprintf(stderr, "lost: %s\n", why);
}

static int lose_rank(void)
{
    int rc = train(1000);

    fprintf(stderr, "rank %d: code %d, %s\n", rank, rc, ddp_errmsg());
    ddp_finish(ddp);
    return rc == DDP_EPEER ? 76 : 1;
}

int main(int argc, char **argv)
{
    struct ddp_config cfg;

    ddp_config_init(&cfg);
    if (argc > 1) {
        fault = argv[1];
        cfg.peer_timeout = 3;
        cfg.on_peer_lost = note_lost;
    }
    if (!(ddp = ddp_init(&cfg))) {
        fprintf(stderr, "%s\n", ddp_errmsg());
        return 1;
    }
    rank = ddp_rank(ddp);
    ranks = ddp_rank_count(ddp);
    if (fault)
        return lose_rank();
    test_sums();
    test_root();
    test_optional();
    test_requests();
    test_chain();
    test_status();
    if (rank == 0)
        printf("%d points on %d ranks, %d failed\n", tried, ranks, failed);
    ddp_finish(ddp);
    return failed != 0;
}
