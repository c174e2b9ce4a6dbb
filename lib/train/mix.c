/* mix.c - mixup and cutmix: samples of a sub-batch in pairs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A sub-batch is the same for any number of workers and ranks, and one task
 * reads it, so pairs are made inside of it.
 *
 * Source   Zhang et al., "mixup", 2018; Yun et al., "CutMix", 2019; as timm's
 *          mixup.py has them: FastCollateMixup, mode batch.
 */
#include "config.h"

#include <math.h>

#include "base/philox.h"
#include "base/random.h"
#include "train/mix.h"

bool ddp__mix_used(const struct ddp__mix *m)
{
    return m->mixup > 0 || m->cutmix > 0;
}

/* ---- what the key decides ----------------------------------------------- */

/* From begin to end, `reach` to each side of the middle, inside of 0..n. */
static int cut_side(uint32_t bits, int n, int reach, int *len)
{
    int middle = (int)((uint64_t)bits * (uint64_t)n >> 32);
    int begin = middle > reach ? middle - reach : 0;
    int end = middle + reach < n ? middle + reach : n;

    *len = end - begin;
    return begin;
}

/* A box of about 1 - own of the area.  What the edge takes off, own gets. */
static void plan_cut(struct ddp__mixture *p, uint64_t key,
                     struct ddp_shape shape)
{
    struct ddp__philox r = ddp__philox(key, 1, 0);
    double side = sqrt(1 - (double)p->own);

    p->cut = true;
    p->y = cut_side(r.v[0], shape.h, (int)(shape.h * side) / 2, &p->h);
    p->x = cut_side(r.v[1], shape.w, (int)(shape.w * side) / 2, &p->w);
    p->own = (float)(1 - (double)p->w * p->h / ((double)shape.w * shape.h));
}

struct ddp__mixture ddp__mix_plan(const struct ddp__mix *m, uint64_t key,
                                  struct ddp_shape shape)
{
    struct ddp__philox r = ddp__philox(key, 0, 0);
    struct ddp__mixture p = {.own = 1};
    bool cut = m->cutmix > 0 &&
               (!(m->mixup > 0) || (double)ddp__uniform(r.v[1]) < m->change);

    if (!((double)ddp__uniform(r.v[0]) < m->share))
        return p;
    p.own = ddp__draw_beta(ddp__key(key, 2, 0), cut ? m->cutmix : m->mixup);
    if (cut)
        plan_cut(&p, key, shape);
    return p;
}

/* ---- pairs -------------------------------------------------------------- */

static void mix_floats(float own, float *a, float *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        float x = a[i], y = b[i];

        a[i] = own * x + (1 - own) * y;
        b[i] = own * y + (1 - own) * x;
    }
}

/* Rounded, halves to even, as FastCollateMixup does. */
static void mix_bytes(float own, uint8_t *a, uint8_t *b, size_t len)
{
    float other = 1 - own;

    for (size_t i = 0; i < len; i++) {
        float x = a[i], y = b[i];

        a[i] = (uint8_t)lrintf(own * x + other * y);
        b[i] = (uint8_t)lrintf(own * y + other * x);
    }
}

static void swap_bytes(uint8_t *a, uint8_t *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint8_t was = a[i];

        a[i] = b[i];
        b[i] = was;
    }
}

static void swap_box(const struct ddp__mixture *m, struct ddp_shape shape,
                     size_t pixel, uint8_t *a, uint8_t *b)
{
    for (int y = m->y; y < m->y + m->h; y++) {
        size_t at = ((size_t)y * (size_t)shape.w + (size_t)m->x) * pixel;

        swap_bytes(a + at, b + at, (size_t)m->w * pixel);
    }
}

static void mix_pair(const struct ddp__mixture *m, const struct ddp__view *v,
                     uint8_t *a, uint8_t *b)
{
    size_t len = (size_t)v->shape.h * (size_t)v->shape.w * (size_t)v->shape.c;
    size_t pixel = (size_t)v->shape.c * ddp__dtype_size(v->type);

    if (m->cut)
        swap_box(m, v->shape, pixel, a, b);
    else if (v->type == DDP_U8)
        mix_bytes(m->own, a, b, len);
    else
        mix_floats(m->own, (float *)(void *)a, (float *)(void *)b, len);
}

void ddp__mix_apply(const struct ddp__mixture *m, const struct ddp__task *t)
{
    const struct ddp__view *v = &t->call->buf[DDP__FILL_X];
    size_t size =
        ddp__len(t, DDP__FILL_X) / (size_t)t->n * ddp__dtype_size(v->type);
    size_t len = (size_t)t->call->buf[DDP__FILL_TARGET].shape.c;
    float *target = t->data[DDP__FILL_TARGET];
    uint8_t *x = t->data[DDP__FILL_X];

    for (size_t i = 0, j = (size_t)t->n - 1; m->own < 1 && i < j; i++, j--) {
        mix_pair(m, v, x + i * size, x + j * size);
        mix_floats(m->own, target + i * len, target + j * len, len);
    }
}
