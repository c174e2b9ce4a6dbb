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

#include "cpu/wino/wino_kind.h"
#include "patch.h"
#include "skinny.h"
#include "skinny_lanes.h"

/* Rows of any convolution that has few, its channels, and weights for more. */
enum { FEW = 40, LEAST = 64, LARGE = 1 << 20 };

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

/* Whether the taps of output 0, of which `count` are live, see each pixel of
 * the image once, in order. */
static bool sees_all(int in, int stride, int dilation, int pad, int first,
                     int count)
{
    return seen(0, first, stride, dilation, pad) == 0 && count == in &&
           (count == 1 || dilation == 1);
}

/* Whether a pass over the weights takes longer than anything else.  Winograd's
 * filters are four times as large: it can have few rows where those fit into a
 * cache, with AVX-512.  With AVX2, one core of an Intel Xeon so limited takes
 * milliseconds of forward and both gradients, weights changed before, as
 * products of few rows and in Winograd's way: 7x7x64 0.06 0.07 0.05, 0.11 0.12
 * 0.14; 8x8x128 0.25 0.27 0.19, 0.35 0.34 0.33; 4x4x256, 2 images 0.40 0.44
 * 0.33, 0.40 0.47 0.34. */
static bool has_few_rows(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;
    int64_t weights = (int64_t)k->kh * k->kw * s->c * s->o;
    int lanes = ddp__skinny_lanes();
    bool more = k->kh * k->kw > 1 &&
                (weights >= LARGE || lanes < 16 || !ddp__wino_fits(s));

    return s->type == DDP_F32 && !s->sum && k->groups == 1 &&
           (int64_t)s->n * s->oh * s->ow <= (more ? DDP__SKINNY_MOST : FEW) &&
           s->c >= LEAST && s->o >= LEAST && lanes > 0;
}

struct ddp__patch ddp__patch_of(const struct ddp__conv_shape *s)
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

bool ddp__patch_pays(const struct ddp__conv_shape *s)
{
    struct ddp__patch p = ddp__patch_of(s);
    bool most_are_live = 2 * p.height * p.width > s->conv.kh * s->conv.kw;

    return !s->dense && (p.is_skinny || (p.is_x && !most_are_live));
}

struct ddp__conv_shape ddp__patch_product(const struct ddp__patch *p, int n)
{
    const struct ddp__conv_shape *s = &p->layer;
    struct ddp__conv_shape product = {
        .dense = true,
        .type = s->type,
        .n = n * s->oh * s->ow,
        .h = 1,
        .w = 1,
        .c = (int)ddp__patch_len(p),
        .oh = 1,
        .ow = 1,
        .o = (int)ddp__patch_out(p),
        .conv = ddp__conv_plain(1, 1),
        .sum = s->sum,
    };

    product.conv.bias = s->conv.bias;
    product.conv.act = s->conv.act;
    return product;
}

void ddp__patch_list_pixels(const struct ddp__patch *p, int *pixel)
{
    const struct ddp__conv_shape *s = &p->layer;
    const struct ddp__conv *k = &s->conv;
    size_t n = 0;

    for (int i = 0; i < s->oh * s->ow; i++)
        for (int j = 0; j < p->height * p->width; j++) {
            int y = seen(i / s->ow, p->y + j / p->width, k->sh, k->dh, k->top);
            int x = seen(i % s->ow, p->x + j % p->width, k->sw, k->dw, k->left);
            bool inside = y >= 0 && y < s->h && x >= 0 && x < s->w;

            pixel[n++] = inside ? y * s->w + x : -1;
        }
}

size_t ddp__patch_pixels(const struct ddp__patch *p)
{
    return (size_t)(p->layer.oh * p->layer.ow * p->height * p->width);
}
