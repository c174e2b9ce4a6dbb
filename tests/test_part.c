/* test_part.c - a data set divided for training and validation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A table, whose rows differ in their number, which is also a column.
 */
#include "config.h"

#include <math.h>
#include <unistd.h>

#include "data/dataset.h"
#include "defaults.h"
#include "tap.h"

/* Classes of 40, 10, 3, 2 and 1 rows, mixed. */
static const int size_of[] = {40, 10, 3, 2, 1};
enum { CLASSES = 5, ROWS = 56 };

static char path[] = "/tmp/ddp-test-part-XXXXXX";
static int class_of[ROWS];

static void write_table(void)
{
    int left[CLASSES], fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

    if (!f)
        bail_out("cannot write %s", path);
    memcpy(left, size_of, sizeof(left));
    fprintf(f, "row,class\n");
    for (int i = 0, k = 0; i < ROWS; i++) {
        do
            k = (k + 1) % CLASSES;
        while (!left[k]);
        left[k]--;
        class_of[i] = k;
        fprintf(f, "%d,%c\n", i, 'a' + k);
    }
    fclose(f);
}

static ddp_dataset_t *table(void)
{
    return ddp_dataset_csv(path, "class");
}

/* Mark the rows of a part; how many there are. */
static int64_t mark(ddp_dataset_t *d, bool row[ROWS])
{
    float x = -1;
    int32_t label;

    memset(row, 0, ROWS * sizeof(*row));
    for (int64_t i = 0; d && i < ddp_dataset_count(d); i++) {
        if (ddp_dataset_get(d, i, 0, &x, &label) < 0 ||
            label != class_of[(int)x])
            diag("sample %d: row %g: label %d", (int)i, (double)x, label);
        row[(int)x] = true;
    }
    return d ? ddp_dataset_count(d) : -1;
}

static bool part_of(bool row[ROWS], enum ddp_split part, double val,
                    uint64_t seed)
{
    ddp_dataset_t *d = ddp_dataset_part(table(), part, val, seed);
    int64_t n = mark(d, row), marked = 0;

    for (int i = 0; i < ROWS; i++)
        marked += row[i];
    ddp_dataset_free(d);
    return n == marked;
}

static int count_class(const bool row[ROWS], int class)
{
    int n = 0;

    for (int i = 0; i < ROWS; i++)
        n += row[i] && class_of[i] == class;
    return n;
}

static void test_stratified(void)
{
    /* a fifth, rounded; at least one; one of one is for training */
    static const int want[] = {8, 2, 1, 1, 0};
    bool train[ROWS], val[ROWS], again[ROWS], other[ROWS];
    int both = 0, none = 0;

    ok(part_of(train, DDP_TRAIN, 0.2, 7) && part_of(val, DDP_VAL, 0.2, 7),
       "two parts, without a row twice");
    for (int i = 0; i < ROWS; i++) {
        both += train[i] && val[i];
        none += !train[i] && !val[i];
    }
    ok(!both && !none, "each row is in one of them");
    for (int k = 0; k < CLASSES; k++)
        is_int(count_class(val, k), want[k], "of class %c for validation",
               'a' + k);
    part_of(again, DDP_VAL, 0.2, 7);
    ok(!memcmp(val, again, sizeof(val)), "the same seed: the same rows");
    part_of(other, DDP_VAL, 0.2, 8);
    ok(memcmp(val, other, sizeof(val)) != 0, "another seed: others");
    part_of(other, DDP_VAL, 0.99, 7);
    is_int(count_class(other, 1), 9, "one of a class is for training");
}

/* Over many seeds each row of a class is chosen as often as the others: 200
 * draws with probability 1/5 have a standard deviation of 5.7. */
static void test_fair(void)
{
    int times[ROWS] = {0}, least = 200, most = 0;
    bool val[ROWS];

    for (uint64_t seed = 0; seed < 200; seed++) {
        part_of(val, DDP_VAL, 0.2, seed);
        for (int i = 0; i < ROWS; i++)
            times[i] += val[i];
    }
    for (int i = 0; i < ROWS; i++)
        if (class_of[i] == 0) {
            least = times[i] < least ? times[i] : least;
            most = times[i] > most ? times[i] : most;
        }
    ok(least > 40 - 5 * 5.7 && most < 40 + 5 * 5.7,
       "each row is chosen %d to %d times of 200", least, most);
}

static void test_described(void)
{
    static const char *const names[] = {"e", "d", "c", "b", "a"};
    ddp_dataset_t *all = table();
    ddp_dataset_t *train = ddp_dataset_part(table(), DDP_TRAIN, 0.2, 7);
    ddp_dataset_t *val = ddp_dataset_part(table(), DDP_VAL, 0.2, 7);
    int32_t before, after;
    float x;

    ok(strstr(ddp_dataset_describe(val), "; of these 12 for validation") &&
           strstr(ddp_dataset_describe(train), "; of these 44 for training"),
       "they are described: %s", ddp_dataset_describe(val));
    ok(ddp_dataset_classes(val) == CLASSES &&
           !strcmp(ddp_dataset_class_name(val, 4), "e"),
       "with all classes");
    ok(val->ops->checksum(val) != train->ops->checksum(train) &&
           val->ops->checksum(val) != all->ops->checksum(all),
       "a run tells them apart");
    ddp_dataset_get(val, 0, 0, &x, &before);
    is_int(ddp_dataset_set_classes(val, CLASSES, names), 0, "other numbers");
    ddp_dataset_get(val, 0, 0, &x, &after);
    is_int(after, CLASSES - 1 - before, "for their classes");
    ddp_dataset_free(all);
    ddp_dataset_free(train);
    ddp_dataset_free(val);
}

/* ---- callbacks, whose classes are not known ------------------------------ */

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    (void)arg;
    (void)key;
    *(float *)s->x = (float)index;
    s->label = 0;
    return index == 3 ? DDP_EDATA : 0;
}

static void test_callback(void)
{
    ddp_dataset_t *d = ddp_dataset_part(
        ddp_dataset_callback(&(struct ddp_source){.count = 10,
                                                  .shape = {1, 1, 1},
                                                  .type = DDP_F32,
                                                  .classes = 2,
                                                  .get = get}),
        DDP_VAL, 0.3, 1);

    is_int(d ? (long)ddp_dataset_count(d) : -1, 3, "a fraction of all samples");
    ok(d && !d->ops->checksum, "which nobody knows");
    ddp_dataset_free(d);
}

static void refused(ddp_dataset_t *d, enum ddp_split part, double val,
                    const char *says)
{
    d = ddp_dataset_part(d, part, val, 1);
    ok(!d && strstr(ddp_errmsg(), says), "refused: %s", ddp_errmsg());
    ddp_dataset_free(d);
}

static void test_refused(void)
{
    ddp_dataset_t *one =
        ddp_dataset_callback(&(struct ddp_source){.count = 1,
                                                  .shape = {1, 1, 1},
                                                  .type = DDP_F32,
                                                  .classes = 2,
                                                  .get = get});

    refused(table(), DDP_VAL, 0, "a fraction of 0 for validation");
    refused(table(), DDP_TRAIN, 1, "a fraction of 1 for validation");
    refused(table(), DDP_VAL, (double)NAN, "a fraction of nan");
    refused(table(), DDP_TEST, 0.5, "for training and validation only");
    refused(one, DDP_VAL, 0.5, "no class has two samples");
    refused(NULL, DDP_VAL, 0.5, "");
}

/* ---- shards ------------------------------------------------------------- */

/* Samples of one float, which is their number. */
static int get_number(void *arg, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    (void)arg;
    (void)key;
    *(float *)s->x = (float)index;
    s->label = 0;
    return 0;
}

/* Whether the parts follow each other and differ by one sample at most. */
static bool shards_cover(int64_t count, int parts)
{
    const struct ddp_source src = {
        .count = count, .shape = {1, 1, 1}, .classes = 2, .get = get_number};
    int64_t next = 0;
    bool good = true;

    for (int p = 0; p < parts; p++) {
        ddp_dataset_t *d =
            ddp_dataset_shard(ddp_dataset_callback(&src), p, parts);
        int64_t n = ddp_dataset_count(d);
        int32_t label;
        float x;

        good &= n == count / parts || n == (count + parts - 1) / parts;
        for (int64_t i = 0; i < n; i++)
            good &=
                ddp_dataset_get(d, i, 0, &x, &label) == 0 && x == (float)next++;
        ddp_dataset_free(d);
    }
    return good && next == count;
}

static void test_shards(void)
{
    static const int parts[] = {1, 2, 3, 4, 8};
    bool good = true;

    for (int64_t n = 1; n <= 64; n++)
        for (int p = 0; p < 5; p++)
            good &= shards_cover(n, parts[p]);
    ok(good, "1 to 64 samples among 1 to 8 ranks: each is in one part");
    ok(!ddp_dataset_shard(table(), 3, 3) &&
           strstr(ddp_errmsg(), "part 3 of 3, expected 0 to 2"),
       "no such part");
}

int main(void)
{
    write_table();
    test_shards();
    test_stratified();
    test_fair();
    test_described();
    test_callback();
    test_refused();
    unlink(path);
    return done_testing();
}
