/* test_safetensors.c - what is read, what is refused, what is written
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <dirent.h>
#include <unistd.h>

#include "oracle.h"
#include "tap.h"
#include "weights/safetensors.h"
#include "weights/safetensors_write.h"

static char dir[] = "/tmp/ddp-safetensors-XXXXXX";
static char path[128];

/* A file of a header, whose length is written before it unless n sets
 * otherwise, and data. */
static void put(const char *head, size_t len, uint64_t n, const void *data,
                size_t size)
{
    FILE *f = fopen(path, "wb");

    if (!f)
        bail_out("cannot write %s", path);
    for (int i = 0; i < 8; i++)
        fputc((int)(n >> 8 * i & 0xff), f);
    fwrite(head, 1, len, f);
    fwrite(data, 1, size, f);
    fclose(f);
}

static void put_text(const char *head, size_t data)
{
    char *zeros = calloc(1, data + 1);

    put(head, strlen(head), strlen(head), zeros, data);
    free(zeros);
}

static int opens(void)
{
    struct ddp__st_file *f;
    int rc = ddp__st_open(&f, path);

    ddp__st_close(f);
    return rc;
}

/* ---- reading ------------------------------------------------------------ */

/* The 112 bytes that huggingface's library writes for one tensor. */
static void test_golden(void)
{
    static const char head[] =
        "{\"__metadata__\":{\"format\":\"pt\"},\"fc.weight\":{\"dtype\":"
        "\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}} ";
    static const unsigned char data[] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0};
    const struct ddp__st_tensor *t;
    struct ddp__st_file *f;
    float x[2] = {0};

    is_int(sizeof(head) - 1, 0x60, "the golden header has 96 bytes");
    put(head, 96, 96, data, 8);
    if (!ok(ddp__st_open(&f, path) == 0, "the golden file opens")) {
        diag("%s", ddp_errmsg());
        return;
    }
    t = ddp__st_find(f, "fc.weight");
    ok(t && t->type == DDP__ST_F32 && t->ndim == 2 && t->dim[0] == 1 &&
           t->dim[1] == 2 && t->len == 2,
       "it has fc.weight, F32, (1, 2)");
    ok(!ddp__st_find(f, "fc.bias") && !ddp__st_find(f, "__metadata__"),
       "and nothing else");
    is_int(ddp__st_read_f32(t, x, 2), 0, "which can be read");
    ok(x[0] == 1 && x[1] == -2, "it is 1, -2");
    is_int(ddp__st_read_f32(t, x, 3), DDP_ESHAPE, "but not as 3 elements");
    ddp__st_close(f);
}

/* Little-endian values of each type, and what they are. */
static void test_types(void)
{
    static const char head[] =
        "{\"h\":{\"dtype\":\"F16\",\"shape\":[7],\"data_offsets\":[0,14]},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[14,20]},"
        "\"d\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[20,36]},"
        "\"i\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[36,52]},"
        "\"u\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[52,55]},"
        "\"q\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[55,56]},"
        "\"scalar\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[56,58]},"
        "\"none\":{\"dtype\":\"F32\",\"shape\":[0,5],\"data_offsets\":[20,20]}"
        "}";
    static const unsigned char data[] = {
        0x00, 0x3c, 0x00, 0xc0, 0x01, 0x00, 0xff, 0x83, 0xff, 0x7b,
        0x00, 0xfc, 0x01, 0x7e, /* F16: 1, -2, 2^-24, -1023 2^-24, 65504, -inf,
                                   NaN */
        0x80, 0x3f, 0x49, 0x40, 0x80, 0xff, /* BF16: 1, 3.140625, -inf */
        0,    0,    0,    0,    0,    0,    0xe0, 0x3f, 0,    0,
        0,    0,    0,    0,    0x24, 0xc0, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 1,    1,    0,    0,    0,    0,
        0,    0,    1,    2,    3,    0x21, 0x00, 0x40};
    struct ddp__st_file *f;
    float x[8];

    put(head, strlen(head), strlen(head), data, sizeof(data));
    if (!ok(ddp__st_open(&f, path) == 0, "a file of many types opens")) {
        diag("%s", ddp_errmsg());
        return;
    }
    is_int(f->n, 8, "it has eight tensors");
    ok(ddp__st_read_f32(ddp__st_find(f, "h"), x, 7) == 0 && x[0] == 1 &&
           x[1] == -2 && x[2] == 0x1p-24f && x[3] == -1023 * 0x1p-24f &&
           x[4] == 65504 && x[5] == -INFINITY && isnan(x[6]),
       "F16: normal, subnormal, infinite, not a number");
    ok(ddp__st_read_f32(ddp__st_find(f, "b"), x, 3) == 0 && x[0] == 1 &&
           x[1] == 3.140625f && x[2] == -INFINITY,
       "BF16");
    ok(ddp__st_read_f32(ddp__st_find(f, "d"), x, 2) == 0 && x[0] == 0.5f &&
           x[1] == -10,
       "F64");
    ok(ddp__st_read_f32(ddp__st_find(f, "i"), x, 2) == 0 && x[0] == -1 &&
           x[1] == 257,
       "I64");
    ok(ddp__st_read_f32(ddp__st_find(f, "scalar"), x, 1) == 0 && x[0] == 2,
       "a scalar");
    is_int(ddp__st_read_f32(ddp__st_find(f, "none"), x, 0), 0,
           "a tensor without elements");
    is_int(ddp__st_read_f32(ddp__st_find(f, "u"), x, 3), DDP_EDATA,
           "U8 is skipped, not read");
    ok(strstr(ddp_errmsg(), "U8"), "and the message names it");
    ddp__st_close(f);
}

/* ---- what is refused ---------------------------------------------------- */

#define T(name, dtype, shape, begin, ...)                                      \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape                   \
    ",\"data_offsets\":[" #begin "," #__VA_ARGS__ "]}"

/* A header, so many bytes of data, and a word of the message; NULL: good. */
static const struct {
    const char *what, *head;
    size_t data;
    const char *word;
} cases[] = {
    {"no tensors at all", "{}", 0, NULL},
    {"spaces after the header", "{}      ", 0, NULL},
    {"tensors in any order",
     "{" T("b", "F32", "[1]", 4, 8) "," T("a", "F32", "[1]", 0, 4) "}", 8,
     NULL},
    {"empty tensors between others",
     "{" T("b", "F32", "[1]", 0, 4) "," T("e", "F32", "[0]", 0,
                                          0) "," T("f", "F32", "[0]", 4, 4) "}",
     4, NULL},
    {"eight dimensions and short names",
     "{" T("a", "U8", "[1,1,1,1,1,1,1,1]", 0,
           1) "," T("b", "U8", "[1,1,1,1,1,1,1,1]", 1, 2) "}",
     2, NULL},
    {"brackets in a name", "{" T("[[[[[[[[[[[[", "U8", "[1]", 0, 1) "}", 1,
     NULL},
    {"a key that nobody knows",
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":[]}}",
     1, NULL},
    {"a byte after the data", "{" T("a", "F32", "[1]", 0, 4) "}", 5, "last 1"},
    {"data without tensors", "{}", 3, "last 3"},
    {"data cut short", "{" T("a", "F32", "[1]", 0, 4) "}", 3, "of 3 bytes"},
    {"a hole before the first tensor", "{" T("a", "U8", "[1]", 1, 2) "}", 2,
     "before"},
    {"a hole between tensors",
     "{" T("a", "U8", "[1]", 0, 1) "," T("b", "U8", "[1]", 2, 3) "}", 3,
     "belong to no tensor"},
    {"tensors that overlap",
     "{" T("a", "U8", "[2]", 0, 2) "," T("b", "U8", "[2]", 1, 3) "}", 3,
     "overlaps"},
    {"two tensors at one place",
     "{" T("a", "U8", "[2]", 0, 2) "," T("b", "U8", "[2]", 0, 2) "}", 2,
     "overlaps"},
    {"an end before the begin", "{" T("a", "U8", "[1]", 1, 0) "}", 1,
     "data from 1 to 0"},
    {"a negative offset", "{" T("a", "U8", "[1]", -1, 0) "}", 1,
     "data_offsets"},
    {"an offset far outside",
     "{" T("a", "U8", "[1]", 0, 9223372036854775807) "}", 1, "data from"},
    {"an offset beyond 64 bits",
     "{" T("a", "U8", "[1]", 0, 99999999999999999999) "}", 1, "header"},
    {"an offset that is a fraction", "{" T("a", "U8", "[1]", 0, 1.0) "}", 1,
     "data_offsets"},
    {"three offsets", "{" T("a", "U8", "[1]", 0, 1, 1) "}", 1, "data_offsets"},
    {"a shape larger than its bytes", "{" T("a", "F32", "[2]", 0, 4) "}", 4,
     "does not fit"},
    {"a product beyond 64 bits",
     "{" T("a", "U8", "[4294967296,4294967296]", 0, 0) "}", 0,
     "too many elements"},
    {"a product beyond 64 bits in bits",
     "{" T("a", "F64", "[2305843009213693952]", 0, 0) "}", 0, "does not fit"},
    {"a negative dimension", "{" T("a", "U8", "[-1]", 0, 1) "}", 1,
     "not a valid size"},
    {"a dimension that is text", "{" T("a", "U8", "[\"1\"]", 0, 1) "}", 1,
     "not a valid size"},
    {"nine dimensions", "{" T("a", "U8", "[1,1,1,1,1,1,1,1,1]", 0, 1) "}", 1,
     "9 dimensions"},
    {"half a byte", "{" T("a", "F4", "[1]", 0, 1) "}", 1, "does not fit"},
    {"an unknown dtype", "{" T("a", "F31", "[1]", 0, 4) "}", 4, "F31"},
    {"no dtype", "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "dtype"},
    {"no shape", "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1,
     "shape"},
    {"no offsets", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1,
     "data_offsets"},
    {"a tensor that is a list", "{\"a\":[]}", 0, "description"},
    {"a name twice",
     "{" T("a", "U8", "[1]", 0, 1) "," T("a", "U8", "[1]", 1, 2) "}", 2,
     "duplicate"},
    {"a name twice, once escaped",
     "{" T("a", "U8", "[1]", 0, 1) "," T("\\u0061", "U8", "[1]", 1, 2) "}", 2,
     "duplicate"},
    {"metadata that is no object", "{\"__metadata__\":[]}", 0, "__metadata__"},
    {"metadata that is a number", "{\"__metadata__\":{\"a\":1}}", 0,
     "not a string"},
    {"a name that is not UTF-8", "{\"\xff\xfe\":{}}", 0, "header"},
    {"an overlong UTF-8 name", "{\"\xc0\x80\":{}}", 0, "header"},
    {"a name with a zero", "{\"\\u0000\":{}}", 0, "header"},
    {"something after the object", "{}x", 0, "header"},
    {"a list", "[]", 0, "no header"},
    {"a space first", " {}", 0, "no header"},
    {"an object that does not end", "{\"a\"", 0, "header"},
    {"deep nesting", "{\"a\":[[[[[[[[[[[[]]]]]]]]]]]]}", 0, "deeper"},
};

static void test_cases(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *word = cases[i].word;
        int rc;

        put_text(cases[i].head, cases[i].data);
        rc = opens();
        if (!ok(word ? rc == DDP_EDATA && strstr(ddp_errmsg(), word) &&
                           strstr(ddp_errmsg(), path)
                     : rc == 0,
                "%s: %s", cases[i].what, word ? "refused" : "accepted"))
            diag("%d, %s", rc, ddp_errmsg());
    }
}

/* What does not fit the table. */
static void test_lengths(void)
{
    static char long_name[3000], flood[1 << 20];
    size_t n;

    put("", 0, 0, "", 0);
    is_int(opens(), DDP_EDATA, "a header of no bytes");
    put("{}", 2, 3, "", 0);
    is_int(opens(), DDP_EDATA, "a header longer than the file");
    put("{}", 2, UINT64_MAX, "", 0);
    is_int(opens(), DDP_EDATA, "a header of 2^64 - 1 bytes");
    put("{}", 2, UINT64_MAX - 7, "", 0);
    is_int(opens(), DDP_EDATA, "a header whose end wraps around to 0");
    put("{}", 2, 2, "", 0);
    truncate(path, 7);
    is_int(opens(), DDP_EDATA, "a file of seven bytes");
    put("{}", 2, 30000000, "", 0);
    truncate(path, 40000000); /* a hole, so it takes no room */
    is_int(opens(), DDP_EDATA, "a header of 30 MB");
    ok(strstr(ddp_errmsg(), "more than"), "and the message has the limit");

    snprintf(long_name, sizeof(long_name),
             "{\"%01023d\":{\"dtype\":\"U8\",\"shape\":[0],"
             "\"data_offsets\":[0,0]}}",
             0);
    put_text(long_name, 0);
    is_int(opens(), 0, "a name of 1023 bytes");
    snprintf(long_name, sizeof(long_name),
             "{\"%01024d\":{\"dtype\":\"U8\",\"shape\":[0],"
             "\"data_offsets\":[0,0]}}",
             0);
    put_text(long_name, 0);
    is_int(opens(), DDP_EDATA, "but not of 1024");

    n = (size_t)sprintf(flood, "{\"a\":[");
    while (n < sizeof(flood) - 8)
        n += (size_t)sprintf(flood + n, "[],");
    sprintf(flood + n, "[]]}");
    put_text(flood, 0);
    is_int(opens(), DDP_EDATA, "a flood of brackets");
    ok(strstr(ddp_errmsg(), "not a list of tensors"),
       "is seen before it is parsed");

    unlink(path);
    is_int(opens(), DDP_EIO, "no file");
    mkfifo(path, 0600);
    is_int(opens(), DDP_EDATA, "a pipe, without waiting for its writer");
    unlink(path);
    mkdir(path, 0700);
    is_int(opens(), DDP_EDATA, "a folder");
    rmdir(path);
}

/* A file that loses its end after it was opened. */
static void test_shortened(void)
{
    struct ddp__st_file *f;
    float x[1000];

    put_text("{" T("a", "F32", "[1000]", 0, 4000) "}", 4000);
    if (!ok(ddp__st_open(&f, path) == 0, "a file opens"))
        return;
    truncate(path, 2000);
    is_int(ddp__st_read_f32(&f->tensor[0], x, 1000), DDP_EIO,
           "when it is cut short afterwards, reading fails");
    ddp__st_close(f);
}

/* ---- several files ------------------------------------------------------ */

/* A file of one tensor of one value. */
static void put_part(const char *name, const char *tensor, float v)
{
    char head[128];

    snprintf(path, sizeof(path), "%s/%s.safetensors", dir, name);
    snprintf(head, sizeof(head), "{" T("%s", "F32", "[1]", 0, 4) "}", tensor);
    put(head, strlen(head), strlen(head), &v, 4);
}

#define MAP(entries) "{\"metadata\":{},\"weight_map\":{" entries "}}"
#define IN(tensor, file) "\"" tensor "\":\"" file "\""
#define ONE IN("a", "1.safetensors")
#define TWO IN("b", "2.safetensors")

/* Lists next to 1 and 2, which have a and b, and "again", which has a; and a
 * part of the message; NULL: good. */
static const struct {
    const char *what, *list, *words;
} lists[] = {
    {"two files", MAP(ONE "," TWO), NULL},
    {"one of them", MAP(TWO), NULL},
    {"a file that is not there", MAP(ONE "," IN("b", "3.safetensors")),
     "/3.safetensors: cannot be opened"},
    {"a tensor that its file lacks",
     MAP(ONE "," TWO "," IN("c", "1.safetensors")),
     "tensor c is not in 1.safetensors"},
    {"a tensor that the list lacks", MAP(ONE "," IN("c", "2.safetensors")),
     "tensor b is in 2.safetensors, but not listed there"},
    {"a tensor in two files", MAP(ONE "," TWO "," IN("c", "again.safetensors")),
     "tensor a is in again.safetensors, but not listed there"},
    {"a tensor listed twice", MAP(ONE "," TWO "," ONE), "duplicate"},
    {"a path upwards", MAP(ONE "," IN("b", "../2.safetensors")),
     "does not name"},
    {"a path from the root", MAP(IN("a", "/tmp/1.safetensors")),
     "does not name"},
    {"a path downwards", MAP(IN("a", "x/1.safetensors")), "does not name"},
    {"a list in the list", MAP(IN("a", "index.json")), "does not name"},
    {"a suffix alone", MAP(IN("a", ".safetensors")), "does not name"},
    {"a number for a file", MAP("\"a\":1"), "in no file"},
    {"no weight_map", "{\"metadata\":{}}", "no weight_map"},
    {"a weight_map that is none", "{\"weight_map\":[]}", "no weight_map"},
    {"no object", "[]", "no weight_map"},
    {"no JSON", "weights", "header"},
    {"deep nesting", "{\"weight_map\":[[[[[[[[[[[]]]]]]]]]]]}", "deeper"},
};

static void put_list(const char *text)
{
    FILE *f;

    snprintf(path, sizeof(path), "%s/index.json", dir);
    if (!(f = fopen(path, "w")) || fputs(text, f) < 0 || fclose(f) != 0)
        bail_out("cannot write %s", path);
}

static void test_list_read(void)
{
    struct ddp__st_file *f;
    float a = 0, b = 0;

    put_list(lists[0].list);
    if (!ok(ddp__st_open(&f, path) == 0, "a list of two files opens")) {
        diag("%s", ddp_errmsg());
        return;
    }
    ok(f->n == 2 && ddp__st_read_f32(ddp__st_find(f, "a"), &a, 1) == 0 &&
           ddp__st_read_f32(ddp__st_find(f, "b"), &b, 1) == 0 && a == 5 &&
           b == 7,
       "each tensor comes from its own");
    ddp__st_close(f);
}

static void test_lists(void)
{
    static const char *const names[] = {"1", "2", "again"};

    put_part("1", "a", 5);
    put_part("2", "b", 7);
    put_part("again", "a", 9);
    test_list_read();
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const char *words = lists[i].words;
        int rc;

        put_list(lists[i].list);
        rc = opens();
        if (!ok(words ? rc < 0 && strstr(ddp_errmsg(), words) : rc == 0,
                "%s: %s", lists[i].what, words ? "refused" : "accepted"))
            diag("%d, %s", rc, ddp_errmsg());
    }
    unlink(path);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s.safetensors", dir, names[i]);
        unlink(path);
    }
    snprintf(path, sizeof(path), "%s/x.safetensors", dir);
}

/* ---- writing ------------------------------------------------------------ */

static int is_file(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static int files_in_dir(void)
{
    struct dirent **entry;
    int n = scandir(dir, &entry, is_file, alphasort);

    for (int i = 0; i < n; i++)
        free(entry[i]);
    if (n >= 0)
        free(entry);
    return n;
}

static float value[70000];

static const struct ddp__st_out outs[] = {
    {"layer1.0.conv1.weight", 4, {10, 7, 100, 10}, value, DDP__ST_F32},
    {"fc.bias", 1, {3}, value + 17, DDP__ST_F32},
    {"scalar", 0, {0}, value + 1, DDP__ST_F32},
    {"empty", 2, {0, 4}, value, DDP__ST_F32},
    {"\xc3\xa9t\xc3\xa9 \"quoted\"\\\n", 1, {2}, value + 5, DDP__ST_F32},
};
enum { OUTS = sizeof(outs) / sizeof(outs[0]) };

static void test_round_trip(void)
{
    struct ddp__st_file *f;
    float *x = malloc(sizeof(value));
    int same = 0;

    for (int i = 0; i < 70000; i++)
        value[i] = (float)(i - 30000) * 0.37f;
    unlink(path);
    is_int(ddp__st_write(path, OUTS, outs), 0, "tensors are written");
    if (!ok(ddp__st_open(&f, path) == 0, "and open")) {
        diag("%s", ddp_errmsg());
        free(x);
        return;
    }
    is_int(f->n, OUTS, "all of them");
    is_int(f->data % 64, 0, "their data begin at a multiple of 64");
    for (int i = 0; i < OUTS; i++) {
        const struct ddp__st_tensor *t = ddp__st_find(f, outs[i].name);

        if (!t || t->ndim != outs[i].ndim || ddp__st_read_f32(t, x, t->len) < 0)
            continue;
        same += memcmp(t->dim, outs[i].dim, (size_t)t->ndim * 8) == 0 &&
                memcmp(x, outs[i].data, t->len * sizeof(float)) == 0;
    }
    is_int(same, OUTS, "with the same names, shapes and bits");
    ddp__st_close(f);
    free(x);
    is_int(files_in_dir(), 1, "and nothing else is left in the folder");
}

/* The file byte by byte: what PyTorch expects, in a fixed order. */
static void test_header(void)
{
    static const char want[] =
        "{\"__metadata__\":{\"format\":\"pt\",\"step\":\"7\"},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}";
    static const char *const metadata[] = {"step", "7", NULL};
    const float ab[] = {1, -2, 3};
    const struct ddp__st_out two[] = {{"b", 1, {1}, ab + 2, DDP__ST_F32},
                                      {"a", 2, {1, 2}, ab, DDP__ST_F32}};
    unsigned char got[512] = {0},
                  data[] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0x40, 0x40};
    size_t n, head = (8 + strlen(want) + 63) / 64 * 64;
    bool spaces = true;
    FILE *f;

    is_int(ddp__st_write_with(path, 2, two, metadata, NULL), 0,
           "with metadata");
    f = fopen(path, "rb");
    n = fread(got, 1, sizeof(got), f);
    fclose(f);
    is_int(n, head + 12, "header, padding and data");
    is_int(got[0], head - 8, "its length first");
    ok(!memcmp(got + 8, want, strlen(want)), "tensors in order of names");
    for (size_t i = 8 + strlen(want); i < head; i++)
        spaces &= got[i] == ' ';
    ok(spaces, "then spaces");
    ok(!memcmp(got + head, data, 12), "then the values, lowest byte first");
}

/* To bf16: exact, to the even neighbour of two, up, to infinity, NaN. */
static const float to_round[] = {
    1, -2, 0x1.01p0f, 0x1.03p0f, 0x1.010002p0f, 0x1.ffp127f, NAN};
static const float seven[] = {7};
static const struct ddp__st_out mixed[] = {
    {"a", 1, {7}, to_round, DDP__ST_BF16}, {"b", 1, {1}, seven, DDP__ST_F32}};
enum { MIXED = sizeof(mixed) / sizeof(mixed[0]) };

static void test_bf16(void)
{
    const unsigned char want[] = {0x80, 0x3f, 0x00, 0xc0, 0x80, 0x3f,
                                  0x82, 0x3f, 0x81, 0x3f, 0x80, 0x7f};
    const struct ddp__st_tensor *a, *b;
    unsigned char got[14] = {0};
    struct ddp__st_file *f;
    float x[7];

    is_int(ddp__st_write(path, MIXED, mixed), 0, "BF16 and F32 are written");
    if (!ok(ddp__st_open(&f, path) == 0, "and open"))
        return;
    a = ddp__st_find(f, "a");
    b = ddp__st_find(f, "b");
    ok(a && a->type == DDP__ST_BF16 && a->end - a->begin == 14 && b &&
           b->type == DDP__ST_F32,
       "with their types");
    is_int(b->begin, 0, "the larger type first, so that it is aligned");
    pread(f->fd, got, sizeof(got), (off_t)(f->data + a->begin));
    ok(!memcmp(got, want, sizeof(want)),
       "BF16 is rounded to nearest, halves to even");
    ok(ddp__st_read_f32(a, x, 7) == 0 && isnan(x[6]), "a NaN remains one");
    ddp__st_close(f);
}

static void test_bad_output(void)
{
    struct ddp__st_out twice[] = {outs[1], outs[1]}, one = outs[1];
    char missing[200];

    is_int(ddp__st_write(path, 2, twice), DDP_EINVAL, "two of one name");
    one.name = "\xff";
    is_int(ddp__st_write(path, 1, &one), DDP_EINVAL, "a name not UTF-8");
    one.name = "__metadata__";
    is_int(ddp__st_write(path, 1, &one), DDP_EINVAL, "a reserved name");
    one.name = NULL;
    is_int(ddp__st_write(path, 1, &one), DDP_EINVAL, "no name");
    one = outs[1];
    one.type = DDP__ST_F16;
    is_int(ddp__st_write(path, 1, &one), DDP_EINVAL, "a type not written");
    one.type = DDP__ST_F32;
    one.name = "x";
    one.dim[0] = -1;
    is_int(ddp__st_write(path, 1, &one), DDP_EINVAL, "a negative dimension");
    one.dim[0] = INT64_MAX;
    is_int(ddp__st_write(path, 1, &one), DDP_EINVAL, "too large a one");
    snprintf(missing, sizeof(missing), "%s/no/such/folder.st", dir);
    is_int(ddp__st_write(missing, 1, outs + 1), DDP_EIO, "no folder");
    is_int(files_in_dir(), 1, "none of them leaves anything");
}

/* As on a full disk: writes fail after 64 KiB. */
static void test_full_disk(void)
{
    struct stat before, after;
    int status, left;
    pid_t pid;

    ddp__st_write(path, 1, outs + 1);
    stat(path, &before);
    fflush(stdout);
    if ((pid = fork()) == 0) {
        struct rlimit limit = {65536, 65536};

        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        _exit(ddp__st_write(path, OUTS, outs) == DDP_EIO &&
                      strstr(ddp_errmsg(), "cannot be written: File too large")
                  ? 0
                  : 1);
    }
    waitpid(pid, &status, 0);
    is_int(status, 0, "a write that fails half way reports the reason");
    stat(path, &after);
    ok(before.st_ino == after.st_ino && before.st_size == after.st_size &&
           opens() == 0,
       "and leaves the old file as it was");
    left = files_in_dir();
    is_int(left, 1, "and no other");

    if (geteuid() == 0)
        skip(1, "root may write anywhere");
    else {
        chmod(dir, 0500);
        is_int(ddp__st_write(path, 1, outs), DDP_EIO, "a folder without leave");
        chmod(dir, 0700);
    }
}

/* ---- against Python ----------------------------------------------------- */

static const char *interpreter;

static bool python(const char *code)
{
    char command[4096];

    snprintf(command, sizeof(command), "%s -c '%s' %s 2>/dev/null", interpreter,
             code, path);
    fflush(stdout);
    return system(command) == 0;
}

static void test_python(void)
{
    ddp__st_write(path, OUTS, outs);
    if (!(interpreter = oracle_python("json struct"))) {
        skip(1, "no python3");
    } else {
        ok(python("import json, struct, sys\n"
                  "b = open(sys.argv[1], \"rb\").read()\n"
                  "n = struct.unpack(\"<Q\", b[:8])[0]\n"
                  "h = json.loads(b[8:8 + n]); d = b[8 + n:]\n"
                  "assert h.pop(\"__metadata__\") == {\"format\": \"pt\"}\n"
                  "assert len(h) == 5\n"
                  "t = h[\"fc.bias\"]; o = t[\"data_offsets\"]\n"
                  "assert t[\"shape\"] == [3] and t[\"dtype\"] == \"F32\"\n"
                  "v = struct.unpack(\"<3f\", d[o[0]:o[1]])\n"
                  "w = [(i - 30000) * 0.37 for i in (17, 18, 19)]\n"
                  "assert all(abs(a - b) < 1e-3 for a, b in zip(v, w))\n"
                  "at = 0\n"
                  "for o in sorted(t[\"data_offsets\"] for t in h.values()):\n"
                  "    assert o[0] == at; at = o[1]\n"
                  "assert at == len(d)\n"),
           "Python reads the file by the format's description");
    }
    if (!(interpreter = oracle_python("safetensors numpy"))) {
        skip(3, "no python3 with safetensors and numpy (DDP_PYTHON names "
                "one)");
        return;
    }
    ok(python("import sys, safetensors.numpy as s\n"
              "t = s.load_file(sys.argv[1])\n"
              "assert len(t) == 5\n"
              "assert t[\"layer1.0.conv1.weight\"].shape == (10, 7, 100, 10)\n"
              "assert abs(t[\"fc.bias\"][1] + 29982 * 0.37) < 1e-2\n"),
       "the safetensors module reads it");
    ok(python("import sys, numpy as n, safetensors.numpy as s\n"
              "s.save_file({\"a\": n.arange(6, dtype=\"f4\").reshape(2, 3),"
              " \"h\": n.ones(3, \"f2\")}, sys.argv[1])\n") &&
           opens() == 0,
       "and what it writes opens");
    ddp__st_write(path, MIXED, mixed);
    ok(python("import sys, safetensors as s\n"
              "f = s.safe_open(sys.argv[1], \"np\")\n"
              "t = {k: f.get_slice(k).get_dtype() for k in f.keys()}\n"
              "assert t == {\"a\": \"BF16\", \"b\": \"F32\"}, t\n"),
       "of both types too");
}

int main(void)
{
    if (!mkdtemp(dir))
        bail_out("cannot make a folder");
    snprintf(path, sizeof(path), "%s/x.safetensors", dir);
    test_golden();
    test_types();
    test_cases();
    test_lengths();
    test_shortened();
    test_lists();
    test_round_trip();
    test_header();
    test_bf16();
    test_bad_output();
    test_full_disk();
    test_python();
    unlink(path);
    rmdir(dir);
    return done_testing();
}
