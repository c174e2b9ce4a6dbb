/* models.h - the named models: one file per family, all listed in models.c
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_MODELS_H
#define DDP_MODELS_H

#include "ddp_layer.h"

/* A network of a family; a table of them ends with a NULL name. */
struct ddp__model {
    const char *name;
    ddp_chain_t *(*make)(const struct ddp_model_options *o, const void *kind);
    const void *kind; /* the family's description of it */
    int size;         /* of the images it is trained on; 0: 224 */
};

extern const struct ddp__model ddp__alexnet_models[];
extern const struct ddp__model ddp__densenet_models[];
extern const struct ddp__model ddp__efficientnet_models[];
extern const struct ddp__model ddp__googlenet_models[];
extern const struct ddp__model ddp__inception_v2_models[];
extern const struct ddp__model ddp__inception_v3_models[];
extern const struct ddp__model ddp__mlp_models[];
extern const struct ddp__model ddp__mobilenet_models[];
extern const struct ddp__model ddp__resnet9_models[];
extern const struct ddp__model ddp__resnet_models[];
extern const struct ddp__model ddp__squeezenet_models[];
extern const struct ddp__model ddp__vgg_models[];

/* ---- parts that families share ------------------------------------------ */

/* A convolution without bias, its norm, an activation. */
struct ddp__unit {
    struct ddp_conv_options conv;
    struct ddp_batch_norm_options norm;
    enum ddp_act act;
    bool named; /* "conv" and "bn", else "0" and "1" */
};
ddp_layer_t *ddp__unit_new(int in, int out, int kernel,
                           const struct ddp__unit *u);

/* A convolution from few channels to many, depthwise, and to few again, with
 * x added where shapes allow it: MobileNets' and EfficientNets' block. */
struct ddp__mbconv {
    const char *name; /* of what is inside the block */
    int in, expanded, out;
    int kernel, stride;
    int squeezed;         /* channels of squeeze-excite; 0: none */
    enum ddp_act act;     /* EfficientNet: also in squeeze-excite */
    enum ddp_act squeeze; /* inside squeeze-excite, and of its gate */
    enum ddp_act gate;
    struct ddp_batch_norm_options norm;
    float depth; /* stochastic; 0: none */
    bool flat;   /* the last convolution and norm are siblings of the units */
    bool fused;  /* one k x k convolution instead of the first two */
};
ddp_layer_t *ddp__mbconv_new(const struct ddp__mbconv *b);

/* The nearest multiple of 8, at most a tenth less. */
int ddp__round_channels(double c);

/* The end of most networks: dropout and a dense layer, a chain of this name. */
ddp_layer_t *ddp__classifier_new(const char *name, int in, int classes,
                                 float dropout, struct ddp_weight_init init);

/* The requested value, or the network's default. */
float ddp__rate(float asked, float preset);

/* End a list of ddp_chain_add(): the chain, or NULL when one has failed. */
ddp_chain_t *ddp__chain_done(ddp_chain_t *c);

#endif
