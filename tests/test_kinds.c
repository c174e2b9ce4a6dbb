/* test_kinds.c - CIFAR-100, MNIST, lists, arrays, and data sets made of others
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The files are written here byte by byte, as their publishers describe them.
 */
#include "config.h"

#include <math.h>

#include "data/dataset.h"
#include "defaults.h"
#include "scratch.h"

/* A data set could not be made, and the message has this text. */
static void refused(ddp_dataset_t *d, const char *says, const char *what)
{
    ok(!d && strstr(ddp_errmsg(), says), "%s: refused", what);
    if (d || !strstr(ddp_errmsg(), says))
        diag("%s; message: %s", d ? "made" : "not made", ddp_errmsg());
    ddp_dataset_free(d);
}

static uint32_t contents(const ddp_dataset_t *d)
{
    return d->ops->checksum(d);
}

static int label_of(ddp_dataset_t *d, int64_t i)
{
    static float x[64 * 64 * 3];
    int32_t label = -1;

    return d && ddp_dataset_get(d, i, 1, x, &label) < 0 ? -1 : label;
}

/* ---- CIFAR-100 ---------------------------------------------------------- */

enum { CIFAR = 2 + 3072 };

/* Records of coarse label 3 and a fine one, with pixels that tell planes. */
static void put_cifar(const char *name, int records, int fine)
{
    uint8_t *b = malloc((size_t)records * CIFAR);

    for (int r = 0; r < records; r++) {
        uint8_t *at = b + r * CIFAR;

        at[0] = 3;
        at[1] = (uint8_t)(fine + r);
        for (int i = 0; i < 3072; i++)
            at[2 + i] = (uint8_t)(i / 1024 * 80 + i % 1024 / 32 * 2 + r);
    }
    put(name, b, (size_t)records * CIFAR);
    free(b);
}

static void put_names(const char *name, int n)
{
    char text[1000] = "";

    for (int i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "thing%d\n",
                 i);
    put_text(name, text);
}

static void test_cifar_100(void)
{
    static uint8_t x[3072];
    ddp_dataset_t *d;
    int32_t label = -1;
    int wrong = 0;

    put_cifar("c/cifar-100-binary/train.bin", 3, 97);
    put_cifar("c/cifar-100-binary/test.bin", 1, 5);
    put_names("c/cifar-100-binary/fine_label_names.txt", 100);
    is_int(ddp_dataset_native_size(at("c")), 32, "CIFAR-100 is found");
    d = ddp_dataset_open(at("c"), DDP_TRAIN, NULL);
    ok(d && ddp_dataset_count(d) == 3 && ddp_dataset_classes(d) == 100,
       "three images of 100 classes: %s",
       d ? ddp_dataset_describe(d) : ddp_errmsg());
    ok(d && ddp_dataset_get(d, 2, 0, x, &label) == 0 && label == 99,
       "the fine label");
    for (int i = 0; i < 1024; i++)
        for (int c = 0; c < 3; c++)
            wrong += x[3 * i + c] != (uint8_t)(c * 80 + i / 32 * 2 + 2);
    is_int(wrong, 0, "planes become pixels");
    is_str(d ? ddp_dataset_class_name(d, 99) : "", "thing99", "its name");
    ddp_dataset_free(d);
    d = ddp_dataset_cifar100(at("c/cifar-100-binary"), DDP_TEST, NULL);
    ok(d && ddp_dataset_count(d) == 1 && label_of(d, 0) == 5,
       "the test images, in their own folder");
    ddp_dataset_free(d);

    put_cifar("c/cifar-100-binary/train.bin", 3, 98);
    refused(ddp_dataset_cifar100(at("c"), DDP_TRAIN, NULL),
            "train.bin: record 2: label 100", "a label of 100");
    put_names("c/cifar-100-binary/fine_label_names.txt", 99);
    refused(ddp_dataset_cifar100(at("c"), DDP_TEST, NULL),
            "has 99 lines, expected the 100 classes", "99 names");
}

/* ---- MNIST -------------------------------------------------------------- */

enum { MNIST = 28 * 28, DIGITS = 3 };

static void put_digits(const char *images, const char *labels)
{
    static const uint8_t label[] = {0, 0, 8, 1, 0, 0, 0, DIGITS, 7, 0, 9};
    static uint8_t x[16 + DIGITS * MNIST] = {0, 0, 8, 3,  0, 0, 0, DIGITS,
                                             0, 0, 0, 28, 0, 0, 0, 28};

    for (int i = 0; i < DIGITS * MNIST; i++)
        x[16 + i] = (uint8_t)(i / MNIST * 50 + i % MNIST / 28);
    put(images, x, sizeof(x));
    put(labels, label, sizeof(label));
}

static bool is_mnist(ddp_dataset_t *d)
{
    static uint8_t x[MNIST * 3];
    int32_t label = -1;
    int wrong = 0;

    if (!d || ddp_dataset_count(d) != DIGITS ||
        ddp_dataset_get(d, 2, 0, x, &label) < 0)
        return false;
    for (int i = 0; i < MNIST * 3; i++)
        wrong += x[i] != (uint8_t)(100 + i / 3 / 28);
    return !wrong && label == 9 && ddp_dataset_classes(d) == 10;
}

static void test_mnist(void)
{
    ddp_dataset_t *d;

    put_digits("m/train-images-idx3-ubyte", "m/train-labels-idx1-ubyte");
    put_digits("m/raw/t10k-images-idx3-ubyte", "m/raw/t10k-labels-idx1-ubyte");
    is_int(ddp_dataset_native_size(at("m")), 28, "MNIST is found");
    d = ddp_dataset_open(at("m"), DDP_TRAIN, NULL);
    ok(is_mnist(d), "gray becomes three channels, with its label: %s",
       d ? ddp_dataset_describe(d) : ddp_errmsg());
    ddp_dataset_free(d);
    d = ddp_dataset_mnist(at("m"), DDP_VAL, NULL);
    ok(is_mnist(d), "the test images, in raw/");
    ddp_dataset_free(d);

    put("m/train-labels-idx1-ubyte", "\0\0\10\1\0\0\0\2\1\2", 10);
    refused(ddp_dataset_mnist(at("m"), DDP_TRAIN, NULL),
            "has 2 labels for 3 images", "a label too few");
    put("m/train-labels-idx1-ubyte", "\0\0\10\1\0\0\0\3\1\2\12", 11);
    refused(ddp_dataset_mnist(at("m"), DDP_TRAIN, NULL), "label 10 of image 2",
            "a label of 10");
    put("m/train-labels-idx1-ubyte", "\0\0\10\1\0\0\0\3\1\2", 10);
    refused(ddp_dataset_mnist(at("m"), DDP_TRAIN, NULL),
            "has 2 values, expected 3", "a truncated file");
    put("m/train-labels-idx1-ubyte", "\0\0\10\1\xff\xff\xff\xff\1\2", 10);
    refused(ddp_dataset_mnist(at("m"), DDP_TRAIN, NULL),
            "dimension 1 is 4294967295", "a huge dimension");
    put("m/train-images-idx3-ubyte", "\0\0\10\3\0\0\0\3\0\0\0\1\0\0\0\1\1\2\3",
        19);
    put("m/train-labels-idx1-ubyte", "\0\0\10\1\0\0\0\3\1\2\3", 11);
    refused(ddp_dataset_mnist(at("m"), DDP_TRAIN, NULL),
            "images of 1x1, expected 28x28", "images of another size");
    refused(ddp_dataset_mnist(scratch_top, DDP_TRAIN, NULL),
            "train-images-idx3-ubyte.gz in it", "another folder");
}

/* gzip's own files. */
static void test_gzip(void)
{
    char command[1000];
    ddp_dataset_t *d;

    put_digits("z/train-images-idx3-ubyte", "z/train-labels-idx1-ubyte");
    snprintf(command, sizeof(command), "gzip %s/*", at("z"));
    if (system(command) != 0)
        bail_out("gzip failed");
    d = ddp_dataset_mnist(at("z"), DDP_TRAIN, NULL);
#ifdef HAVE_ZLIB
    ok(is_mnist(d), "MNIST as gzip compressed it");
    ddp_dataset_free(d);
    snprintf(command, sizeof(command), "truncate -s -9 %s",
             at("z/train-images-idx3-ubyte.gz"));
    if (system(command) != 0)
        bail_out("truncate failed");
    refused(ddp_dataset_mnist(at("z"), DDP_TRAIN, NULL),
            "ubyte.gz: is not a whole gzip file", "a truncated one");
    put_text("z/train-images-idx3-ubyte.gz", "no gzip");
    refused(ddp_dataset_mnist(at("z"), DDP_TRAIN, NULL),
            "ubyte.gz: is not a whole gzip file", "another file");
#else
    refused(d, "lacks zlib", "without zlib");
#endif
}

/* ---- lists -------------------------------------------------------------- */

static const struct ddp_image_options small = {IMAGE_DEFAULTS, .size = 16,
                                               .resize = 20};

static ddp_dataset_t *list_of(const char *text)
{
    put_text("l/list.csv", text);
    return ddp_dataset_list(at("l/list.csv"), &small);
}

static void test_list(void)
{
    ddp_dataset_t *d, *same;
    uint32_t was;

    for (int i = 0; i < 3; i++) {
        struct bytes b = make_photo(30, 24, (uint32_t)i);
        const char *const name[] = {"l/a.jpg", "l/x/b.jpg", "l/c, d.jpg"};

        put(name[i], b.data, b.len);
        free(b.data);
    }
    d = list_of("path,label\nx/b.jpg,cat\n\"c, d.jpg\",ape\r\na.jpg,cat\n");
    ok(d && ddp_dataset_count(d) == 3 && ddp_dataset_classes(d) == 2,
       "a list of images: %s", d ? ddp_dataset_describe(d) : ddp_errmsg());
    ok(label_of(d, 0) == 1 && label_of(d, 1) == 0 && label_of(d, 2) == 1,
       "classes by name, in the order of names");
    is_str(d ? ddp_dataset_path(d, 1) : "", at("l/c, d.jpg"), "paths");
    was = d ? contents(d) : 0;
    ddp_dataset_free(d);
    same = ddp_dataset_open(at("l/list.csv"), DDP_TRAIN, &small);
    ok(same && contents(same) == was, "NAME.csv is a list");
    ddp_dataset_free(same);
    refused(ddp_dataset_open(at("l/list.csv"), DDP_VAL, &small), "has no split",
            "a list for validation");
    ok(ddp_dataset_splits(at("l/list.csv")) == 0 &&
           ddp_dataset_native_size(at("l/list.csv")) == 0,
       "it has no splits");
}

static void test_targets(void)
{
    static uint8_t x[16 * 16 * 3];
    float target[2] = {0, 0};
    struct ddp_sample s = {.x = x, .target = target};
    ddp_dataset_t *d = list_of("file,age,weight\na.jpg,3.5,-1e2\n"
                               "x/b.jpg,0.25,7\n");
    uint32_t was;

    ok(d && ddp_dataset_target_len(d) == 2 && ddp_dataset_classes(d) == 0,
       "targets: %s", d ? ddp_dataset_describe(d) : ddp_errmsg());
    ok(d && ddp__dataset_get(d, 0, 1, &s) == 0 && target[0] == 3.5f &&
           target[1] == -100,
       "of the first image");
    ok(d && ddp__dataset_get(d, 1, 1, &s) == 0 && target[0] == 0.25f &&
           target[1] == 7,
       "of the second");
    was = d ? contents(d) : 0;
    ddp_dataset_free(d);
    d = list_of("file,age,weight\na.jpg,3.5,-1e2\nx/b.jpg,0.25,8\n");
    ok(d && contents(d) != was, "another number is another data set");
    ddp_dataset_free(d);
}

/* The classes of image i, as a digit for each: 1 if it has it. */
static int marks_of(ddp_dataset_t *d, int64_t i)
{
    static uint8_t x[16 * 16 * 3];
    float target[9] = {0};
    struct ddp_sample s = {.x = x, .target = target};
    int marks = 0;

    if (!d || ddp__dataset_get(d, i, 1, &s) < 0)
        return -1;
    for (int k = 0; k < d->target_len; k++)
        marks = 10 * marks + (int)target[k];
    return marks;
}

/* Of samples that have ape and cat, fox, and none; a small chain finds fox most
 * likely, then ape, then cat. */
static void check_top1(ddp_dataset_t *d)
{
    static const float bias[] = {2, 1, 3}; /* ape, cat, fox */
    ddp_t *ddp = ddp_init(NULL);
    ddp_chain_t *c = ddp_chain_new(ddp_global_mean_pool_new(),
                                   ddp_dense_new(3, 3, NULL), DDP_END);
    struct ddp_evaluate_config cfg;
    struct ddp_metrics m = {0};
    float zero[9] = {0};
    int rc;

    ddp_evaluate_config_init(&cfg);
    ddp_chain_set(c, "1.weight", zero, 9);
    ddp_chain_set(c, "1.bias", bias, 3);
    ok(ddp_chain_evaluate(ddp, c, d, &cfg, &m) < 0 &&
           strstr(ddp_errmsg(), "several classes"),
       "cross entropy is refused: %s", ddp_errmsg());
    cfg.loss = DDP_BINARY_CROSS_ENTROPY;
    /* softplus(3) + softplus(2) + softplus(1), less the logits of the classes;
     * Fox has rank 0, ape, the likelier one of two, rank 1. */
    rc = ddp_chain_evaluate(ddp, c, d, &cfg, &m);
    ok(rc == 0 && fabs(m.loss - (6.488776 - (3 + 3 + 0) / 3.0) / 3) < 1e-5 &&
           fabs(m.top1 - 1 / 3.0) < 1e-9 && fabs(m.top5 - 2 / 3.0) < 1e-9,
       "loss %g, top-1 %g, top-5 %g of the evaluation", m.loss, m.top1, m.top5);
    ddp_chain_free(c);
    ddp_finish(ddp);
}

static void test_several(void)
{
    static const char *const more[] = {"fox", "bee", "cat", "ape"};
    ddp_dataset_t *d = list_of("path,labels\na.jpg,cat; ape\n"
                               "x/b.jpg, fox ;\na.jpg,\n");
    uint32_t was;

    ok(d && d->classes == 3 && d->target_len == 3 &&
           strstr(ddp_dataset_describe(d), "3 classes, several each"),
       "several classes: %s", d ? ddp_dataset_describe(d) : ddp_errmsg());
    ok(marks_of(d, 0) == 110 && marks_of(d, 1) == 1 && marks_of(d, 2) == 0,
       "of each image");
    was = d ? contents(d) : 0;
    check_top1(d);
    ok(ddp_dataset_set_classes(d, 4, more) == 0 && d->target_len == 4 &&
           marks_of(d, 0) == 11 && marks_of(d, 1) == 1000 &&
           marks_of(d, 2) == 0,
       "numbered as other data have them");
    d = ddp_dataset_part(d, DDP_TRAIN, 0.4, 1);
    ok(d && d->target_len == 4 && marks_of(d, 0) > 0, "a part of them");
    refused(ddp_dataset_map(d, (const int32_t[]){0, 0, 1, 1}, 2, NULL),
            "cannot be mapped", "a map");
    d = list_of("path,labels\na.jpg,cat;fox\nx/b.jpg,fox\na.jpg,ape\n");
    ok(d && contents(d) != was, "other classes are other data");
    ddp_dataset_free(d);
    refused(list_of("path,labels\na.jpg,\nx/b.jpg,;\n"), "no image has a class",
            "no class at all");
    refused(list_of("path,labels\na.jpg,x\n"), "two classes", "one class");
}

static void test_weights(void)
{
    static uint8_t x[16 * 16 * 3];
    struct ddp_sample s = {.x = x, .weight = 1};
    ddp_dataset_t *d =
        list_of("path,label,weight\na.jpg,cat,0.25\nx/b.jpg,ape,0\n");
    uint32_t was;

    ok(d && ddp_dataset_classes(d) == 2 && ddp_dataset_target_len(d) == 0 &&
           strstr(ddp_dataset_describe(d), "2 classes, with weights"),
       "weights: %s", d ? ddp_dataset_describe(d) : ddp_errmsg());
    ok(d && ddp__dataset_get(d, 0, 1, &s) == 0 && s.weight == 0.25f &&
           s.label == 1,
       "of the first image");
    ok(d && ddp__dataset_get(d, 1, 1, &s) == 0 && s.weight == 0 && s.label == 0,
       "of the second");
    was = d ? contents(d) : 0;
    ddp_dataset_free(d);
    d = list_of("path,label,weight\na.jpg,cat,0.5\nx/b.jpg,ape,0\n");
    ok(d && contents(d) != was, "another weight is another data set");
    ddp_dataset_free(d);
    refused(list_of("path,label,weight\na.jpg,x,1\na.jpg,y,-1\n"),
            "list.csv:3: weight -1, expected 0 or more", "a weight below 0");
}

static void test_bad_lists(void)
{
    refused(list_of("path,label\n../a.jpg,x\n"), "list.csv:2: \"../a.jpg\"",
            "a path that leads out");
    refused(list_of("path,label\nb/..,x\n"), "below the folder of the list",
            "another");
    refused(list_of("path,label\n/a.jpg,x\n"), "below the folder of the list",
            "a path from the root");
    refused(list_of("path,label\n,x\n"), "list.csv:2: \"\"", "no path");
    refused(list_of("path,label\na.jpg,\n"), "column \"label\" is empty",
            "no class");
    refused(list_of("path,label\na.jpg,x\nb.jpg,x\n"),
            "all images are of class \"x\"", "one class");
    refused(list_of("path,label\na.jpg\n"), "1 fields, expected 2",
            "a field too few");
    refused(list_of("path,age\na.jpg,old\n"), "has \"old\", expected a number",
            "no number");
    refused(list_of("path,label,age\na.jpg,x,3\n"), "expected a header",
            "a class and a number");
    refused(list_of("path\na.jpg\n"), "expected a header", "paths alone");
    refused(list_of("path,label\n"), "no rows", "no images");
    refused(list_of("\n\n"), "expected a header", "empty lines");
    refused(ddp_dataset_list(at("l/none.csv"), NULL), "none.csv", "no list");
}

/* ---- arrays ------------------------------------------------------------- */

enum { ROWS = 4, WIDTH = 3 };
static const float numbers[ROWS][WIDTH] = {
    {0, 1, 2}, {10, 11, 12}, {20, 21, 22}, {30, 31, 32}};
static const int32_t classes[ROWS] = {2, 0, 1, 2};

static struct ddp_arrays table(void)
{
    struct ddp_arrays a;

    ddp_arrays_init(&a);
    a.count = ROWS;
    a.shape = (struct ddp_shape){1, 1, WIDTH};
    a.x = numbers;
    a.classes = 3;
    a.label = classes;
    return a;
}

static void test_arrays(void)
{
    static const float weight[ROWS] = {1, 0.5f, 1, 1};
    static const float target[ROWS] = {7, 8, 9, 10};
    struct ddp_arrays a = table();
    ddp_dataset_t *d = ddp_dataset_arrays(&a), *other;
    float x[WIDTH] = {0}, y = 0;
    struct ddp_sample s = {.x = x, .target = &y, .weight = 1, .norm = -1};

    ok(d && ddp_dataset_count(d) == ROWS &&
           ddp__dataset_get(d, 1, 5, &s) == 0 && s.label == 0 && x[2] == 12 &&
           s.weight == 1,
       "arrays with labels: %s", d ? ddp_dataset_describe(d) : ddp_errmsg());
    a.weight = weight;
    other = ddp_dataset_arrays(&a);
    ok(other && ddp__dataset_get(other, 1, 5, &s) == 0 && s.weight == 0.5f,
       "with weights");
    ok(d && other && contents(d) != contents(other), "which are known");
    ddp_dataset_free(other);
    ddp_dataset_free(d);
    a.label = NULL;
    a.classes = 0;
    a.target = target;
    a.target_len = 1;
    d = ddp_dataset_arrays(&a);
    ok(d && ddp_dataset_target_len(d) == 1 &&
           ddp__dataset_get(d, 3, 5, &s) == 0 && y == 10,
       "arrays with targets");
    ddp_dataset_free(d);
}

static void test_bad_arrays(void)
{
    struct ddp_arrays a = table();

    a.label = NULL;
    refused(ddp_dataset_arrays(&a), "either labels and classes", "no labels");
    a = table();
    a.classes = 2;
    refused(ddp_dataset_arrays(&a), "label 2 of sample 0, expected 0 to 1",
            "a label too large");
    a = table();
    a.x = NULL;
    refused(ddp_dataset_arrays(&a), "one at least and their x", "no x");
    a = table();
    a.shape.c = 0;
    refused(ddp_dataset_arrays(&a), "shape (1, 1, 0)", "no channels");
    a = table();
    a.type = DDP_BF16;
    refused(ddp_dataset_arrays(&a), "expected DDP_F32 or DDP_U8", "bf16");
    a = table();
    a.struct_size = 0;
    refused(ddp_dataset_arrays(&a), "ddp_arrays_init()", "no init");
    refused(ddp_dataset_arrays(NULL), "one at least", "no arrays");
}

/* ---- of others ---------------------------------------------------------- */

static ddp_dataset_t *rows(void)
{
    struct ddp_arrays a = table();

    return ddp_dataset_arrays(&a);
}

/* The first number of each sample and its class: "20:1 0:2". */
static const char *listing(ddp_dataset_t *d)
{
    static char text[200];
    float x[WIDTH];
    int32_t label;

    text[0] = 0;
    for (int64_t i = 0; d && i < ddp_dataset_count(d); i++) {
        ddp_dataset_get(d, i, 0, x, &label);
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%g:%d",
                 i ? " " : "", (double)x[0], label);
    }
    ddp_dataset_free(d);
    return text;
}

static void test_subset(void)
{
    static const int64_t some[] = {2, 0, 2}, none[] = {4}, one[] = {1};
    ddp_dataset_t *d;
    uint32_t was;

    is_str(listing(ddp_dataset_subset(rows(), some, 3)), "20:1 0:2 20:1",
           "a subset, one sample twice");
    d = ddp_dataset_subset(ddp_dataset_subset(rows(), some, 3), one, 1);
    was = d ? contents(d) : 0;
    is_str(listing(d), "0:2", "a subset of a subset");
    d = ddp_dataset_subset(rows(), some, 3);
    ok(d && contents(d) != was, "a run tells them apart");
    ddp_dataset_free(d);
    refused(ddp_dataset_subset(rows(), none, 1), "there is no sample 4",
            "a number too large");
    refused(ddp_dataset_subset(rows(), some, 0), "one sample at least",
            "an empty subset");
}

static void test_concat(void)
{
    static const int64_t some[] = {1, 2};
    struct ddp_arrays a = table();
    ddp_dataset_t *d = rows();
    ddp_dataset_t *both[] = {ddp_dataset_subset(rows(), some, 2), rows()};

    is_str(listing(ddp_dataset_concat(both, 2)), "10:0 20:1 0:2 10:0 20:1 30:2",
           "two data sets as one");
    a.classes = 4;
    refused(ddp_dataset_concat(
                (ddp_dataset_t *[]){rows(), ddp_dataset_arrays(&a)}, 2),
            "data set 2, 4 samples in the program's memory, has other classes "
            "than the first",
            "another number of classes");
    a.classes = 3;
    a.shape = (struct ddp_shape){1, WIDTH, 1};
    refused(ddp_dataset_concat(
                (ddp_dataset_t *[]){rows(), ddp_dataset_arrays(&a)}, 2),
            "another shape or type", "another shape");
    refused(ddp_dataset_concat((ddp_dataset_t *[]){d, d}, 2), "once, not twice",
            "the same one twice");
    ok(!ddp_dataset_concat((ddp_dataset_t *[]){rows(), NULL}, 2),
       "one that could not be opened: refused");
    refused(ddp_dataset_concat(NULL, 0), "needs data sets", "nothing");
}

static void test_map(void)
{
    static const int32_t swap[] = {1, 0, 2}, merge[] = {0, 0, 1};
    static const int32_t some[] = {-1, 1, 0}, none[] = {-1, -1, -1};
    static const char *const names[] = {"a", "b", "c"};
    ddp_dataset_t *d;

    is_str(listing(ddp_dataset_map(rows(), swap, 3, NULL)),
           "0:2 10:1 20:0 30:2", "classes are renumbered");
    is_str(listing(ddp_dataset_map(rows(), merge, 2, NULL)),
           "0:1 10:0 20:0 30:1", "two become one");
    is_str(listing(ddp_dataset_map(rows(), some, 2, NULL)), "0:0 20:1 30:0",
           "one is left out");
    d = ddp_dataset_map(ddp_dataset_map(rows(), some, 2, NULL), swap, 2, names);
    is_str(d ? ddp_dataset_class_name(d, 1) : "", "b", "a map of a map");
    is_str(listing(d), "0:1 20:0 30:1", "which has its classes");
    d = ddp_dataset_part(ddp_dataset_map(rows(), merge, 2, NULL), DDP_VAL, 0.5,
                         3);
    is_int(d ? ddp_dataset_count(d) : -1, 2, "a map is divided by its classes");
    ok(d && label_of(d, 0) + label_of(d, 1) == 1, "half of each");
    ddp_dataset_free(d);
    refused(ddp_dataset_map(rows(), none, 1, NULL),
            "no sample has a class that is kept", "nothing is left");
    refused(ddp_dataset_map(rows(), swap, 2, NULL), "class 2 becomes class 2",
            "a class too large");
    refused(ddp_dataset_map(rows(), NULL, 2, NULL), "a number for each",
            "no map");
}

/* Names follow a map, and set_classes() the new ones. */
static void test_map_names(void)
{
    static const int32_t some[] = {-1, 0, 1};
    static const char *const back[] = {"c", "b"};
    ddp_dataset_t *d;

    put_text("t.csv", "x,class\n1,a\n2,b\n3,c\n4,b\n");
    d = ddp_dataset_map(ddp_dataset_csv(at("t.csv"), "class"), some, 2, NULL);
    ok(d && !strcmp(ddp_dataset_class_name(d, 0), "b") &&
           !strcmp(ddp_dataset_class_name(d, 1), "c"),
       "classes keep their names");
    is_int(d ? ddp_dataset_set_classes(d, 2, back) : -1, 0,
           "and are renumbered by them");
    is_str(listing(d), "2:1 3:0 4:1", "the samples that are left");
}

int main(void)
{
    scratch_make();
    test_cifar_100();
    test_mnist();
    test_gzip();
    test_list();
    test_weights();
    test_several();
    test_targets();
    test_bad_lists();
    test_arrays();
    test_bad_arrays();
    test_subset();
    test_concat();
    test_map();
    test_map_names();
    return done_testing();
}
