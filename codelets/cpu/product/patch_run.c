/* patch_run.c - tasks of a convolution as a product of patches
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * patch.c has oneDNN's figures.
 */
#include "config.h"

#include "cpu/conv/plan_variant.h"
#include "cpu/cpu.h"
#include "cpu/elementwise/act.h"
#include "cpu/thread.h"
#include "patch_copy.h"
#include "patch_run.h"
#include "skinny.h"

/* ---- weights ------------------------------------------------------------ */

/* How weights are packed, a group at a time. */
struct pack_source {
    const struct ddp__patch *patch;
    const struct ddp__dnn *dnn;
    const float *w;
};

static size_t packed_size(const struct ddp__dnn *d)
{
    return ddp__align(ddp__dnn_packed_size(d));
}

static int pack_group(const void *arg, void *to, int part)
{
    const struct pack_source *f = arg;
    size_t at = ddp__align(ddp__dnn_scratch(f->dnn));
    char *scratch, *packed = (char *)to + (size_t)part * packed_size(f->dnn);
    float *w;

    if (ddp__dnn_is_plain(f->dnn)) {
        ddp__patch_crop(f->patch, (size_t)part, f->w, (float *)(void *)packed);
        return 0;
    }
    scratch = ddp__scratch(at + ddp__patch_out(f->patch) *
                                    ddp__patch_len(f->patch) * sizeof(float));
    if (!scratch)
        return DDP_ENOMEM;
    w = (float *)(void *)(scratch + at);
    ddp__patch_crop(f->patch, (size_t)part, f->w, w);
    return ddp__dnn_pack(f->dnn, w, packed, scratch);
}

/* ---- running ------------------------------------------------------------ */

/* A task's memory: of the primitive, and of one group. */
struct room {
    char *scratch, *patches, *columns, *packed;
    float *plain, *bias, *sum;
    int *pixel;
};

static size_t room_of(const struct ddp__patch *p, const struct ddp__dnn *d,
                      int n, char *base, struct room *r)
{
    const struct ddp__conv_shape *s = &p->layer;
    size_t size = ddp__dtype_size(s->type), rows = (size_t)(n * s->oh * s->ow);
    size_t at[] = {
        ddp__dnn_scratch(d),
        rows * ddp__patch_len(p) * size,
        rows * ddp__patch_out(p) * size,
        packed_size(d),
        ddp__patch_out(p) * ddp__patch_len(p) * sizeof(float),
        ddp__patch_out(p) * sizeof(float),
        (size_t)(s->h * s->w) * ddp__patch_in(p) * sizeof(float),
        ddp__patch_pixels(p) * sizeof(int),
    };
    enum { PARTS = sizeof(at) / sizeof(at[0]) };
    size_t end = 0;

    for (int i = 0; i < PARTS; i++) {
        size_t len = ddp__align(at[i]);

        at[i] = end;
        end += len;
    }
    if (base)
        *r = (struct room){base + at[0],
                           base + at[1],
                           base + at[2],
                           base + at[3],
                           (float *)(void *)(base + at[4]),
                           (float *)(void *)(base + at[5]),
                           (float *)(void *)(base + at[6]),
                           (int *)(void *)(base + at[7])};
    return end;
}

static int room_new(const struct ddp__patch *p, const struct ddp__dnn *d, int n,
                    struct room *r)
{
    char *base = ddp__scratch(room_of(p, d, n, NULL, NULL));

    if (!base)
        return DDP_ENOMEM;
    room_of(p, d, n, base, r);
    ddp__patch_list_pixels(p, r->pixel);
    return 0;
}

/* y = P W', of one group. */
static int forward_group(const struct ddp__task *t, const struct ddp__plan *p,
                         const struct ddp__dnn *d, const struct room *r,
                         size_t group, char *packed)
{
    const struct ddp__patch *h = &p->patch;
    size_t size = ddp__dtype_size(h->layer.type);
    char *x = t->data[DDP__CONV_FWD_X], *y = t->data[DDP__CONV_FWD_Y];
    float *w = t->data[DDP__CONV_FWD_W];
    bool alone = h->layer.conv.groups == 1;
    int rc;

    if (!h->is_x)
        ddp__patch_gather(h, t->n, r->pixel,
                          x + group * ddp__patch_in(h) * size, r->patches);
    if (h->layer.sum && !alone)
        ddp__patch_copy_columns(h, t->n, r->columns,
                                y + group * ddp__patch_out(h) * size, true);
    rc = ddp__dnn_run(
        d, h->is_x ? x : r->patches, packed,
        h->layer.conv.bias ? w + p->weights + group * ddp__patch_out(h) : NULL,
        alone ? y : r->columns, r->scratch);
    if (!rc && !alone)
        ddp__patch_copy_columns(h, t->n, r->columns,
                                y + group * ddp__patch_out(h) * size, false);
    return rc;
}

/* dP = dY W, of one group, and dx of that. */
static int data_gradient_of_group(const struct ddp__task *t,
                                  const struct ddp__plan *p,
                                  const struct ddp__dnn *d,
                                  const struct room *r, size_t group,
                                  char *packed)
{
    const struct ddp__patch *h = &p->patch;
    size_t size = ddp__dtype_size(h->layer.type);
    char *dx = t->data[DDP__CONV_BWD_X_DX], *dy = t->data[DDP__CONV_BWD_X_DY];
    int rc;

    if (h->layer.conv.groups > 1) {
        ddp__patch_copy_columns(h, t->n, r->columns,
                                dy + group * ddp__patch_out(h) * size, true);
        dy = r->columns;
    }
    rc = ddp__dnn_run(d, h->is_x ? dx : r->patches, packed, NULL, dy,
                      r->scratch);
    if (!rc && !h->is_x)
        ddp__patch_spread(h, t->n, r->pixel, r->patches, r->sum,
                          dx + group * ddp__patch_in(h) * size);
    return rc;
}

/* dW = dY' P, of one group. */
static int weight_gradient_of_group(const struct ddp__task *t,
                                    const struct ddp__plan *p,
                                    const struct ddp__dnn *d,
                                    const struct room *r, size_t group)
{
    const struct ddp__patch *h = &p->patch;
    size_t size = ddp__dtype_size(h->layer.type), o = ddp__patch_out(h);
    char *x = t->data[DDP__CONV_BWD_W_X], *dy = t->data[DDP__CONV_BWD_W_DY];
    float *g = t->data[DDP__CONV_BWD_W_G], *bias = g + p->weights + group * o;
    void *packed = ddp__dnn_is_plain(d) ? (void *)r->plain : r->packed;
    int rc;

    if (!h->is_x)
        ddp__patch_gather(h, t->n, r->pixel,
                          x + group * ddp__patch_in(h) * size, r->patches);
    if (h->layer.conv.groups > 1) {
        ddp__patch_copy_columns(h, t->n, r->columns, dy + group * o * size,
                                true);
        dy = r->columns;
    }
    rc = ddp__dnn_run(d, h->is_x ? x : r->patches, packed,
                      h->layer.conv.bias ? r->bias : NULL, dy, r->scratch);
    if (!rc && !ddp__dnn_is_plain(d))
        rc = ddp__dnn_pack(d, packed, r->plain, r->scratch);
    if (rc < 0)
        return rc;
    ddp__patch_put_gradient(h, group, r->plain, t->accumulate, g);
    if (h->layer.conv.bias && t->accumulate)
        ddp__cpu_add_f32(bias, r->bias, o);
    else if (h->layer.conv.bias)
        memcpy(bias, r->bias, o * sizeof(*bias));
    return 0;
}

/* Forward, or the data gradient: both use packed weights. */
static int run_with_weights(const struct ddp__task *t, struct ddp__plan *p,
                            const struct ddp__dnn *d)
{
    enum { WEIGHT = DDP__CONV_FWD_W };
    _Static_assert((int)DDP__CONV_BWD_X_W == (int)WEIGHT, "one operand");
    const struct ddp__patch *h = &p->patch;
    struct pack_source from = {h, d, t->data[WEIGHT]};
    size_t groups = (size_t)h->layer.conv.groups;
    struct ddp__pack *k;
    struct room r;
    int rc;

    rc = ddp__pack_get(&p->packs, &k, d, t->id[WEIGHT], t->version[WEIGHT],
                       &(struct ddp__packing){pack_group, &from, (int)groups,
                                              groups * packed_size(d), 0});
    if (rc < 0)
        return rc;
    rc = room_new(h, d, t->n, &r);
    for (size_t i = 0; i < groups && !rc; i++) {
        char *packed = (char *)k->data + i * packed_size(d);

        rc = p->pass == DDP__FWD
                 ? forward_group(t, p, d, &r, i, packed)
                 : data_gradient_of_group(t, p, d, &r, i, packed);
    }
    ddp__pack_put(&p->packs, k);
    return rc;
}

/* Where a tap meets n images, and of which outputs. */
static void list_rows(const struct ddp__patch *p, int n, const int *pixel,
                      size_t tap, struct ddp__skinny_tap *to)
{
    const struct ddp__conv_shape *s = &p->layer;
    size_t outs = (size_t)(s->oh * s->ow), taps = ddp__patch_pixels(p) / outs;
    size_t pixels = (size_t)(s->h * s->w), c = (size_t)s->c;

    to->n = 0;
    for (size_t i = 0; i < (size_t)n * outs; i++) {
        int at = pixel[i % outs * taps + tap];

        if (at < 0)
            continue;
        to->row[to->n] = i;
        to->at[to->n++] = (i / outs * pixels + (size_t)at) * c;
    }
}

/* Any pass with weights and their gradients in place. */
static int run_skinny(const struct ddp__task *t, const struct ddp__plan *p)
{
    const struct ddp__patch *h = &p->patch;
    const struct ddp__conv_shape *l = &h->layer;
    struct ddp__conv_shape s = ddp__patch_product(h, t->n);
    size_t taps = (size_t)(h->height * h->width);
    size_t size = ddp__align(ddp__patch_pixels(h) * sizeof(int));
    struct ddp__skinny_tap *tap;
    char *base = ddp__scratch(size + taps * sizeof(*tap));

    if (!base)
        return DDP_ENOMEM;
    tap = (struct ddp__skinny_tap *)(void *)(base + size);
    ddp__patch_list_pixels(h, (int *)(void *)base);
    for (size_t i = 0; i < taps; i++)
        list_rows(h, t->n, (int *)(void *)base, i, &tap[i]);
    return ddp__skinny_run(
        t, &s, p->pass,
        &(struct ddp__skinny_x){(size_t)(t->n * l->h * l->w) * (size_t)l->c,
                                taps, tap});
}

int ddp__patch_run(const struct ddp__task *t, struct ddp__plan *p)
{
    struct ddp__dnn *d;
    struct room r;
    int rc;

    if (p->patch.is_skinny)
        return run_skinny(t, p);
    rc = ddp__plan_primitive(p->product, t->n * p->shape.oh * p->shape.ow, &d);
    if (rc < 0)
        return rc;
    if (p->pass != DDP__BWD_W)
        return run_with_weights(t, p, d);
    rc = room_new(&p->patch, d, t->n, &r);
    for (int i = 0; i < p->shape.conv.groups && !rc; i++)
        rc = weight_gradient_of_group(t, p, d, &r, (size_t)i);
    return rc;
}
