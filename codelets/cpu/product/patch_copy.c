/* patch_copy.c - patches, outputs of a group and weights of live taps, copied
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "cpu/cpu.h"
#include "cpu/elementwise/act.h"
#include "patch_copy.h"

/* ---- patches and outputs ------------------------------------------------ */

void ddp__patch_gather(const struct ddp__patch *p, int n, const int *pixel,
                       const char *x, char *to)
{
    const struct ddp__conv_shape *s = &p->layer;
    size_t size = ddp__dtype_size(s->type), count = ddp__patch_pixels(p);
    size_t piece = ddp__patch_in(p) * size, step = (size_t)s->c * size;
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

void ddp__patch_spread(const struct ddp__patch *p, int n, const int *pixel,
                       const char *from, float *sum, char *dx)
{
    const struct ddp__conv_shape *s = &p->layer;
    size_t size = ddp__dtype_size(s->type), count = ddp__patch_pixels(p);
    size_t pixels = (size_t)(s->h * s->w), c = ddp__patch_in(p);
    size_t image = pixels * (size_t)s->c * size, patches = count * c * size;

    for (int i = 0; i < n; i++, from += patches, dx += image)
        (s->type == DDP_BF16 ? spread_bf16 : spread_f32)(
            pixel, count, pixels, c, (size_t)s->c, from, sum, dx);
}

void ddp__patch_copy_columns(const struct ddp__patch *p, int n, char *group,
                             char *all, bool to_group)
{
    size_t size = ddp__dtype_size(p->layer.type);
    size_t rows = (size_t)(n * p->layer.oh * p->layer.ow);
    size_t piece = ddp__patch_out(p) * size, step = (size_t)p->layer.o * size;

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
           ddp__patch_in(p);
}

void ddp__patch_crop(const struct ddp__patch *p, size_t group, const float *w,
                     float *to)
{
    size_t len = (size_t)p->width * ddp__patch_in(p), o = ddp__patch_out(p);

    for (size_t i = group * o; i < (group + 1) * o; i++)
        for (int j = 0; j < p->height; j++, to += len)
            memcpy(to, w + weights_at(p, i, j), len * sizeof(*w));
}

void ddp__patch_put_gradient(const struct ddp__patch *p, size_t group,
                             const float *from, bool accumulate, float *g)
{
    const struct ddp__conv *k = &p->layer.conv;
    size_t len = (size_t)p->width * ddp__patch_in(p), o = ddp__patch_out(p);
    size_t all = o * (size_t)(k->kh * k->kw) * ddp__patch_in(p);

    if (!accumulate)
        memset(g + group * all, 0, all * sizeof(*g));
    for (size_t i = group * o; i < (group + 1) * o; i++)
        for (int j = 0; j < p->height; j++, from += len)
            ddp__cpu_add_f32(g + weights_at(p, i, j), from, len);
}
