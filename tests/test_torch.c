/* test_torch.c - ResNets against torchvision's
 *
 * What f32 should give is what f64 gives, and how far off it may be is what
 * PyTorch's own f32 is off: sums in another order differ by a few 2^-24, and
 * every batch norm may amplify that, since it divides by the deviation of what
 * comes in; a value close to 0 then lands on the other side of a ReLU, and its
 * whole gradient comes or goes.  No fixed bound holds for that, but both
 * implementations are struck alike.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "ddp.h"
#include "oracle.h"
#include "tap.h"

enum { STEPS = 20, BATCH = 8 };

static ddp_t *ddp;
static const struct oracle *o;
static int width; /* of the network that is trained for STEPS */

/* ---- models ------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t params; /* as torchvision's documentation has them */
} models[] = {
    {"resnet18", 11689512},  {"resnet34", 21797672},  {"resnet50", 25557032},
    {"resnet101", 44549160}, {"resnet152", 60192808},
};

/* How many of the script's tensors begin with this. */
static int oracle_count(const char *prefix)
{
    int n = 0;

    for (int i = 0; i < o->tensors; i++)
        n += strncmp(o->tensor[i].name, prefix, strlen(prefix)) == 0;
    return n;
}

static bool same_shape(const char *model, const struct ddp_param_info *p)
{
    const struct oracle_tensor *t =
        oracle_find(o, "names/%s/%s", model, p->name);
    bool same = t && t->len == (size_t)p->ndim;

    for (int d = 0; same && d < p->ndim; d++)
        same = (int)t->data[d] == p->dim[d];
    if (!same)
        diag("%s: %s is not in torchvision's, or has another shape", model,
             p->name);
    return same;
}

static void test_names(void)
{
    for (size_t k = 0; k < sizeof(models) / sizeof(models[0]); k++) {
        ddp_chain_t *c = ddp_model_new(models[k].name, NULL);
        struct ddp_param_info p;
        char prefix[32];
        size_t trained = 0;
        bool same = true;
        int n = 0;

        for (; ddp_chain_param(c, n, &p) == 0; n++) {
            same = same_shape(models[k].name, &p) && same;
            trained += p.role == DDP_RUNNING ? 0 : p.len;
        }
        snprintf(prefix, sizeof(prefix), "names/%s/", models[k].name);
        ok(same && n == oracle_count(prefix),
           "%s: names and shapes of %d tensors", models[k].name, n);
        is_int((long long)trained, (long long)models[k].params,
               "%s: trained parameters", models[k].name);
        ddp_chain_free(c);
    }
}

static ddp_chain_t *resnet18(void)
{
    ddp_chain_t *c = ddp_model_new("resnet18", NULL);

    if (c && ddp_chain_load(c, o->weights) == 0)
        return c;
    diag("%s", ddp_errmsg());
    ddp_chain_free(c);
    return NULL;
}

/* A model with the parameters that the script has for a part. */
static ddp_chain_t *model_of(const char *part, const char *name, int channels)
{
    ddp_chain_t *c = ddp_model_new(
        name, &(struct ddp_model_options){.width = channels});
    struct ddp_param_info p;

    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++) {
        const struct oracle_tensor *t = oracle_find(o, "%s/p/%s", part, p.name);

        if (t && ddp_chain_set(c, p.name, t->data, t->len) == 0)
            continue;
        diag("%s/p/%s: %s", part, p.name, ddp_errmsg());
        ddp_chain_free(c);
        return NULL;
    }
    return c;
}

/* ---- samples ------------------------------------------------------------ */

static int get(void *arg, int64_t i, uint64_t key, struct ddp_sample *s)
{
    const char *part = arg;
    const struct oracle_tensor *x = oracle_find(o, "%s/x", part);
    size_t len = x->len / (size_t)x->dim[0];

    (void)key;
    memcpy(s->x, x->data + (size_t)i * len, len * sizeof(float));
    s->label = (int32_t)oracle_find(o, "%s/label", part)->data[i];
    return 0;
}

static ddp_dataset_t *samples_of(const char *part)
{
    const struct oracle_tensor *x = oracle_find(o, "%s/x", part);

    return ddp_dataset_callback(&(struct ddp_source){
        .count = x->dim[0],
        .shape = {x->dim[1], x->dim[2], x->dim[3]},
        .type = DDP_F32,
        .classes = 1000,
        .get = get,
        .arg = (void *)part,
    });
}

static ddp_trainer_t *trainer_of(ddp_chain_t *c, ddp_dataset_t *d,
                                 enum ddp_dtype dtype)
{
    struct ddp_optimizer momentum = ddp_momentum(0.05f, 0.9f);
    int64_t n = ddp_dataset_count(d);

    momentum.weight_decay = 1e-4f;
    momentum.decay_all = true;
    return ddp_trainer_new(
        ddp, c, d,
        &(struct ddp_train_config){.loss = DDP_LOGIT_CROSS_ENTROPY,
                                   .label_smoothing = 0.1f,
                                   .optimizer = momentum,
                                   .sub_batch = n < BATCH ? (int)n : BATCH,
                                   .batch = n < BATCH ? (int)n : BATCH,
                                   .dtype = dtype,
                                   .order = DDP_IN_ORDER,
                                   .keep_weights = true});
}

/* ---- evaluation --------------------------------------------------------- */

/* Nothing is divided by a batch's deviation here: 20 layers of sums of up to
 * 4608 products, each off by 70 * 2^-24 at most, give 8e-5. */
static void test_evaluation(const char *backend)
{
    ddp_chain_t *c = resnet18();

    for (int i = 0; i < 2; i++) {
        const struct oracle_tensor *x = oracle_find(o, "eval/x%d", i);
        const struct oracle_tensor *y = oracle_find(o, "eval/y%d", i);
        float *got = calloc(y->len, sizeof(*got));
        struct ddp_shape in = {x->dim[1], x->dim[2], x->dim[3]};
        int rc = c ? ddp_forward(ddp, c, x->data, DDP_F32, in, x->dim[0], 1,
                                 got)
                   : -1;

        ok(rc == 0, "%s: ResNet-18 on %d x %d: %s", backend, in.h, in.w,
           rc ? ddp_errmsg() : "runs");
        diag("logits off %g", oracle_distance(got, y->data, y->len));
        is_near(oracle_distance(got, y->data, y->len), 0, 1e-4,
                "%s: ResNet-18 on %d x %d: logits", backend, in.h, in.w);
        free(got);
    }
    ddp_chain_free(c);
}

/* ---- gradients ---------------------------------------------------------- */

/* How far gradients are off, all together and the worst tensor, in units of
 * what PyTorch is off by itself. */
struct off {
    double ours, theirs; /* of all gradients as one vector, relative */
    double worst;
    char worst_name[160];
};

static bool measure(ddp_trainer_t *t, ddp_chain_t *c, const char *part,
                    const char *yardstick, struct off *off)
{
    double ours = 0, theirs = 0, all = 0;
    struct ddp_param_info p;

    off->worst = 0;
    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++) {
        const struct oracle_tensor *want, *by;
        float *got = calloc(p.len, sizeof(*got));
        double norm, d;

        if (p.role == DDP_RUNNING) {
            free(got);
            continue;
        }
        want = oracle_find(o, "%s/g/%s", part, p.name);
        by = oracle_find(o, "%s/%s/%s", part, yardstick, p.name);
        norm = oracle_distance(want->data, got, p.len);
        if (ddp_trainer_gradient(t, p.name, got, p.len) < 0) {
            free(got);
            return false;
        }
        d = oracle_distance(got, want->data, p.len);
        all += norm * norm;
        ours += norm * norm * d * d;
        theirs += norm * norm * (double)by->data[0] * (double)by->data[0];
        if (!(d / (double)by->data[0] <= off->worst)) {
            off->worst = d / (double)by->data[0];
            snprintf(off->worst_name, sizeof(off->worst_name),
                     "%s, off by %.2g", p.name, d);
        }
        free(got);
    }
    off->ours = sqrt(ours / all);
    off->theirs = sqrt(theirs / all);
    diag("%s: off by %.3g, PyTorch by %.3g; worst tensor: %.3g times (%s)",
         part, off->ours, off->theirs, off->worst, off->worst_name);
    return true;
}

static void test_gradients(const char *part, const char *name, ddp_chain_t *c)
{
    const struct oracle_tensor *loss = oracle_find(o, "%s/loss", part);
    ddp_dataset_t *d = samples_of(part);
    ddp_trainer_t *t = c ? trainer_of(c, d, DDP_F32) : NULL;
    struct ddp_metrics m = {0};
    struct off off;
    bool done = t && ddp_gradients(t, &m) == 0;

    ok(done, "%s: gradients: %s", name, done ? "run" : ddp_errmsg());
    if (done && measure(t, c, part, "e", &off)) {
        is_near(m.loss, (double)loss->data[0], 1e-5 * (double)loss->data[0],
                "%s: loss", name);
        ok(off.ours <= 2 * off.theirs, "%s: gradients as good as PyTorch's",
           name);
        ok(off.worst <= 4, "%s: each of them", name);
    }
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
}

/* bf16 has 8 bits: what PyTorch's autocast is off by is the yardstick. */
static void test_bf16_gradients(void)
{
    ddp_chain_t *c = resnet18();
    ddp_dataset_t *d = samples_of("train");
    ddp_trainer_t *t = c ? trainer_of(c, d, DDP_BF16) : NULL;
    const struct oracle_tensor *loss = oracle_find(o, "train/loss");
    struct ddp_metrics m = {0};
    struct off off;

    if (c && !t) {
        skip(3, "%s", ddp_errmsg());
    } else {
        ok(t && ddp_gradients(t, &m) == 0 && measure(t, c, "train", "b", &off),
           "ResNet-18, bf16: gradients");
        is_near(m.loss, (double)loss->data[0], 2e-2, "ResNet-18, bf16: loss");
        ok(off.ours <= 2 * off.theirs,
           "ResNet-18, bf16: gradients as good as PyTorch's");
        ok(off.worst <= 4, "ResNet-18, bf16: each of them");
    }
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
}

/* ---- steps -------------------------------------------------------------- */

static void test_trace(enum ddp_dtype dtype)
{
    const struct oracle_tensor *loss = oracle_find(o, "trace/loss");
    const struct oracle_tensor *off = oracle_find(o, "trace/off");
    ddp_chain_t *c = model_of("trace", "resnet18", width);
    ddp_dataset_t *d = samples_of("trace");
    ddp_trainer_t *t = trainer_of(c, d, dtype);
    struct ddp_metrics m;

    for (int k = 0; t && k < STEPS; k++) {
        if (ddp_step(t, &m) < 0) {
            diag("%s", ddp_errmsg());
            break;
        }
        diag("step %d loss %.6f want %.6f off %.2e torch32 %.2e", k, m.loss,
             (double)loss->data[k], m.loss - (double)loss->data[k],
             (double)off->data[k]);
    }
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
}

int main(void)
{
    bool all = getenv("DDP_LONG") != NULL;
    char arg[16];

    if (oracle_missing())
        skip_all("%s", oracle_missing());
    width = all ? 64 : 16;
    snprintf(arg, sizeof(arg), "%d", width);
    if (!(o = oracle_new("oracle_resnet.py", arg)))
        bail_out("oracle_resnet.py failed");
    if (!(ddp = ddp_init(NULL)))
        bail_out("%s", ddp_errmsg());
    test_names();
    test_evaluation("cpu");
    test_gradients("slim18", "slim ResNet-18",
                   model_of("slim18", "resnet18", 16));
    test_gradients("slim50", "slim ResNet-50",
                   model_of("slim50", "resnet50", 8));
    test_gradients("train", "ResNet-18", resnet18());
    test_gradients("deep", "ResNet-50", model_of("deep", "resnet50", 0));
    test_bf16_gradients();
    test_trace(DDP_F32);
    test_trace(DDP_BF16);
    ddp_finish(ddp);
    oracle_free((struct oracle *)o);
    return done_testing();
}
