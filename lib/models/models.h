/* models.h - the named models: one file per family, all listed in models.c
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_MODELS_H
#define DDP_MODELS_H

#include "ddp_layer.h"
#include "layers/defaults.h"

/* The images that torchvision's weights of a model expect. */
struct ddp__images {
    int size;   /* of the square; 0: 224 */
    int resize; /* short side before the crop; 0: size * 8 / 7 */
    enum ddp_interpolation interpolation;
    bool centred; /* values are scaled to -1..1, not by ImageNet's mean and
                     deviation; torchvision's transform_input */
};

/* A network of a family; a table of them ends with a NULL name. */
struct ddp__model {
    const char *name;
    ddp_chain_t *(*make)(const struct ddp_model_options *o, const void *kind);
    const void *kind; /* the family's description of it */
    struct ddp__images images;
};

/* X (family): each file defines the table ddp__<family>_models. */
#define DDP__MODEL_FAMILIES(X)                                                 \
    X(airbench)                                                                \
    X(alexnet)                                                                 \
    X(densenet)                                                                \
    X(efficientnet)                                                            \
    X(googlenet)                                                               \
    X(inception_v2)                                                            \
    X(inception_v3)                                                            \
    X(mlp)                                                                     \
    X(mobilenet)                                                               \
    X(resnet9)                                                                 \
    X(resnet)                                                                  \
    X(squeezenet)                                                              \
    X(vgg)

#define X(family) extern const struct ddp__model ddp__##family##_models[];
DDP__MODEL_FAMILIES(X)
#undef X

#endif
