/* fuzz_data.c - any bytes as tables, lists of images, records of small images
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "ddp.h"
#include "fuzz.h"

/* A data set that opened: its samples and names must be readable. */
static int use(ddp_dataset_t *d)
{
    struct ddp_shape s;
    uint8_t *x;
    int64_t n;

    if (!d)
        return ddp_errcode();
    n = ddp_dataset_count(d);
    s = ddp_dataset_shape(d);
    x = malloc((size_t)s.h * (size_t)s.w * (size_t)s.c * sizeof(float));
    for (int k = 0; k < ddp_dataset_classes(d); k++)
        if (!ddp_dataset_class_name(d, k))
            abort();
    for (int64_t i = 0; i < n; i += 1 + n / 8) {
        const char *path = ddp_dataset_path(d, i);
        int32_t label = -1;

        if (path && strstr(path, "/../"))
            abort();
        /* There are no image files: only what is in memory can be read. */
        if (!path && (ddp_dataset_get(d, i, 1, x, &label) < 0 || label < 0 ||
                      label >= ddp_dataset_classes(d)))
            abort();
    }
    free(x);
    ddp_dataset_free(d);
    return 0;
}

/* ---- tables ------------------------------------------------------------- */

static int read_table(const char *path, const uint8_t *data, size_t len)
{
    (void)data;
    (void)len;
    return use(ddp_dataset_csv(path, "class"));
}

static void fuzz_tables(void)
{
    static const char plain[] = "w,class,h\n1.5,setosa,-2\n0.25,virginica,7\n"
                                "4,setosa,3e1\n-.5,versicolor,+8\n";
    static const char quoted[] = "\xef\xbb\xbf\"w, cm\",\"class\",h\r\n"
                                 "1,\"a \"\"b\"\"\",2\r\n\r\n"
                                 "\"3\",\"two\r\nlines\",4\r\n5,10,6\r\n";
    static const char *const word[] = {",",   "\"", "\n",   "\r\n",  "\"\"",
                                       "nan", "-",  "1e39", "class", NULL};
    static const struct fuzz_reader r = {"table", "t.csv", 2, read_table, word};

    fuzz(&r, "plain", plain, sizeof(plain) - 1);
    fuzz(&r, "with quotes", quoted, sizeof(quoted) - 1);
}

/* ---- Kaggle's lists ----------------------------------------------------- */

#define IMAGES "ILSVRC/Data/CLS-LOC/"

static const char mapping[] = "n01440764 tench, Tinca tinca\n"
                              "n01443537 goldfish, Carassius auratus\r\n"
                              "n01484850 great white shark\n";
static const char list[] = "ImageId,PredictionString\n"
                           "V_1,n01440764 1 1 9 9 \n"
                           "V_2,n01443537 10 20 30 40 n01443537 1 2 3 4 \n"
                           "V_3,n01440764 1 1 9 9 n01484850 2 2 5 5\n"
                           "V_4,n99999999 -1 1 9 9\n"
                           "V_5,n01484850\n";

static int read_train(const char *path, const uint8_t *data, size_t len)
{
    (void)path;
    (void)data;
    (void)len;
    return use(ddp_dataset_imagenet(fuzz_path("folders"), DDP_TRAIN, NULL));
}

static int read_val(const char *path, const uint8_t *data, size_t len)
{
    (void)path;
    (void)data;
    (void)len;
    return use(ddp_dataset_imagenet(fuzz_path("lists"), DDP_VAL, NULL));
}

static int read_flat(const char *path, const uint8_t *data, size_t len)
{
    (void)path;
    (void)data;
    (void)len;
    return use(ddp_dataset_imagenet(fuzz_path("lists"), DDP_TRAIN, NULL));
}

static void fuzz_kaggle(void)
{
    static const char *const word[] = {" ",  ",",   "\n",        "\r",
                                       "\"", "../", "..",        "V_1,n",
                                       "-1", "0",   "n01440764", NULL};
    static const struct fuzz_reader map = {
        "mapping", "folders/LOC_synset_mapping.txt", 1, read_train, word};
    static const struct fuzz_reader val = {
        "list of val", "lists/LOC_val_solution.csv", 1, read_val, word};
    static const struct fuzz_reader flat = {
        "list of train", "lists/LOC_train_solution.csv", 1, read_flat, word};

    fuzz_write("folders/" IMAGES "train/n01440764/a.JPEG", "", 0);
    fuzz_write("folders/" IMAGES "train/n01443537/b.JPEG", "", 0);
    fuzz_write("folders/" IMAGES "train/n01484850/c.JPEG", "", 0);
    fuzz_write("lists/" IMAGES "val/V_1.JPEG", "", 0);
    fuzz_write("lists/" IMAGES "train/V_1.JPEG", "", 0);
    fuzz_write("lists/LOC_synset_mapping.txt", mapping, sizeof(mapping) - 1);
    fuzz(&map, "three classes", mapping, sizeof(mapping) - 1);
    fuzz(&val, "five rows", list, sizeof(list) - 1);
    fuzz(&flat, "five rows", list, sizeof(list) - 1);
}

/* ---- shards ------------------------------------------------------------- */

static int read_tars(const char *path, const uint8_t *data, size_t len)
{
    (void)path;
    (void)data;
    (void)len;
    return use(ddp_dataset_tars(fuzz_path("tars"), NULL));
}

static void fuzz_tars(void)
{
    static const char index[] = "shard,offset,size,label,crc32c,name\n"
                                "0.tar,512,9,0,01234567,a/b.jpg\n"
                                "0.tar,2048,77,1,89abcdef,\"a, \"\"b\"\"\"\n"
                                "1.tar,512,1,1,FFFFFFFF,c\n";
    static const char *const word[] = {",",  "\"",  "\n",   "-1", "../",
                                       "..", "9e9", ".tar", "0",  NULL};
    static const struct fuzz_reader i = {"shards", "tars/index.csv", 1,
                                         read_tars, word};
    static const struct fuzz_reader c = {"classes", "tars/classes.txt", 1,
                                         read_tars, word};

    fuzz_write("tars/classes.txt", "a\nb\n", 4);
    fuzz(&i, "three samples", index, sizeof(index) - 1);
    fuzz_write("tars/index.csv", index, sizeof(index) - 1);
    fuzz(&c, "two classes", "a\nb\n", 4);
}

/* ---- tar files of others ------------------------------------------------ */

enum { BLOCK = 512 };

/* A file of a tar file, in the format that others write most. */
static size_t put_tar(uint8_t *x, const char *name, char type, const char *text)
{
    size_t len = strlen(text);
    unsigned sum = 0;

    snprintf((char *)x, 100, "%s", name);
    snprintf((char *)x + 124, 12, "%011o", (unsigned)len % 512);
    memset(x + 148, ' ', 8);
    x[156] = (uint8_t)type;
    memcpy(x + 257, "ustar\00000", 8);
    for (int i = 0; i < BLOCK; i++)
        sum += x[i];
    snprintf((char *)x + 148, 8, "%06o", sum % 0100000);
    memcpy(x + BLOCK, text, len);
    return BLOCK + (len + BLOCK - 1) / BLOCK * BLOCK;
}

static int read_foreign(const char *path, const uint8_t *data, size_t len)
{
    (void)data;
    (void)len;
    return use(ddp_dataset_webdataset(path, NULL));
}

static void fuzz_foreign(void)
{
    static const char *const word[] = {".cls", ".json", "label", "17 path=x\n",
                                       "../",  "0",     "L",     NULL};
    static const char *const ends[] = {"{0..3}", "{", "}",     "..",
                                       "\n",     "/", "a.tar", NULL};
    static const struct fuzz_reader r = {"WebDataset", "a.tar", 1, read_foreign,
                                         word};
    static const struct fuzz_reader n = {"list of tars", "names.txt", 1,
                                         read_foreign, ends};
    static uint8_t x[12 * BLOCK];
    size_t at = 0;

    at += put_tar(x + at, "PaxHeaders/a", 'x', "18 path=d/a.b.jpg\n");
    at += put_tar(x + at, "a.b.jpg", '0', "image");
    at += put_tar(x + at, "d/a.cls", '0', "1");
    at += put_tar(x + at, "c.json", '0', "{\"label\": 0}");
    at += put_tar(x + at, "c.jpg", 0, "image");
    fuzz(&r, "two samples", x, at + BLOCK);
    fuzz_write("b-1.tar", x, at + BLOCK);
    fuzz_write("b-2.tar", x, at + BLOCK);
    fuzz(&n, "two files", "b-{1..2}.tar\n", 13);
}

/* ---- Data.toml ---------------------------------------------------------- */

static int read_named(const char *path, const uint8_t *data, size_t len)
{
    char where[256];

    (void)data;
    (void)len;
    return ddp_dataset_find(path, "a/b#c", where, sizeof(where));
}

static void fuzz_named(void)
{
    static const char text[] =
        "data_config_version = 1 # one\n[[datasets]]\nname = \"a/b\"\n"
        "uuid = 'b498f769-a7f6-4f67-8d74-40b770398f26'\n"
        "x = [0x1_f, 1.5e3, true, {a.b = '''c''', d = 07:32:00}, ]\n"
        "text = \"\"\"\\u00e9\\\n  \"\"\"\n[datasets.storage]\n"
        "driver = \"FileSystem\"\npath = \"@__DIR__/x\"\n"
        "[[datasets]]\nname = \"c\"\nuuid = "
        "\"b498f769-a7f6-4f67-8d74-40b770398f26\"\n[datasets.storage]\n"
        "driver = \"S3\"\nbucket = \"y\"\n";
    static const char *const word[] = {"[",      "]",        "{",  "}", "\"",
                                       "'",      "@__DIR__", "\n", ".", "\\",
                                       "\"\"\"", "=",        "[[", NULL};
    static const struct fuzz_reader r = {"Data.toml", "Data.toml", 1,
                                         read_named, word};

    fuzz(&r, "two data sets", text, sizeof(text) - 1);
}

/* ---- lists of images ---------------------------------------------------- */

static int read_list(const char *path, const uint8_t *data, size_t len)
{
    (void)data;
    (void)len;
    return use(ddp_dataset_list(path, NULL));
}

static void fuzz_lists(void)
{
    static const char labels[] = "path,label\na/b.jpg,cat\n\"c, d\",10\ne,9\n";
    static const char targets[] = "path,x,y\na/b.jpg,1.5,-2\nc,1e3,0\n";
    static const char *const word[] = {",",  "\"",    "\n",    "/",  "../",
                                       "..", "class", "label", "-1", NULL};
    static const struct fuzz_reader r = {"list", "list.csv", 2, read_list,
                                         word};

    fuzz(&r, "classes", labels, sizeof(labels) - 1);
    fuzz(&r, "numbers", targets, sizeof(targets) - 1);
}

/* ---- MNIST -------------------------------------------------------------- */

static int read_mnist(const char *path, const uint8_t *data, size_t len)
{
    (void)path;
    (void)data;
    (void)len;
    return use(ddp_dataset_mnist(fuzz_path("mnist"), DDP_TRAIN, NULL));
}

static void fuzz_mnist(void)
{
    static const struct fuzz_reader r = {
        "MNIST", "mnist/train-images-idx3-ubyte", 1, read_mnist, NULL};
    static uint8_t x[16 + 2 * 28 * 28] = {0, 0, 8, 3,  0, 0, 0, 2,
                                          0, 0, 0, 28, 0, 0, 0, 28};

    fuzz_write("mnist/train-labels-idx1-ubyte", "\0\0\10\1\0\0\0\2\1\2", 10);
    fuzz(&r, "two images", x, sizeof(x));
}

#ifdef HAVE_ZLIB
static int read_gzip(const char *path, const uint8_t *data, size_t len)
{
    (void)path;
    (void)data;
    (void)len;
    return use(ddp_dataset_mnist(fuzz_path("gzip"), DDP_TRAIN, NULL));
}

/* Two labels, as gzip has them. */
static void fuzz_gzip(void)
{
    static const uint8_t x[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00,
                                0x02, 0x03, 0x63, 0x60, 0xe0, 0x60, 0x64, 0x60,
                                0x60, 0x60, 0x62, 0x64, 0x02, 0x00, 0x74, 0xfc,
                                0x89, 0x62, 0x0a, 0x00, 0x00, 0x00};
    static const struct fuzz_reader r = {
        "gzip", "gzip/train-labels-idx1-ubyte.gz", 1, read_gzip, NULL};
    static uint8_t images[16 + 2 * 28 * 28] = {0, 0, 8, 3,  0, 0, 0, 2,
                                               0, 0, 0, 28, 0, 0, 0, 28};

    fuzz_write("gzip/train-images-idx3-ubyte", images, sizeof(images));
    fuzz(&r, "two labels", x, sizeof(x));
}
#endif

/* ---- CIFAR-10 ----------------------------------------------------------- */

static int read_cifar(const char *path, const uint8_t *data, size_t len)
{
    (void)path;
    (void)data;
    (void)len;
    return use(ddp_dataset_cifar10(fuzz_path("cifar"), DDP_TEST, NULL));
}

static void fuzz_cifar(void)
{
    enum { RECORD = 3073, RECORDS = 3 };
    static const struct fuzz_reader r = {"CIFAR-10", "cifar/test_batch.bin", 1,
                                         read_cifar, NULL};
    static uint8_t x[RECORDS * RECORD];

    for (int i = 0; i < RECORDS * RECORD; i++)
        x[i] = (uint8_t)(i % RECORD == 0 ? i / RECORD + 7 : i * 7 >> 3);
    fuzz(&r, "three images", x, sizeof(x));
}

int main(void)
{
    fuzz_tables();
    fuzz_kaggle();
    fuzz_tars();
    fuzz_foreign();
    fuzz_named();
    fuzz_lists();
    fuzz_mnist();
#ifdef HAVE_ZLIB
    fuzz_gzip();
#endif
    fuzz_cifar();
    return done_testing();
}
