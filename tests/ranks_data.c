/* ranks_data.c - what ranks read, and what bad samples do, for app_ranks.sh
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Counted over all ranks; samples of one rank do what they do to all.
 */
#include "config.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "ranks_check.h"

enum { MOST = 64, WEIGHTS = 12 };

static _Atomic int64_t reads[MOST];
static uint32_t weights; /* of all trainings so far */
static enum { GOOD, NOT_FINITE, UNREADABLE } theirs; /* of the last rank */

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    (void)key;
    reads[index]++;
    for (int i = 0; i < 4; i++)
        x[i] = (float)((index * (i + 3)) % 7);
    s->label = (int32_t)(index % 3);
    if (rank == ranks - 1 && theirs == NOT_FINITE)
        x[0] = NAN;
    return rank == ranks - 1 && theirs == UNREADABLE ? DDP_EIO : 0;
}

static ddp_dataset_t *samples(int64_t count)
{
    return ddp_dataset_callback(&(struct ddp_source){
        .count = count, .shape = {1, 1, 4}, .classes = 3, .get = get});
}

static ddp_chain_t *network(void)
{
    return ddp_chain_new(ddp_dense_new(4, 3, NULL), DDP_END);
}

static struct ddp_train_config config(void)
{
    struct ddp_train_config cfg;

    ddp_train_config_init(&cfg);
    cfg.optimizer = ddp_sgd(0.1f);
    cfg.batch = 8;
    cfg.sub_batch = 1;
    cfg.lanes = 8;
    return cfg;
}

/* ---- samples ------------------------------------------------------------ */

/* An epoch of so many samples. */
static bool train(int64_t count)
{
    struct ddp_train_config cfg = config();
    ddp_chain_t *c = network();
    ddp_dataset_t *d = samples(count);
    ddp_trainer_t *t;
    uint32_t crc = 0;
    bool good;

    cfg.epochs = 1;
    t = ddp_trainer_new(ddp, c, d, &cfg);
    good = t && ddp_trainer_train(t) == 0 && ddp_chain_checksum(c, &crc) == 0;
    weights = weights * 31 + crc;
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
    return good;
}

static bool is_read_once(int64_t count)
{
    int64_t sum[MOST];
    bool good;

    memset(reads, 0, sizeof(reads));
    good = train(count);
    for (int i = 0; i < MOST; i++)
        sum[i] = reads[i];
    if (ddp_allreduce(ddp, sum, MOST, DDP_I64, DDP_SUM) < 0)
        return false;
    for (int i = 0; i < MOST; i++)
        good &= sum[i] == (i < count);
    return good;
}

/* Fewer than ranks, than lanes, and all remainders. */
static void test_once(void)
{
    bool good = true;

    for (int64_t count = 1; count <= MOST; count++)
        good &= is_read_once(count);
    check(good, "1 to 64 samples: one rank reads each, once");
    if (rank == 0)
        printf("weights=%08x\n", (unsigned)weights);
}

/* Whether the parts of all ranks have the sum of all, and nearly equal sizes.
 */
static bool shards_are_whole(int64_t count)
{
    ddp_dataset_t *d = ddp_dataset_shard(samples(count), rank, ranks);
    int64_t own = ddp_dataset_count(d), sum = 0, least = own, most = own;
    float x[4];
    int32_t label;
    bool good = true;

    memset(reads, 0, sizeof(reads));
    for (int64_t i = 0; i < own; i++)
        good &= ddp_dataset_get(d, i, 0, x, &label) == 0;
    ddp_dataset_free(d);
    for (int i = 0; i < MOST; i++)
        sum += reads[i] << (i % 32);
    good &= ddp_allreduce(ddp, &sum, 1, DDP_I64, DDP_SUM) == 0 &&
            ddp_allreduce(ddp, &least, 1, DDP_I64, DDP_MIN) == 0 &&
            ddp_allreduce(ddp, &most, 1, DDP_I64, DDP_MAX) == 0;
    return good && sum == (INT64_C(1) << count) - 1 && most - least <= 1;
}

static void test_shards(void)
{
    bool good = true;

    for (int64_t count = 1; count < 32; count++)
        good &= shards_are_whole(count);
    check(good, "the shards of 1 to 31 samples have each of them once");
}

/* ---- bad samples -------------------------------------------------------- */

/* The same on all ranks. */
static bool get_weights(ddp_chain_t *c, float *w)
{
    float first[WEIGHTS];

    if (ddp_chain_get(c, "0.weight", w, WEIGHTS) < 0)
        return false;
    memcpy(first, w, sizeof(first));
    return ddp_bcast(ddp, first, sizeof(first), 0) == 0 &&
           memcmp(first, w, sizeof(first)) == 0;
}

/* What a step returns on all ranks, and that it changes no weights. */
static bool changes_nothing(ddp_trainer_t *t, ddp_chain_t *c, int code)
{
    struct ddp_metrics m;
    float before[WEIGHTS], after[WEIGHTS];

    return get_weights(c, before) && ddp_trainer_step(t, &m) == code &&
           get_weights(c, after) && memcmp(before, after, sizeof(after)) == 0;
}

static void test_bad(void)
{
    struct ddp_train_config cfg = config();
    ddp_chain_t *c = network();
    ddp_dataset_t *d = samples(MOST);
    ddp_trainer_t *t = ddp_trainer_new(ddp, c, d, &cfg);
    struct ddp_metrics m;
    float before[WEIGHTS], after[WEIGHTS];

    check(t && ddp_trainer_step(t, &m) == 0 && get_weights(c, before),
          "a step of all ranks");
    theirs = NOT_FINITE;
    check(changes_nothing(t, c, 0), "NaN on one rank: all skip the step");
    theirs = UNREADABLE;
    check(changes_nothing(t, c, DDP_EIO),
          "one rank cannot read: the step fails on all, and changes nothing");
    check(rank == ranks - 1 || strstr(ddp_errmsg(), "rank "),
          "the others say which rank that is");
    theirs = GOOD;
    check(ddp_trainer_step(t, &m) == 0 && get_weights(c, after) &&
              memcmp(before, after, sizeof(after)) != 0,
          "all can go on");
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
}

/* ---- a stream ----------------------------------------------------------- */

static int next(void *arg, int64_t epoch, int64_t index, uint64_t key,
                struct ddp_sample *s)
{
    (void)epoch;
    return index == MOST ? DDP_STREAM_END : get(arg, index, key, s);
}

static void test_stream(void)
{
    struct ddp_train_config cfg = config();
    ddp_chain_t *c = network();
    ddp_dataset_t *d;
    struct ddp_stream s;
    ddp_trainer_t *t;

    ddp_stream_init(&s);
    s.shape = (struct ddp_shape){1, 1, 4};
    s.classes = 3;
    s.next = next;
    d = ddp_dataset_stream(&s);
    t = ddp_trainer_new(ddp, c, d, &cfg);
    check(d &&
              (ranks == 1 ? t != NULL
                          : !t && ddp_errcode() == DDP_EINVAL &&
                                strstr(ddp_errmsg(), "cannot read one stream")),
          "a stream is for one rank");
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
}

int main(void)
{
    if (!begin_ranks(NULL))
        return 1;
    test_once();
    test_shards();
    test_bad();
    test_stream();
    return end_ranks();
}
