/* test_order.c - the order of samples: every one exactly once, well mixed
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "data/dataset.h"
#include "tap.h"

/* Is ddp__permute() a bijection of 0..count-1?  Marks what it hits. */
static bool is_permutation(uint64_t seed, int64_t epoch, int64_t count)
{
    unsigned char *hit = calloc((size_t)count, 1);
    bool good = true;

    for (int64_t i = 0; i < count && good; i++) {
        int64_t at = ddp__permute(seed, epoch, count, i);

        good = at >= 0 && at < count && !hit[at];
        if (good)
            hit[at] = 1;
    }
    free(hit);
    return good;
}

static void test_exactly_once(void)
{
    static const int64_t large[] = {50000, 65535, 65536, 65537, 1281167};
    int wrong = 0;

    for (int64_t count = 1; count <= 2000; count++)
        wrong += !is_permutation((uint64_t)count * 77, count % 5, count);
    is_int(wrong, 0, "counts 1 to 2000: every sample exactly once");
    for (int i = 0; i < 5; i++)
        ok(is_permutation(1, 3, large[i]), "count %lld: exactly once",
           (long long)large[i]);
}

/* Of a count too large to mark: no two of the first positions agree. */
static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void test_huge(void)
{
    enum { N = 100000 };
    const int64_t count = ((int64_t)1 << 40) + 12345;
    int64_t *at = malloc(N * sizeof(*at));
    int same = 0, outside = 0;

    for (int i = 0; i < N; i++) {
        at[i] = ddp__permute(9, 0, count, i);
        outside += at[i] < 0 || at[i] >= count;
    }
    qsort(at, N, sizeof(*at), by_value);
    for (int i = 1; i < N; i++)
        same += at[i] == at[i - 1];
    is_int(outside, 0, "2^40 samples: all positions map inside");
    is_int(same, 0, "2^40 samples: no sample twice in 100000 positions");
    free(at);
}

/* Chi-squared of how the first half of the positions falls into 50 bins; with
 * 49 degrees of freedom 100 is exceeded once in 40000 tries.  The positions
 * are without replacement, which only makes it smaller. */
static double bins(uint64_t seed, int64_t epoch, int64_t count)
{
    int n[50] = {0};
    double sum = 0, want = (double)(count / 2) / 50;

    for (int64_t i = 0; i < count / 2; i++)
        n[ddp__permute(seed, epoch, count, i) * 50 / count]++;
    for (int i = 0; i < 50; i++)
        sum += (n[i] - want) * (n[i] - want) / want;
    return sum;
}

/* Mean distance of neighbours over count: 1/3 for a random permutation, whose
 * mean over 10000 pairs has a deviation of 0.0024. */
static double distance(uint64_t seed, int64_t epoch, int64_t count)
{
    double sum = 0;

    for (int64_t i = 0; i + 1 < count; i++)
        sum += fabs((double)(ddp__permute(seed, epoch, count, i) -
                             ddp__permute(seed, epoch, count, i + 1)));
    return sum / (double)count / (double)(count - 1);
}

static void test_spread(void)
{
    for (int epoch = 0; epoch < 3; epoch++) {
        double chi = bins(5, epoch, 10000), d = distance(5, epoch, 10000);

        ok(chi < 100, "epoch %d: the first half is spread evenly", epoch);
        if (chi >= 100)
            diag("chi-squared %g", chi);
        is_near(d, 1.0 / 3, 0.015, "epoch %d: neighbours are far apart", epoch);
    }
}

static int agreements(uint64_t s1, int64_t e1, uint64_t s2, int64_t e2)
{
    int same = 0;

    for (int64_t i = 0; i < 10000; i++)
        same +=
            ddp__permute(s1, e1, 10000, i) == ddp__permute(s2, e2, 10000, i);
    return same;
}

static void test_differs(void)
{
    /* Two random permutations agree in Poisson(1) places. */
    ok(agreements(1, 0, 1, 1) < 10, "another epoch: another order");
    ok(agreements(1, 0, 2, 0) < 10, "another seed: another order");
    is_int(agreements(1, 7, 1, 7), 10000, "the same seed and epoch: the same");
}

/* All orders of few samples come up: with 3 there are 6, each once in 6. */
static void test_small(void)
{
    int seen[27] = {0}, orders = 0;

    for (int64_t e = 0; e < 600; e++) {
        int64_t a = ddp__permute(4, e, 3, 0), b = ddp__permute(4, e, 3, 1);

        seen[9 * a + 3 * b + ddp__permute(4, e, 3, 2)]++;
    }
    for (int i = 0; i < 27; i++)
        orders += seen[i] > 50;
    is_int(orders, 6, "three samples: each of the six orders comes often");
}

/* Chi-squared of how often each of the 24 orders of four samples comes up in
 * 4800 epochs; with 23 degrees of freedom 65 is exceeded once in 150000 tries.
 */
static void test_orders_of_four(void)
{
    int seen[256] = {0}, orders = 0;
    double sum = 0;

    for (int64_t e = 0; e < 4800; e++) {
        int code = 0;

        for (int i = 0; i < 4; i++)
            code = 4 * code + (int)ddp__permute(8, e, 4, i);
        seen[code]++;
    }
    for (int i = 0; i < 256; i++) {
        orders += seen[i] > 0;
        if (seen[i] > 0)
            sum += (seen[i] - 200) * (seen[i] - 200) / 200.0;
    }
    ok(orders == 24 && sum < 65, "four samples: 24 orders, equally often");
    diag("%d orders, chi-squared %.1f", orders, sum);
}

/* The number of samples i for which i and i ^ with come to places whose
 * difference, by exclusive or, is the most common one.  Each pair counts twice:
 * of a random permutation, a difference is that of Poisson(1/2) pairs, and with
 * a chance of 1 % one of the 200000 looked at is that of more than seven. */
static int most_common_difference(uint64_t seed, int64_t with)
{
    enum { COUNT = 4096 };
    int seen[COUNT] = {0}, most = 0;

    for (int64_t i = 0; i < COUNT; i++) {
        int64_t d = ddp__permute(seed, 0, COUNT, i) ^
                    ddp__permute(seed, 0, COUNT, i ^ with);

        if (++seen[d] > most)
            most = seen[d];
    }
    return most;
}

/* Too few rounds leave a trace: half of a sample's bits pass through them. */
static void test_differences(void)
{
    int most = 0;

    for (int bit = 0; bit < 12; bit++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            int n = most_common_difference(seed, (int64_t)1 << bit);

            most = n > most ? n : most;
        }
    ok(most <= 14, "samples that differ in a bit go to unrelated places: %d",
       most);
}

static void test_order(void)
{
    struct ddp__order a = {.seed = 3, .epoch = 2, .shuffle = true};
    struct ddp__order b = {.seed = 3, .epoch = 2};
    struct ddp__order c = {.seed = 3, .epoch = 3};

    is_int(ddp__order_index(&b, 100, 17), 17, "in order: position is index");
    is_int(ddp__order_index(&a, 100, 17), ddp__permute(3, 2, 100, 17),
           "shuffled: as the permutation has it");
    ok(ddp__order_key(&a, 5) == ddp__order_key(&b, 5),
       "a sample's key does not depend on its position");
    ok(ddp__order_key(&b, 5) != ddp__order_key(&c, 5) &&
           ddp__order_key(&b, 5) != ddp__order_key(&b, 6),
       "but on the epoch and the sample");
}

static void test_repeats(void)
{
    enum { COUNT = 100, REPEATS = 3 };
    const struct ddp__order o = {3, 2, true, REPEATS}, one = {3, 2, true, 0};
    const struct ddp__dataset_ops ops = {0};
    struct ddp_dataset d = {.ops = &ops, .count = COUNT};
    int wrong = 0;

    for (int64_t pos = 0; pos < COUNT; pos++) {
        int64_t i = ddp__permute(3, 2, COUNT, pos / REPEATS);
        int64_t id = ddp__dataset_id(&d, &o, pos);

        wrong +=
            ddp__dataset_index(&d, &o, pos) != i ||
            id != i + pos % REPEATS * COUNT ||
            ddp__dataset_id(&d, &one, pos) != ddp__dataset_index(&d, &one, pos);
    }
    is_int(wrong, 0,
           "repeats: each of the first third of the order thrice, by "
           "other numbers");
}

int main(void)
{
    test_exactly_once();
    test_huge();
    test_spread();
    test_differs();
    test_small();
    test_orders_of_four();
    test_differences();
    test_order();
    test_repeats();
    return done_testing();
}
