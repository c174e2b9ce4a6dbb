/* conv.c - 2-D convolution with groups, dilation and padding, in plain C
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     y[n, oy, ox, o] = b[o] + sum over ky, kx, ci of
 *         w[o, ky, kx, ci] x[n, oy sh - top + ky dh, ox sw - left + kx dw, i]
 *
 * where ci counts the c / g input channels of o's group and i is the ci-th of
 * them.  x is 0 outside the image.
 */
#include "config.h"
#include <math.h>
#include "act.h"
#include "backend.h"
#include "ref.h"

/* Channels of a group: c of the input, o of the output. */
struct group {
    int c, o;
};

static struct group group_size(const struct ddp__conv *k,
                               const struct ddp__ref_buf *x,
                               const struct ddp__ref_buf *y)
{
    return (struct group){ddp__conv_in(k, x->c), y->c / k->groups};
}

static size_t weight_at(const struct ddp__conv *k, struct group g, int o,
                        int ky, int kx, int ci)
{
    return (((size_t)o * (size_t)k->kh + (size_t)ky) * (size_t)k->kw +
            (size_t)kx) *
               (size_t)g.c +
           (size_t)ci;
}

/* The output row (or column) that reads input i at kernel position j, or -1:
 * solves  i = out stride - pad + j dilation. */
static int reader(int i, int j, int stride, int pad, int dilation, int outs)
{
    int at = i + pad - j * dilation;

    return at < 0 || at % stride || at / stride >= outs ? -1 : at / stride;
}

/* The sum over the channels of a group, at one pixel of x. */
static double dot(const struct ddp__ref_buf *x, size_t at, const float *w,
                  int channels)
{
    double sum = 0;

    for (int ci = 0; ci < channels; ci++)
        sum += (double)w[ci] * ddp__ref_read(x, at + (size_t)ci);
    return sum;
}

/* One output value, without bias. */
static double output(const struct ddp__conv *k, const struct ddp__ref_buf *x,
                     const float *w, struct group g, int n, int oy, int ox,
                     int o)
{
    double sum = 0;

    for (int ky = 0; ky < k->kh; ky++)
        for (int kx = 0; kx < k->kw; kx++) {
            int iy = oy * k->sh - k->top + ky * k->dh;
            int ix = ox * k->sw - k->left + kx * k->dw;

            if (iy >= 0 && iy < x->h && ix >= 0 && ix < x->w)
                sum += dot(x, ddp__ref_at(x, n, iy, ix, o / g.o * g.c),
                           w + weight_at(k, g, o, ky, kx, 0), g.c);
        }
    return sum;
}

/* y = act(w * x + b) */
int ddp__ref_conv_fwd(const struct ddp__task *t)
{
    const struct ddp__conv *k = &t->call->conv;
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__CONV_FWD_X);
    struct ddp__ref_buf y = ddp__ref_buf(t, DDP__CONV_FWD_Y);
    struct group g = group_size(k, &x, &y);
    const float *w = t->data[DDP__CONV_FWD_W];
    const float *b = w + weight_at(k, g, y.c, 0, 0, 0);
    size_t i = 0;

    for (int n = 0; n < t->n; n++)
        for (int oy = 0; oy < y.h; oy++)
            for (int ox = 0; ox < y.w; ox++)
                for (int o = 0; o < y.c; o++) {
                    double z = output(k, &x, w, g, n, oy, ox, o);

                    if (k->bias)
                        z += b[o];
                    ddp__ref_write(&y, i++, ddp__ref_act(k->act, z));
                }
    return 0;
}

/* y = act(scale (w * x + b - mean) / sqrt(var + eps) + shift), with what y is
 * before it within act if they are to be added */
int ddp__ref_conv_norm(const struct ddp__task *t)
{
    const struct ddp__conv *k = &t->call->conv;
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__CONV_NORM_X);
    struct ddp__ref_buf y = ddp__ref_buf(t, DDP__CONV_NORM_Y);
    struct group g = group_size(k, &x, &y);
    const float *w = t->data[DDP__CONV_NORM_W];
    const float *b = w + weight_at(k, g, y.c, 0, 0, 0);
    const float *scale = t->data[DDP__CONV_NORM_BN], *shift = scale + y.c;
    const float *mean = shift + y.c, *var = mean + y.c;
    size_t i = 0;

    for (int n = 0; n < t->n; n++)
        for (int oy = 0; oy < y.h; oy++)
            for (int ox = 0; ox < y.w; ox++)
                for (int o = 0; o < y.c; o++, i++) {
                    double z = output(k, &x, w, g, n, oy, ox, o);

                    if (k->bias)
                        z += b[o];
                    z = scale[o] / sqrt((double)var[o] + k->eps) *
                            (z - mean[o]) +
                        shift[o];
                    if (t->call->sum)
                        z += ddp__ref_read(&y, i);
                    ddp__ref_write(&y, i, ddp__ref_act(k->act, z));
                }
    return 0;
}

/* One value of dx: the sum over all outputs that read it. */
static double input_gradient(const struct ddp__conv *k,
                             const struct ddp__ref_buf *dy, const float *w,
                             struct group g, int n, int iy, int ix, int i)
{
    int first = i / g.c * g.o;
    double sum = 0;

    if (i >= g.c * k->groups)
        return 0; /* a channel without weights */
    for (int ky = 0; ky < k->kh; ky++)
        for (int kx = 0; kx < k->kw; kx++) {
            int oy = reader(iy, ky, k->sh, k->top, k->dh, dy->h);
            int ox = reader(ix, kx, k->sw, k->left, k->dw, dy->w);

            for (int o = first; o < first + g.o && oy >= 0 && ox >= 0; o++)
                sum += (double)w[weight_at(k, g, o, ky, kx, i % g.c)] *
                       ddp__ref_read(dy, ddp__ref_at(dy, n, oy, ox, o));
        }
    return sum;
}

int ddp__ref_conv_bwd_x(const struct ddp__task *t)
{
    const struct ddp__conv *k = &t->call->conv;
    struct ddp__ref_buf dy = ddp__ref_buf(t, DDP__CONV_BWD_X_DY);
    struct ddp__ref_buf dx = ddp__ref_buf(t, DDP__CONV_BWD_X_DX);
    struct group g = group_size(k, &dx, &dy);
    const float *w = t->data[DDP__CONV_BWD_X_W];
    size_t at = 0;

    for (int n = 0; n < t->n; n++)
        for (int iy = 0; iy < dx.h; iy++)
            for (int ix = 0; ix < dx.w; ix++)
                for (int i = 0; i < dx.c; i++, at++) {
                    double d = input_gradient(k, &dy, w, g, n, iy, ix, i);

                    if (t->call->sum)
                        d += ddp__ref_read(&dx, at);
                    ddp__ref_write(&dx, at, d);
                }
    return 0;
}

/* The gradient of w[o, ky, kx, ci]; i is the input channel that ci means. */
static double weight_gradient(const struct ddp__task *t,
                              const struct ddp__ref_buf *x,
                              const struct ddp__ref_buf *dy, int o, int ky,
                              int kx, int i)
{
    const struct ddp__conv *k = &t->call->conv;
    double sum = 0;

    for (int n = 0; n < t->n; n++)
        for (int oy = 0; oy < dy->h; oy++) {
            int iy = oy * k->sh - k->top + ky * k->dh;

            for (int ox = 0; ox < dy->w && iy >= 0 && iy < x->h; ox++) {
                int ix = ox * k->sw - k->left + kx * k->dw;

                if (ix >= 0 && ix < x->w)
                    sum +=
                        (double)ddp__ref_read(x, ddp__ref_at(x, n, iy, ix, i)) *
                        ddp__ref_read(dy, ddp__ref_at(dy, n, oy, ox, o));
            }
        }
    return sum;
}

static double bias_gradient(const struct ddp__task *t,
                            const struct ddp__ref_buf *dy, int o)
{
    size_t pixels = (size_t)t->n * (size_t)dy->h * (size_t)dy->w;
    double sum = 0;

    for (size_t p = 0; p < pixels; p++)
        sum += ddp__ref_read(dy, p * (size_t)dy->c + (size_t)o);
    return sum;
}

int ddp__ref_conv_bwd_w(const struct ddp__task *t)
{
    const struct ddp__conv *k = &t->call->conv;
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__CONV_BWD_W_X);
    struct ddp__ref_buf dy = ddp__ref_buf(t, DDP__CONV_BWD_W_DY);
    struct group g = group_size(k, &x, &dy);
    float *out = t->data[DDP__CONV_BWD_W_G];

    for (int o = 0; o < dy.c; o++)
        for (int ky = 0; ky < k->kh; ky++)
            for (int kx = 0; kx < k->kw; kx++)
                for (int ci = 0; ci < g.c; ci++)
                    ddp__ref_sum(t, out++,
                                 weight_gradient(t, &x, &dy, o, ky, kx,
                                                 o / g.o * g.c + ci));
    for (int o = 0; o < dy.c && k->bias; o++)
        ddp__ref_sum(t, out++, bias_gradient(t, &dy, o));
    return 0;
}
