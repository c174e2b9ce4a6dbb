/* test_models.c - named models have torchvision's tensors
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdlib.h>
#include <string.h>
#include "ddp.h"
#include "oracle.h"
#include "tap.h"

static const struct oracle *o;

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
    const struct oracle_tensor *t = oracle_find(o, "%s/%s", model, p->name);
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
        snprintf(prefix, sizeof(prefix), "%s/", models[k].name);
        ok(same && n == oracle_count(prefix),
           "%s: names and shapes of %d tensors", models[k].name, n);
        is_int((long long)trained, (long long)models[k].params,
               "%s: trained parameters", models[k].name);
        ddp_chain_free(c);
    }
}

int main(void)
{
    struct oracle *read;

    if (oracle_missing())
        skip_all("%s", oracle_missing());
    if (!(o = read = oracle_new("oracle_models.py", NULL)))
        bail_out("oracle_models.py failed");
    test_names();
    oracle_free(read);
    return done_testing();
}
