/* test_convert.c - files of weights as others: names, types, what is left out
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>
#include "defaults.h"
#include "tap.h"
#include "weights/safetensors.h"
#include "weights/safetensors_write.h"

enum { LEN = 6 };
static const float values[LEN] = {1, -2.5f, 3.14159265f, 1e-30f, 65504, -0.f};
static char dir[] = "/tmp/test_convert.XXXXXX";
static char in[64], out[64];

/* Five tensors as a wrapped network and its optimizer leave them. */
static void make_input(void)
{
    static const char *const name[] = {
        "module.conv.weight", "module.fc.bias", "opt.conv.weight.exp_avg",
        "module.bn.num_batches_tracked", "ema.conv.weight"};
    struct ddp__st_out t[5] = {{0}};

    for (int i = 0; i < 5; i++)
        t[i] = (struct ddp__st_out){
            .name = name[i], .ndim = 2, .dim = {2, 3}, .data = values};
    if (ddp__st_write(in, 5, t) < 0)
        bail_out("%s", ddp_errmsg());
}

/* A file of one tensor of integers. */
static void make_integers(void)
{
    static const char head[] =
        "{\"n\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}  ";
    uint64_t len = sizeof(head) - 1;
    FILE *f = fopen(in, "wb");

    if (!f || fwrite(&len, 8, 1, f) != 1 || fwrite(head, len, 1, f) != 1 ||
        fwrite("\1\0\0\0\0\0\0", 8, 1, f) != 1 || fclose(f) != 0)
        bail_out("%s cannot be written", in);
}

/* Whether out has exactly n tensors, and `name` of that type with the values,
 * off by at most `off` of them. */
static bool holds(int n, const char *name, enum ddp__st_type type, double off)
{
    struct ddp__st_file *f = NULL;
    const struct ddp__st_tensor *t;
    float got[LEN];
    bool good = ddp__st_open(&f, out) == 0 && f->n == n &&
                (t = ddp__st_find(f, name)) && t->type == type &&
                t->ndim == 2 && t->dim[0] == 2 && t->dim[1] == 3 &&
                ddp__st_read_f32(t, got, LEN) == 0;

    for (int i = 0; good && i < LEN; i++)
        good = fabs((double)got[i] - values[i]) <= off * fabs(values[i]);
    ddp__st_close(f);
    return good;
}

static void test_convert(void)
{
    struct ddp_convert_options o = {CONVERT_DEFAULTS,
                                    .strip_prefix = "module."};
    struct ddp_convert_report r = {0};

    ok(ddp_weights_convert(in, out, NULL, &r) == 0 && r.written == 2 &&
           r.dropped == 3 && holds(2, "module.conv.weight", DDP__ST_F32, 0),
       "what only training needs is left out");
    ok(ddp_weights_convert(in, out, &o, &r) == 0 && r.renamed == 2 &&
           holds(2, "fc.bias", DDP__ST_F32, 0),
       "a prefix is taken off");
    o.add_prefix = "net.";
    o.drop = "*.bias,module.b*,*exp_avg,ema.*";
    ok(ddp_weights_convert(in, out, &o, &r) == 0 && r.dropped == 4 &&
           holds(1, "net.conv.weight", DDP__ST_F32, 0),
       "patterns select what is dropped, and a prefix is added");
    o.dtype = DDP_BF16; /* 8 bits: half a unit is 2^-9 */
    ok(ddp_weights_convert(in, out, &o, NULL) == 0 &&
           holds(1, "net.conv.weight", DDP__ST_BF16, 0x1p-8),
       "as bf16, rounded");
    ok(!holds(1, "net.conv.weight", DDP__ST_BF16, 0), "which shows");
}

static void test_errors(void)
{
    struct stat before, after;

    unlink(out);
    ok(ddp_weights_convert(
           in, out,
           &(struct ddp_convert_options){CONVERT_DEFAULTS, .drop = "*"},
           NULL) == DDP_EDATA,
       "nothing left: %s", ddp_errmsg());
    ok(ddp_weights_convert(in, out,
                           &(struct ddp_convert_options){
                               CONVERT_DEFAULTS, .strip_prefix = "modul_"},
                           NULL) == DDP_EDATA,
       "a prefix that no name has: %s", ddp_errmsg());
    ok(ddp_weights_convert(in, out,
                           &(struct ddp_convert_options){CONVERT_DEFAULTS,
                                                         .strip_prefix = "ema.",
                                                         .drop = "opt.*"},
                           NULL) == 0 &&
           stat(out, &before) == 0,
       "the averages can be had by their own names");
    ok(ddp_weights_convert(in, out,
                           &(struct ddp_convert_options){
                               CONVERT_DEFAULTS, .strip_prefix = "module.conv.",
                               .add_prefix = "", .dtype = DDP_I32},
                           NULL) == DDP_EINVAL,
       "a type that weights do not have: %s", ddp_errmsg());
    make_integers();
    ok(ddp_weights_convert(in, out, NULL, NULL) == DDP_EDATA &&
           strstr(ddp_errmsg(), "integers"),
       "integers are not weights: %s", ddp_errmsg());
    ok(stat(out, &after) == 0 && before.st_ino == after.st_ino,
       "after a failure the file is as it was");
    unlink(in);
    ok(ddp_weights_convert(in, out, NULL, NULL) == DDP_EIO,
       "a file that is not there: %s", ddp_errmsg());
}

/* ---- metadata ----------------------------------------------------------- */

struct pairs {
    int n, stop;
    char text[256];
};

static int take_pair(const char *key, const char *value, void *arg)
{
    struct pairs *p = arg;
    size_t len = strlen(p->text);

    snprintf(p->text + len, sizeof(p->text) - len, "%s=%s;", key, value);
    return ++p->n == p->stop;
}

/* Words go with the weights into a file and into what is converted from it. */
static void test_metadata(void)
{
    ddp_chain_t *c = ddp_chain_new(ddp_dense_new(2, 3, NULL), DDP_END);
    struct pairs p = {0}, q = {0}, r = {.stop = 1};

    ok(ddp_chain_set_metadata(c, "size", "9") == 0 &&
           ddp_chain_set_metadata(c, "names", "cat\ndog\n\xc3\xa9") == 0 &&
           ddp_chain_set_metadata(c, "size", "16") == 0,
       "metadata: set, and one replaced");
    ok(ddp_chain_set_metadata(c, "format", "x") == DDP_EINVAL &&
           ddp_chain_set_metadata(c, "", "x") == DDP_EINVAL &&
           ddp_chain_set_metadata(c, "a", NULL) == DDP_EINVAL,
       "metadata: without key or value, and PyTorch's own, are refused");
    is_int(ddp_chain_save(c, in, NULL), 0, "metadata: saved");
    is_int(ddp_weights_metadata(in, take_pair, &p), 0, "metadata: read");
    is_str(p.text, "size=16;names=cat\ndog\n\xc3\xa9;", "metadata: as set");
    is_int(ddp_weights_convert(in, out, NULL, NULL), 0, "metadata: converted");
    is_int(ddp_weights_metadata(out, take_pair, &q), 0, "metadata: read again");
    is_str(q.text, p.text, "metadata: the same");
    is_int(ddp_weights_metadata(in, take_pair, &r), DDP_ESTOPPED,
           "metadata: the reader may stop");
    is_int(ddp_chain_set_metadata(c, "bad", "\xff"), DDP_EINVAL,
           "metadata: a value that is not UTF-8 is refused");
    ok(strstr(ddp_errmsg(), "metadata bad: not UTF-8"), "the key is named");
    ddp_chain_free(c);
}

int main(void)
{
    if (!mkdtemp(dir))
        bail_out("no folder under /tmp");
    snprintf(in, sizeof(in), "%s/in", dir);
    snprintf(out, sizeof(out), "%s/out", dir);
    make_input();
    test_convert();
    test_errors();
    test_metadata();
    unlink(in);
    unlink(out);
    rmdir(dir);
    return done_testing();
}
