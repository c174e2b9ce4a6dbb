/* test_models.c - named models have torchvision's tensors
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "defaults.h"
#include "ddp.h"
#include "oracle.h"
#include "tap.h"

static const struct oracle *o;

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
    const struct oracle_tensor *t = oracle_find(o, "%s/%s", model, p->name);
    bool same = t && t->len == (size_t)p->ndim;

    for (int d = 0; same && d < p->ndim; d++)
        same = (int)t->data[d] == p->dim[d];
    if (!same)
        diag("%s: %s is not in torchvision's, or has another shape", model,
             p->name);
    return same;
}

static long long trained(ddp_chain_t *c)
{
    struct ddp_param_info p;
    long long sum = 0;

    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++)
        sum += p.role == DDP_RUNNING ? 0 : (long long)p.len;
    return sum;
}

static void test_names(const char *model)
{
    ddp_chain_t *c = ddp_model_new(model, NULL);
    struct ddp_param_info p;
    char prefix[64];
    bool same = c != NULL;
    int n = 0;

    for (; ddp_chain_param(c, n, &p) == 0; n++)
        same = same_shape(model, &p) && same;
    snprintf(prefix, sizeof(prefix), "%s/", model);
    ok(same && n == oracle_count(prefix), "%s: names and shapes of %d tensors",
       model, n);
    ddp_chain_free(c);
}

/* As torchvision documents them; for GoogLeNet that is without auxiliary
 * classifiers. */
static void test_count(const char *model)
{
    const struct oracle_tensor *expected = oracle_find(o, "%s#", model);
    ddp_chain_t *c = ddp_model_new(
        model, &(struct ddp_model_options){
                   MODEL_DEFAULTS, .no_aux = strcmp(model, "googlenet") == 0});

    if (expected)
        is_int(trained(c),
               1000 * (long long)expected->data[0] +
                   (long long)expected->data[1],
               "%s: trained parameters", model);
    ddp_chain_free(c);
}

static void test_images(const char *model)
{
    const struct oracle_tensor *t = oracle_find(o, "%s@", model);
    struct ddp_image_options i = {IMAGE_DEFAULTS};
    int rc = ddp_model_image_options(model, &i);

    if (t)
        ok(rc == 0 && i.size == (int)t->data[0] &&
               (i.resize ? i.resize : i.size * 8 / 7) == (int)t->data[1] &&
               (i.interpolation == DDP_BICUBIC) == (t->data[2] != 0) &&
               i.mean[0] == t->data[3] && i.std[2] == t->data[4],
           "%s: images of %d from %d pixels", model, i.size, (int)t->data[1]);
}

/* Every model there is, and every one of torchvision's families. */
static void test_all(void)
{
    int ours = 0, theirs = 0;
    const char *model;

    for (int i = 0; (model = ddp_model_name(i)); i++) {
        if (strcmp(model, "mlp") == 0 || strcmp(model, "resnet9") == 0)
            continue;
        test_names(model);
        test_count(model);
        test_images(model);
        ours += oracle_find(o, "%s#", model) != NULL;
    }
    for (int i = 0; i < o->tensors; i++)
        theirs += strchr(o->tensor[i].name, '#') != NULL;
    is_int(ours, theirs, "as many as torchvision has in these families");
}

/* ---- how they begin ----------------------------------------------------- */

/* Mean, deviation and largest absolute value. */
static void moments(const float *w, size_t n, double m[3])
{
    double sum = 0, squares = 0, largest = 0;

    for (size_t i = 0; i < n; i++) {
        sum += (double)w[i];
        squares += (double)w[i] * (double)w[i];
        largest = fmax(largest, fabs((double)w[i]));
    }
    m[0] = sum / (double)n;
    m[1] = sqrt(fmax(squares / (double)n - m[0] * m[0], 0));
    m[2] = largest;
}

/* Both are samples of n: means differ by 1.4 sigma / sqrt(n), deviations by
 * less; 6 times that is never met.  The largest of 5000 normal numbers is 3.2
 * to 4.5 sigma, of uniform ones 1.7. */
static bool begins_equal(const double ours[3], const float *theirs, size_t n)
{
    double sigma = (double)theirs[1], by = 6 * 1.4 * sigma / sqrt((double)n);

    return fabs(ours[0] - (double)theirs[0]) <= by + 1e-6 &&
           fabs(ours[1] - sigma) <= by + 1e-6 &&
           (n < 5000 || fabs(ours[2] / (double)theirs[2] - 1) < 0.4);
}

static void test_start(const char *model)
{
    ddp_chain_t *c = ddp_model_new(model, NULL);
    struct ddp_param_info p;
    bool same = c && ddp_chain_init(c, 5) == 0;

    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++) {
        const struct oracle_tensor *t = oracle_find(o, "%s^%s", model, p.name);
        float *w = calloc(p.len, sizeof(*w));
        double m[3];

        ddp_chain_get(c, p.name, w, p.len);
        moments(w, p.len, m);
        if (p.role != DDP_RUNNING && (!t || !begins_equal(m, t->data, p.len))) {
            diag("%s: mean %g, deviation %g, largest %g", p.name, m[0], m[1],
                 m[2]);
            same = false;
        }
        free(w);
    }
    ok(same, "%s: weights begin as torchvision's", model);
    ddp_chain_free(c);
}

static void test_starts(void)
{
    test_start("densenet121");
    test_start("efficientnet_b0");
    test_start("mobilenet_v3_small");
    test_start("resnext50_32x4d");
    test_start("squeezenet1_1");
}

/* Other classes and channels change the first and the last tensor only. */
static void test_options(void)
{
    ddp_chain_t *a = ddp_model_new("densenet121", NULL);
    ddp_chain_t *b = ddp_model_new(
        "densenet121", &(struct ddp_model_options){MODEL_DEFAULTS, .classes = 7,
                                                   .in_channels = 1});

    is_int(trained(a) - trained(b), 2 * 49 * 64 + 993 * 1025,
           "one channel in, seven classes");
    ddp_chain_free(a);
    ddp_chain_free(b);
}

int main(void)
{
    struct oracle *read;

    if (oracle_missing())
        skip_all("%s", oracle_missing());
    if (!(o = read = oracle_new("oracle_models.py", NULL)))
        bail_out("oracle_models.py failed");
    test_all();
    test_options();
    test_starts();
    oracle_free(read);
    return done_testing();
}
