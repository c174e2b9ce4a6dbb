/* test_zoo.c - networks against torchvision's, with the same weights
 *
 * oracle_zoo.py makes weights for which no value is near the kink of an
 * activation, so that f32 gradients can be compared closely: at most 3 times
 * as far off as PyTorch's own f32 in the worst of six orders of adding up, all
 * together, and 5 times for a tensor (of which some have 16 elements; one order
 * alone is right by luck in some of them, and was 17 times better).  GoogLeNet
 * and Inception v2 have a pool in every module, where two of nine values may be
 * so close that the other one is the largest in f32: one of N windows that does
 * so changes 1 / sqrt(N) of a gradient, and there are 10^4 and more.
 *
 * Evaluation divides by nothing that comes from a batch: sums of up to 25088
 * products and 100 layers of them are within 1e-4.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "defaults.h"
#include "oracle.h"
#include "tap.h"
#include "torch_part.h"

enum { CLASSES = 10, BATCH = 4 };

static ddp_t *ddp;
static const struct oracle *o;

/* Small ones; only evaluation where a step needs large images.  AlexNet and VGG
 * have no small ones: what is special in them, columns of flattened pixels, is
 * in GoogLeNet's auxiliary classifiers too. */
static const char quick[] =
    "airbench,densenet121,efficientnet_b0,googlenet,inception_v2,"
    "inception_v3-eval,mobilenet_v2,mobilenet_v3_small,resnext50_32x4d-slim,"
    "squeezenet1_1";

/* A script's model: its part of the file, without the options. */
struct model {
    char part[64], name[64];
    bool slim, gradients;
};

static struct model model_of(const char *asked, size_t len)
{
    struct model m = {.gradients = true};
    char *end;

    snprintf(m.part, sizeof(m.part), "%.*s", (int)len, asked);
    if ((end = strstr(m.part, "-eval"))) {
        *end = '\0';
        m.gradients = false;
    }
    snprintf(m.name, sizeof(m.name), "%s", m.part);
    if ((end = strstr(m.name, "-slim"))) {
        *end = '\0';
        m.slim = true;
    }
    return m;
}

static ddp_chain_t *chain_of(const struct model *m)
{
    ddp_chain_t *c = ddp_model_new(
        m->name,
        &(struct ddp_model_options){MODEL_DEFAULTS, .classes = CLASSES,
                                    .width = m->slim ? 32 : 64, .dropout = 0,
                                    .stochastic_depth = 0});

    if (c && torch_set(o, m->part, c))
        return c;
    diag("%s: %s", m->part, ddp_errmsg());
    ddp_chain_free(c);
    return NULL;
}

static void test_evaluation(const struct model *m, ddp_chain_t *c)
{
    const struct oracle_tensor *x = oracle_find(o, "%s/eval/x", m->part);
    const struct oracle_tensor *y = oracle_find(o, "%s/eval/y", m->part);
    float *got = calloc(y->len, sizeof(*got));
    struct ddp_shape in = {x->dim[1], x->dim[2], x->dim[3]};
    int rc = ddp_chain_forward(ddp, c, x->data, DDP_F32, in, x->dim[0], 1, got);

    if (rc < 0)
        diag("%s", ddp_errmsg());
    is_near(rc < 0 ? INFINITY : oracle_distance(got, y->data, y->len), 0, 1e-4,
            "%s on %d x %d: logits", m->part, in.h, in.w);
    free(got);
}

static void test_gradients(const struct model *m, ddp_chain_t *c)
{
    char part[80];
    const struct torch_samples samples = {o, part, CLASSES};
    struct ddp_metrics now = {0};
    bool pools =
        !strcmp(m->name, "googlenet") || !strcmp(m->name, "inception_v2");
    struct torch_off off;
    ddp_dataset_t *d;
    ddp_trainer_t *t;
    double loss;

    snprintf(part, sizeof(part), "%s/train", m->part);
    loss = (double)oracle_find(o, "%s/loss", part)->data[0];
    d = torch_samples(&samples);
    t = torch_trainer(ddp, c, d, DDP_F32, BATCH);
    if (!t || ddp_trainer_gradients(t, &now) < 0 ||
        !torch_measure(o, t, c, part, "e", &off)) {
        ok(0, "%s: gradients: %s", m->part, ddp_errmsg());
    } else {
        is_near(now.loss, loss, 1e-5 * loss, "%s: loss", m->part);
        ok(pools ? off.ours <= 1e-2
                 : off.ours <= 3 * off.theirs && off.worst <= 5,
           "%s: gradients%s", m->part, pools ? "" : " as good as PyTorch's");
    }
    ddp_trainer_free(t);
    ddp_dataset_free(d);
}

static void test_model(const struct model *m)
{
    ddp_chain_t *c = chain_of(m);

    ok(c != NULL, "%s can be made", m->part);
    if (c)
        test_evaluation(m, c);
    if (c && m->gradients)
        test_gradients(m, c);
    ddp_chain_free(c);
}

/* Models of a list with commas.  Workers that wait spin, so that there are none
 * while the script runs. */
static void test_list(const char *list)
{
    struct oracle *read = oracle_new("oracle_zoo.py", list);

    if (!(o = read))
        bail_out("oracle_zoo.py %s failed", list);
    if (!(ddp = ddp_init(NULL)))
        bail_out("%s", ddp_errmsg());
    while (*list) {
        size_t len = strcspn(list, ",");
        struct model m = model_of(list, len);

        test_model(&m);
        list += len + (list[len] == ',');
    }
    ddp_finish(ddp);
    oracle_free(read);
}

/* A step of a family's smallest network stands for the others. */
static bool has_step(const char *name)
{
    static const char *const smallest[] = {"alexnet",      "efficientnet_v2_s",
                                           "inception_v3", "squeezenet1_0",
                                           "vgg11",        "wide_resnet50_2"};

    for (size_t i = 0; i < sizeof(smallest) / sizeof(smallest[0]); i++)
        if (strcmp(name, smallest[i]) == 0)
            return true;
    return false;
}

/* All of them, one at a time: some have 500 MB. */
static void test_all(void)
{
    const char *name;
    char asked[80];

    for (int i = 0; (name = ddp_model_name(i)); i++) {
        if (strcmp(name, "mlp") == 0 || strcmp(name, "resnet9") == 0)
            continue;
        snprintf(asked, sizeof(asked), "%s%s", name,
                 has_step(name) ? "" : "-eval");
        test_list(asked);
    }
}

int main(void)
{
    const char *only = getenv("DDP_ZOO"); /* another list, for looking */

    if (oracle_missing())
        skip_all("%s", oracle_missing());
    test_list(only ? only : quick);
    if (getenv("DDP_LONG"))
        test_all();
    return done_testing();
}
