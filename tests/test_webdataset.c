/* test_webdataset.c - tar files that others wrote
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * GNU tar writes them, in each of its formats.
 */
#include "config.h"

#include "data/dataset.h"
#include "defaults.h"
#include "scratch.h"

static const struct ddp_image_options small = {IMAGE_DEFAULTS, .size = 16,
                                               .resize = 20};
enum { BYTES = 16 * 16 * 3, SAMPLES = 7 };

static void refused(ddp_dataset_t *d, const char *says, const char *what)
{
    ok(!d && strstr(ddp_errmsg(), says), "%s: refused", what);
    if (d || !strstr(ddp_errmsg(), says))
        diag("%s; message: %s", d ? "made" : "not made", ddp_errmsg());
    ddp_dataset_free(d);
}

/* Run a command in the folder. */
static TAP_PRINTF(1, 2) void shell(const char *fmt, ...)
{
    char command[2000];
    int n = snprintf(command, sizeof(command), "cd %s && ", scratch_top);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(command + n, sizeof(command) - (size_t)n, fmt, ap);
    va_end(ap);
    if (system(command) != 0)
        bail_out("%s: failed", command);
}

static void put_photo(const char *name, uint32_t seed)
{
    struct bytes b = make_photo(30, 24 + (int)seed, seed);

    put(name, b.data, b.len);
    free(b.data);
}

/* Samples 0 to 6, of classes 0 to 2; some classes are in JSON. */
static void put_samples(void)
{
    char name[200];

    for (int i = 0; i < SAMPLES; i++) {
        snprintf(name, sizeof(name), "w/%04d.jpg", i);
        put_photo(name, (uint32_t)i);
        snprintf(name, sizeof(name), "w/%04d.%s", i, i % 2 ? "json" : "cls");
        if (i % 2)
            put_text(name, i % 3 == 0   ? "{\"label\": 0, \"x\": [1]}"
                           : i % 3 == 1 ? "{\"label\": 1}"
                                        : "{\"label\": 2}");
        else
            put_text(name, i % 3 == 0 ? "0" : i % 3 == 1 ? "1\n" : "2");
    }
}

/* Sample i is photo `from + i`, of class (from + i) % 3. */
static int count_wrong(ddp_dataset_t *d, int from)
{
    static uint8_t x[BYTES], want[BYTES];
    int64_t n = d ? ddp_dataset_count(d) : 0;
    int wrong = n == 0;

    for (int64_t i = 0; i < n; i++) {
        const char *path[] = {at("x.jpg")};
        struct bytes b =
            make_photo(30, 24 + from + (int)i, (uint32_t)(from + i));
        int32_t label = -1;
        ddp_dataset_t *one;

        put("x.jpg", b.data, b.len);
        free(b.data);
        one = ddp_dataset_images(path, 1, &small);
        wrong += ddp_dataset_get(one, 0, 1, want, NULL) < 0 ||
                 ddp_dataset_get(d, i, 1, x, &label) < 0 ||
                 memcmp(x, want, BYTES) != 0 || label != (from + i) % 3;
        ddp_dataset_free(one);
    }
    return wrong;
}

static ddp_dataset_t *open_tar(const char *name)
{
    return ddp_dataset_webdataset(at(name), &small);
}

static void test_formats(void)
{
    static const char *const format[] = {"v7", "oldgnu", "gnu", "ustar",
                                         "posix"};

    for (int i = 0; i < 5; i++) {
        ddp_dataset_t *d;

        shell("tar -C w --sort=name --format=%s -cf f.tar .", format[i]);
        d = open_tar("f.tar");
        ok(d && ddp_dataset_count(d) == SAMPLES &&
               ddp_dataset_classes(d) == 3 && count_wrong(d, 0) == 0,
           "tar's format %s: %s", format[i],
           d ? ddp_dataset_describe(d) : ddp_errmsg());
        ddp_dataset_free(d);
    }
}

/* Names longer than a header has room for. */
static void test_long_names(void)
{
    static const char *const format[] = {"gnu", "ustar", "posix"};
    static const char part[] = "a-folder-with-a-long-name-of-sixty-characters-"
                               "or-so-to-be-sure/";
    char dir[300], name[400];

    snprintf(dir, sizeof(dir), "long/%s%s", part, part);
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof(name), "%s%d.jpg", dir, i);
        put_photo(name, (uint32_t)i);
        snprintf(name, sizeof(name), "%s%d.cls", dir, i);
        put_text(name, i ? "1" : "0");
    }
    for (int i = 0; i < 3; i++) {
        ddp_dataset_t *d;

        shell("tar -C long --sort=name --format=%s -cf f.tar .", format[i]);
        d = open_tar("f.tar");
        ok(d && ddp_dataset_count(d) == 2 && count_wrong(d, 0) == 0,
           "long names in tar's format %s: %s", format[i],
           d ? "" : ddp_errmsg());
        ok(d && strstr(ddp_dataset_path(d, 1), part), "they are whole");
        ddp_dataset_free(d);
    }
}

/* ---- several files ------------------------------------------------------ */

/* Photos 0, 1, 2; 3, 4; 5, 6 are in s/t-08.tar, s/t-09.tar, s/t-10.tar. */
static void put_shards(void)
{
    mkdir(at("s"), 0777);
    shell("cd w && tar -cf ../s/t-08.tar 0000.* 0001.* 0002.* && "
          "tar -cf ../s/t-09.tar 0003.* 0004.* && "
          "tar -cf ../s/t-10.tar 0005.* 0006.*");
}

static void test_ranges(void)
{
    ddp_dataset_t *d =
        ddp_dataset_open(at("s/t-{08..10}.tar"), DDP_TRAIN, &small);

    ok(d && ddp_dataset_count(d) == SAMPLES && count_wrong(d, 0) == 0,
       "a range of tar files: %s", d ? ddp_dataset_describe(d) : ddp_errmsg());
    ddp_dataset_free(d);
    d = open_tar("s/t-{0..1}{9..9}.tar");
    refused(d, "s/t-19.tar: ", "a file that is not there");
    put_text("s/list.txt", "t-09.tar\r\nt-{10..10}.tar\n\n");
    d = ddp_dataset_open(at("s/list.txt"), DDP_TRAIN, &small);
    ok(d && ddp_dataset_count(d) == 4 && count_wrong(d, 3) == 0,
       "a list of tar files: %s", d ? ddp_dataset_describe(d) : ddp_errmsg());
    ddp_dataset_free(d);
    refused(open_tar("s/t-{9..}.tar"), "expected a range such as",
            "half a range");
    refused(open_tar("s/t-{9..8}.tar"), "expected a range such as",
            "a range without numbers");
    refused(open_tar("s/t-{0..9999999}.tar"), "expected a range such as",
            "too many numbers");
    put_text("s/list.txt", "t-09.tar\nt-{08..09}.tar\n");
    refused(open_tar("s/list.txt"), "t-09.tar is named twice", "one twice");
    put_text("s/list.txt", "../s/t-09.tar\n");
    refused(open_tar("s/list.txt"), "below the folder", "a way out");
    put_text("s/list.txt", "\n");
    refused(open_tar("s/list.txt"), "names no tar files", "an empty list");
}

/* Each sample once, whatever the seed and the epoch. */
static void test_order(void)
{
    ddp_dataset_t *d = open_tar("s/t-{08..10}.tar");
    int wrong = 0, moved = 0;

    if (!d || ddp_dataset_count(d) != SAMPLES)
        bail_out("a range of tar files lacks samples");
    for (int64_t epoch = 0; epoch < 20; epoch++) {
        struct ddp__order o = {.seed = 3, .epoch = epoch, .shuffle = true};
        int seen[SAMPLES] = {0};

        for (int64_t pos = 0; pos < SAMPLES; pos++) {
            int64_t i = ddp__dataset_index(d, &o, pos);

            seen[i]++;
            moved += i != pos;
        }
        for (int i = 0; i < SAMPLES; i++)
            wrong += seen[i] != 1;
    }
    ok(!wrong, "an epoch has each sample once");
    ok(moved > 20, "in an order of its own");
    ddp_dataset_free(d);
}

/* ---- what is in them ---------------------------------------------------- */

static void test_classes(void)
{
    ddp_dataset_t *d;

    put_text("s/classes.txt", "ape\nbee\ncat\ndog\n");
    d = open_tar("s/t-08.tar");
    ok(d && ddp_dataset_classes(d) == 4 &&
           !strcmp(ddp_dataset_class_name(d, 2), "cat"),
       "classes.txt has the names of the classes");
    ddp_dataset_free(d);
    put_text("s/classes.txt", "ape\nbee\n");
    refused(open_tar("s/t-08.tar"),
            "has 2 classes, and there are images of "
            "class 2",
            "too few names");
    remove(at("s/classes.txt"));
}

/* tar files of folder `o`, from its files. */
static ddp_dataset_t *tar_of(const char *files)
{
    shell("tar -C o -cf o.tar %s", files);
    return open_tar("o.tar");
}

static void test_samples(void)
{
    ddp_dataset_t *d;

    put_photo("o/a.jpg", 0);
    put_photo("o/a.seg.png", 3);
    put_text("o/a.json", "{\"label\": 7, \"text\": \"x\"}");
    put_text("o/a.cls", "0");
    put_photo("o/b.JPEG", 1);
    put_text("o/b.json", "{\"label\": 1}");
    put_text("o/b.txt", "some words");
    put_text("o/c.json", "{\"label\": 1}");
    put_text("o/.hidden", "x");
    put_text("o/README", "x");
    d = tar_of("README .hidden a.jpg a.seg.png a.json a.cls b.txt b.json "
               "b.JPEG c.json");
    ok(d && ddp_dataset_count(d) == 2 && count_wrong(d, 0) == 0,
       "several files of a sample; .cls goes before .json");
    ok(d && strstr(ddp_dataset_describe(d),
                   "1 samples without an image; 1 further images"),
       "what is left out is counted: %s", d ? ddp_dataset_describe(d) : "");
    ddp_dataset_free(d);
    d = tar_of("a.jpg a.cls a.json b.JPEG b.json");
    ok(d && count_wrong(d, 0) == 0, "and if it comes first");
    ddp_dataset_free(d);
    refused(tar_of("a.jpg b.json b.JPEG"), "o.tar: a: expected a file .cls",
            "no class");
    put_text("o/a.cls", "first");
    refused(tar_of("a.jpg a.cls"), "o.tar: a: its file .cls has no number",
            "a name for a number");
    put_text("o/a.cls", "-1");
    refused(tar_of("a.jpg a.cls"), "a: its class is no number from 0",
            "a negative class");
    put_text("o/a.cls", "0");
    put_text("o/b.json", "{\"label\": ");
    refused(tar_of("a.jpg a.cls b.json"), "b: its file .json cannot be read",
            "damaged JSON");
    refused(tar_of("a.jpg a.cls"), "all images are of class 0", "one class");
    refused(tar_of("README"), "there are no images in o.tar", "no images");
}

static void test_damaged(void)
{
    shell("tar -C w --sort=name -cf f.tar . && head -c 3000 f.tar >cut.tar && "
          "head -c 4096 f.tar | tail -c 3000 >odd.tar");
    refused(open_tar("cut.tar"), "cut.tar: byte ", "a truncated tar file");
    ok(strstr(ddp_errmsg(), "ends too early"), "it says so");
    refused(open_tar("odd.tar"), "byte 0: no header of a tar file",
            "another file");
    refused(open_tar("none.tar"), "none.tar: ", "no file");
    refused(ddp_dataset_webdataset(NULL, NULL), "names of tar files",
            "no name");
}

int main(void)
{
    scratch_make();
    put_samples();
    test_formats();
    test_long_names();
    put_shards();
    test_ranges();
    test_order();
    test_classes();
    test_samples();
    test_damaged();
    return done_testing();
}
