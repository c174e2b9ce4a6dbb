/* test_data_sets.c - ImageNet, CIFAR-10, and whether data are the same
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/crc32c.h"
#include "data/dataset.h"
#include "data_files.h"

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

int main(void)
{
    scratch_make();
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
    return done_testing();
}
