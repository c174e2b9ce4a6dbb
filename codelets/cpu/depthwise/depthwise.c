/* depthwise.c - depthwise convolutions of small images, in loops over channels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For layers that only oneDNN's reference code gets right
 * (ddp__dnn_is_wrong()).  One Zen 3 core (AVX2), 64 samples, from 4x4 to 2x2 of
 * 672 channels by 5x5 of stride 2: forward and both gradients take 0.3, 0.4 and
 * 0.3 ms; 33, 110 and 29 ms by that code.
 */
#include "config.h"

#include "cpu/cpu.h"
#include "cpu/store.h"
#include "cpu/thread.h"
#include "cpu/vector/vmath.h"
#include "depthwise.h"

bool ddp__depthwise_fits(const struct ddp__conv_shape *s)
{
    return !s->dense && s->conv.groups == s->c && s->o == s->c;
}

/* The pixels of one image that take part in a product: that of output, that of
 * x under a tap of it, and the tap. */
struct triple {
    int out, in, tap;
};

/* All of them, output by output. */
static int list_triples(const struct ddp__conv_shape *s, struct triple *to)
{
    const struct ddp__conv *k = &s->conv;
    int n = 0;

    for (int i = 0; i < s->oh * s->ow; i++)
        for (int j = 0; j < k->kh * k->kw; j++) {
            int y = i / s->ow * k->sh - k->top + j / k->kw * k->dh;
            int x = i % s->ow * k->sw - k->left + j % k->kw * k->dw;

            if (y >= 0 && y < s->h && x >= 0 && x < s->w)
                to[n++] = (struct triple){i, y * s->w + x, j};
        }
    return n;
}

/* Memory of a task, f32 but for the list: the weights, or their gradient, tap
 * by tap; and what is added up of one image. */
struct room {
    struct triple *triple;
    float *w, *bias, *sum;
};

static int room_new(const struct ddp__conv_shape *s, size_t pixels,
                    struct room *r)
{
    size_t taps = (size_t)(s->conv.kh * s->conv.kw), c = (size_t)s->c;
    size_t outs = (size_t)(s->oh * s->ow);
    size_t list = ddp__align(taps * outs * sizeof(struct triple));
    size_t weights = ddp__align(taps * c * sizeof(float));
    size_t bias = ddp__align(c * sizeof(float));
    char *p = ddp__scratch(list + weights + bias + pixels * c * sizeof(float));

    if (!p)
        return DDP_ENOMEM;
    *r = (struct room){(struct triple *)(void *)p, (float *)(void *)(p + list),
                       (float *)(void *)(p + list + weights),
                       (float *)(void *)(p + list + weights + bias)};
    return 0;
}

/* Weights (c, taps) in memory and (taps, c) here. */
static void weights_by_tap(const float *w, size_t c, size_t taps, float *to)
{
    for (size_t i = 0; i < taps; i++)
        for (size_t j = 0; j < c; j++)
            to[i * c + j] = w[j * taps + i];
}

static void put_gradient(const float *from, size_t c, size_t taps,
                         bool accumulate, float *g)
{
    for (size_t i = 0; i < taps; i++)
        for (size_t j = 0; j < c; j++)
            g[j * taps + i] =
                (accumulate ? g[j * taps + i] : 0) + from[i * c + j];
}

/* ---- one image ---------------------------------------------------------- */

/* sum[to] += w[tap] v[from] for all triples; which is which depends on the
 * pass. */
DDP__INLINE void add_products(const struct triple *t, int n, size_t c,
                              const void *restrict v, const float *restrict w,
                              float *restrict sum, bool forward, bool b)
{
    for (int i = 0; i < n; i++) {
        size_t from = (size_t)(forward ? t[i].in : t[i].out) * c;
        float *to = sum + (size_t)(forward ? t[i].out : t[i].in) * c;
        const float *tap = w + (size_t)t[i].tap * c;

        for (size_t j = 0; j < c; j++)
            to[j] += tap[j] * ddp__load(v, from + j, b);
    }
}

/* dw[tap] += x[in] dy[out] */
DDP__INLINE void add_gradients(const struct triple *t, int n, size_t c,
                               const void *restrict x, const void *restrict dy,
                               float *restrict dw, bool b)
{
    for (int i = 0; i < n; i++) {
        size_t in = (size_t)t[i].in * c, out = (size_t)t[i].out * c;
        float *tap = dw + (size_t)t[i].tap * c;

        for (size_t j = 0; j < c; j++)
            tap[j] += ddp__load(x, in + j, b) * ddp__load(dy, out + j, b);
    }
}

/* A loop per type, and per direction. */
#define X(type, b)                                                             \
    DDP__CLONES static void forward_##type(const struct triple *t, int n,      \
                                           size_t c, const void *x,            \
                                           const float *w, float *sum)         \
    {                                                                          \
        add_products(t, n, c, x, w, sum, true, b);                             \
    }                                                                          \
    DDP__CLONES static void backward_##type(const struct triple *t, int n,     \
                                            size_t c, const void *dy,          \
                                            const float *w, float *sum)        \
    {                                                                          \
        add_products(t, n, c, dy, w, sum, false, b);                           \
    }                                                                          \
    DDP__CLONES static void gradient_##type(const struct triple *t, int n,     \
                                            size_t c, const void *x,           \
                                            const void *dy, float *dw)         \
    {                                                                          \
        add_gradients(t, n, c, x, dy, dw, b);                                  \
    }
X(f32, false)
X(bf16, true)
#undef X

static void begin_sum(float *sum, size_t rows, size_t c, const float *bias)
{
    if (!bias)
        memset(sum, 0, rows * c * sizeof(*sum));
    for (size_t i = 0; i < rows && bias; i++)
        memcpy(sum + i * c, bias, c * sizeof(*sum));
}

DDP__CLONES static void add_values(const void *v, size_t len, float *sum,
                                   bool b)
{
    for (size_t i = 0; i < len; i++)
        sum[i] += ddp__load(v, i, b);
}

DDP__CLONES static void activate(float *sum, size_t len, enum ddp_act act)
{
    for (size_t i = 0; i < len; i++)
        sum[i] = ddp__act(sum[i], act);
}

/* ---- passes ------------------------------------------------------------- */

/* y of x, or dx of dy: the sums of one image, then the next one. */
static int run_images(const struct ddp__task *t,
                      const struct ddp__conv_shape *s, bool forward)
{
    enum {
        IN = DDP__CONV_FWD_X,
        WEIGHT = DDP__CONV_FWD_W,
        OUT = DDP__CONV_FWD_Y
    };
    _Static_assert((int)DDP__CONV_BWD_X_DY == (int)IN &&
                       (int)DDP__CONV_BWD_X_W == (int)WEIGHT &&
                       (int)DDP__CONV_BWD_X_DX == (int)OUT,
                   "both passes run through the same loop");
    size_t c = (size_t)s->c, taps = (size_t)(s->conv.kh * s->conv.kw);
    size_t in = (size_t)(forward ? s->h * s->w : s->oh * s->ow) * c;
    size_t rows = (size_t)(forward ? s->oh * s->ow : s->h * s->w);
    const float *w = t->data[WEIGHT];
    const float *bias = forward && s->conv.bias ? w + taps * c : NULL;
    enum ddp_act act = forward ? s->conv.act : DDP_IDENTITY;
    bool b = s->type == DDP_BF16;
    struct room r;
    int n, rc = room_new(s, rows, &r);

    if (rc < 0)
        return rc;
    n = list_triples(s, r.triple);
    weights_by_tap(w, c, taps, r.w);
    for (size_t i = 0; i < (size_t)t->n; i++) {
        const void *from = ddp__at(t->data[IN], i * in, b);
        void *to = ddp__to(t->data[OUT], i * rows * c, b);

        begin_sum(r.sum, rows, c, bias);
        if (forward)
            (b ? forward_bf16 : forward_f32)(r.triple, n, c, from, r.w, r.sum);
        else
            (b ? backward_bf16 : backward_f32)(r.triple, n, c, from, r.w,
                                               r.sum);
        if (s->sum)
            add_values(to, rows * c, r.sum, b);
        if (act != DDP_IDENTITY)
            activate(r.sum, rows * c, act);
        ddp__store_block(to, r.sum, rows * c, b, false);
    }
    return 0;
}

DDP__CLONES static void add_outputs(const void *dy, size_t rows, size_t c,
                                    float *sum, bool b)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < c; j++)
            sum[j] += ddp__load(dy, i * c + j, b);
}

static int run_weight_gradient(const struct ddp__task *t,
                               const struct ddp__conv_shape *s)
{
    size_t c = (size_t)s->c, taps = (size_t)(s->conv.kh * s->conv.kw);
    size_t in = (size_t)(s->h * s->w) * c, outs = (size_t)(s->oh * s->ow);
    const void *x = t->data[DDP__CONV_BWD_W_X];
    const void *dy = t->data[DDP__CONV_BWD_W_DY];
    float *g = t->data[DDP__CONV_BWD_W_G];
    bool b = s->type == DDP_BF16;
    struct room r;
    int n, rc = room_new(s, 0, &r);

    if (rc < 0)
        return rc;
    n = list_triples(s, r.triple);
    begin_sum(r.w, taps, c, NULL);
    begin_sum(r.bias, 1, c, NULL);
    for (size_t i = 0; i < (size_t)t->n; i++)
        (b ? gradient_bf16 : gradient_f32)(r.triple, n, c,
                                           ddp__at(x, i * in, b),
                                           ddp__at(dy, i * outs * c, b), r.w);
    put_gradient(r.w, c, taps, t->accumulate, g);
    if (s->conv.bias) {
        add_outputs(dy, (size_t)t->n * outs, c, r.bias, b);
        put_gradient(r.bias, c, 1, t->accumulate, g + taps * c);
    }
    return 0;
}

int ddp__depthwise_run(const struct ddp__task *t,
                       const struct ddp__conv_shape *s,
                       enum ddp__conv_pass pass)
{
    return pass == DDP__BWD_W ? run_weight_gradient(t, s)
                              : run_images(t, s, pass == DDP__FWD);
}
