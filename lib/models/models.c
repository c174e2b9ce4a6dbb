/* models.c - models by name
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "models/models.h"

/* In the order of their names; options that only some support. */
static const struct {
    const struct ddp__model *models;
    bool width, stem, depth, no_dropout;
} family[] = {
    {.models = ddp__airbench_models, .width = true, .no_dropout = true},
    {.models = ddp__alexnet_models},
    {.models = ddp__densenet_models},
    {.models = ddp__efficientnet_models, .depth = true},
    {.models = ddp__googlenet_models},
    {.models = ddp__inception_v2_models, .no_dropout = true},
    {.models = ddp__inception_v3_models},
    {.models = ddp__mlp_models, .no_dropout = true},
    {.models = ddp__mobilenet_models},
    {.models = ddp__resnet9_models, .width = true, .no_dropout = true},
    {.models = ddp__resnet_models,
     .width = true,
     .stem = true,
     .no_dropout = true},
    {.models = ddp__squeezenet_models},
    {.models = ddp__vgg_models},
};
enum { FAMILIES = sizeof(family) / sizeof(family[0]) };

/* The i-th model, and its family. */
static const struct ddp__model *nth_model(int i, int *of)
{
    for (*of = 0; i >= 0 && *of < FAMILIES; ++*of)
        for (const struct ddp__model *m = family[*of].models; m->name; m++)
            if (i-- == 0)
                return m;
    return NULL;
}

static const struct ddp__model *find_model(const char *name, int *of)
{
    const struct ddp__model *m;

    for (int i = 0; name && (m = nth_model(i, of)); i++)
        if (strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

const char *ddp_model_name(int i)
{
    int of;
    const struct ddp__model *m = nth_model(i, &of);

    return m ? m->name : NULL;
}

static int size_of(const struct ddp__model *m)
{
    return m->images.size ? m->images.size : 224;
}

int ddp_model_size(const char *name)
{
    int of;
    const struct ddp__model *m = find_model(name, &of);

    return m ? size_of(m) : 0;
}

static void fail_unknown(const char *name)
{
    char list[900] = "";
    const char *other;

    for (int i = 0; (other = ddp_model_name(i)); i++) {
        size_t n = strlen(list);

        snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "", other);
    }
    ddp__fail(DDP_EINVAL, "unknown model '%.64s'; available: %s",
              name ? name : "NULL", list);
}

int ddp_model_image_options(const char *name, struct ddp_image_options *o)
{
    int of;
    const struct ddp__model *m = find_model(name, &of);

    if (!o)
        return ddp__fail(DDP_EINVAL, "there are no image options to set");
    if (!m) {
        fail_unknown(name ? name : "(null)");
        return DDP_EINVAL;
    }
    o->size = size_of(m);
    o->resize = m->images.resize;
    o->interpolation = m->images.interpolation;
    for (int i = 0; i < 3 && m->images.centred; i++)
        o->mean[i] = o->std[i] = 0.5f;
    return 0;
}

static const struct ddp_model_options defaults = {
    .struct_size = sizeof(defaults),
    .classes = 1000,
    .in_channels = 3,
    .width = 64,
    .dropout = DDP_MODEL_RATE,
    .stochastic_depth = DDP_MODEL_RATE,
};

void ddp_model_options_init_sized(struct ddp_model_options *o, size_t size)
{
    ddp__options_init(o, size, &defaults, sizeof(defaults));
}

/* Of dropout and stochastic depth the layers check the upper end. */
static bool is_rate(float rate)
{
    return rate >= 0 || rate == DDP_MODEL_RATE;
}

/* Reject options that a family does not support: if they were ignored, a run
 * with the wrong network would be noticed late, if at all. */
static bool options_valid(const char *name, int of,
                          const struct ddp_model_options *o)
{
    if (o->classes < 1 || o->in_channels < 1 || o->width < 1) {
        ddp__fail(DDP_EINVAL,
                  "model %s: %d classes, %d channels, width %d, "
                  "expected positive numbers",
                  name, o->classes, o->in_channels, o->width);
        return false;
    }
    if (!is_rate(o->dropout) || !is_rate(o->stochastic_depth)) {
        ddp__fail(DDP_EINVAL,
                  "model %s: dropout %g, stochastic depth %g: expected 0 or "
                  "more, or DDP_MODEL_RATE",
                  name, (double)o->dropout, (double)o->stochastic_depth);
        return false;
    }
    if ((o->width != defaults.width && !family[of].width) ||
        ((o->small_stem || o->zero_init_residual) && !family[of].stem)) {
        ddp__fail(DDP_EINVAL,
                  "model %s: does not support width, small_stem or "
                  "zero_init_residual; only resnets do",
                  name);
        return false;
    }
    if ((o->dropout > 0 && family[of].no_dropout) ||
        (o->stochastic_depth > 0 && !family[of].depth)) {
        ddp__fail(DDP_EINVAL, "model %s: does not support %s", name,
                  o->dropout > 0 && family[of].no_dropout ? "dropout"
                                                          : "stochastic depth");
        return false;
    }
    return true;
}

ddp_chain_t *ddp_model_new(const char *name,
                           const struct ddp_model_options *given)
{
    struct ddp_model_options o = defaults;
    const struct ddp__model *m;
    int of;

    if (!(m = find_model(name, &of))) {
        fail_unknown(name);
        return NULL;
    }
    if (ddp__options_copy(&o, sizeof(o), given, "ddp_model_options") < 0 ||
        !options_valid(name, of, &o))
        return NULL;
    return m->make(&o, m->kind);
}
