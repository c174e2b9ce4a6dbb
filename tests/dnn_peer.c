/* dnn_peer.c - oneDNN's primitives for what an operation of a row does
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/conv/plan_shape.h"
#include "dnn_images.h"
#include "dnn_peer.h"
#include "dnn_steps.h"
#include "tap.h"

struct dnn_peer {
    struct dnn_steps dnnl; /* of operations on images; and memory of all */
    /* Convolutions and dense layers are by the library's own wrapper. */
    struct ddp__dnn *dnn;
    bool keeps;    /* weights are packed once */
    bool gradient; /* of weights: it is packed, and unpacked after */
    void *x, *w, *bias, *y, *packed, *scratch;
    enum check_role role; /* of the result */
};

/* ---- layers with weights ------------------------------------------------ */

static struct ddp__conv_shape shape_of(const struct check *k)
{
    struct ddp_shape x = k->row.x, y = k->row.y;
    struct ddp__conv_shape s = {.type = k->dtype,
                                .n = k->row.cap,
                                .h = x.h,
                                .w = x.w,
                                .c = x.c,
                                .oh = y.h,
                                .ow = y.w,
                                .o = y.c,
                                .conv = k->row.call.conv};

    s.conv.bias |= k->row.family == CHECK_CONV_NORM;
    s.dense = k->row.family == CHECK_DENSE;
    if (s.dense) /* of one pixel */
        s.conv = (struct ddp__conv){.kh = 1,
                                    .kw = 1,
                                    .sh = 1,
                                    .sw = 1,
                                    .dh = 1,
                                    .dw = 1,
                                    .groups = 1,
                                    .bias = k->row.call.dense.bias};
    return s;
}

/* w with its taps in the other order. */
static void *turned_weights(struct dnn_peer *p, const struct check *k)
{
    const struct check_tensor *w = &k->tensor[ROLE_W];
    int taps = k->row.call.conv.kh * k->row.call.conv.kw;
    size_t c = (size_t)(k->row.x.c / k->row.call.conv.groups);
    float *to = dnn_own(&p->dnnl, w->size);

    for (int i = 0; i < k->row.y.c * taps; i++) {
        int from = i / taps * taps + taps - 1 - i % taps;

        memcpy(to + (size_t)i * c, (float *)w->data + (size_t)from * c,
               c * sizeof(*to));
    }
    return to;
}

/* oneDNN 2 has a faster data gradient where strides are 1: the forward pass
 * with turned weights. */
static bool new_layer(struct dnn_peer *p, struct check *k,
                      enum ddp__conv_pass pass)
{
    struct ddp__conv_shape s = shape_of(k), turned;
    bool turn = pass == DDP__BWD_X && ddp__plan_transpose(&s, &turned);
    struct check_tensor *dx = &k->tensor[ROLE_DX], *g = &k->tensor[ROLE_G];

    if (ddp__dnn_new(&p->dnn, turn ? &turned : &s, turn ? DDP__FWD : pass,
                     turn) < 0)
        return false;
    p->keeps = k->row.family == CHECK_CONV_NORM;
    p->packed = dnn_own(&p->dnnl, ddp__dnn_packed_size(p->dnn));
    p->scratch = dnn_own(&p->dnnl, ddp__dnn_scratch(p->dnn));
    p->bias = dnn_own(&p->dnnl, (size_t)s.o * sizeof(float));
    p->x = k->tensor[ROLE_X].data;
    p->y = k->tensor[pass == DDP__FWD ? ROLE_Y : ROLE_DY].data;
    p->w = turn ? turned_weights(p, k) : k->tensor[ROLE_W].data;
    if (pass == DDP__FWD)
        p->dnnl.result = p->y = dnn_own(&p->dnnl, k->tensor[ROLE_Y].size);
    else if (pass == DDP__BWD_W)
        p->dnnl.result = p->w = dnn_own(&p->dnnl, g->size);
    else if (turn)
        p->x = p->y, p->dnnl.result = p->y = dnn_own(&p->dnnl, dx->size);
    else
        p->dnnl.result = p->x = dnn_own(&p->dnnl, dx->size);
    if (p->keeps)
        ddp__dnn_pack(p->dnn, p->w, p->packed, p->scratch);
    p->gradient = pass == DDP__BWD_W;
    if (p->gradient && s.conv.bias)
        p->bias = (char *)p->w + g->size - (size_t)s.o * sizeof(float);
    return true;
}

static void run_layer(struct dnn_peer *p)
{
    int rc = 0;

    if (!p->gradient && !p->keeps)
        rc = ddp__dnn_pack(p->dnn, p->w, p->packed, p->scratch);
    if (rc == 0)
        rc = ddp__dnn_run(p->dnn, p->x, p->packed, p->bias, p->y, p->scratch);
    if (rc == 0 && p->gradient)
        rc = ddp__dnn_pack(p->dnn, p->packed, p->w, p->scratch);
    if (rc < 0)
        bail_out("%s", ddp_errmsg());
}

/* ---- all of it ---------------------------------------------------------- */

static bool open_peer(struct dnn_peer *p, struct check *k, enum ddp__op op)
{
    bool forward = op == check_kinds[k->row.family].op[0];
    bool weights = ddp__op_is(op, DDP__IS_BWD_W);

    p->role = forward ? ROLE_Y : weights ? ROLE_G : ROLE_DX;
    switch (k->row.family) {
    case CHECK_MAX_POOL:
    case CHECK_MEAN_POOL:
        dnn_pool_new(&p->dnnl, k, !forward);
        return true;
    case CHECK_ACT:
        dnn_act_new(&p->dnnl, k, !forward);
        return true;
    case CHECK_BN:
        dnn_norm_new(&p->dnnl, k, !forward);
        return true;
    default:
        return new_layer(p, k,
                         forward   ? DDP__FWD
                         : weights ? DDP__BWD_W
                                   : DDP__BWD_X);
    }
}

struct dnn_peer *dnn_peer_new(struct check *k, enum ddp__op op)
{
    struct dnn_peer *p = calloc(1, sizeof(*p));

    if (!p)
        bail_out("out of memory");
    dnn_start();
    if (open_peer(p, k, op))
        return p;
    dnn_peer_free(p);
    return NULL;
}

void dnn_peer_free(struct dnn_peer *p)
{
    if (!p)
        return;
    ddp__dnn_free(p->dnn);
    dnn_steps_free(&p->dnnl);
    free(p);
}

void dnn_peer_run(struct dnn_peer *p)
{
    if (p->dnn)
        run_layer(p);
    for (int i = 0; i < p->dnnl.steps; i++)
        dnn_step_run(&p->dnnl.step[i]);
}

double dnn_peer_differs(const struct dnn_peer *p, struct check *k)
{
    struct check_tensor *ours = &k->tensor[p->role], theirs = *ours;

    theirs.data = p->dnnl.result;
    return check_compare(ours, &theirs, 0, check_len(ours, k->row.cap), 0).norm;
}
