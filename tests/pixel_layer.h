/* pixel_layer.h - a 1x1 convolution of random numbers, for kernels of such
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef PIXEL_LAYER_H
#define PIXEL_LAYER_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "cpu/conv/shape.h"
#include "random.h"
#include "tap.h"

struct pixel_row {
    int n, h, w, c, o;
    bool bias;
};

struct pixel_kernel {
    enum ddp_dtype type; /* of x and y: f32 or bf16 */
    size_t (*packed_size)(const struct ddp__conv_shape *s); /* bytes */
    void (*pack)(const struct ddp__conv_shape *s, const float *w, bool turn,
                 void *to);
    int (*run)(const struct ddp__conv_shape *s, const void *x,
               const void *packed, void *y);
    bool rounds; /* weights to bf16 */
};

struct pixel_layer {
    const struct pixel_kernel *k;
    struct ddp__conv_shape s;
    char name[80];
    void *x, *y, *packed, *map;
    float *w;
    size_t pixels, size, mapped; /* of an image; bytes of a value, of the map */
};

enum { PIXEL_GUARD = 64 }; /* values after y, which nobody may write */

static inline struct ddp__conv_shape pixel_shape(enum ddp_dtype type,
                                                 const struct pixel_row *r)
{
    return (struct ddp__conv_shape){
        .type = type,
        .n = r->n,
        .h = r->h,
        .w = r->w,
        .c = r->c,
        .oh = r->h,
        .ow = r->w,
        .o = r->o,
        .conv = {1, 1, 1, 1, 1, 1, .groups = 1, .bias = r->bias}};
}

/* ---- numbers ------------------------------------------------------------ */

static inline double pixel_value(const struct pixel_layer *l, const void *of,
                                 size_t i)
{
    return l->k->type == DDP_F32
               ? (double)((const float *)of)[i]
               : (double)ddp__from_bf16(((const uint16_t *)of)[i]);
}

static inline void pixel_set(const struct pixel_layer *l, size_t i, float v)
{
    if (l->k->type == DDP_F32)
        ((float *)l->x)[i] = v;
    else
        ((uint16_t *)l->x)[i] = ddp__to_bf16(v);
}

/* ---- layers ------------------------------------------------------------- */

static inline void pixel_new_input(struct pixel_layer *l, size_t count)
{
    l->x = new_at_edge(count * l->size, &l->map, &l->mapped);
    for (size_t i = 0; i < count; i++)
        pixel_set(l, i, random_float());
}

static inline void pixel_layer_new(struct pixel_layer *l,
                                   const struct pixel_kernel *k,
                                   const struct pixel_row *r)
{
    size_t c = (size_t)r->c, o = (size_t)r->o;

    l->k = k;
    l->s = pixel_shape(k->type, r);
    l->pixels = (size_t)(r->h * r->w);
    l->size = ddp__dtype_size(k->type);
    snprintf(l->name, sizeof(l->name), "%dx%dx%dx%d to %d%s", r->n, r->h, r->w,
             r->c, r->o, r->bias ? ", bias" : "");
    pixel_new_input(l, (size_t)r->n * l->pixels * c);
    l->y = new_array((size_t)r->n * l->pixels * o + PIXEL_GUARD, l->size);
    l->w = random_floats((c + 1) * o);
    l->packed = new_array(k->packed_size(&l->s), 1);
}

static inline void pixel_layer_free(struct pixel_layer *l)
{
    munmap(l->map, l->mapped);
    free(l->y);
    free(l->w);
    free(l->packed);
}

static inline void pixel_run(const struct pixel_layer *l, const void *x,
                             void *y)
{
    if (l->k->run(&l->s, x, l->packed, y) < 0)
        bail_out("%s", ddp_errmsg());
}

/* A sum, and that of the sizes of its products. */
struct pixel_sum {
    double of, sizes;
};

/* Output j of pixel p; turn: of the transposed weights. */
static inline struct pixel_sum pixel_output(const struct pixel_layer *l,
                                            size_t p, size_t j, bool turn)
{
    size_t c = (size_t)l->s.c, o = (size_t)l->s.o;
    struct pixel_sum s = {l->s.conv.bias ? l->w[c * o + j] : 0, 0};

    for (size_t i = 0; i < c; i++) {
        float w = l->w[turn ? i * o + j : j * c + i];
        double v = pixel_value(l, l->x, p * c + i) *
                   (double)(l->k->rounds ? ddp__from_bf16(ddp__to_bf16(w)) : w);

        s.of += v;
        s.sizes += fabs(v);
    }
    return s;
}

/* That of y in shares of the norm; before: what y was, which is added, or NULL.
 */
static inline double pixel_error(const struct pixel_layer *l, bool turn,
                                 const float *before)
{
    size_t o = (size_t)l->s.o, all = (size_t)l->s.n * l->pixels;
    double error = 0, norm = 0;

    for (size_t p = 0; p < all; p++)
        for (size_t j = 0; j < o; j++) {
            double want = pixel_output(l, p, j, turn).of, d;

            want += before ? (double)before[p * o + j] : 0;
            want = l->s.conv.act == DDP_RELU ? fmax(want, 0) : want;
            d = pixel_value(l, l->y, p * o + j) - want;
            error += d * d;
            norm += want * want;
        }
    return sqrt(error / norm);
}

/* ---- tests -------------------------------------------------------------- */

/* y of the weights, or of those transposed, and nothing else. */
static inline void pixel_test_run(struct pixel_layer *l, bool turn)
{
    size_t values = (size_t)l->s.n * l->pixels * (size_t)l->s.o;
    char *end = (char *)l->y + values * l->size;
    char guard[PIXEL_GUARD * sizeof(float)];
    size_t len = PIXEL_GUARD * l->size;

    memcpy(guard, end, len);
    l->k->pack(&l->s, l->w, turn, l->packed);
    pixel_run(l, l->x, l->y);
    ok(memcmp(guard, end, len) == 0, "%s: nothing after the output is written",
       l->name);
}

/* Each image by itself, and where lines begin elsewhere. */
static inline void pixel_test_bits(struct pixel_layer *l)
{
    size_t x = l->pixels * (size_t)l->s.c * l->size;
    size_t y = l->pixels * (size_t)l->s.o * l->size;
    size_t images = (size_t)l->s.n, size = images * y;
    char *other = new_array(size + l->size * PIXEL_GUARD, 1);

    l->k->pack(&l->s, l->w, false, l->packed);
    pixel_run(l, l->x, l->y);
    pixel_run(l, l->x, other + l->size);
    ok(memcmp(l->y, other + l->size, size) == 0,
       "%s: the same bits at any address", l->name);
    l->s.n = 1;
    for (size_t i = 0; i < images; i++)
        pixel_run(l, (char *)l->x + i * x, other + i * y);
    l->s.n = (int)images;
    ok(memcmp(l->y, other, size) == 0, "%s: the same bits in any sub-batch",
       l->name);
    free(other);
}

#endif
