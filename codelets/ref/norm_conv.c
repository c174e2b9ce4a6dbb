/* norm_conv.c - convolutions of a batch norm, in plain C
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the convolution reads is rounded to the type of activations, as if the
 * norm had written it.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "act.h"
#include "backend.h"
#include "base/error.h"
#include "ref.h"

/* y = act(bn(x)) */
static void normalise(const struct ddp__task *t, struct ddp__ref_buf *y)
{
    const struct ddp__conv *k = &t->call->conv;
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__NORM_CONV_FWD_X);
    size_t c = (size_t)x.c, len = ddp__len(t, DDP__NORM_CONV_FWD_X);
    const float *scale = t->data[DDP__NORM_CONV_FWD_BN], *shift = scale + c;
    const float *mean = t->data[DDP__NORM_CONV_FWD_STAT], *var = mean + c;

    for (size_t i = 0; i < len; i++) {
        size_t j = i % c;
        double z = scale[j] / sqrt((double)var[j] + k->eps) *
                       (ddp__ref_read(&x, i) - mean[j]) +
                   shift[j];

        ddp__ref_write(y, i, ddp__ref_act(k->norm_act, z));
    }
}

static int run(const struct ddp__task *t, int (*conv)(const struct ddp__task *))
{
    struct ddp__ref_buf y = ddp__ref_buf(t, DDP__NORM_CONV_FWD_X);
    struct ddp__task of_y = *t;
    int rc;

    y.data =
        malloc(ddp__len(t, DDP__NORM_CONV_FWD_X) * ddp__dtype_size(y.type));
    if (!y.data)
        return ddp__fail(DDP_ENOMEM, "out of memory for what a norm gives");
    normalise(t, &y);
    of_y.data[DDP__NORM_CONV_FWD_X] = y.data;
    rc = conv(&of_y);
    free(y.data);
    return rc;
}

int ddp__ref_norm_conv_fwd(const struct ddp__task *t)
{
    return run(t, ddp__ref_conv_fwd);
}

int ddp__ref_norm_conv_bwd_w(const struct ddp__task *t)
{
    return run(t, ddp__ref_conv_bwd_w);
}

/* The gradient in between is not rounded. */
int ddp__ref_norm_conv_bwd_x(const struct ddp__task *t)
{
    float *dy = malloc(ddp__len(t, DDP__NORM_CONV_BWD_X_DX) * sizeof(*dy));
    struct ddp__call c = *t->call, bn;
    struct ddp__task conv = *t, norm;
    int rc;

    if (!dy)
        return ddp__fail(DDP_ENOMEM, "out of memory for a gradient");
    c.buf[DDP__NORM_CONV_BWD_X_DX].type = DDP_F32;
    conv.call = &c;
    conv.data[DDP__NORM_CONV_BWD_X_DX] = dy;
    norm = ddp__norm_of_conv(t, dy, &bn);
    if ((rc = ddp__ref_conv_bwd_x(&conv)) == 0)
        rc = ddp__ref_bn_bwd(&norm);
    free(dy);
    return rc;
}
