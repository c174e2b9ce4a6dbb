/* test_tars.c - shards: the order of their samples, and their index
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The order is computed from the index alone, so no tar files are needed.
 */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>

#include "data/dataset.h"
#include "data/tars.h"
#include "defaults.h"
#include "tap.h"

enum { SAMPLES = 50000, SHARDS = 60 };

static char dir[] = "/tmp/ddp-test-tars-XXXXXX";

static FILE *create(const char *name)
{
    char path[64];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (!(f = fopen(path, "w")))
        bail_out("cannot write %s", path);
    return f;
}

static void remove_file(const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    unlink(path);
}

/* Shards of unequal sizes. */
static int shard_of(int i)
{
    return (int)((int64_t)i * i / SAMPLES * SHARDS / SAMPLES);
}

static void write_set(void)
{
    FILE *f = create("classes.txt");

    fputs("one\ntwo\n", f);
    fclose(f);
    f = create("index.csv");
    fputs("shard,offset,size,label,crc32c,name\n", f);
    for (int i = 0; i < SAMPLES; i++)
        fprintf(f, "%03d.tar,%d,9,%d,0123abCD,\"a,%d\"\n", shard_of(i), 512 * i,
                i % 2, i);
    fclose(f);
}

/* ---- the order ---------------------------------------------------------- */

static bool is_once(ddp_dataset_t *d, const struct ddp__order *o)
{
    char *seen = calloc(SAMPLES, 1);
    bool once = true;

    for (int64_t pos = 0; pos < SAMPLES; pos++) {
        int64_t i = ddp__dataset_index(d, o, pos);

        once &= i >= 0 && i < SAMPLES && !seen[i];
        if (once)
            seen[i] = 1;
    }
    free(seen);
    return once;
}

static int count_same(ddp_dataset_t *d, const struct ddp__order *a,
                      const struct ddp__order *b)
{
    int same = 0;

    for (int64_t pos = 0; pos < SAMPLES; pos++)
        same += ddp__dataset_index(d, a, pos) == ddp__dataset_index(d, b, pos);
    return same;
}

static void test_once(ddp_dataset_t *d)
{
    const struct ddp__order o[] = {
        {1, 0, true, 1}, {1, 1, true, 1}, {2, 0, true, 1}};
    const struct ddp__order plain = {1, 0, false, 1};

    for (int i = 0; i < 3; i++)
        ok(is_once(d, &o[i]), "seed %d, epoch %d: every sample exactly once",
           (int)o[i].seed, (int)o[i].epoch);
    /* Of 50,000 positions, one agrees by chance on the average. */
    ok(count_same(d, &o[0], &o[1]) < 20, "epochs differ");
    ok(count_same(d, &o[0], &o[2]) < 20, "seeds too");
    ok(ddp__dataset_index(d, &plain, 77) == 77, "not mixed: as in the index");
}

/* Resumed runs ask for positions in the middle, workers in any order. */
static void test_pure(ddp_dataset_t *d, ddp_dataset_t *other)
{
    int wrong = 0;

    for (int64_t i = 0; i < 2000; i++) {
        const struct ddp__order o = {3, i % 7, true, 1};
        int64_t pos = (i * 7919) % SAMPLES, index;

        index = ddp__dataset_index(d, &o, pos);
        for (int k = 0; k < (int)(i % 3); k++)
            ddp__dataset_index(other, &(struct ddp__order){4, k, true, 1}, 5);
        wrong += ddp__dataset_index(other, &o, pos) != index;
    }
    is_int(wrong, 0, "a position does not depend on what was asked before");
}

/* In a window there are few shards, and most of its samples have moved. */
static void test_window(ddp_dataset_t *d)
{
    const struct ddp__order o = {5, 2, true, 1};
    int seen[SHARDS] = {0}, shards = 0, follow = 0;
    int64_t last = -2;

    for (int64_t pos = 0; pos < DDP__TAR_WINDOW; pos++) {
        int64_t i = ddp__dataset_index(d, &o, pos);

        follow += i == last + 1;
        last = i;
        if (!seen[shard_of((int)i)]++)
            shards++;
    }
    ok(shards < SHARDS * 2 / 3, "a window has %d of %d shards", shards, SHARDS);
    ok(follow < 20, "%d of its samples follow their neighbour", follow);
}

/* ---- the index ---------------------------------------------------------- */

static void refuses(const char *line, const char *message)
{
    static const struct ddp_image_options o = {IMAGE_DEFAULTS, .size = 8};
    FILE *f = create("index.csv");
    ddp_dataset_t *d;

    fprintf(f,
            "shard,offset,size,label,crc32c,name\n0.tar,0,1,0,00000000,a\n"
            "%s\n",
            line);
    fclose(f);
    d = ddp_dataset_tars(dir, &o);
    ok(!d && strstr(ddp_errmsg(), message), "%s: %s", line, ddp_errmsg());
    ddp_dataset_free(d);
}

static void test_index(void)
{
    refuses("../x,0,1,0,00000000,a",
            "index.csv:3: shard \"../x\", expected the name of a file");
    refuses(".x,0,1,0,00000000,a", "expected the name of a file");
    refuses("-.tar,0,1,0,00000000,a", "shards in the order of their names");
    refuses("0.tar,-1,1,0,00000000,a", "offset \"-1\", expected a number from");
    refuses("0.tar,99999999999999999999,1,0,00000000,a", "offset");
    refuses("0.tar,9223372036854775000,1,0,00000000,a", "offset");
    refuses("0.tar,0,0,0,00000000,a", "size \"0\", expected a number from 1");
    refuses("0.tar,0,2000000000,0,00000000,a", "size");
    refuses("0.tar,0,1,2,00000000,a", "label \"2\", expected a number from 0 "
                                      "to 1");
    refuses("0.tar,0,1,0,0000000,a", "crc32c \"0000000\", expected eight");
    refuses("0.tar,0,1,0,00000000,a/../../b", "expected a path below a folder");
    refuses("0.tar,0,1,0,00000000,/b", "expected a path below a folder");
    refuses("0.tar,0,1,0,00000000,", "name \"\", expected a path");
    refuses("0.tar,0,1,0,00000000", "5 fields, expected 6");
}

int main(void)
{
    static const struct ddp_image_options o = {IMAGE_DEFAULTS, .size = 8};
    ddp_dataset_t *d, *other;

    if (!mkdtemp(dir))
        bail_out("cannot create %s", dir);
    write_set();
    d = ddp_dataset_tars(dir, &o);
    other = ddp_dataset_tars(dir, &o);
    if (!d || !other)
        bail_out("%s", ddp_errmsg());
    is_int(ddp_dataset_count(d), SAMPLES, "all samples are there");
    ok(strstr(ddp_dataset_path(d, 3), "000.tar: a,3"), "they have names: %s",
       ddp_dataset_path(d, 3));
    test_once(d);
    test_pure(d, other);
    test_window(d);
    ddp_dataset_free(d);
    ddp_dataset_free(other);
    test_index();
    remove_file("index.csv");
    ok(!ddp_dataset_tars(dir, &o) && strstr(ddp_errmsg(), "index.csv"),
       "without an index: %s", ddp_errmsg());
    remove_file("classes.txt");
    rmdir(dir);
    return done_testing();
}
