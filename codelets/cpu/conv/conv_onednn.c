/* conv_onednn.c - convolutions and dense layers by oneDNN's primitives
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "conv_onednn.h"
#include "conv_weights.h"
#include "cpu/cpu.h"
#include "cpu/elementwise/act.h"
#include "cpu/thread.h"
#include "packed.h"
#include "plan_shape.h"
#include "plan_variant.h"

/* ---- forward and data gradient ------------------------------------------ */

enum { IN = DDP__CONV_IN, WEIGHT = DDP__CONV_WEIGHT, OUT = DDP__CONV_OUT };

/* y = w * x, or its transpose: operands in, weight, out.  room: bytes of
 * scratch memory to put the result in instead, at *result. */
static int run_primitive(const struct ddp__task *t, struct ddp__plan *p,
                         size_t room, void **result)
{
    float *plain = t->data[WEIGHT];
    bool bias = p->shape.conv.bias && p->pass == DDP__FWD;
    void *w, *in = t->data[IN], *out = t->data[OUT];
    struct ddp__pack *k;
    struct ddp__dnn *d;
    char *scratch;
    int rc;

    if ((rc = ddp__plan_primitive(p, t->n, &d)) < 0 ||
        (rc = ddp__conv_weights(t, p, d, &k, &w)) < 0)
        return rc;
    scratch = ddp__scratch(ddp__align(ddp__dnn_scratch(d)) + room);
    if (scratch && room)
        *result = out = scratch + ddp__align(ddp__dnn_scratch(d));
    if (!scratch)
        rc = DDP_ENOMEM;
    else if (p->pass == DDP__FWD || p->transposed)
        rc = ddp__dnn_run(d, in, w, bias ? plain + p->weights : NULL, out,
                          scratch);
    else
        rc = ddp__dnn_run(d, out, w, NULL, in, scratch);
    if (k)
        ddp__pack_put(&p->packs, k);
    return rc;
}

int ddp__conv_primitive(const struct ddp__task *t, struct ddp__plan *p)
{
    return run_primitive(t, p, 0, NULL);
}

/* ---- images side by side ------------------------------------------------ */

/* Rows of n images, `row` bytes each, into or out of one image whose rows are
 * `pitch` long; an image's row takes `step` there. */
struct strip {
    size_t n, rows, row, step, pitch;
};

static void join_images(const struct strip *s, const char *images, char *strip)
{
    for (size_t y = 0; y < s->rows; y++)
        for (size_t i = 0; i < s->n; i++) {
            char *to = strip + y * s->pitch + i * s->step;

            memcpy(to, images + (i * s->rows + y) * s->row, s->row);
            memset(to + s->row, 0, s->step - s->row);
        }
}

static void split_images(const struct strip *s, const char *strip, char *images)
{
    for (size_t i = 0; i < s->n; i++)
        for (size_t y = 0; y < s->rows; y++, images += s->row)
            memcpy(images, strip + y * s->pitch + i * s->step, s->row);
}

/* As run_primitive(), with all samples as one image: the copies in and out cost
 * less than tiles that a narrow image leaves half empty.  Sizes are of rows in
 * bytes, for both sides; what happens is in the last ten lines. */
int ddp__conv_strip(const struct ddp__task *t, struct ddp__plan *p)
{
    struct ddp__conv_shape one = ddp__plan_shape(p, 1);
    struct ddp__conv_shape all = ddp__plan_shape(p, t->n);
    size_t size = ddp__dtype_size(one.type), n = (size_t)t->n;
    size_t c = (size_t)one.c * size, o = (size_t)one.o * size;
    int w = one.w - p->gap, ow = one.ow - p->gap;
    struct strip in = {n, (size_t)one.h, (size_t)w * c, (size_t)one.w * c,
                       (size_t)all.w * c};
    struct strip out = {n, (size_t)one.oh, (size_t)ow * o, (size_t)one.w * o,
                        (size_t)all.ow * o};
    size_t in_size = ddp__align(in.rows * in.pitch), at;
    float *plain = t->data[WEIGHT];
    struct ddp__pack *k;
    struct ddp__dnn *d;
    void *packed;
    char *scratch;
    int rc;

    if ((rc = ddp__plan_primitive(p, t->n, &d)) < 0 ||
        (rc = ddp__conv_weights(t, p, d, &k, &packed)) < 0)
        return rc;
    at = ddp__align(ddp__dnn_scratch(d));
    if (!(scratch = ddp__scratch(at + in_size + out.rows * out.pitch))) {
        rc = DDP_ENOMEM;
    } else {
        join_images(&in, t->data[IN], scratch + at);
        if (all.sum)
            join_images(&out, t->data[OUT], scratch + at + in_size);
        rc = ddp__dnn_run(d, scratch + at, packed,
                          all.conv.bias ? plain + p->weights : NULL,
                          scratch + at + in_size, scratch);
        split_images(&out, scratch + at + in_size, t->data[OUT]);
    }
    if (k)
        ddp__pack_put(&p->packs, k);
    return rc;
}

/* ---- phases ------------------------------------------------------------- */

/* Put the pixels of phase (a, b) into their places; from NULL: zeros. */
static void interleave_phase(const struct ddp__task *t,
                             const struct ddp__plan *p, int a, int b,
                             const char *from)
{
    const struct ddp__conv_shape *s = &p->shape;
    size_t pixel = (size_t)s->c * ddp__dtype_size(s->type);
    size_t row = (size_t)s->w * pixel;
    char *dx = t->data[OUT];

    for (int n = 0; n < t->n; n++, dx += (size_t)s->h * row)
        for (int y = a; y < s->h; y += s->conv.sh)
            for (int x = b; x < s->w; x += s->conv.sw) {
                char *to = dx + (size_t)y * row + (size_t)x * pixel;

                if (from)
                    memcpy(to, from, pixel);
                else
                    memset(to, 0, pixel);
                from += from ? pixel : 0;
            }
}

int ddp__conv_phases(const struct ddp__task *t, struct ddp__plan *p)
{
    const struct ddp__conv *k = &p->shape.conv;

    for (int i = 0; i < k->sh * k->sw; i++) {
        struct ddp__plan *phase = p->phase[i];
        void *from = NULL;

        if (phase && phase->way == DDP__WAY_I16) {
            int rc = ddp__packed_phase(t, p, i / k->sw, i % k->sw);

            if (rc < 0)
                return rc;
            continue;
        }
        if (phase) {
            const struct ddp__conv_shape *s = &phase->shape;
            size_t room = (size_t)t->n * (size_t)s->h * (size_t)s->w *
                          (size_t)s->c * ddp__dtype_size(s->type);
            int rc = run_primitive(t, phase, room, &from);

            if (rc < 0)
                return rc;
        }
        interleave_phase(t, p, i / k->sw, i % k->sw, from);
    }
    return 0;
}

/* ---- weight gradient ---------------------------------------------------- */

/* Where oneDNN puts the gradient before it is in its place. */
struct detour {
    float *packed, *plain, *bias;
    char *scratch;
};

/* oneDNN writes its own layout and never adds, so the gradient takes up to two
 * detours.  Without room for them scratch is NULL. */
static struct detour detour_of(const struct ddp__task *t,
                               const struct ddp__dnn *d)
{
    const struct ddp__plan *p = t->plan;
    float *g = t->data[DDP__CONV_BWD_W_G];
    struct detour o = {.plain = g, .bias = g + p->weights};
    bool is_plain = ddp__dnn_is_plain(d);
    size_t at_packed = ddp__align(ddp__dnn_scratch(d)),
           at_plain =
               at_packed + (is_plain ? 0 : ddp__align(ddp__dnn_packed_size(d))),
           at_bias = at_plain + ddp__align(p->weights * sizeof(*g)),
           end = at_bias + (size_t)p->shape.o * sizeof(*g);

    if (!(o.scratch = ddp__scratch(t->accumulate ? end : at_plain)))
        return o;
    if (t->accumulate) {
        o.plain = (float *)(void *)(o.scratch + at_plain);
        o.bias = (float *)(void *)(o.scratch + at_bias);
    }
    o.packed = is_plain ? o.plain : (float *)(void *)(o.scratch + at_packed);
    return o;
}

int ddp__conv_gradient(const struct ddp__task *t, struct ddp__plan *p)
{
    bool bias = p->shape.conv.bias;
    float *g = t->data[DDP__CONV_BWD_W_G];
    struct ddp__dnn *d;
    struct detour o;
    int rc = ddp__plan_primitive(p, t->n, &d);

    if (rc < 0)
        return rc;
    o = detour_of(t, d);
    if (!o.scratch)
        return DDP_ENOMEM;
    rc = ddp__dnn_run(d, t->data[DDP__CONV_BWD_W_X], o.packed,
                      bias ? o.bias : NULL, t->data[DDP__CONV_BWD_W_DY],
                      o.scratch);
    if (!rc && o.packed != o.plain)
        rc = ddp__dnn_pack(d, o.packed, o.plain, o.scratch);
    if (!rc && t->accumulate) {
        ddp__cpu_add_f32(g, o.plain, p->weights);
        if (bias)
            ddp__cpu_add_f32(g + p->weights, o.bias, (size_t)p->shape.o);
    }
    return rc;
}
