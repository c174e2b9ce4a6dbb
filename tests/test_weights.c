/* test_weights.c - weights to files and back, and files that do not fit
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "defaults.h"
#include "oracle.h"
#include "tap.h"
#include "weights/safetensors.h"
#include "weights/safetensors_write.h"

static char dir[] = "/tmp/ddp-weights-XXXXXX";
static char path[128];

static ddp_chain_t *small(int in, int out)
{
    return ddp_chain_new(
        ddp_layer_set_name(
            ddp_conv_new(in, 4, 3,
                         &(struct ddp_conv_options){CONV_DEFAULTS, .pad = 1}),
            "conv"),
        ddp_layer_set_name(ddp_batch_norm_new(4, NULL), "norm"), ddp_relu_new(),
        ddp_global_mean_pool_new(),
        ddp_layer_set_name(ddp_dense_new(4, out, NULL), "head"), DDP_END);
}

static uint32_t sum(ddp_chain_t *c)
{
    uint32_t crc = 0;

    ok(ddp_chain_checksum(c, &crc) == 0, "a checksum");
    return crc;
}

/* A file of chain c of other weights. */
static void put(ddp_chain_t *c, uint64_t seed)
{
    if (!c || ddp_chain_init(c, seed) < 0 || ddp_chain_save(c, path, NULL) < 0)
        bail_out("%s", ddp_errmsg());
    ddp_chain_free(c);
}

/* ---- there and back ----------------------------------------------------- */

static void test_round_trip(void)
{
    ddp_chain_t *a = small(3, 10), *b = small(3, 10);
    struct ddp_load_report r;

    ddp_chain_init(a, 1);
    ddp_chain_init(b, 2);
    ok(sum(a) != sum(b), "two chains of other weights");
    is_int(ddp_chain_save(a, path, NULL), 0, "one is saved");
    is_int(ddp_chain_load(b, path, NULL, &r), 0, "and loaded");
    ok(sum(a) == sum(b), "the other has the same weights then, to the bit");
    is_int(r.loaded, 8, "all tensors");
    ok(!r.missing && !r.unexpected && !r.new_head && !r.text[0],
       "and nothing to report");
    ddp_chain_free(a);
    ddp_chain_free(b);
}

/* In BF16 a value keeps 8 bits: it is off by at most 2^-8 of itself. */
static void test_bf16(void)
{
    ddp_chain_t *a = small(3, 10), *b = small(3, 10);
    struct ddp_save_options o = {SAVE_DEFAULTS, .dtype = DDP_BF16};
    float x[108], y[108];
    bool near = true, other = false;
    struct ddp__st_file *f;

    ddp_chain_init(a, 1);
    is_int(ddp_chain_save(a, path, &o), 0, "saved in BF16");
    if (ok(ddp__st_open(&f, path) == 0, "the file opens"))
        for (int i = 0; i < f->n; i++)
            near = near && f->tensor[i].type == DDP__ST_BF16;
    ok(near, "all tensors are BF16");
    ddp__st_close(f);
    is_int(ddp_chain_load(b, path, NULL, NULL), 0, "it loads");
    ddp_chain_get(a, "conv.weight", x, 108);
    ddp_chain_get(b, "conv.weight", y, 108);
    for (int i = 0; i < 108; i++) {
        near = near && fabsf(x[i] - y[i]) <= fabsf(x[i]) * 0x1p-8f;
        other = other || x[i] != y[i];
    }
    ok(near && other, "and has rounded values");
    o.dtype = DDP_I32;
    is_int(ddp_chain_save(a, path, &o), DDP_EINVAL, "not in I32");
    ddp_chain_free(a);
    ddp_chain_free(b);
}

/* ---- what does not fit -------------------------------------------------- */

/* Loading path into c has to fail with this code and these words, and to
 * leave the weights as they were. */
static void refused(ddp_chain_t *c, const struct ddp_load_options *o, int code,
                    const char *what, const char *const *word)
{
    uint32_t before = sum(c);
    bool all = true;

    is_int(ddp_chain_load(c, path, o, NULL), code, "%s: refused", what);
    for (; *word; word++)
        if (!strstr(ddp_errmsg(), *word)) {
            diag("\"%s\" is not in: %s", *word, ddp_errmsg());
            all = false;
        }
    ok(all, "%s: the message names the tensors", what);
    ok(sum(c) == before, "%s: the weights are as they were", what);
}
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_strict(void)
{
    struct ddp_load_options partial = {LOAD_DEFAULTS, .partial = true};
    ddp_chain_t *c = small(3, 10), *m;

    put(ddp_chain_new(ddp_layer_set_name(ddp_dense_new(4, 10, NULL), "head"),
                      ddp_layer_set_name(ddp_dense_new(10, 2, NULL), "more"),
                      DDP_END),
        1);
    refused(c, NULL, DDP_EDATA, "another network",
            WORDS("6 missing", "conv.weight", "and 3 more", "2 unexpected",
                  "more.bias", path));
    put(small(5, 7), 1);
    refused(c, NULL, DDP_ESHAPE, "other shapes",
            WORDS("3 of a different shape",
                  "conv.weight (4, 5, 3, 3), expected (4, 3",
                  "head.weight (7, 4), expected (10, 4)",
                  "head.bias (7), expected (10)"));
    refused(c, &partial, DDP_ESHAPE, "other shapes, partial",
            WORDS("head.bias"));
    m = ddp_model_new("resnet18",
                      &(struct ddp_model_options){MODEL_DEFAULTS, .width = 4});
    refused(m, NULL, DDP_EDATA, "quite another",
            WORDS("102 missing: conv1.weight, bn1.weight", "and 99 more"));
    refused(m, &partial, DDP_EDATA, "no part of it fits",
            WORDS("102 missing", "8 unexpected: "));
    ddp_chain_free(m);
    unlink(path);
    refused(c, NULL, DDP_EIO, "no file", WORDS(path));
    is_int(ddp_chain_load(NULL, path, NULL, NULL), DDP_EINVAL, "no chain");
    ddp_chain_free(c);
}

/* Say in the file that its first tensor has whole numbers of 32 bits. */
static void spoil_type(void)
{
    FILE *f = fopen(path, "r+");
    char text[4096], *type;
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

    text[n] = '\0';
    if (n < 8 || !(type = strstr(text + 8, "F32")) ||
        fseek(f, type - text, SEEK_SET) != 0 || fputc('U', f) == EOF)
        bail_out("%s cannot be changed", path);
    fclose(f);
}

/* A file whose header is good, with a tensor that cannot be read. */
static void test_unreadable(void)
{
    ddp_chain_t *c = small(3, 10), *none = small(3, 10), *never = small(3, 10);

    put(small(3, 10), 1);
    spoil_type();
    refused(c, NULL, DDP_EDATA, "a tensor of U32",
            WORDS("is U32, which cannot be read as f32"));
    is_int(ddp_chain_load(none, path, NULL, NULL), DDP_EDATA,
           "nor does a chain without values load it");
    ok(sum(none) == sum(never), "which then gets its initial ones");
    ddp_chain_free(c);
    ddp_chain_free(none);
    ddp_chain_free(never);
}

static void test_partial(void)
{
    struct ddp_load_options partial = {LOAD_DEFAULTS, .partial = true};
    ddp_chain_t *c = small(3, 10), *a;
    struct ddp_load_report r;
    float before[4], after[4], w[40], want[40];

    ddp_chain_init(c, 1);
    a = ddp_chain_new(ddp_layer_set_name(ddp_dense_new(4, 10, NULL), "head"),
                      ddp_layer_set_name(ddp_dense_new(10, 2, NULL), "more"),
                      DDP_END);
    ddp_chain_init(a, 2);
    ddp_chain_get(a, "head.weight", want, 40);
    ddp_chain_save(a, path, NULL);
    ddp_chain_free(a);
    ddp_chain_get(c, "conv.bias", before, 4);
    is_int(ddp_chain_load(c, path, &partial, &r), 0, "a part is taken");
    ok(r.loaded == 2 && r.missing == 6 && r.unexpected == 2,
       "2 tensors of 8, 2 skipped");
    ok(strstr(r.text, "6 missing: conv.weight") &&
           strstr(r.text, "2 skipped: more.bias"),
       "and the report names it");
    ddp_chain_get(c, "head.weight", w, 40);
    ddp_chain_get(c, "conv.bias", after, 4);
    ok(!memcmp(w, want, sizeof(w)), "what is there has the file's values");
    ok(!memcmp(before, after, sizeof(before)), "what is missing its old ones");
    ddp_chain_free(c);
}

/* PyTorch's counter of batches, as a scalar of I64, is no surprise. */
static void test_counter(void)
{
    const float zero[4] = {0}, one[4] = {1, 1, 1, 1};
    struct ddp__st_out out[] = {
        {"norm.weight", 1, {4}, one, DDP__ST_F32},
        {"norm.bias", 1, {4}, zero, DDP__ST_F32},
        {"norm.running_mean", 1, {4}, zero, DDP__ST_F32},
        {"norm.running_var", 1, {4}, one, DDP__ST_F32},
        {"norm.num_batches_tracked", 0, {0}, zero, DDP__ST_F32},
    };
    ddp_chain_t *c = ddp_chain_new(
        ddp_layer_set_name(ddp_batch_norm_new(4, NULL), "norm"), DDP_END);

    ddp__st_write(path, 5, out);
    is_int(ddp_chain_load(c, path, NULL, NULL), 0,
           "num_batches_tracked is accepted");
    out[4].name = "norm.my_num_batches_tracked";
    ddp__st_write(path, 5, out);
    is_int(ddp_chain_load(c, path, NULL, NULL), DDP_EDATA,
           "but nothing that ends like it");
    ddp_chain_free(c);
}

static void test_new_head(void)
{
    struct ddp_load_options head = {LOAD_DEFAULTS, .new_head = true};
    ddp_chain_t *c = small(3, 10), *other;
    float before[40], after[40], w[108], want[108];
    struct ddp_load_report r;

    ddp_chain_init(c, 1);
    other = small(3, 1000);
    ddp_chain_init(other, 2);
    ddp_chain_get(other, "conv.weight", want, 108);
    ddp_chain_save(other, path, NULL);
    ddp_chain_free(other);
    refused(c, NULL, DDP_ESHAPE, "1000 classes, without leave",
            WORDS("head.weight (1000, 4), expected (10, 4)"));
    ddp_chain_get(c, "head.weight", before, 40);
    is_int(ddp_chain_load(c, path, &head, &r), 0,
           "1000 classes into 10, with it");
    ok(r.new_head && r.loaded == 6, "all but the head is loaded");
    is_str(r.text,
           "head has 1000 outputs in the file and 10 here: it keeps its "
           "initial values",
           "the report has it");
    ddp_chain_get(c, "conv.weight", w, 108);
    ddp_chain_get(c, "head.weight", after, 40);
    ok(!memcmp(w, want, sizeof(w)), "the rest has the file's values");
    ok(!memcmp(before, after, sizeof(before)), "the head its old ones");
    put(small(5, 7), 3);
    refused(c, &head, DDP_ESHAPE, "another input too",
            WORDS("1 of a different shape: conv.weight"));
    put(small(3, 10), 4);
    is_int(ddp_chain_load(c, path, &head, &r), 0, "as many classes");
    ok(!r.new_head && r.loaded == 8, "then the head is loaded like the rest");
    ddp_chain_free(c);
}

/* A head that is a convolution; one with other inputs; a norm at the end. */
static void test_other_heads(void)
{
    struct ddp_load_options head = {LOAD_DEFAULTS, .new_head = true};
    struct ddp_load_report r;
    ddp_chain_t *c =
        ddp_chain_new(ddp_conv_new(3, 8, 1, NULL), ddp_conv_new(8, 5, 1, NULL),
                      ddp_global_mean_pool_new(), DDP_END);

    put(ddp_chain_new(ddp_conv_new(3, 8, 1, NULL), ddp_conv_new(8, 9, 1, NULL),
                      ddp_global_mean_pool_new(), DDP_END),
        1);
    is_int(ddp_chain_load(c, path, &head, &r), 0, "a convolution as head");
    ok(r.new_head && r.loaded == 2, "keeps its values");
    put(ddp_chain_new(ddp_conv_new(3, 8, 1, NULL), ddp_conv_new(7, 9, 1, NULL),
                      ddp_global_mean_pool_new(), DDP_END),
        1);
    refused(c, &head, DDP_ESHAPE, "a head with other inputs",
            WORDS("1.weight (9, 7, 1, 1), expected (5, 8, 1, 1)"));
    ddp_chain_free(c);
    c = ddp_chain_new(ddp_batch_norm_new(4, NULL), DDP_END);
    put(ddp_chain_new(ddp_batch_norm_new(5, NULL), DDP_END), 1);
    refused(c, &head, DDP_ESHAPE, "a norm is no head", WORDS("0.weight"));
    ddp_chain_free(c);
    c = ddp_dense_new(3, 4, NULL);
    put(ddp_dense_new(3, 2, NULL), 1);
    is_int(ddp_chain_load(c, path, &head, &r), 0, "a layer alone");
    ok(strstr(r.text, "the last layer has 2 outputs"), "without a name");
    ddp_chain_free(c);
}

/* ---- PyTorch ------------------------------------------------------------ */

/* Whether all parameters of c are the script's part/NAME, to the bit. */
static bool same(const struct oracle *o, ddp_chain_t *c, const char *part)
{
    struct ddp_param_info p;
    int n = 0, good = 0;

    for (; ddp_chain_param(c, n, &p) == 0; n++) {
        const struct oracle_tensor *t = oracle_find(o, "%s/%s", part, p.name);
        float *x = calloc(p.len, sizeof(*x));

        good += t && t->len == p.len &&
                ddp_chain_get(c, p.name, x, p.len) == 0 &&
                !memcmp(x, t->data, p.len * sizeof(*x));
        free(x);
    }
    return n > 0 && good == n;
}

/* Conversions to f32 that are exact, but that of F64. */
static bool same_types(const struct oracle *o, const char *file)
{
    struct ddp__st_file *f;
    bool good = ddp__st_open(&f, file) == 0 && f->n == 5;

    for (int i = 0; good && i < 5; i++) {
        const struct ddp__st_tensor *t = &f->tensor[i];
        const struct oracle_tensor *w = oracle_find(o, "types/%s", t->name);
        float x[6];

        good = w && ddp__st_read_f32(t, x, 6) == 0 &&
               !memcmp(x, w->data, sizeof(x));
    }
    ddp__st_close(f);
    return good;
}

static void test_pytorch(void)
{
    const char *python = oracle_python("torch torchvision safetensors");
    ddp_chain_t *c = ddp_model_new(
        "resnet18", &(struct ddp_model_options){MODEL_DEFAULTS, .classes = 10});
    struct oracle *o;
    char file[160];

    if (!python) {
        skip(6, "no python3 with torch, torchvision and safetensors "
                "(DDP_PYTHON names one)");
        ddp_chain_free(c);
        return;
    }
    snprintf(file, sizeof(file), "%s/weights.safetensors", dir);
    ddp_chain_init(c, 5);
    ddp_chain_save(c, file, NULL);
    if (!(o = oracle_new_by(python, "oracle_weights.py", dir)))
        bail_out("oracle_weights.py failed");
    ok(same(o, c, "ours"),
       "torchvision takes our weights by the documented recipe, to the bit");
    snprintf(file, sizeof(file), "%s/model.safetensors", dir);
    is_int(ddp_chain_load(c, file, NULL, NULL), 0, "its own go into ours");
    ok(same(o, c, "theirs"), "to the bit");
    ddp_chain_init(c, 6);
    snprintf(file, sizeof(file), "%s/model.safetensors.index.json", dir);
    is_int(ddp_chain_load(c, file, NULL, NULL), 0,
           "so they do in two files and a list");
    ok(same(o, c, "theirs"), "to the bit");
    snprintf(file, sizeof(file), "%s/types.safetensors", dir);
    ok(same_types(o, file), "F32, F16, BF16, F64 and I64 are read as PyTorch "
                            "converts them");
    oracle_free(o);
    ddp_chain_free(c);
}

static void clean_up(void)
{
    static const char *const name[] = {
        "x.safetensors",
        "weights.safetensors",
        "weights.pth",
        "model.safetensors",
        "model.pth",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "types.safetensors",
    };
    char file[160];

    for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
        snprintf(file, sizeof(file), "%s/%s", dir, name[i]);
        unlink(file);
    }
    rmdir(dir);
}

/* ---- which model they are of -------------------------------------------- */

static void recognised(ddp_chain_t *c, const char *want)
{
    const char *name = "";

    put(c, 1);
    is_int(ddp_weights_model(path, &name), 0, "a file of %s is looked at",
           want ? want : "another network");
    ok(!want ? !name : name && !strcmp(name, want), "and is of %s",
       name ? name : "none");
}

static void test_recognised(void)
{
    static const char *const models[] = {"resnet18", "mobilenet_v2",
                                         "mobilenet_v3_small", "squeezenet1_1",
                                         "efficientnet_b0"};
    struct ddp_model_options o = {MODEL_DEFAULTS, .classes = 7};
    const char *name;

    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++)
        recognised(ddp_model_new(models[i], &o), models[i]);
    o.width = 4;
    o.small_stem = true;
    recognised(ddp_model_new("resnet34", &o), "resnet34");
    recognised(small(3, 10), NULL);
    unlink(path);
    is_int(ddp_weights_model(path, &name), DDP_EIO, "no file");
    ok(!name, "is of no model");
}

/* As torch.save() writes now, and did before version 1.6. */
static void test_pickle(void)
{
    static const unsigned char begin[2][12] = {
        {'P', 'K', 3, 4, 0, 0, 8, 8, 0, 0, 0, 0},
        {0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8}};
    ddp_chain_t *c = small(3, 10);

    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(path, "w");

        if (!f || fwrite(begin[i], sizeof(begin[i]), 1, f) != 1)
            bail_out("cannot write %s", path);
        fclose(f);
        refused(c, NULL, DDP_EDATA, "a file of PyTorch",
                WORDS("torch.save()", "python3 -c", path));
    }
    ddp_chain_free(c);
}

int main(void)
{
    if (!mkdtemp(dir))
        bail_out("cannot make a folder");
    snprintf(path, sizeof(path), "%s/x.safetensors", dir);
    test_round_trip();
    test_bf16();
    test_strict();
    test_unreadable();
    test_partial();
    test_counter();
    test_new_head();
    test_other_heads();
    test_pytorch();
    test_recognised();
    test_pickle();
    clean_up();
    return done_testing();
}
