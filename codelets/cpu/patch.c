/* patch.c - convolutions of small images as products of matrices
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One Zen 3 core (AVX2), 3x3; milliseconds of forward and both gradients by
 * oneDNN 2.6's convolutions, and in this way:
 *
 *     64 samples, stride 2, 2x2x256 to 1x1x512    172  205 748    1.1  1.5  1.2
 *     128 samples, stride 1, 1x1x512 to 1x1x512    20   21 113    1.1  1.2  1.8
 *
 * The first needs reference code there (ddp__dnn_is_wrong()).  Errors relative
 * to f64 were 3e-7, 1e-7, 0 and 4e-7, 1e-7, 1e-7; they are 4e-8, 3e-8, 0 and
 * 2e-7, 3e-8, 7e-8.
 *
 * One Zen 5 core under load, the first in bf16, weights packed each time
 * (tests/kernelbench -n SAMPLES patch):
 *
 *     8 samples      0.58 1.00 1.02    0.35 0.37 0.61
 *     32 samples     0.95 1.36 2.15    0.51 0.48 0.64
 *     128 samples    2.31 2.66 6.73    0.64 0.70 0.96
 *
 * Of 8 samples' forward pass most is packing, which a step does once for all
 * its sub-batches; the live taps are copied out first.
 */
#include "config.h"

#include "act.h"
#include "cpu.h"
#include "patch.h"
#include "plan.h"
#include "skinny.h"
#include "thread.h"
#include "wino_kind.h"

/* Rows of any convolution that has few, its channels, and weights for more. */
enum { FEW = 40, LEAST = 64, LARGE = 1 << 20 };

/* ---- geometry ----------------------------------------------------------- */

/* The pixel that a tap of an output sees, which may lie outside the image. */
static int seen(int output, int tap, int stride, int dilation, int pad)
{
    return output * stride - pad + tap * dilation;
}

/* From the first tap that meets the image to the last one; there is at least
 * one, so that no matrix is empty. */
static void live_taps(int in, int out, int kernel, int stride, int dilation,
                      int pad, int *first, int *count)
{
    int end = 0;

    *first = kernel;
    for (int i = 0; i < kernel; i++)
        for (int j = 0; j < out; j++) {
            int at = seen(j, i, stride, dilation, pad);

            if (at < 0 || at >= in)
                continue;
            *first = i < *first ? i : *first;
            end = i + 1;
        }
    *first = end ? *first : 0;
    *count = end ? end - *first : 1;
}

/* Whether the taps of output 0, of which so many are live, see the image once,
 * pixel by pixel. */
static bool sees_all(int in, int stride, int dilation, int pad, int first,
                     int count)
{
    return seen(0, first, stride, dilation, pad) == 0 && count == in &&
           (count == 1 || dilation == 1);
}

/* Whether a pass over the weights takes longer than anything else.  Winograd's
 * filters are four times as large: it can have few rows where those fit into a
 * cache. */
static bool has_few_rows(const struct ddp__dnn_shape *s)
{
    const struct ddp__conv *k = &s->conv;
    int64_t weights = (int64_t)k->kh * k->kw * s->c * s->o;
    bool more = k->kh * k->kw > 1 && (weights >= LARGE || !ddp__wino_fits(s));

    return s->type == DDP_F32 && !s->sum && k->groups == 1 &&
           (int64_t)s->n * s->oh * s->ow <= (more ? DDP__SKINNY_MOST : FEW) &&
           s->c >= LEAST && s->o >= LEAST && ddp__skinny_here();
}

struct ddp__patch ddp__patch_of(const struct ddp__dnn_shape *s)
{
    const struct ddp__conv *k = &s->conv;
    struct ddp__patch p = {.layer = *s};

    live_taps(s->h, s->oh, k->kh, k->sh, k->dh, k->top, &p.y, &p.height);
    live_taps(s->w, s->ow, k->kw, k->sw, k->dw, k->left, &p.x, &p.width);
    p.is_skinny = has_few_rows(s);
    if (p.is_skinny) {
        p.y = p.x = 0;
        p.height = k->kh;
        p.width = k->kw;
    }
    p.is_x = k->groups == 1 && s->oh == 1 && s->ow == 1 &&
             sees_all(s->h, k->sh, k->dh, k->top, p.y, p.height) &&
             sees_all(s->w, k->sw, k->dw, k->left, p.x, p.width);
    return p;
}

bool ddp__patch_pays(const struct ddp__dnn_shape *s)
{
    struct ddp__patch p = ddp__patch_of(s);
    bool most_are_live = 2 * p.height * p.width > s->conv.kh * s->conv.kw;

    return !s->dense && (p.is_skinny || (p.is_x && !most_are_live));
}

/* Channels of a group. */
static size_t group_in(const struct ddp__patch *p)
{
    return (size_t)(p->layer.c / p->layer.conv.groups);
}

static size_t group_out(const struct ddp__patch *p)
{
    return (size_t)(p->layer.o / p->layer.conv.groups);
}

static size_t patch_len(const struct ddp__patch *p)
{
    return (size_t)(p->height * p->width) * group_in(p);
}

struct ddp__dnn_shape ddp__patch_product(const struct ddp__patch *p, int n)
{
    const struct ddp__dnn_shape *s = &p->layer;

    return (struct ddp__dnn_shape){
        .dense = true,
        .type = s->type,
        .n = n * s->oh * s->ow,
        .h = 1,
        .w = 1,
        .c = (int)patch_len(p),
        .oh = 1,
        .ow = 1,
        .o = (int)group_out(p),
        .conv = {.kh = 1,
                 .kw = 1,
                 .sh = 1,
                 .sw = 1,
                 .dh = 1,
                 .dw = 1,
                 .groups = 1,
                 .bias = s->conv.bias,
                 .act = s->conv.act},
        .sum = s->sum,
    };
}

/* ---- patches ------------------------------------------------------------ */

/* All pixels that the taps of all outputs of one image see, in the order of the
 * patches; -1: padding. */
static size_t list_pixels(const struct ddp__patch *p, int *pixel)
{
    const struct ddp__dnn_shape *s = &p->layer;
    const struct ddp__conv *k = &s->conv;
    size_t n = 0;

    for (int i = 0; i < s->oh * s->ow; i++)
        for (int j = 0; j < p->height * p->width; j++) {
            int y = seen(i / s->ow, p->y + j / p->width, k->sh, k->dh, k->top);
            int x = seen(i % s->ow, p->x + j % p->width, k->sw, k->dw, k->left);
            bool inside = y >= 0 && y < s->h && x >= 0 && x < s->w;

            pixel[n++] = inside ? y * s->w + x : -1;
        }
    return n;
}

static size_t count_pixels(const struct ddp__patch *p)
{
    return (size_t)(p->layer.oh * p->layer.ow * p->height * p->width);
}

/* The patches of a group of n images; x begins with the group's channels. */
static void gather(const struct ddp__patch *p, int n, const int *pixel,
                   const char *x, char *to)
{
    const struct ddp__dnn_shape *s = &p->layer;
    size_t size = ddp__dtype_size(s->type), count = count_pixels(p);
    size_t piece = group_in(p) * size, step = (size_t)s->c * size;
    size_t image = (size_t)(s->h * s->w) * step;

    for (int i = 0; i < n; i++, x += image)
        for (size_t j = 0; j < count; j++, to += piece)
            if (pixel[j] >= 0)
                memcpy(to, x + (size_t)pixel[j] * step, piece);
            else
                memset(to, 0, piece);
}

/* The reverse for one image: pixels get the sum of what is at their places in
 * patches.  c channels of every step; sum is for so many of all pixels. */
DDP__INLINE void spread_image(const int *pixel, size_t count, size_t pixels,
                              size_t c, size_t step, const void *from,
                              float *restrict sum, void *dx, bool b)
{
    for (size_t i = 0; i < pixels * c; i++)
        sum[i] = 0;
    for (size_t j = 0; j < count; j++)
        for (size_t i = 0; i < c && pixel[j] >= 0; i++)
            sum[(size_t)pixel[j] * c + i] += ddp__load(from, j * c + i, b);
    for (size_t j = 0; j < pixels; j++)
        for (size_t i = 0; i < c; i++)
            ddp__store(dx, j * step + i, sum[j * c + i], b);
}

DDP__CLONES static void spread_f32(const int *pixel, size_t count,
                                   size_t pixels, size_t c, size_t step,
                                   const void *from, float *sum, void *dx)
{
    spread_image(pixel, count, pixels, c, step, from, sum, dx, false);
}

DDP__CLONES static void spread_bf16(const int *pixel, size_t count,
                                    size_t pixels, size_t c, size_t step,
                                    const void *from, float *sum, void *dx)
{
    spread_image(pixel, count, pixels, c, step, from, sum, dx, true);
}

static void spread(const struct ddp__patch *p, int n, const int *pixel,
                   const char *from, float *sum, char *dx)
{
    const struct ddp__dnn_shape *s = &p->layer;
    size_t size = ddp__dtype_size(s->type), count = count_pixels(p);
    size_t pixels = (size_t)(s->h * s->w), c = group_in(p);
    size_t image = pixels * (size_t)s->c * size, patches = count * c * size;

    for (int i = 0; i < n; i++, from += patches, dx += image)
        (s->type == DDP_BF16 ? spread_bf16 : spread_f32)(
            pixel, count, pixels, c, (size_t)s->c, from, sum, dx);
}

/* ---- columns ------------------------------------------------------------ */

/* Rows of a group's outputs, and among those of all groups. */
static void copy_columns(const struct ddp__patch *p, int n, char *group,
                         char *all, bool to_group)
{
    size_t size = ddp__dtype_size(p->layer.type);
    size_t rows = (size_t)(n * p->layer.oh * p->layer.ow);
    size_t piece = group_out(p) * size, step = (size_t)p->layer.o * size;

    for (size_t i = 0; i < rows; i++, group += piece, all += step)
        memcpy(to_group ? group : all, to_group ? all : group, piece);
}

/* ---- weights ------------------------------------------------------------ */

/* Elements before the weights of output o of all, and of its tap row i. */
static size_t weights_at(const struct ddp__patch *p, size_t o, int i)
{
    const struct ddp__conv *k = &p->layer.conv;

    return ((o * (size_t)k->kh + (size_t)(p->y + i)) * (size_t)k->kw +
            (size_t)p->x) *
           group_in(p);
}

/* The weights of a group, without the taps left out. */
static void crop_weights(const struct ddp__patch *p, size_t group,
                         const float *w, float *to)
{
    size_t len = (size_t)p->width * group_in(p), o = group_out(p);

    for (size_t i = group * o; i < (group + 1) * o; i++)
        for (int j = 0; j < p->height; j++, to += len)
            memcpy(to, w + weights_at(p, i, j), len * sizeof(*w));
}

/* The gradient of these, into or onto that of all taps; those left out have
 * none. */
static void put_gradient(const struct ddp__patch *p, size_t group,
                         const float *from, bool accumulate, float *g)
{
    const struct ddp__conv *k = &p->layer.conv;
    size_t len = (size_t)p->width * group_in(p), o = group_out(p);
    size_t all = o * (size_t)(k->kh * k->kw) * group_in(p);

    if (!accumulate)
        memset(g + group * all, 0, all * sizeof(*g));
    for (size_t i = group * o; i < (group + 1) * o; i++)
        for (int j = 0; j < p->height; j++, from += len)
            ddp__cpu_add_f32(g + weights_at(p, i, j), from, len);
}

/* How weights get packed, a group at a time. */
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
        crop_weights(f->patch, (size_t)part, f->w, (float *)(void *)packed);
        return 0;
    }
    scratch = ddp__scratch(at + group_out(f->patch) * patch_len(f->patch) *
                                    sizeof(float));
    if (!scratch)
        return DDP_ENOMEM;
    w = (float *)(void *)(scratch + at);
    crop_weights(f->patch, (size_t)part, f->w, w);
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
    const struct ddp__dnn_shape *s = &p->layer;
    size_t size = ddp__dtype_size(s->type), rows = (size_t)(n * s->oh * s->ow);
    size_t at[] = {
        ddp__dnn_scratch(d),
        rows * patch_len(p) * size,
        rows * group_out(p) * size,
        packed_size(d),
        group_out(p) * patch_len(p) * sizeof(float),
        group_out(p) * sizeof(float),
        (size_t)(s->h * s->w) * group_in(p) * sizeof(float),
        count_pixels(p) * sizeof(int),
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
    list_pixels(p, r->pixel);
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
        gather(h, t->n, r->pixel, x + group * group_in(h) * size, r->patches);
    if (h->layer.sum && !alone)
        copy_columns(h, t->n, r->columns, y + group * group_out(h) * size,
                     true);
    rc = ddp__dnn_run(d, h->is_x ? x : r->patches, packed,
                      h->layer.conv.bias ? w + p->weights + group * group_out(h)
                                         : NULL,
                      alone ? y : r->columns, r->scratch);
    if (!rc && !alone)
        copy_columns(h, t->n, r->columns, y + group * group_out(h) * size,
                     false);
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
        copy_columns(h, t->n, r->columns, dy + group * group_out(h) * size,
                     true);
        dy = r->columns;
    }
    rc = ddp__dnn_run(d, h->is_x ? dx : r->patches, packed, NULL, dy,
                      r->scratch);
    if (!rc && !h->is_x)
        spread(h, t->n, r->pixel, r->patches, r->sum,
               dx + group * group_in(h) * size);
    return rc;
}

/* dW = dY' P, of one group. */
static int weight_gradient_of_group(const struct ddp__task *t,
                                    const struct ddp__plan *p,
                                    const struct ddp__dnn *d,
                                    const struct room *r, size_t group)
{
    const struct ddp__patch *h = &p->patch;
    size_t size = ddp__dtype_size(h->layer.type), o = group_out(h);
    char *x = t->data[DDP__CONV_BWD_W_X], *dy = t->data[DDP__CONV_BWD_W_DY];
    float *g = t->data[DDP__CONV_BWD_W_G], *bias = g + p->weights + group * o;
    void *packed = ddp__dnn_is_plain(d) ? (void *)r->plain : r->packed;
    int rc;

    if (!h->is_x)
        gather(h, t->n, r->pixel, x + group * group_in(h) * size, r->patches);
    if (h->layer.conv.groups > 1) {
        copy_columns(h, t->n, r->columns, dy + group * o * size, true);
        dy = r->columns;
    }
    rc = ddp__dnn_run(d, h->is_x ? x : r->patches, packed,
                      h->layer.conv.bias ? r->bias : NULL, dy, r->scratch);
    if (!rc && !ddp__dnn_is_plain(d))
        rc = ddp__dnn_pack(d, packed, r->plain, r->scratch);
    if (rc < 0)
        return rc;
    put_gradient(h, group, r->plain, t->accumulate, g);
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
    const struct ddp__dnn_shape *s = &p->layer;
    size_t outs = (size_t)(s->oh * s->ow), taps = count_pixels(p) / outs;
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
    const struct ddp__dnn_shape *l = &h->layer;
    struct ddp__dnn_shape s = ddp__patch_product(h, t->n);
    size_t taps = (size_t)(h->height * h->width);
    size_t size = ddp__align(count_pixels(h) * sizeof(int));
    struct ddp__skinny_tap *tap;
    char *base = ddp__scratch(size + taps * sizeof(*tap));

    if (!base)
        return DDP_ENOMEM;
    tap = (struct ddp__skinny_tap *)(void *)(base + size);
    list_pixels(h, (int *)(void *)base);
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

    if (p->product->skinny)
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
