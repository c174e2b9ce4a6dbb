/* models.c - models by name */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "graph.h"
#include "models.h"

static const struct {
    const char *name;
    ddp_chain_t *(*make)(const struct ddp_model_options *o);
} model[] = {
    {"mlp", ddp__mlp_new},
    {"resnet9", ddp__resnet9_new},
    {"resnet18", ddp__resnet18_new},
    {"resnet34", ddp__resnet34_new},
    {"resnet50", ddp__resnet50_new},
    {"resnet101", ddp__resnet101_new},
    {"resnet152", ddp__resnet152_new},
};
enum { MODELS = sizeof(model) / sizeof(model[0]) };

const char *ddp_model_name(int i)
{
    return i >= 0 && i < MODELS ? model[i].name : NULL;
}

static void unknown(const char *name)
{
    char list[256] = "";

    for (int i = 0; i < MODELS; i++) {
        size_t n = strlen(list);

        snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "",
                 model[i].name);
    }
    ddp__fail(DDP_EINVAL, "model %s: no such one; choose one of %s", name,
              list);
}

ddp_chain_t *ddp_model_new(const char *name, const struct ddp_model_options *o)
{
    struct ddp_model_options full = o ? *o : (struct ddp_model_options){0};

    if (full.classes < 0 || full.in_channels < 0 || full.width < 0) {
        ddp__fail(DDP_EINVAL,
                  "model %s: %d classes, %d channels, width %d: "
                  "must be positive",
                  name, full.classes, full.in_channels, full.width);
        return NULL;
    }
    if (!full.classes)
        full.classes = 1000;
    if (!full.in_channels)
        full.in_channels = 3;
    for (int i = 0; i < MODELS; i++)
        if (strcmp(model[i].name, name) == 0)
            return model[i].make(&full);
    unknown(name);
    return NULL;
}
