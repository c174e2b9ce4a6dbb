/* depthwise_train.c - depthwise convolutions of training, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Forward passes and data gradients; those of stride 1 are forward passes over
 * dy with the filters turned round.  Weights of bf16 layers are not rounded.
 *
 * One core of an Intel Xeon with AMX, both busy, 16 images, milliseconds by
 * oneDNN 2.6 and in this way (f32, bf16):
 *
 *     forward    112x112x32       4.5 2.8    2.7 1.6
 *                56x56x144        5.7 3.7    3.4 2.4
 *                14x14x576        1.36 0.80  0.84 0.61
 *                28x28x240, 5x5   3.2 1.6    3.0 1.7
 *                14x14x672, 5x5   1.9 1.25   2.2 0.83
 *     stride 2   112x112x96       7.4 6.4    5.4 3.5
 *                56x56x144, 5x5   3.5 3.2    2.9 1.9
 *     gradients  112x112x96       13.2 4.8   6.4 2.1
 *     of it      56x56x144, 5x5   5.4 1.75   3.3 1.4
 *
 * Two images that are in the caches take 0.8 to 1.3 times as long in f32, as
 * packing the weights counts then.  The same on a Zen 4:
 *
 *     forward    112x112x32       4.9 2.9    2.4 1.9
 *                56x56x144        6.7 3.7    3.2 2.1
 *                14x14x576        1.2 0.74   1.0 0.42
 *                28x28x240, 5x5   4.2 1.8    3.1 1.7
 *                14x14x672, 5x5   2.5 1.2    2.4 1.0
 *     stride 2   112x112x96       10.2 8.1   5.3 4.8
 *                56x56x144, 5x5   4.7 3.0    3.1 1.9
 *     gradients  112x112x96       9.8 3.4    5.0 2.0
 *     of it      56x56x144, 5x5   4.9 1.4    2.8 1.3
 *
 * Against sums in f64, errors are 3.5e-8 to 8.7e-8 of the norm, as oneDNN's
 * are; bf16 1.7e-3, oneDNN's 2.3e-3, which rounds weights.
 */
#include "config.h"

#include "base/error.h"
#include "cpu/conv/plan_shape.h"
#include "cpu/cpu.h"
#include "cpu/store.h"
#include "cpu/thread.h"
#include "depthwise_train.h"
#include "depthwise_v16.h"

bool ddp__depthwise_train_fits(const struct ddp__conv_shape *s,
                               enum ddp__conv_pass pass)
{
    const struct ddp__conv *k = &s->conv;
    struct ddp__conv_shape t;
    bool plain =
        pass == DDP__FWD
            ? !k->bias && !s->sum && k->act == DDP_IDENTITY
            : pass == DDP__BWD_X && (k->sw == 2 || ddp__plan_transpose(s, &t));

    return plain && !s->dense && k->groups == s->c && s->o == s->c &&
           k->kh == k->kw && (k->kw == 3 || k->kw == 5) && k->sh == k->sw &&
           (k->sw == 1 || k->sw == 2) && k->dh == 1 && k->dw == 1 &&
           (s->type == DDP_F32 || s->c % 2 == 0) &&
           ddp__unit_v16(s->type == DDP_BF16);
}

#ifdef DDP__X86

enum { CACHE = 48 << 10 /* bytes of the first level */ };

/* ---- weights ------------------------------------------------------------ */

static size_t packed_size(const struct ddp__depthwise_work *u, int taps, bool b)
{
    return (size_t)(u->vectors * taps * (b ? 2 : 1) * LANES);
}

/* Filters (c, taps) for vectors of words, the last one with zeros; turned: taps
 * from last to first. */
static void pack(const struct ddp__depthwise_work *u, const float *w, int c,
                 int taps, bool turned, bool b)
{
    int halves = b ? 2 : 1, vector = LANES * halves;

    if (c % vector)
        memset(u->w + (ptrdiff_t)(u->vectors - 1) * taps * vector, 0,
               (size_t)(taps * vector) * sizeof(*w));
    for (int k = 0; k < c; k++, w += taps) {
        float *to = u->w + (ptrdiff_t)(k / vector) * taps * vector +
                    k % vector / halves + k % halves * LANES;

        for (int i = 0; i < taps; i++, to += vector)
            *to = w[turned ? taps - 1 - i : i];
    }
}

/* ---- tasks -------------------------------------------------------------- */

/* A forward pass from x to y, or dx of dy (spreads). */
static struct ddp__depthwise_work work_of(const struct ddp__conv_shape *s,
                                          bool spreads)
{
    bool b = s->type == DDP_BF16;
    struct ddp__depthwise_work u = {.n = s->n,
                                    .h = spreads ? s->oh : s->h,
                                    .width = spreads ? s->ow : s->w,
                                    .oh = spreads ? s->h : s->oh,
                                    .ow = spreads ? s->w : s->ow,
                                    .top = s->conv.top,
                                    .left = s->conv.left,
                                    .c = s->c / (b ? 2 : 1)};

    u.vectors = (int)((u.c + LANES - 1) / LANES);
    return u;
}

/* How the loops go over memory.  In its order, if the rows under a few results
 * are in the first-level cache until all results have been made of them; else
 * some vectors go over the rows of an image at a time, which strides forbid:
 * their rows have too many parts.  Where all rows that are read are there, what
 * comes soon is fetched, else what the next row reads. */
static void choose_order(struct ddp__depthwise_work *u, int size, int stride,
                         bool spreads)
{
    size_t pixel = (size_t)u->c * sizeof(float);
    size_t rows = (size_t)(size * u->width);
    bool fits =
        (size_t)((DDP__DEPTHWISE_PIXELS - 1 + size) * size) * pixel <= CACHE;

    u->group = u->vectors;
    if (spreads)
        return;
    if (!fits && stride == 1 && !u->block) {
        u->group = (int)(CACHE / 2 / (rows * sizeof(v16)));
        u->group = u->group < 2 ? 2 : ddp__min_int(u->group, u->vectors);
    } else if (rows * pixel <= CACHE) {
        u->ahead = 2 * DDP__DEPTHWISE_PIXELS * stride * u->c;
    }
}

/* Memory for packed weights, and where results are no whole lines for those
 * that go past the caches. */
static size_t room_of(const struct ddp__depthwise_work *u, int taps, bool b)
{
    return ddp__align(packed_size(u, taps, b) * sizeof(float)) +
           ddp__align(DDP__DEPTHWISE_SPREAD * (size_t)u->c * sizeof(float));
}

static void use_room(struct ddp__depthwise_work *u, int taps, bool b,
                     void *room)
{
    size_t packed = ddp__align(packed_size(u, taps, b) * sizeof(float));
    size_t words = (size_t)u->n * (size_t)(u->oh * u->ow) * (size_t)u->c;

    u->streams = ddp__streams(words, false);
    if (u->streams && (u->c % LANES || (uintptr_t)u->y % sizeof(v16)))
        u->block = (float *)(void *)((char *)room + packed);
    u->w = room;
}

/* The layer that is run, and whether it spreads: a data gradient of stride 1 is
 * a forward pass. */
static bool layer_of(const struct ddp__conv_shape *layer,
                     enum ddp__conv_pass pass, struct ddp__conv_shape *s)
{
    *s = *layer;
    if (pass == DDP__BWD_X && layer->conv.sw == 1)
        ddp__plan_transpose(layer, s);
    return pass == DDP__BWD_X && layer->conv.sw > 1;
}

size_t ddp__depthwise_pass_size(const struct ddp__conv_shape *layer,
                                enum ddp__conv_pass pass)
{
    struct ddp__conv_shape s;
    bool spreads = layer_of(layer, pass, &s);
    struct ddp__depthwise_work u = work_of(&s, spreads);

    return room_of(&u, s.conv.kh * s.conv.kw, s.type == DDP_BF16);
}

void ddp__depthwise_pass_begin(struct ddp__depthwise_pass *p,
                               const struct ddp__conv_shape *layer,
                               enum ddp__conv_pass pass,
                               const struct ddp__task *t, void *room)
{
    struct ddp__conv_shape s;
    bool spreads = layer_of(layer, pass, &s), b = s.type == DDP_BF16;
    int taps = s.conv.kh * s.conv.kw;

    s.n = t->n;
    *p = (struct ddp__depthwise_pass){work_of(&s, spreads), s.conv.kw,
                                      s.conv.sw, spreads, b};
    p->u.x = t->data[DDP__CONV_FWD_X];
    p->u.y = t->data[DDP__CONV_FWD_Y];
    use_room(&p->u, taps, b, room);
    choose_order(&p->u, s.conv.kw, s.conv.sw, spreads);
    pack(&p->u, t->data[DDP__CONV_FWD_W], s.c, taps,
         pass == DDP__BWD_X && !spreads, b);
}

void ddp__depthwise_pass_run(const struct ddp__depthwise_pass *p)
{
    ddp__depthwise_images(&p->u, p->size, p->stride, p->spreads, p->b);
    if (p->u.streams)
        ddp__store_end();
}

int ddp__depthwise_train_run(const struct ddp__task *t,
                             const struct ddp__conv_shape *layer,
                             enum ddp__conv_pass pass)
{
    size_t size = ddp__depthwise_pass_size(layer, pass);
    bool of_norm = t->call->op == DDP__OP_NORM_CONV_FWD;
    char *room = ddp__scratch(size + (of_norm ? ddp__bn_clamp_size(t) : 0));
    struct ddp__depthwise_pass p;
    struct ddp__bn_clamp norm;

    if (!room)
        return DDP_ENOMEM;
    ddp__depthwise_pass_begin(&p, layer, pass, t, room);
    if (of_norm) {
        norm = ddp__bn_clamp_of(t, room + size);
        p.u.norm = &norm;
    }
    ddp__depthwise_pass_run(&p);
    return 0;
}

#endif
