/* parts.h - parts that families of networks share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_MODELS_PARTS_H
#define DDP_MODELS_PARTS_H

#include "ddp_layer.h"

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

/* The requested probability, or the network's for DDP_MODEL_RATE. */
float ddp__rate(float asked, float preset);

/* End a list of ddp_chain_add(): the chain, or NULL when one has failed. */
ddp_chain_t *ddp__chain_done(ddp_chain_t *c);

#endif
