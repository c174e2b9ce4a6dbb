/* test_share.c - several processes divide GPUs that all see, and the
 * optimizer's state
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/shard.h"
#include "runtime/context.h"
#include "runtime/share.h"
#include "tap.h"

/* GPUs 10, 11, ... in slots 0, 1, ... */
static struct ddp__gpus machine(int count)
{
    struct ddp__gpus g = {.count = count, .seen = count + 1};

    for (int i = 0; i < count; i++) {
        g.id[i] = 10 + i;
        g.pci[i].bus = (unsigned)i;
    }
    return g;
}

/* Which GPUs a process gets: "10,11,". */
static const char *share(int count, int asked, int rank, int ranks)
{
    static char text[128];
    struct ddp__gpus g = machine(count);
    size_t len = 0;

    ddp__gpus_share(&g, asked, rank, ranks);
    text[0] = '\0';
    for (int i = 0; i < g.count; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%d,", g.id[i]);
    for (int i = 0; i < g.count; i++)
        if (g.pci[i].bus != (unsigned)(g.id[i] - 10))
            return "another slot";
    return text;
}

/* Whether each of so many GPUs has one process, if there are enough. */
static bool are_divided(int count, int ranks)
{
    int owners[DDP__MAX_GPUS] = {0};

    for (int r = 0; r < ranks; r++) {
        struct ddp__gpus g = machine(count);

        ddp__gpus_share(&g, DDP_ALL, r, ranks);
        if (g.count < count / ranks || g.count > (count + ranks - 1) / ranks)
            return false;
        for (int i = 0; i < g.count; i++)
            owners[g.id[i] - 10]++;
    }
    for (int i = 0; i < count && count >= ranks; i++)
        if (owners[i] != 1)
            return false;
    return true;
}

static void test_shares(void)
{
    bool good = true;

    is_str(share(4, DDP_ALL, 0, 1), "10,11,12,13,", "one process has all");
    is_str(share(4, DDP_ALL, 1, 2), "12,13,", "of two the second has half");
    is_str(share(4, DDP_ALL, 3, 4), "13,", "of four each has one");
    is_str(share(2, DDP_ALL, 3, 4), "11,", "four share two");
    is_str(share(4, 1, 1, 2), "11,", "as many as are asked for");
    is_str(share(2, 2, 1, 2), "10,11,", "shared where there are too few");
    is_str(share(0, DDP_ALL, 1, 2), "", "none where there are none");
    for (int count = 1; count <= 16; count++)
        for (int ranks = 1; ranks <= 16; ranks++)
            good &= are_divided(count, ranks);
    ok(good, "1 to 16 GPUs among 1 to 16 processes: each has one owner");
}

static void test_keys(void)
{
    struct ddp__gpus a = machine(2), b = machine(2), c = machine(3);
    int key;

    unsetenv("CUDA_VISIBLE_DEVICES");
    key = ddp__gpus_key(&a);
    ok(key >= 0 && key == ddp__gpus_key(&b), "who sees the same has one key");
    ok(key != ddp__gpus_key(&c), "who sees more has another");
    b.pci[1].bus = 7;
    ok(key != ddp__gpus_key(&b), "so has who sees others");
    setenv("CUDA_VISIBLE_DEVICES", "MIG-1", 1);
    key = ddp__gpus_key(&a);
    setenv("CUDA_VISIBLE_DEVICES", "MIG-2", 1);
    ok(key != ddp__gpus_key(&a), "and who sees another part of a GPU");
}

/* ---- the optimizer's state ---------------------------------------------- */

enum { BUCKETS = 20, RANKS = 8 };

/* Whether each bucket has one rank, and no rank has more than another by more
 * than the largest bucket. */
static bool is_divided(const ddp_t *ddp, struct ddp__params *p, int ranks,
                       size_t largest)
{
    struct ddp ranked = *ddp;
    struct ddp__engine e = {
        .ddp = &ranked, .params = p, .ranks = ranks, .spec.shard = true};
    size_t least = SIZE_MAX, most = 0;
    int kept = 0;

    if (ddp__shard_new(&e) < 0)
        bail_out("%s", ddp_errmsg());
    for (int r = 0; r < ranks; r++) {
        size_t load = 0;

        ranked.net.wire.rank = r;
        for (int b = 0; b < BUCKETS; b++)
            if (ddp__shard_keeps(&e, b)) {
                load += p->bucket[b].len;
                kept++;
            }
        least = load < least ? load : least;
        most = load > most ? load : most;
    }
    free(e.keeper);
    return kept == BUCKETS && most - least <= largest;
}

static void test_state(void)
{
    struct ddp__bucket bucket[BUCKETS] = {{0}};
    struct ddp__params p = {.bucket = bucket, .buckets = BUCKETS};
    bool good = true;

    for (int b = 0; b < BUCKETS; b++)
        bucket[b].len = (size_t)(1000 + 37 * b % 11 * 100);
    for (int ranks = 2; ranks <= RANKS; ranks++)
        good &= is_divided(&(struct ddp){0}, &p, ranks, 2000);
    ok(good, "2 to 8 ranks: each bucket's state is kept once, and evenly");
}

/* Whether the keepers get the sums of these buckets alone. */
static bool keeps_sums(struct ddp__params *p, bool wanted)
{
    struct ddp ddp = {0};
    struct ddp__engine e = {.ddp = &ddp,
                            .params = p,
                            .ranks = 4,
                            .spec = {.shard = true, .shard_sums = wanted}};

    if (ddp__shard_new(&e) < 0)
        bail_out("%s", ddp_errmsg());
    free(e.keeper);
    return e.kept_sums;
}

/* A rank may have a quarter more than the mean. */
static void test_sums(void)
{
    struct ddp__bucket even[] = {
        {.len = 120}, {.len = 100}, {.len = 95}, {.len = 75}};
    struct ddp__bucket odd[] = {
        {.len = 140}, {.len = 100}, {.len = 95}, {.len = 75}};

    ok(keeps_sums(&(struct ddp__params){.bucket = even, .buckets = 4}, true),
       "sums go to 4 ranks, of which the first gets 120 of 390");
    ok(!keeps_sums(&(struct ddp__params){.bucket = odd, .buckets = 4}, true),
       "sums are divided if it would get 140 of 410");
    ok(!keeps_sums(&(struct ddp__params){.bucket = even, .buckets = 4}, false),
       "or if others need them");
}

int main(void)
{
    test_state();
    test_sums();
    test_shares();
    test_keys();
    return done_testing();
}
