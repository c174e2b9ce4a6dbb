/* test_data.c - data sets: what is found, named, refused, and replaced
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <locale.h>
#include <pthread.h>

#include "base/crc32c.h"
#include "base/csv.h"
#include "data/dataset.h"
#include "defaults.h"
#include "scratch.h"

/* ---- files -------------------------------------------------------------- */

static void put_image(const char *name, uint32_t seed)
{
    struct bytes b = make_photo(48 + (int)seed % 7, 40, seed);

    put(name, b.data, b.len);
    free(b.data);
}

/* ---- helpers ------------------------------------------------------------ */

static const struct ddp_image_options small = {IMAGE_DEFAULTS, .size = 16,
                                               .resize = 20};

static bool ends(const char *s, const char *end)
{
    size_t n = strlen(end);

    return s && strlen(s) >= n && !strcmp(s + strlen(s) - n, end);
}

/* A data set could not be made, and the message has this text. */
static void refused(ddp_dataset_t *d, const char *says, const char *what)
{
    ok(!d && strstr(ddp_errmsg(), says), "%s: refused", what);
    if (d || !strstr(ddp_errmsg(), says))
        diag("%s; message: %s", d ? "made" : "not made", ddp_errmsg());
    ddp_dataset_free(d);
}

static int label_of(ddp_dataset_t *d, int64_t i)
{
    static uint8_t x[64 * 64 * 3];
    int32_t label = -1;

    return ddp_dataset_get(d, i, 1, x, &label) < 0 ? -1 : label;
}

/* ---- CSV ---------------------------------------------------------------- */

static const char *record(const char *text, int want)
{
    static char all[256];
    struct ddp__bytes b = {0};
    struct ddp__csv c;
    int n;

    put_text("record.csv", text);
    all[0] = 0;
    if (ddp__file_load(at("record.csv"), DDP__CSV_MAX, &b) < 0 ||
        ddp__csv_open(&c, at("record.csv"), &b) < 0)
        return ddp_errmsg();
    while ((n = ddp__csv_next(&c)) > 0) {
        for (int i = 0; i < n; i++)
            snprintf(all + strlen(all), sizeof(all) - strlen(all), "[%s]",
                     c.field[i]);
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%ld;", c.line);
    }
    if (n != want)
        snprintf(all, sizeof(all), "rc %d: %s", n, ddp_errmsg());
    ddp__csv_close(&c);
    return all;
}

static void test_csv(void)
{
    is_str(record("a,b\n1,2\n", 0), "[a][b]1;[1][2]2;", "fields and lines");
    is_str(record("a,b\r\n\r\n\n1,2", 0), "[a][b]1;[1][2]4;",
           "CRLF, empty lines, no last newline");
    is_str(record("\"a,\"\"x\"\"\",\"b\nc\"\nd,\n", 0),
           "[a,\"x\"][b\nc]1;[d][]3;",
           "quotes hold commas, quotes and newlines");
    is_str(record("\"\",\"\"\r\n,\n", 0), "[][]1;[][]2;", "empty fields");
    is_str(record("\xef\xbb\xbf"
                  "a,b\n",
                  0),
           "[a][b]1;", "byte order mark");
    ok(strstr(record("a\n\"b\n", DDP_EDATA - 1), ":2: a quote"),
       "an open quote is named with its line");
    ok(strstr(record("a\n\"b\"c\n", DDP_EDATA - 1), ":2: text after"),
       "text after a quote is named with its line");
}

static void test_table(void)
{
    ddp_dataset_t *d;
    float x[3];
    int32_t label;

    put_text("iris.csv", "w,class,h,\"d, cm\"\n"
                         "1.5,setosa,-2,3e1\n"
                         "0.25,\"iris, virginica\",7, 8\n"
                         "4,setosa,5,6\r\n");
    d = ddp_dataset_csv(at("iris.csv"), "class");
    ok(d, "a table is read");
    is_int(ddp_dataset_count(d), 3, "its rows");
    is_int(ddp_dataset_shape(d).c, 3, "its columns but the class");
    is_int(ddp_dataset_classes(d), 2, "its classes");
    is_str(ddp_dataset_class_name(d, 0), "iris, virginica", "sorted by name");
    is_str(ddp_dataset_class_name(d, 2), NULL, "no name past the last");
    is_int(ddp_dataset_get(d, 1, 0, x, &label), 0, "a row is read");
    ok(x[0] == 0.25f && x[1] == 7 && x[2] == 8 && label == 0, "as it stands");
    is_int(ddp_dataset_get(d, 2, 0, x, &label), 0, "another row");
    ok(x[0] == 4 && x[1] == 5 && x[2] == 6 && label == 1, "as it stands");
    is_int(ddp_dataset_get(d, 3, 0, x, &label), DDP_EINVAL, "no row past it");
    is_str(ddp_dataset_path(d, 0), NULL, "rows have no path");
    ddp_dataset_free(d);

    put_text("numbers.csv", "x,y\n1,10\n1,9\n1,b\n1,0\n");
    d = ddp_dataset_csv(at("numbers.csv"), "y");
    ok(d && !strcmp(ddp_dataset_class_name(d, 0), "0") &&
           !strcmp(ddp_dataset_class_name(d, 1), "9") &&
           !strcmp(ddp_dataset_class_name(d, 2), "10") &&
           !strcmp(ddp_dataset_class_name(d, 3), "b"),
       "numbers among class names are sorted by value");
    ddp_dataset_free(d);
}

static ddp_dataset_t *table(const char *text)
{
    put_text("t.csv", text);
    return ddp_dataset_csv(at("t.csv"), "y");
}

static void test_bad_tables(void)
{
    refused(table("a,b\n1,2\n"), "no column \"y\": there is \"a\", \"b\"",
            "no such column");
    refused(table("x,y\n1,a\n2\n"), "t.csv:3: 1 fields, expected 2",
            "a short row");
    refused(table("x,y\n1,a\none,b\n"), "t.csv:3: column \"x\" has \"one\"",
            "a word for a number");
    refused(table("x,y\n,a\n"), "t.csv:2: column \"x\"", "a missing number");
    refused(table("x,y\nnan,a\n"), "expected a number", "not a number");
    refused(table("x,y\n1e99,a\n"), "expected a number", "out of range");
    refused(table("x,y\n1,\n"), "t.csv:2: column \"y\" is empty", "no class");
    refused(table("x,y\n"), "no rows", "no rows");
    refused(table("y\na\n"), "two columns", "no numbers");
    refused(table("\n\n"), "two columns", "no header");
    refused(ddp_dataset_csv(at("nowhere.csv"), "y"), "nowhere.csv: cannot",
            "no file");
    refused(ddp_dataset_csv(at("."), "y"), "not a regular", "a folder");
    put("zero.csv", "x,y\n1\0,a\n", 9);
    refused(ddp_dataset_csv(at("zero.csv"), "y"), "zero bytes", "not text");
}

/* ---- folders ------------------------------------------------------------ */

static void make_folders(void)
{
    put_image("f/train/cat/b.jpg", 1);
    put_image("f/train/cat/A.JPEG", 2);
    put_image("f/train/cat/deep/er/z.jpeg", 3);
    put_image("f/train/cat/deep-1/w.jpeg", 3);
    put_image("f/train/cat-2/x.jpg", 4);
    put_image("f/train/zebra/y.JPG", 5);
    put_image("j/a/1.jpe", 5);
    put_image("j/a/2.JFIF", 5);
    put_image("j/b/3.jpg", 5);
    put_text("f/train/zebra/notes.txt", "not an image");
    put_text("f/train/zebra/a.SVG", "not an image");
    put_text("f/train/cat/deep/b.svg", "not an image");
    put_text("f/train/cat/c.heic", "not an image");
    put_text("f/train/cat/README", "not an image");
    put_image("f/train/.hidden/y.JPG", 6);
    put_image("f/train/cat/.trash.jpg", 7);
    put_image("f/train/cat/deep/.git/objects/o.jpg", 7);
    put_text("f/train/cat/.DS_Store", "not an image");
    put_image("f/train/loose.jpg", 7);
    put_image("f/train/more.png", 7);
    put_text("f/train/README.txt", "not an image");
    put_image("f/val/zebra/v.jpg", 8);
    if (symlink("..", at("f/train/zebra/loop")) < 0 ||
        symlink("../cat/b.jpg", at("f/train/zebra/link.jpg")) < 0 ||
        symlink("nowhere", at("f/train/zebra/broken.jpg")) < 0)
        bail_out("cannot make links");
}

static void test_folder(void)
{
    static const char *const path[] = {
        "cat/A.JPEG",         "cat/b.jpg",   "cat/deep-1/w.jpeg",
        "cat/deep/er/z.jpeg", "cat-2/x.jpg", "zebra/broken.jpg",
        "zebra/link.jpg",     "zebra/y.JPG"};
    static const int label[] = {0, 0, 0, 0, 1, 2, 2, 2};
    ddp_dataset_t *d = ddp_dataset_folder(at("f/train"), &small);
    int names = 0, labels = 0;

    ok(d, "class folders are read");
    is_int(ddp_dataset_count(d), 8, "links back are not followed");
    if (ddp_dataset_count(d) != 8) {
        for (int i = 0; i < ddp_dataset_count(d); i++)
            diag("%s", ddp_dataset_path(d, i));
        ddp_dataset_free(d);
        return;
    }
    for (int i = 0; i < 8; i++) {
        names += ends(ddp_dataset_path(d, i), path[i]);
        labels += i == 5 || label_of(d, i) == label[i];
    }
    is_int(names, 8, "in the order of torchvision's ImageFolder");
    is_int(labels, 8, "with the classes of their folders");
    is_int(ddp_dataset_classes(d), 3, "hidden folders are no classes");
    is_str(ddp_dataset_class_name(d, 1), "cat-2", "classes have names");
    ok(strstr(ddp_dataset_describe(d), "8 images of 3 classes"),
       "the description counts");
    ok(strstr(ddp_dataset_describe(d), "skipped files: ") &&
           strstr(ddp_dataset_describe(d), "2 .svg") &&
           strstr(ddp_dataset_describe(d), "1 .heic") &&
           strstr(ddp_dataset_describe(d), "1 .txt") &&
           strstr(ddp_dataset_describe(d), "1 others"),
       "also files that are no images: %s", ddp_dataset_describe(d));
    ok(strstr(ddp_dataset_describe(d),
              ", 3 hidden, 2 outside of class folders)"),
       "hidden files of classes, and images in no class");
    is_int(label_of(d, 5), -1, "a broken link is a bad sample");
    ok(strstr(ddp_errmsg(), "zebra/broken.jpg: cannot be opened"),
       "which is named");
    ddp_dataset_free(d);
}

static void test_jpeg_names(void)
{
    ddp_dataset_t *d = ddp_dataset_folder(at("j"), &small);

    ok(d && ddp_dataset_count(d) == 3 && label_of(d, 0) == 0 &&
           label_of(d, 1) == 0,
       ".jpe and .jfif are JPEG images");
    ddp_dataset_free(d);
}

static void test_bad_folders(void)
{
    mkdir(at("empty"), 0777);
    refused(ddp_dataset_folder(at("empty"), NULL), "expected a folder for",
            "no classes");
    put_image("empty2/full/a.jpg", 1);
    make_dirs("empty2/class/");
    refused(ddp_dataset_folder(at("empty2"), NULL),
            "1 class without an image (.jpg, .jpeg, .jpe, .jfif, .png): class",
            "an empty class");
    for (int i = 0; i < 6; i++) {
        char name[32];

        snprintf(name, sizeof(name), "empty2/more%d/", i);
        make_dirs(name);
    }
    refused(ddp_dataset_folder(at("empty2"), NULL),
            "7 classes without an image (.jpg, .jpeg, .jpe, .jfif, .png): "
            "class, more0, more1, more2, more3 and 2 more",
            "several empty classes");
    refused(ddp_dataset_folder(at("nowhere"), NULL), "nowhere: No such",
            "no folder");
    put_image("high/up/cat/a.jpg", 1);
    put_image("high/up/dog/a.jpg", 1);
    refused(ddp_dataset_folder(at("high"), NULL),
            "\"up\" is its only folder, expected one for each of two",
            "a folder above the classes");
    ok(strstr(ddp_errmsg(), at("high/up")), "and the one to use is named");
    put_image("high/train/cat/a.jpg", 1);
    put_image("high/val/cat/a.jpg", 1);
    refused(ddp_dataset_open(at("high"), DDP_VAL, NULL), "its only folder",
            "validation images of a single class");
    refused(ddp_dataset_folder(NULL, NULL), "needs a folder", "NULL");
    refused(ddp_dataset_folder(
                at("f/train"),
                &(struct ddp_image_options){IMAGE_DEFAULTS, .size = -1}),
            "image size -1", "a negative size");
    refused(ddp_dataset_folder(at("f/train"),
                               &(struct ddp_image_options){
                                   IMAGE_DEFAULTS, .size = 32, .resize = 31}),
            "short side 31", "a crop larger than the image");
    refused(ddp_dataset_folder(
                at("f/train"),
                &(struct ddp_image_options){IMAGE_DEFAULTS, .min_area = 2}),
            "min_area 2", "more than the whole area");
    refused(ddp_dataset_folder(
                at("f/train"),
                &(struct ddp_image_options){IMAGE_DEFAULTS, .erase = 1.5f}),
            "erase probability 1.5", "an impossible probability");
    refused(ddp_dataset_folder(
                at("f/train"),
                &(struct ddp_image_options){IMAGE_DEFAULTS, .std = {1, 0, 1}}),
            "deviation 0", "a deviation of 0");
}

/* A folder with two links to the next one, and so on: 2^20 ways to the last. */
static void test_diamond(void)
{
    char name[64], to[32];

    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof(name), "diamond/%c/%d/%d", 'a', i, k);
            make_dirs(name);
            snprintf(to, sizeof(to), "../%d", i + 1);
            if (symlink(to, at(name)) < 0)
                bail_out("cannot make links");
        }
    }
    put_image("diamond/a/20/x.jpg", 1);
    put_image("diamond/b/y.jpg", 2);
    alarm(30);
    refused(ddp_dataset_folder(at("diamond"), NULL),
            "more than 100 links lead to this folder",
            "links that double at each level");
    alarm(0);
}

static void test_open_folders(void)
{
    ddp_dataset_t *d = ddp_dataset_open(at("f"), DDP_TRAIN, &small);

    ok(d && ddp_dataset_count(d) == 8, "open: train is train/");
    ddp_dataset_free(d);
    d = ddp_dataset_open(at("f"), DDP_VAL, &small);
    ok(d && ddp_dataset_count(d) == 1, "open: val is val/");
    is_int(label_of(d, 0), 2, "with the class numbers of train/");
    is_int(ddp_dataset_classes(d), 3, "and all its classes");
    ddp_dataset_free(d);
    ok(ddp_dataset_splits(at("f")) == (1U << DDP_TRAIN | 1U << DDP_VAL) &&
           ddp_dataset_splits(at("f/train")) == 0 &&
           ddp_dataset_splits(at("nowhere")) == 0,
       "a folder of splits is known");
    make_dirs("only/train/a");
    is_int((int)ddp_dataset_splits(at("only")), 1 << DDP_TRAIN,
           "also one of training images alone");
    refused(ddp_dataset_open(at("f"), DDP_TEST, &small),
            "f: expected a folder \"test\" in it", "test without test/");
    d = ddp_dataset_open(at("f/train"), DDP_TRAIN, &small);
    ok(d && ddp_dataset_count(d) == 8, "open: a folder of classes itself");
    ddp_dataset_free(d);
    refused(
        ddp_dataset_open(at("f/train"), DDP_VAL, &small),
        "\"validation\" or \"test\" in it; without, its folders are classes of "
        "training images",
        "validation with the images of training");
    put_image("h/train/a/u.jpg", 9);
    put_image("h/train/b/u.jpg", 9);
    put_image("h/test/b/u.jpg", 9);
    d = ddp_dataset_open(at("h"), DDP_VAL, &small);
    ok(d && label_of(d, 0) == 1, "open: val is test/ if there is no val/");
    ddp_dataset_free(d);
    put_image("h/validation/a/u.jpg", 9);
    d = ddp_dataset_open(at("h"), DDP_VAL, &small);
    ok(d && label_of(d, 0) == 0, "or validation/");
    ddp_dataset_free(d);
    put_image("h/valid/b/u.jpg", 9);
    d = ddp_dataset_open(at("h"), DDP_VAL, &small);
    ok(d && label_of(d, 0) == 1, "or valid/");
    ddp_dataset_free(d);
    refused(ddp_dataset_open(scratch_top, DDP_TEST, &small), "in it; without",
            "test images of a folder without splits");
    put_image("f/val/unicorn/u.jpg", 9);
    refused(ddp_dataset_open(at("f"), DDP_VAL, &small),
            "unicorn: the training data do not have this class",
            "a class that training does not know");
    put_image("g/val/c/u.jpg", 9);
    refused(ddp_dataset_open(at("g"), DDP_TRAIN, &small),
            "expected a folder \"train\"", "training from val/ alone");
}

static void test_set_classes(void)
{
    static const char *const names[] = {"zebra", "dog", "cat", "cat-2"};
    static const char *const twice[] = {"zebra", "cat", "cat", "cat-2"};
    static const char *const back[] = {"cat", "cat-2", "dog", "zebra"};
    ddp_dataset_t *d = ddp_dataset_folder(at("f/train"), &small);

    is_int(ddp_dataset_set_classes(d, 3, names), DDP_EDATA,
           "classes: one that is not expected is an error");
    ok(strstr(ddp_errmsg(), "\"cat-2\""), "which names it");
    is_int(ddp_dataset_set_classes(d, 4, twice), DDP_EDATA,
           "classes: so is a name that two have");
    ok(label_of(d, 0) == 0 && ddp_dataset_classes(d) == 3,
       "the numbers are then as they were");
    is_int(ddp_dataset_set_classes(d, 4, names), 0,
           "classes: the order is another, and there are more");
    ok(label_of(d, 0) == 2 && label_of(d, 4) == 3 && label_of(d, 7) == 0,
       "each has the number of its name");
    ok(ddp_dataset_classes(d) == 4 &&
           !strcmp(ddp_dataset_class_name(d, 1), "dog"),
       "and all have their names");
    ok(ddp_dataset_set_classes(d, 4, back) == 0 && label_of(d, 0) == 0 &&
           label_of(d, 4) == 1 && label_of(d, 7) == 3,
       "classes: they can be numbered again");
    is_int(ddp_dataset_set_classes(d, 0, names), DDP_EINVAL, "classes: none");
    ddp_dataset_free(d);
}

/* ---- ImageNet ----------------------------------------------------------- */

#define DATA "ILSVRC/Data/CLS-LOC/"

static void make_imagenet(void)
{
    put_text("i/LOC_synset_mapping.txt", "n01 tench, Tinca tinca\n"
                                         "n02 goldfish\r\n"
                                         "n03\n");
    put_image("i/" DATA "train/n01/n01_1.JPEG", 1);
    put_image("i/" DATA "train/n01/n01_2.JPEG", 2);
    put_image("i/" DATA "train/n03/n03_9.JPEG", 3);
    put_image("i/" DATA "train/n77/n77_1.JPEG", 4);
    put_image("i/" DATA "train/n03/.n03_8.JPEG", 3);
    put_image("i/" DATA "train/n03_7.JPEG", 3);
    put_text("i/LOC_train_solution.csv", "ImageId,PredictionString\n"
                                         "n01_1,n01 1 1 9 9 \n");
    put_image("i/" DATA "val/V_1.JPEG", 5);
    put_image("i/" DATA "val/V_2.JPEG", 6);
    put_text("i/LOC_val_solution.csv", "ImageId,PredictionString\n"
                                       "V_2,n03 1 1 9 9 n03 2 2 5 5 \n"
                                       "V_1,n02 1 1 9 9\n"
                                       "V_3,n01 1 1 9 9 n02 2 2 5 5\n"
                                       "V_4,n99 1 1 9 9\n"
                                       "V_5,n01 -1 1 9 9\n");
}

static void test_imagenet_train(void)
{
    ddp_dataset_t *d = ddp_dataset_open(at("i"), DDP_TRAIN, &small);

    ok(d, "ImageNet's layout is recognised");
    is_int(ddp_dataset_count(d), 3, "train: the class folders, not the CSV");
    is_int(label_of(d, 0), 0, "a label is the line of the mapping");
    is_int(label_of(d, 2), 2, "also after a class without a folder");
    is_int(ddp_dataset_classes(d), 3, "all classes of the mapping");
    is_str(ddp_dataset_class_name(d, 0), "tench, Tinca tinca", "class names");
    is_str(ddp_dataset_class_name(d, 1), "goldfish", "without the CR");
    is_str(ddp_dataset_class_name(d, 2), "n03", "or the synset");
    is_str(ddp_dataset_describe(d),
           "ImageNet train, 3 images of 3 classes (folders; 1 classes have no "
           "images; 1 folders are not classes and are skipped; skipped files: "
           "1 hidden, 1 outside of class folders)",
           "the description lists what was left out");
    ok(ends(ddp_dataset_path(d, 2), DATA "train/n03/n03_9.JPEG"), "paths");
    ddp_dataset_free(d);
}

static void test_imagenet_val(void)
{
    ddp_dataset_t *d = ddp_dataset_imagenet(at("i"), DDP_VAL, &small);

    is_int(ddp_dataset_count(d), 3, "val: by the CSV");
    is_int(label_of(d, 0), 2, "several boxes of one class are that class");
    is_int(label_of(d, 1), 1, "in the order of the CSV");
    is_int(label_of(d, 2), -1, "a missing file is a bad sample");
    ok(strstr(ddp_dataset_describe(d),
              "LOC_val_solution.csv; 1 rows with "
              "several classes are skipped; 1 rows with "
              "unknown classes are skipped"),
       "rows left out are counted");
    ddp_dataset_free(d);

    refused(ddp_dataset_imagenet(at("i"), DDP_TEST, &small), "no labels",
            "the test images");
    put_image("i2/" DATA "val/n02/V_1.JPEG", 5);
    put_text("i2/LOC_synset_mapping.txt", "n02 goldfish\nn01 tench\n");
    d = ddp_dataset_imagenet(at("i2"), DDP_VAL, &small);
    ok(d && ddp_dataset_count(d) == 1 && label_of(d, 0) == 0,
       "val: sorted into class folders");
    ok(d && strstr(ddp_dataset_describe(d), "classes are not sorted"),
       "a mapping in another order is mentioned");
    ddp_dataset_free(d);
}

static void test_imagenet_flat(void)
{
    ddp_dataset_t *d;

    put_text("i3/LOC_synset_mapping.txt", "n01 a\nn02 b\n");
    put_image("i3/" DATA "train/n01_1.JPEG", 1);
    put_image("i3/" DATA "train/n02_2.JPEG", 2);
    put_text("i3/LOC_train_solution.csv", "ImageId,PredictionString\n"
                                          "n02_2,n02\n");
    d = ddp_dataset_imagenet(at("i3"), DDP_TRAIN, &small);
    ok(d && ddp_dataset_count(d) == 1 && label_of(d, 0) == 1,
       "train without class folders: by the CSV");
    ok(d && strstr(ddp_dataset_describe(d), "lists only 1 of 2 files"),
       "which is described as incomplete");
    ddp_dataset_free(d);
}

static ddp_dataset_t *with_rows(const char *rows)
{
    char text[512];

    snprintf(text, sizeof(text), "ImageId,PredictionString\n%s", rows);
    put_text("i/LOC_val_solution.csv", text);
    return ddp_dataset_imagenet(at("i"), DDP_VAL, &small);
}

static ddp_dataset_t *with_mapping(const char *text)
{
    put_text("i/LOC_synset_mapping.txt", text);
    return ddp_dataset_imagenet(at("i"), DDP_VAL, &small);
}

static void test_bad_imagenet(void)
{
    refused(with_rows("../../etc/passwd,n01 1 1 2 2\n"),
            "LOC_val_solution.csv:2: ImageId", "an id that leads out");
    refused(with_rows("..,n01 1 1 2 2\n"), "csv:2: ImageId", "the parent");
    refused(with_rows(",n01 1 1 2 2\n"), "csv:2: ImageId", "no id");
    refused(with_rows("V_1,n01 1 1 2 2\nV_2,n01 1 1 2\n"),
            "csv:3: expected a synset and four", "three numbers");
    refused(with_rows("V_1,\n"), "csv:2: expected a synset", "no class");
    refused(with_rows("V_1,1 2 3 4\n"), "csv:2: expected a synset",
            "numbers alone");
    refused(with_rows("V_1\n"), "csv:2: 1 fields", "one field");
    refused(with_rows(""), "no images of the classes", "no rows");
    put_text("i/LOC_val_solution.csv", "V_1,n01 1 1 2 2\n");
    refused(ddp_dataset_imagenet(at("i"), DDP_VAL, &small),
            "csv:1: expected the header", "no header");
    refused(with_mapping("n01 a\nn02 b\nn01 c\n"),
            "mapping.txt:3: n01 is also in line 1", "a class twice");
    refused(with_mapping("n01 a\n../x b\n"), "mapping.txt:2: expected",
            "a synset that leads out");
    refused(with_mapping("n01 a\n\nn02 b\n"), "mapping.txt:2: expected",
            "an empty line");
    refused(with_mapping("\n"), "has no classes", "no classes");
    put("i/LOC_synset_mapping.txt", "n01 a\n\0n02 b\n", 14);
    refused(ddp_dataset_imagenet(at("i"), DDP_TRAIN, &small),
            "mapping.txt:2: contains a zero byte", "a zero byte");
    refused(with_mapping("n01 a\n"), "has one class, expected two",
            "one class");
    refused(ddp_dataset_imagenet(at("f"), DDP_VAL, &small),
            "LOC_synset_mapping.txt: cannot be opened", "no mapping");
    unlink(at("i/LOC_synset_mapping.txt"));
    if (mkfifo(at("i/LOC_synset_mapping.txt"), 0600) < 0)
        bail_out("cannot make a pipe");
    refused(ddp_dataset_imagenet(at("i"), DDP_VAL, &small),
            "mapping.txt: is not a regular file", "a mapping that is a pipe");
    unlink(at("i/LOC_synset_mapping.txt"));
    refused(ddp_dataset_csv("/dev/zero", "class"), "is not a regular file",
            "a table that is a device");
}

/* ---- CIFAR-10 ----------------------------------------------------------- */

enum { RECORD = 3073 };

static void put_cifar(const char *name, int records, int label)
{
    uint8_t *b = malloc((size_t)records * RECORD);

    for (int i = 0; i < records * RECORD; i++)
        b[i] = (uint8_t)(i % RECORD == 0 ? label : (i * 7 + label) >> 3);
    put(name, b, (size_t)records * RECORD);
    free(b);
}

static void test_cifar(void)
{
    static uint8_t x[3072];
    ddp_dataset_t *d;
    char name[64];
    int wrong = 0;
    int32_t label;

    for (int i = 1; i <= 5; i++) {
        snprintf(name, sizeof(name), "c/data_batch_%d.bin", i);
        put_cifar(name, 3, i);
    }
    put_cifar("c/test_batch.bin", 2, 9);
    d = ddp_dataset_open(at("c"), DDP_TRAIN, NULL);
    ok(d && ddp_dataset_count(d) == 15, "CIFAR-10: all batches");
    is_int(ddp_dataset_shape(d).h, 32, "of 32 x 32");
    is_str(ddp_dataset_class_name(d, 9), "truck", "class names");
    is_int(ddp_dataset_get(d, 4, 0, x, &label), 0, "an image is read");
    is_int(label, 2, "its label");
    for (int i = 0; i < 1024; i++)
        for (int c = 0; c < 3; c++)
            wrong += x[3 * i + c] !=
                     (uint8_t)(((RECORD + 1 + 1024 * c + i) * 7 + 2) >> 3);
    is_int(wrong, 0, "planes become pixels, and nothing else happens to them");
    ddp_dataset_free(d);
    d = ddp_dataset_cifar10(at("c"), DDP_TEST, NULL);
    ok(d && ddp_dataset_count(d) == 2, "CIFAR-10: the test batch");
    ddp_dataset_free(d);

    put_cifar("c/data_batch_3.bin", 3, 10);
    refused(ddp_dataset_cifar10(at("c"), DDP_TRAIN, NULL),
            "data_batch_3.bin: record 0: label 10", "a label of 10");
    put("c/data_batch_3.bin", "short", 5);
    refused(ddp_dataset_cifar10(at("c"), DDP_TRAIN, NULL),
            "expected records of 3073", "half a record");
    unlink(at("c/data_batch_3.bin"));
    refused(ddp_dataset_cifar10(at("c"), DDP_TRAIN, NULL),
            "data_batch_3.bin: cannot be opened", "a missing batch");
}

/* The shifted image against the definition: padded by zeros, cut, flipped. */
static void test_cifar_shift(void)
{
    static uint8_t x[3072], plain[3072];
    struct ddp_image_options o = {IMAGE_DEFAULTS, .augment = DDP_AUGMENT_SHIFT,
                                  .shift = 3};
    ddp_dataset_t *d = ddp_dataset_cifar10(at("c"), DDP_TEST, NULL);
    ddp_dataset_t *s = ddp_dataset_cifar10(at("c"), DDP_TEST, &o);
    int found = 0, seen[7][7][2] = {0}, kinds = 0;

    ddp_dataset_get(d, 1, 0, plain, NULL);
    for (uint64_t key = 0; key < 1500; key++) {
        bool match = false;

        ddp_dataset_get(s, 1, key * 0x9E3779B97F4A7C15u, x, NULL);
        for (int v = 0; v < 98 && !match; v++) {
            int dx = v % 7 - 3, dy = v / 7 % 7 - 3, flip = v / 49;

            match = true;
            for (int i = 0; i < 1024 && match; i++) {
                int cx = i % 32 - dx, cy = i / 32 - dy;
                bool in = cx >= 0 && cx < 32 && cy >= 0 && cy < 32;
                int from = 32 * cy + (flip ? 31 - cx : cx);

                for (int c = 0; c < 3; c++)
                    match &= x[3 * i + c] == (in ? plain[3 * from + c] : 0);
            }
            if (match)
                seen[dx + 3][dy + 3][flip]++;
        }
        found += match;
    }
    for (int v = 0; v < 98; v++)
        kinds += seen[v % 7][v / 7 % 7][v / 49] > 0;
    is_int(found, 1500, "shift: every sample is the image moved and flipped");
    /* 1500 draws of 98 leave one out with a chance of 98 exp(-15.3). */
    is_int(kinds, 98, "shift: every offset and flip comes up");
    ddp_dataset_free(d);
    ddp_dataset_free(s);
}

/* ---- the same data? ----------------------------------------------------- */

/* What a checkpoint knows its data by; frees them. */
static uint32_t contents(ddp_dataset_t *d)
{
    uint32_t crc = d ? d->ops->checksum(d) : 0;

    if (!d)
        diag("%s", ddp_errmsg());
    ddp_dataset_free(d);
    return crc;
}

static uint32_t contents_of_folder(void)
{
    return contents(ddp_dataset_folder(at("same"), &small));
}

static void test_contents(void)
{
    uint32_t table_was = contents(table("x,y\n1,a\n2,b\n")), was, is;

    ok(contents(table("x,y\n1.0,a\n2,b\n")) == table_was,
       "tables of equal numbers have equal contents");
    ok(contents(table("x,y\n1,a\n3,b\n")) != table_was, "not of other numbers");
    ok(contents(table("x,y\n1,b\n2,a\n")) != table_was, "nor of other classes");
    put_image("same/a/1.jpg", 1);
    put_image("same/a/2.jpg", 2);
    put_image("same/b/3.jpg", 3);
    was = contents_of_folder();
    ok(contents_of_folder() == was, "a folder has the contents that it had");
    rename(at("same/a/2.jpg"), at("same/a/4.jpg"));
    is = contents_of_folder();
    ok(is != was, "others, when an image has another name");
    rename(at("same/a/4.jpg"), at("same/b/2.jpg"));
    ok(contents_of_folder() != was && contents_of_folder() != is,
       "or is of another class");
    put_text("i/LOC_synset_mapping.txt", "n01 a\nn02 b\n");
    was = contents(with_rows("V_1,n01 1 1 2 2\n"));
    ok(contents(with_rows("V_1,n02 1 1 2 2\n")) != was,
       "a list that has another class for an image is another");
    put_cifar("s/test_batch.bin", 2, 3);
    was = contents(ddp_dataset_cifar10(at("s"), DDP_TEST, NULL));
    put_cifar("s/test_batch.bin", 2, 4);
    ok(contents(ddp_dataset_cifar10(at("s"), DDP_TEST, NULL)) != was,
       "CIFAR-10: other images are other contents");
}

/* What the identity of data has for a file; 0: it has not. */
static uint32_t identity_of(const struct ddp__identity *all, const char *name)
{
    for (int i = 0; i < all->count; i++)
        if (!strcmp(all->file[i].name, name))
            return all->file[i].crc;
    return 0;
}

/* The crc32c of a whole file. */
static uint32_t crc_of(const char *name)
{
    static uint8_t x[1 << 16];
    FILE *f = fopen(at(name), "rb");
    size_t n = f ? fread(x, 1, sizeof(x), f) : 0;

    if (f)
        fclose(f);
    return ddp__crc32c(0, x, n);
}

/* Files that can be repaired are not part of what a run must find again. */
static void test_identity(void)
{
    const struct ddp__identity *all;
    struct bytes b = make_photo(48, 40, 5);
    ddp_dataset_t *d, *part;
    uint32_t crc;

    put_image("id/a/1.jpg", 1);
    put_image("id/a/2.jpg", 2);
    put("id/a/cut.jpg", b.data, b.len - 9);
    put_text("id/b/none.jpg", "none");
    put_image("id/b/\xff.jpg", 3);
    put_image("id/b/3.jpg", 4);
    free(b.data);
    d = ddp_dataset_folder(at("id"), &small);
    all = ddp__dataset_identity(d);
    ok(all && all->count == 3 &&
           identity_of(all, "a/1.jpg") == crc_of("id/a/1.jpg") &&
           identity_of(all, "a/2.jpg") == crc_of("id/a/2.jpg") &&
           identity_of(all, "b/3.jpg") == crc_of("id/b/3.jpg"),
       "data are known by the contents of images: not of those that end early, "
       "are none, or have a name that is not UTF-8");
    crc = identity_of(all, "a/1.jpg");
    put_image("id/a/1.jpg", 7);
    ok(identity_of(ddp__dataset_identity(d), "a/1.jpg") == crc,
       "as they were when the run began");
    part = ddp_dataset_part(d, DDP_VAL, 0.5, 1);
    all = ddp__dataset_identity(part);
    ok(all && all->count > 0 && all->count < 3, "a part has its own: %d",
       all ? all->count : -1);
    ddp_dataset_free(part);
}

/* More images than are read: which ones is the same in every run. */
static void test_large_identity(void)
{
    static struct ddp__identity first;
    ddp_dataset_t *d;
    char name[64];
    int same = 0;

    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "many/%c/%d.jpg", 'a' + i % 2, i);
        put_image(name, (uint32_t)i);
    }
    for (int i = 0; i < 2; i++) {
        d = ddp_dataset_folder(at("many"), &small);
        if (i == 0)
            first = *ddp__dataset_identity(d);
        for (int k = 0; i == 1 && k < first.count; k++)
            same += ddp__dataset_identity(d)->file[k].crc == first.file[k].crc;
        ddp_dataset_free(d);
    }
    ok(first.count == DDP__SAMPLED && same == DDP__SAMPLED,
       "of many images %d are read, the same ones again", first.count);
}

static void test_labels(void)
{
    static const char *const same[] = {"a", "b"}, *const other[] = {"b", "a"},
                             *const more[] = {"x", "a", "b"};
    uint32_t is[4];

    for (int i = 0; i < 4; i++) {
        ddp_dataset_t *d = ddp_dataset_folder(at("same"), &small);

        if (i && ddp_dataset_set_classes(d, i == 3 ? 3 : 2,
                                         i == 1   ? same
                                         : i == 2 ? other
                                                  : more) < 0)
            diag("%s", ddp_errmsg());
        is[i] = ddp__dataset_labels(d);
        if (i == 2) {
            d = ddp_dataset_part(d, DDP_TRAIN, 0.5, 1);
            ok(d && ddp__dataset_labels(d) == is[2], "a part has its labels");
        }
        ddp_dataset_free(d);
    }
    ok(is[0] == 0 && is[1] == 0, "labels are those that the data have");
    ok(is[2] && is[3] && is[2] != is[3],
       "classes in another order give other labels");
}

/* ---- bad samples -------------------------------------------------------- */

struct source {
    int64_t bad_every; /* 0: none */
    int code;
};

static int source_get(void *arg, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    const struct source *src = arg;

    (void)key;
    if (src->bad_every && index % src->bad_every == 0)
        return src->code;
    *(float *)s->x = (float)index;
    s->label = (int32_t)(index % 3);
    return 0;
}

static ddp_dataset_t *source(struct source *src, int64_t count, double max_bad)
{
    struct ddp_source s = {.count = count,
                           .shape = {1, 1, 1},
                           .classes = 3,
                           .get = source_get,
                           .arg = src};
    ddp_dataset_t *d = ddp_dataset_callback(&s);

    d->max_bad = max_bad;
    return d;
}

static int64_t read_one(ddp_dataset_t *d, const struct ddp__order *o,
                        int64_t pos, bool replace)
{
    float x = -1;
    struct ddp_sample s = {.x = &x};
    int rc = ddp__dataset_read(d, o, pos, replace, &s);

    return rc ? -100 - rc : (int64_t)x;
}

static void test_replace(void)
{
    struct source src = {.bad_every = 10, .code = DDP_EDATA};
    ddp_dataset_t *d = source(&src, 100, 0.2);
    struct ddp__order o = {.seed = 1, .epoch = 4, .shuffle = true};
    int wrong = 0;

    for (int64_t pos = 0; pos < 100; pos++) {
        int64_t want, p = pos;

        do
            want = ddp__permute(1, 4, 100, p++ % 100);
        while (want % 10 == 0);
        wrong += read_one(d, &o, pos, true) != want;
    }
    is_int(wrong, 0, "a bad sample is replaced by the next of the order");
    is_int(ddp_dataset_bad_count(d), 10, "each bad one counts once");
    for (int64_t pos = 0; pos < 100; pos++)
        wrong += read_one(d, &o, pos, true) < 0;
    is_int(ddp_dataset_bad_count(d), 10, "also when it is met again");
    ddp_dataset_free(d);
}

static void test_budget(void)
{
    struct source src = {.bad_every = 50, .code = DDP_EDATA};
    ddp_dataset_t *d = source(&src, 200, 0.001);
    struct ddp__order o = {0};
    struct ddp_bad_sample bad;

    is_int(read_one(d, &o, 0, true), 1, "one bad sample is always tolerated");
    is_int(ddp_dataset_bad(d, 0, &bad), 0, "it is known");
    is_str(bad.path, "sample 0", "by its name");
    ok(strstr(bad.why, "get() returned -5"), "and the reason");
    is_int(ddp_dataset_bad(d, 1, &bad), DDP_EINVAL, "there is no second");
    is_int(read_one(d, &o, 50, true), -100 - DDP_EDATA,
           "two of 200 are too many for a budget of 0.001");
    ok(strstr(ddp_errmsg(), "2 of 200 samples are bad") &&
           strstr(ddp_errmsg(), "sample 50"),
       "the message names them");
    ddp_dataset_free(d);

    d = source(&src, 200, 0);
    is_int(read_one(d, &o, 0, true), -100 - DDP_EDATA,
           "a negative budget bears none");
    ddp_dataset_free(d);
    src.bad_every = 1;
    d = source(&src, 20, 1);
    is_int(read_one(d, &o, 3, true), -100 - DDP_EDATA,
           "all samples bad: an error with any budget");
    ddp_dataset_free(d);
}

static void test_evaluation(void)
{
    struct source src = {.bad_every = 10, .code = DDP_EDATA};
    ddp_dataset_t *d = source(&src, 100, 0.5);
    struct ddp__order o = {0};

    is_int(read_one(d, &o, 20, false), -100 - DDP__BAD,
           "evaluation: a bad sample is not replaced");
    is_int(read_one(d, &o, 21, false), 21, "a good one is read");
    is_int(ddp_dataset_bad_count(d), 1, "the bad one is counted");
    src.code = DDP_ENOMEM;
    is_int(read_one(d, &o, 30, true), -100 - DDP_ENOMEM,
           "an error that is not the sample's is passed on");
    src.code = 7;
    is_int(read_one(d, &o, 30, false), -100 - DDP__BAD,
           "a positive code of a program's get() is a bad sample");
    ddp_dataset_free(d);
}

static void test_many_bad(void)
{
    struct source src = {.bad_every = 2, .code = DDP_EDATA};
    ddp_dataset_t *d = source(&src, 6000, 1);
    struct ddp__order o = {.seed = 2, .shuffle = true};
    struct ddp_bad_sample bad;

    for (int64_t pos = 0; pos < 6000; pos++)
        read_one(d, &o, pos, true);
    is_int(ddp_dataset_bad_count(d), 3000, "3000 bad samples are counted");
    ok(ddp_dataset_bad(d, 999, &bad) == 0 &&
           ddp_dataset_bad(d, 1000, &bad) == DDP_EINVAL,
       "and the first 1000 are kept");
    ddp_dataset_free(d);
}

static void test_callback(void)
{
    struct ddp_source s = {
        .count = 5, .shape = {1, 1, 1}, .classes = 2, .get = source_get};

    s.count = 0;
    refused(ddp_dataset_callback(&s), "0 samples", "no samples");
    s.count = 5;
    s.get = NULL;
    refused(ddp_dataset_callback(&s), "needs a get()", "no function");
    s.get = source_get;
    s.type = DDP_I64;
    refused(ddp_dataset_callback(&s), "type", "a strange type");
    s.type = DDP_F32;
    s.target_len = 3;
    refused(ddp_dataset_callback(&s), "either", "classes and targets");
    s.target_len = 0;
    s.shape.h = 0;
    refused(ddp_dataset_callback(&s), "shape (0, 1, 1)", "no values");
    refused(ddp_dataset_callback(NULL), "needs a get()", "no source");
}

/* ---- many threads ------------------------------------------------------- */

enum { THREADS = 4, SIZE = 16 * 16 * 3 };
static ddp_dataset_t *shared;
static uint8_t seen[THREADS][40][SIZE];

static void *read_all(void *arg)
{
    int t = (int)(intptr_t)arg;
    struct ddp__order o = {.seed = 8, .shuffle = true};

    for (int i = 0; i < 40; i++) {
        int pos = (i + 10 * t) % 40;
        struct ddp_sample s = {.x = seen[t][pos]};

        if (ddp__dataset_read(shared, &o, pos, true, &s) < 0)
            memset(seen[t][pos], t, SIZE);
    }
    return NULL;
}

/* Files, one of them bad, read by several threads in different orders. */
static void test_threads(void)
{
    struct ddp_image_options o = {IMAGE_DEFAULTS, .size = 16, .max_bad = 0.1,
                                  .augment = DDP_AUGMENT_RANDOM};
    pthread_t thread[THREADS];
    char name[64];
    int same = 0;

    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "t/class%d/%02d.jpg", i % 3, i);
        if (i % 20 == 7)
            put_text(name, "this is no image");
        else
            put_image(name, (uint32_t)i);
    }
    shared = ddp_dataset_folder(at("t"), &o);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, read_all, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 1; i < THREADS; i++)
        same += !memcmp(seen[0], seen[i], sizeof(seen[0]));
    is_int(same, THREADS - 1, "four threads read the same samples");
    is_int(ddp_dataset_bad_count(shared), 2, "and count two bad files");
    ddp_dataset_free(shared);
}

int main(void)
{
    scratch_make();
    setlocale(LC_ALL, "de_DE.UTF-8"); /* a comma for a point, where installed */
    test_csv();
    test_table();
    test_bad_tables();
    make_folders();
    test_folder();
    test_jpeg_names();
    test_bad_folders();
    test_diamond();
    test_open_folders();
    test_set_classes();
    make_imagenet();
    test_imagenet_train();
    test_imagenet_val();
    test_imagenet_flat();
    test_bad_imagenet();
    test_cifar();
    test_cifar_shift();
    test_contents();
    test_identity();
    test_large_identity();
    test_labels();
    test_replace();
    test_budget();
    test_evaluation();
    test_many_bad();
    test_callback();
    test_threads();
    return done_testing();
}
