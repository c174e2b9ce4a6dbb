/* parts.c - what families of models share: units, blocks, classifiers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "models/models.h"
#include "models/parts.h"

ddp_layer_t *ddp__unit_new(int in, int out, int kernel,
                           const struct ddp__unit *u)
{
    struct ddp_conv_options o = u->conv;
    ddp_layer_t *conv, *norm;

    o.no_bias = true;
    conv = ddp_layer_set_name(ddp_conv_new(in, out, kernel, &o),
                              u->named ? "conv" : NULL);
    norm = ddp_layer_set_name(ddp_batch_norm_new(out, &u->norm),
                              u->named ? "bn" : NULL);
    if (u->act == DDP_IDENTITY)
        return ddp_chain_new(conv, norm, DDP_END);
    return ddp_chain_new(conv, norm, ddp_act_new(u->act), DDP_END);
}

int ddp__round_channels(double c)
{
    int rounded = (int)(c + 4) / 8 * 8;

    if (rounded < 8)
        rounded = 8;
    return rounded < 0.9 * c ? rounded + 8 : rounded;
}

float ddp__rate(float asked, float preset)
{
    return asked == DDP_MODEL_RATE ? preset : asked;
}

ddp_chain_t *ddp__chain_done(ddp_chain_t *c)
{
    if (c && c->rc == 0)
        return c;
    ddp_chain_free(c);
    return NULL;
}

ddp_layer_t *ddp__classifier_new(const char *name, int in, int classes,
                                 float dropout, struct ddp_weight_init init)
{
    return ddp_layer_set_name(
        ddp_chain_new(ddp_dropout_new(dropout),
                      ddp_dense_new(in, classes,
                                    &(struct ddp_dense_options){
                                        DDP__DENSE_DEFAULTS, .init = init}),
                      DDP_END),
        name);
}

/* ---- inverted residuals ------------------------------------------------- */

static ddp_layer_t *unit(const struct ddp__mbconv *b, int in, int out,
                         int kernel, int stride, int groups, enum ddp_act act)
{
    return ddp__unit_new(
        in, out, kernel,
        &(struct ddp__unit){.conv = {DDP__CONV_DEFAULTS, .stride = stride,
                                     .pad = kernel / 2, .groups = groups},
                            .norm = b->norm,
                            .act = act});
}

static ddp_layer_t *pointwise(const char *name, int in, int out)
{
    struct ddp_conv_options o = {DDP__CONV_DEFAULTS,
                                 .init = {.zero_bias = true}};

    return ddp_layer_set_name(ddp_conv_new(in, out, 1, &o), name);
}

/* x times a gate computed from the mean of every channel. */
static ddp_layer_t *squeeze_excite(const struct ddp__mbconv *b)
{
    return ddp_channel_scale_new(ddp_layer_set_name(
        ddp_chain_new(ddp_global_mean_pool_new(),
                      pointwise("fc1", b->expanded, b->squeezed),
                      ddp_act_new(b->squeeze),
                      pointwise("fc2", b->squeezed, b->expanded),
                      ddp_act_new(b->gate), DDP_END),
        ""));
}

/* Back to few channels, without an activation. */
static void add_projection(ddp_chain_t *c, const struct ddp__mbconv *b)
{
    if (!b->flat) {
        ddp_chain_add(c, unit(b, b->expanded, b->out, 1, 1, 1, DDP_IDENTITY));
        return;
    }
    ddp_chain_add(c, ddp_conv_new(b->expanded, b->out, 1,
                                  &(struct ddp_conv_options){DDP__CONV_DEFAULTS,
                                                             .no_bias = true}));
    ddp_chain_add(c, ddp_batch_norm_new(b->out, &b->norm));
}

static ddp_layer_t *mbconv_inside(const struct ddp__mbconv *b)
{
    ddp_chain_t *c = ddp_chain_new(DDP_END);
    bool widens = b->expanded != b->in;

    if (b->fused) {
        ddp_chain_add(c, unit(b, b->in, widens ? b->expanded : b->out,
                              b->kernel, b->stride, 1, b->act));
    } else {
        if (widens)
            ddp_chain_add(c, unit(b, b->in, b->expanded, 1, 1, 1, b->act));
        ddp_chain_add(c, unit(b, b->expanded, b->expanded, b->kernel, b->stride,
                              b->expanded, b->act));
        if (b->squeezed)
            ddp_chain_add(c, squeeze_excite(b));
    }
    if (widens || !b->fused)
        add_projection(c, b);
    return ddp_layer_set_name(ddp__chain_done(c), b->name);
}

ddp_layer_t *ddp__mbconv_new(const struct ddp__mbconv *b)
{
    ddp_layer_t *branch = ddp_chain_new(mbconv_inside(b), DDP_END);

    if (b->stride != 1 || b->in != b->out)
        return branch;
    if (branch && b->depth > 0 &&
        ddp_chain_add(branch, ddp_stochastic_depth_new(b->depth)) < 0) {
        ddp_chain_free(branch);
        return NULL;
    }
    return ddp_skip_new(ddp_layer_set_name(branch, ""), DDP_END);
}
