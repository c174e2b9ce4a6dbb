/* conv_weights.c - weights of convolutions as oneDNN's primitives read them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "conv_onednn.h"
#include "conv_weights.h"
#include "cpu/cpu.h"
#include "cpu/thread.h"
#include "packed.h"

/* How weights get packed. */
struct pack_source {
    const struct ddp__plan *plan;
    const struct ddp__dnn *dnn;
    const float *w;
};

size_t ddp__conv_turned_tap(const struct ddp__plan *p, int at)
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
            memcpy(to, w + ddp__conv_turned_tap(p, at) * c, c * sizeof(*w));
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
                          flips ? ddp__conv_turned_tap(p, at) : (size_t)at, to,
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
    struct pack_source from = {p, d, t->data[DDP__CONV_WEIGHT]};
    int rc;

    *k = NULL;
    *w = t->data[DDP__CONV_WEIGHT];
    if (!p->transposed && ddp__dnn_is_plain(d))
        return 0;
    rc = ddp__pack_get(
        &p->packs, k, d, t->id[DDP__CONV_WEIGHT], t->version[DDP__CONV_WEIGHT],
        &(struct ddp__packing){pack_for_primitive, &from, ddp__dnn_parts(d),
                               ddp__dnn_packed_size(d), ddp__packed_key(t, p)});
    if (!rc)
        *w = (*k)->data;
    return rc;
}
