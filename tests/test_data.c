/* test_data.c - data sets of tables and folders: what is found, named, refused
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <locale.h>

#include "base/csv.h"
#include "data/dataset.h"
#include "data_files.h"

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
    return done_testing();
}
