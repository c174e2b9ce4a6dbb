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

/* A layer in a task: x and y, or what takes their place, and the channels of a
 * group, c of the input and o of the output. */
struct layer {
    const struct ddp__conv *k;
    struct ddp__ref_buf x, y;
    const float *w;
    int c, o;
};

static struct layer layer(const struct ddp__task *t, int x, int y,
                          const float *w)
{
    struct layer l = {
        &t->call->conv, ddp__ref_buf(t, x), ddp__ref_buf(t, y), w, 0, 0};

    l.c = ddp__conv_in(l.k, l.x.c);
    l.o = l.y.c / l.k->groups;
    return l;
}

static size_t weight_at(const struct layer *l, int o, int ky, int kx, int ci)
{
    return (((size_t)o * (size_t)l->k->kh + (size_t)ky) * (size_t)l->k->kw +
            (size_t)kx) *
               (size_t)l->c +
           (size_t)ci;
}

/* The output row (or column) that reads input i at kernel position j, or -1:
 * solves  i = out stride - pad + j dilation. */
static int reader(int i, int j, int stride, int pad, int dilation, int outs)
{
    int at = i + pad - j * dilation;

    return at < 0 || at % stride || at / stride >= outs ? -1 : at / stride;
}

/* The sums over the channels of a group of `count` outputs from o on, at one
 * kernel position, where x reads. */
static void add_dots(const struct layer *l, size_t x, const float *w, int count,
                     double *sum)
{
    size_t next = weight_at(l, 1, 0, 0, 0);
    double dot[DDP__REF_SUMS] = {0};

    for (size_t ci = 0; ci < (size_t)l->c; ci++) {
        double v = ddp__ref_read(&l->x, x + ci);

        for (int i = 0; i < count; i++)
            dot[i] += w[(size_t)i * next + ci] * v;
    }
    for (int i = 0; i < count; i++)
        sum[i] += dot[i];
}

/* Outputs of a pixel from o on, without bias; how many. */
static int outputs(const struct layer *l, int n, int oy, int ox, int o,
                   double *sum)
{
    const struct ddp__conv *k = l->k;
    int count = (int)ddp__ref_part((size_t)(l->o - o % l->o));

    for (int i = 0; i < count; i++)
        sum[i] = 0;
    for (int ky = 0; ky < k->kh; ky++)
        for (int kx = 0; kx < k->kw; kx++) {
            int iy = oy * k->sh - k->top + ky * k->dh;
            int ix = ox * k->sw - k->left + kx * k->dw;

            if (iy >= 0 && iy < l->x.h && ix >= 0 && ix < l->x.w)
                add_dots(l, ddp__ref_at(&l->x, n, iy, ix, o / l->o * l->c),
                         l->w + weight_at(l, o, ky, kx, 0), count, sum);
        }
    return count;
}

/* y = act(w * x + b) */
int ddp__ref_conv_fwd(const struct ddp__task *t)
{
    const float *w = t->data[DDP__CONV_FWD_W];
    struct layer l = layer(t, DDP__CONV_FWD_X, DDP__CONV_FWD_Y, w);
    const float *b = w + weight_at(&l, l.y.c, 0, 0, 0);
    size_t at = 0;

    for (int n = 0; n < t->n; n++)
        for (int oy = 0; oy < l.y.h; oy++)
            for (int ox = 0; ox < l.y.w; ox++)
                for (int o = 0, count; o < l.y.c; o += count) {
                    double z[DDP__REF_SUMS];

                    count = outputs(&l, n, oy, ox, o, z);
                    for (int i = 0; i < count; i++) {
                        if (l.k->bias)
                            z[i] += b[o + i];
                        ddp__ref_write(&l.y, at++,
                                       ddp__ref_act(l.k->act, z[i]));
                    }
                }
    return 0;
}

/* y = act(scale (w * x + b - mean) / sqrt(var + eps) + shift), with what y is
 * before it within act if they are to be added */
int ddp__ref_conv_norm(const struct ddp__task *t)
{
    const float *w = t->data[DDP__CONV_NORM_W];
    struct layer l = layer(t, DDP__CONV_NORM_X, DDP__CONV_NORM_Y, w);
    const float *b = w + weight_at(&l, l.y.c, 0, 0, 0);
    const float *scale = t->data[DDP__CONV_NORM_BN], *shift = scale + l.y.c;
    const float *mean = shift + l.y.c, *var = mean + l.y.c;
    size_t at = 0;

    for (int n = 0; n < t->n; n++)
        for (int oy = 0; oy < l.y.h; oy++)
            for (int ox = 0; ox < l.y.w; ox++)
                for (int o = 0, count; o < l.y.c; o += count) {
                    double sum[DDP__REF_SUMS];

                    count = outputs(&l, n, oy, ox, o, sum);
                    for (int i = o; i < o + count; i++, at++) {
                        double z = sum[i - o];

                        if (l.k->bias)
                            z += b[i];
                        z = scale[i] / sqrt((double)var[i] + l.k->eps) *
                                (z - mean[i]) +
                            shift[i];
                        if (t->call->sum)
                            z += ddp__ref_read(&l.y, at);
                        ddp__ref_write(&l.y, at, ddp__ref_act(l.k->act, z));
                    }
                }
    return 0;
}

/* Values of dx at a pixel, of channels from c on: the sums over all outputs
 * that read them; how many. */
static int input_gradients(const struct layer *l, int n, int iy, int ix, int c,
                           double *sum)
{
    const struct ddp__conv *k = l->k;
    int first = c / l->c * l->o, ci = c % l->c;
    int count = (int)ddp__ref_part((size_t)(l->c - ci));

    for (int i = 0; i < count; i++)
        sum[i] = 0;
    if (c >= l->c * k->groups)
        return 1; /* a channel without weights */
    for (int ky = 0; ky < k->kh; ky++)
        for (int kx = 0; kx < k->kw; kx++) {
            int oy = reader(iy, ky, k->sh, k->top, k->dh, l->y.h);
            int ox = reader(ix, kx, k->sw, k->left, k->dw, l->y.w);

            for (int o = first; o < first + l->o && oy >= 0 && ox >= 0; o++) {
                const float *w = l->w + weight_at(l, o, ky, kx, ci);
                double d =
                    ddp__ref_read(&l->y, ddp__ref_at(&l->y, n, oy, ox, o));

                for (int i = 0; i < count; i++)
                    sum[i] += w[i] * d;
            }
        }
    return count;
}

int ddp__ref_conv_bwd_x(const struct ddp__task *t)
{
    struct layer l = layer(t, DDP__CONV_BWD_X_DX, DDP__CONV_BWD_X_DY,
                           t->data[DDP__CONV_BWD_X_W]);
    size_t at = 0;

    for (int n = 0; n < t->n; n++)
        for (int iy = 0; iy < l.x.h; iy++)
            for (int ix = 0; ix < l.x.w; ix++)
                for (int c = 0, count; c < l.x.c; c += count) {
                    double d[DDP__REF_SUMS];

                    count = input_gradients(&l, n, iy, ix, c, d);
                    for (int i = 0; i < count; i++, at++) {
                        if (t->call->sum)
                            d[i] += ddp__ref_read(&l.x, at);
                        ddp__ref_write(&l.x, at, d[i]);
                    }
                }
    return 0;
}

/* Gradients of w[o, ky, kx, ci] from ci on; how many. */
static int weight_gradients(const struct layer *l, int samples, int o, int ky,
                            int kx, int ci, double *sum)
{
    const struct ddp__conv *k = l->k;
    int count = (int)ddp__ref_part((size_t)(l->c - ci));
    int c = o / l->o * l->c + ci;

    for (int i = 0; i < count; i++)
        sum[i] = 0;
    for (int n = 0; n < samples; n++)
        for (int oy = 0; oy < l->y.h; oy++) {
            int iy = oy * k->sh - k->top + ky * k->dh;

            for (int ox = 0; ox < l->y.w && iy >= 0 && iy < l->x.h; ox++) {
                int ix = ox * k->sw - k->left + kx * k->dw;
                size_t x;
                double d;

                if (ix < 0 || ix >= l->x.w)
                    continue;
                x = ddp__ref_at(&l->x, n, iy, ix, c);
                d = ddp__ref_read(&l->y, ddp__ref_at(&l->y, n, oy, ox, o));
                for (int i = 0; i < count; i++)
                    sum[i] += ddp__ref_read(&l->x, x + (size_t)i) * d;
            }
        }
    return count;
}

static double bias_gradient(const struct layer *l, int samples, int o)
{
    size_t pixels = (size_t)samples * (size_t)l->y.h * (size_t)l->y.w;
    double sum = 0;

    for (size_t p = 0; p < pixels; p++)
        sum += ddp__ref_read(&l->y, p * (size_t)l->y.c + (size_t)o);
    return sum;
}

int ddp__ref_conv_bwd_w(const struct ddp__task *t)
{
    struct layer l = layer(t, DDP__CONV_BWD_W_X, DDP__CONV_BWD_W_DY, NULL);
    float *out = t->data[DDP__CONV_BWD_W_G];

    for (int o = 0; o < l.y.c; o++)
        for (int ky = 0; ky < l.k->kh; ky++)
            for (int kx = 0; kx < l.k->kw; kx++)
                for (int ci = 0, count; ci < l.c; ci += count) {
                    double sum[DDP__REF_SUMS];

                    count = weight_gradients(&l, t->n, o, ky, kx, ci, sum);
                    for (int i = 0; i < count; i++)
                        ddp__ref_sum(t, out++, sum[i]);
                }
    for (int o = 0; o < l.y.c && l.k->bias; o++)
        ddp__ref_sum(t, out++, bias_gradient(&l, t->n, o));
    return 0;
}
