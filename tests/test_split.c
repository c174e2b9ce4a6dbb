/* test_split.c - how imagenet splits a step when no option says so
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "imagenet/split.h"
#include "tap.h"

enum { MANY = 1000000 };

static void is_split(int devices, int64_t samples, struct split given,
                     struct split want)
{
    struct split s = given;

    split_choose(&s, devices, samples, false);
    ok(s.batch == want.batch && s.sub_batch == want.sub_batch &&
           s.lanes == want.lanes,
       "%d devices, %lld samples, given %lld, %lld, %lld: %lld images, %lld "
       "lanes of %lld",
       devices, (long long)samples, (long long)given.batch,
       (long long)given.sub_batch, (long long)given.lanes, (long long)s.batch,
       (long long)s.lanes, (long long)s.sub_batch);
}

/* The batch, sub-batch and lanes of all machines with up to 8 devices are the
 * same, and so are the weights. */
static void test_usual(void)
{
    for (int devices = 1; devices <= 8; devices *= 2) {
        is_split(devices, MANY, (struct split){0}, (struct split){256, 32, 8});
        is_split(devices, MANY, (struct split){128, 0, 0},
                 (struct split){128, 32, 4});
        is_split(devices, MANY, (struct split){0, 4, 0},
                 (struct split){32, 4, 8});
        is_split(devices, MANY, (struct split){0, 0, 2},
                 (struct split){64, 32, 2});
    }
    is_split(2, 100, (struct split){0}, (struct split){100, 32, 4});
    is_split(2, 100, (struct split){0, 4, 16}, (struct split){64, 4, 16});
}

/* Every device has a sub-batch, of 8 samples or more where the batch allows. */
static void test_many(void)
{
    is_split(16, MANY, (struct split){0}, (struct split){256, 16, 16});
    is_split(24, MANY, (struct split){0}, (struct split){384, 16, 24});
    is_split(32, MANY, (struct split){0}, (struct split){256, 8, 32});
    is_split(128, MANY, (struct split){0}, (struct split){1024, 8, 128});
    is_split(128, MANY, (struct split){256, 0, 0}, (struct split){256, 8, 32});
    is_split(12, MANY, (struct split){256, 0, 0}, (struct split){256, 22, 12});
    is_split(32, MANY, (struct split){4096, 0, 0},
             (struct split){4096, 32, 32});
    is_split(32, MANY, (struct split){0, 64, 0}, (struct split){2048, 64, 32});
    is_split(32, MANY, (struct split){256, 32, 8}, (struct split){256, 32, 8});
}

/* With --sync-bn each sub-batch is a lane, unless lanes are given. */
static void test_lanes(void)
{
    struct split s = {4096, 32, 0}, few = {4096, 32, 8};

    split_choose(&s, 2, MANY, true);
    split_choose(&few, 2, MANY, true);
    ok(s.batch == 4096 && s.lanes == 128 && few.lanes == 8,
       "a lane for each sub-batch: %lld", (long long)s.lanes);
}

/* ---- of a run ----------------------------------------------------------- */

static char folder[] = "/tmp/split-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void write_config(const char *text)
{
    FILE *f = fopen(in_folder("config.txt"), "w");

    if (f)
        fputs(text, f);
    if (!f || fclose(f) != 0)
        bail_out("cannot write the settings of a run");
}

static void is_recorded(const char *sub, struct split given, struct split want,
                        const char *what)
{
    struct split s = given;
    int rc = split_recorded(&s, in_folder(sub));

    ok(rc == -1 && !memcmp(&s, &want, sizeof(s)), "%s", what);
}

static void test_recorded(void)
{
    const struct split none = {0}, was = {96, 12, 8}, other = {0, 24, 0};

    is_recorded("", none, none, "a folder without a run: nothing is taken");
    write_config("lr = 0.1\nbatch-size = 96\nsub-batch = 12\nlanes = 8\n");
    is_recorded("", none, was, "a run's split is taken over");
    is_recorded("ckpt/step-1", none, was, "by a checkpoint in its folder too");
    is_recorded("", (struct split){96, 0, 0}, was, "if what is given agrees");
    is_recorded("", other, other, "of another split nothing is");
    write_config("sub-batch = 12\n");
    is_recorded("", none, none, "nor of settings without a batch");
    write_config("batch-size = many\n");
    ok(split_recorded(&(struct split){0}, folder) == 2,
       "a value that is none is an error");
}

int main(void)
{
    test_usual();
    test_many();
    test_lanes();
    if (!mkdtemp(folder) || mkdir(in_folder("ckpt"), 0700) < 0 ||
        mkdir(in_folder("ckpt/step-1"), 0700) < 0)
        bail_out("cannot make folders in /tmp");
    test_recorded();
    remove(in_folder("ckpt/step-1"));
    remove(in_folder("ckpt"));
    remove(in_folder("config.txt"));
    remove(folder);
    return done_testing();
}
