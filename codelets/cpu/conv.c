/* conv.c - convolutions and dense layers of CPU workers: by oneDNN, or by
 * libddp's kernels (wino.c, amx.c) where those are faster
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "act.h"
#include "amx.h"
#include "amx_taps.h"
#include "backend.h"
#include "bias.h"
#include "conv.h"
#include "cpu.h"
#include "dense.h"
#include "dense_wgrad.h"
#include "depthwise.h"
#include "depthwise_wgrad_rows.h"
#include "depthwise_train.h"
#include "depthwise_wgrad.h"
#include "packed.h"
#include "patch_run.h"
#include "plan.h"
#include "rows.h"
#include "skinny.h"
#include "taps.h"
#include "taps_wgrad.h"
#include "thread.h"
#include "wgrad.h"
#include "wgrad_thin.h"
#include "wino.h"

/* ---- forward and data gradient ------------------------------------------ */

/* Operands of both: out = in * w. */
enum { IN = DDP__CONV_FWD_X, WEIGHT = DDP__CONV_FWD_W, OUT = DDP__CONV_FWD_Y };
_Static_assert((int)DDP__CONV_BWD_X_DY == (int)IN &&
                   (int)DDP__CONV_BWD_X_W == (int)WEIGHT &&
                   (int)DDP__CONV_BWD_X_DX == (int)OUT,
               "both passes run through the same functions");

/* How weights get packed. */
struct pack_source {
    const struct ddp__plan *plan;
    const struct ddp__dnn *dnn;
    const float *w;
};

/* Of each filter, the tap that becomes tap `at` of the one turned round. */
static size_t turned_tap(const struct ddp__plan *p, int at)
{
    const struct ddp__taps *t = &p->taps;
    const struct ddp__conv *k = &p->shape.conv;
    int y = k->kh - 1 - at / k->kw, x = k->kw - 1 - at % k->kw;

    return (size_t)((t->y + t->step_y * y) * t->width + t->x + t->step_x * x);
}

static void flip_taps(const struct ddp__plan *p, const float *w, float *to)
{
    const struct ddp__conv *k = &p->shape.conv;
    size_t c = (size_t)(p->shape.c / k->groups);
    size_t all = (size_t)(p->taps.height * p->taps.width);

    for (int i = 0; i < p->shape.o; i++, w += all * c)
        for (int at = 0; at < k->kh * k->kw; at++, to += c)
            memcpy(to, w + turned_tap(p, at) * c, c * sizeof(*w));
}

static void pack_taps(const struct pack_source *f, void *to, int part)
{
    const struct ddp__plan *p = f->plan;
    const struct ddp__conv *k = &p->shape.conv;
    int taps = p->shape.dense ? 1 : k->kh * k->kw;
    bool flips = ddp__plan_flips(p);
    size_t all =
        flips ? (size_t)(p->taps.height * p->taps.width) : (size_t)taps;

    for (int at = 0; at < taps; at++)
        ddp__dnn_pack_tap(f->dnn, f->w, all,
                          flips ? turned_tap(p, at) : (size_t)at, to,
                          (size_t)at, part);
}

static int pack_for_primitive(const void *arg, void *to, int part)
{
    const struct pack_source *f = arg;
    const struct ddp__plan *p = f->plan;
    size_t need = ddp__align(ddp__dnn_scratch(f->dnn));
    const float *w = f->w;
    char *scratch;

    if (ddp__dnn_packs_taps(f->dnn)) {
        pack_taps(f, to, part);
        return 0;
    }
    if (!(scratch = ddp__scratch(
              need + (ddp__plan_flips(p) ? p->weights * sizeof(*w) : 0))))
        return DDP_ENOMEM;
    if (ddp__plan_flips(p)) {
        flip_taps(p, w, (float *)(void *)(scratch + need));
        w = (float *)(void *)(scratch + need);
    }
    if (!ddp__dnn_is_plain(f->dnn))
        return ddp__dnn_pack(f->dnn, w, to, scratch);
    memcpy(to, w, p->weights * sizeof(*w));
    return 0;
}

int ddp__conv_weights(const struct ddp__task *t, struct ddp__plan *p,
                      const struct ddp__dnn *d, struct ddp__pack **k, void **w)
{
    struct pack_source from = {p, d, t->data[WEIGHT]};
    int rc;

    *k = NULL;
    *w = t->data[WEIGHT];
    if (!p->transposed && ddp__dnn_is_plain(d))
        return 0;
    rc = ddp__pack_get(
        &p->packs, k, d, t->id[WEIGHT], t->version[WEIGHT],
        &(struct ddp__packing){pack_for_primitive, &from, ddp__dnn_parts(d),
                               ddp__dnn_packed_size(d), ddp__packed_key(t, p)});
    if (!rc)
        *w = (*k)->data;
    return rc;
}

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
static int run_strip(const struct ddp__task *t, struct ddp__plan *p)
{
    struct ddp__dnn_shape one = ddp__plan_shape(p, 1);
    struct ddp__dnn_shape all = ddp__plan_shape(p, t->n);
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
    const struct ddp__dnn_shape *s = &p->shape;
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

static int run_phases(const struct ddp__task *t, struct ddp__plan *p)
{
    const struct ddp__conv *k = &p->shape.conv;

    for (int i = 0; i < k->sh * k->sw; i++) {
        struct ddp__plan *phase = p->phase[i];
        void *from = NULL;

        if (phase) {
            const struct ddp__dnn_shape *s = &phase->shape;
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

static int run_dnn_gradient(const struct ddp__task *t)
{
    struct ddp__plan *p = t->plan;
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

/* ---- all passes --------------------------------------------------------- */

static int run_skinny(const struct ddp__task *t, const struct ddp__plan *p)
{
    struct ddp__dnn_shape s = p->shape;

    s.n = t->n;
    return ddp__skinny_dense(t, &s, p->pass);
}

static int run_dense(const struct ddp__task *t, const struct ddp__plan *p)
{
    struct ddp__dnn_shape s = p->shape;

    s.n = t->n;
    return p->pass == DDP__FWD
               ? ddp__dense_fwd(&s, t->data[IN], t->data[WEIGHT], t->data[OUT])
               : ddp__dense_bwd_x(&s, t->data[IN], t->data[WEIGHT],
                                  t->data[OUT]);
}

/* run: one of libddp's kernels, dw (+)= what x and dy give.  The gradient of
 * a bias takes another pass over dy, which is a small part of the time. */
static int run_gradient(const struct ddp__task *t, const struct ddp__plan *p,
                        int (*run)(const struct ddp__dnn_shape *s,
                                   const void *x, const void *dy,
                                   bool accumulate, float *dw))
{
    struct ddp__dnn_shape s = p->shape;
    const void *dy = t->data[DDP__CONV_BWD_W_DY];
    float *g = t->data[DDP__CONV_BWD_W_G];
    int rc;

    s.n = t->n;
    rc = run(&s, t->data[DDP__CONV_BWD_W_X], dy, t->accumulate, g);
    if (!rc && s.conv.bias)
        ddp__bias_gradient(&s, dy, t->accumulate, g + p->weights);
    return rc;
}

static int run_taps(const struct ddp__task *t, const struct ddp__plan *p)
{
    struct ddp__dnn_shape s = p->shape;
    const float *w = t->data[WEIGHT];
    bool bias = s.conv.bias && p->pass == DDP__FWD;

    if (p->pass == DDP__BWD_W)
        return run_gradient(t, p, ddp__taps_wgrad);
    s.n = t->n;
    return ddp__taps_run(&s, p->pass, t->data[IN], w,
                         bias ? w + p->weights : NULL, t->data[OUT]);
}

static int run_plan(const struct ddp__task *t)
{
    struct ddp__plan *p = t->plan;

    switch (p->way) {
    case DDP__WAY_ROWS:
        return ddp__rows_run(t, p);
    case DDP__WAY_STRIP:
        return run_strip(t, p);
    case DDP__WAY_PHASES:
        return run_phases(t, p);
    case DDP__WAY_PATCHES:
        return ddp__patch_run(t, p);
    case DDP__WAY_SKINNY:
        return run_skinny(t, p);
    case DDP__WAY_TAPS:
        return run_taps(t, p);
    case DDP__WAY_DENSE:
        return p->pass == DDP__BWD_W ? run_gradient(t, p, ddp__dense_wgrad_run)
                                     : run_dense(t, p);
    case DDP__WAY_DEPTHWISE:
        return ddp__depthwise_run(t, &p->shape, p->pass);
    case DDP__WAY_WINO:
    case DDP__WAY_THIN:
    case DDP__WAY_AMX_PIXELS:
    case DDP__WAY_INFER:
        return ddp__packed_run(t, p, NULL,
                               (float *)t->data[WEIGHT] + p->weights);
    case DDP__WAY_DEPTHWISE_TRAIN:
        return ddp__depthwise_train_run(t, &p->shape, p->pass);
    case DDP__WAY_WINO_WGRAD:
        return run_gradient(t, p, ddp__wino_bwd_w);
    case DDP__WAY_AMX:
        return run_gradient(t, p, ddp__amx_bwd_w);
    case DDP__WAY_AMX_TAPS:
        return run_gradient(t, p, ddp__amx_taps_run);
    case DDP__WAY_WGRAD:
        return run_gradient(t, p, ddp__wgrad_run);
    case DDP__WAY_WGRAD_THIN:
        return run_gradient(t, p, ddp__wgrad_thin_run);
    case DDP__WAY_DEPTHWISE_WGRAD:
        return ddp__depthwise_wgrad_run(t, &p->shape);
    case DDP__WAY_DEPTHWISE_WGRAD_ROWS:
        return run_gradient(t, p, ddp__depthwise_wgrad_rows_run);
    case DDP__WAY_PRIMITIVE:
    case DDP__WAYS:
        break;
    }
    return p->pass == DDP__BWD_W ? run_dnn_gradient(t)
                                 : run_primitive(t, p, 0, NULL);
}

int ddp__cpu_conv_fwd(const struct ddp__task *t)
{
    return run_plan(t);
}

int ddp__cpu_conv_bwd_x(const struct ddp__task *t)
{
    return run_plan(t);
}

int ddp__cpu_conv_bwd_w(const struct ddp__task *t)
{
    return run_plan(t);
}

int ddp__cpu_dense_fwd(const struct ddp__task *t)
{
    return run_plan(t);
}

int ddp__cpu_dense_bwd_x(const struct ddp__task *t)
{
    return run_plan(t);
}

int ddp__cpu_dense_bwd_w(const struct ddp__task *t)
{
    return run_plan(t);
}
