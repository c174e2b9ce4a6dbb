/* mlp.c - dense layers with ReLU between them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "models/models.h"
#include "models/parts.h"

/* Widths from o->sizes: input, hidden ones; then the classes. */
static ddp_chain_t *mlp_new(const struct ddp_model_options *o, const void *kind)
{
    static const int default_sizes[] = {784, 256, 128, 0};
    const int *size = o->sizes ? o->sizes : default_sizes;
    ddp_chain_t *c = ddp_chain_new(ddp_flatten_new(), DDP_END);

    (void)kind;
    for (; size[0] && size[1]; size++) {
        ddp_chain_add(c, ddp_dense_new(size[0], size[1], NULL));
        ddp_chain_add(c, ddp_relu_new());
    }
    ddp_chain_add(c, ddp_dense_new(size[0], o->classes, NULL));
    return ddp__chain_done(c);
}

const struct ddp__model ddp__mlp_models[] = {
    {"mlp", mlp_new, NULL, {28, 0, DDP_BILINEAR, false}},
    {0},
};
