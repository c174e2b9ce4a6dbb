/* rows.c - a convolution of one image in parts, each of some rows
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Which parts there are depends on the layer alone, so that its bits do not
 * depend on how many workers share them.  More and shorter ones would suit more
 * cores, but all cost time: one Zen 5 core, milliseconds of processor time an
 * image, other programs running, without parts, with up to 4 of 80 us, and with
 * up to 8 of 80 and of 25 us:
 *
 *     MobileNetV2      3.82 3.85 4.21 4.38
 *     EfficientNet-B0  7.17 7.48 7.52 7.94
 *
 * Two workers instead of one, before that (up to 8 of 25 us), milliseconds of
 * one image: ResNet-18 9.6, 6.5; MobileNetV2 4.1, 2.4;
 * EfficientNet-B0 7.2, 5.1.
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/team.h"
#include "conv_onednn.h"
#include "conv_weights.h"
#include "cpu/cpu.h"
#include "cpu/onednn/onednn_wrong.h"
#include "cpu/thread.h"
#include "rows.h"

/* What a part should take at least, and an estimate of how long a core takes:
 * FLOPs and bytes in a microsecond. */
enum { MOST_PARTS = 4, PART_US = 80, FLOPS = 60000, BYTES = 20000 };

/* A part: rows of output, the first row of input that it reads. */
struct ddp__rows {
    int first, in;
    struct ddp__dnn *dnn; /* owned */
};

static int count_parts(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;
    double in = (double)s->h * s->w * s->c, out = (double)s->oh * s->ow * s->o;
    double flops = 2 * out * k->kh * k->kw * s->c / k->groups;
    double us =
        flops / FLOPS + (in + out) * (double)ddp__dtype_size(s->type) / BYTES;
    int parts = ddp__team_parts((size_t)us, PART_US);

    parts = parts < MOST_PARTS ? parts : MOST_PARTS;
    return parts < s->oh ? parts : s->oh;
}

/* The layer that computes rows first .. end - 1 of s, and where its input
 * begins. */
static struct ddp__conv_shape shape_of_rows(const struct ddp__conv_shape *s,
                                            int first, int end, int *in)
{
    const struct ddp__conv *k = &s->conv;
    int above = first * k->sh - k->top;
    int below = (end - 1) * k->sh - k->top + k->dh * (k->kh - 1) + 1;
    struct ddp__conv_shape u = *s;

    *in = above > 0 ? above : 0;
    u.conv.top = *in - above;
    u.conv.bottom = below > s->h ? below - s->h : 0;
    u.h = (below < s->h ? below : s->h) - *in;
    u.oh = end - first;
    return u;
}

/* Which all read the same packed weights. */
static int make_part(struct ddp__plan *p, int i, int parts)
{
    const struct ddp__conv_shape *s = &p->shape;
    struct ddp__rows *r = &p->rows[i];
    struct ddp__conv_shape u;
    int rc;

    r->first = i * s->oh / parts;
    u = shape_of_rows(s, r->first, (i + 1) * s->oh / parts, &r->in);
    if (u.h <= 0 || ddp__dnn_is_wrong(&u))
        return DDP_ENODEV;
    rc = ddp__dnn_new(&r->dnn, &u, DDP__FWD, false);
    return rc < 0 || ddp__dnn_same_packed(p->rows[0].dnn, r->dnn) ? rc
                                                                  : DDP_ENODEV;
}

int ddp__rows_new(struct ddp__plan *p)
{
    int parts = count_parts(&p->shape), rc = 0;

    if (parts < 2)
        return 0;
    if (!(p->rows = calloc((size_t)parts, sizeof(*p->rows))))
        return ddp__fail(DDP_ENOMEM, "the parts of a convolution");
    for (; p->parts < parts && rc == 0; p->parts++)
        rc = make_part(p, p->parts, parts);
    if (rc < 0)
        ddp__rows_free(p);
    else
        p->way = DDP__WAY_ROWS;
    return rc == DDP_ENODEV ? 0 : rc;
}

void ddp__rows_free(struct ddp__plan *p)
{
    for (int i = 0; i < p->parts; i++)
        ddp__dnn_free(p->rows[i].dnn);
    free(p->rows);
    p->rows = NULL;
    p->parts = 0;
}

struct run {
    const struct ddp__task *t;
    const struct ddp__plan *p;
    void *w; /* packed */
};

static int run_rows(void *arg, int i)
{
    const struct run *u = arg;
    const struct ddp__plan *p = u->p;
    const struct ddp__conv_shape *s = &p->shape;
    const struct ddp__rows *r = &p->rows[i];
    size_t size = ddp__dtype_size(s->type);
    size_t in = (size_t)r->in * (size_t)s->w * (size_t)s->c * size;
    size_t out = (size_t)r->first * (size_t)s->ow * (size_t)s->o * size;
    float *plain = u->t->data[DDP__CONV_FWD_W];
    char *scratch = ddp__scratch(ddp__align(ddp__dnn_scratch(r->dnn)));

    if (!scratch)
        return DDP_ENOMEM;
    return ddp__dnn_run(r->dnn, (char *)u->t->data[DDP__CONV_FWD_X] + in, u->w,
                        s->conv.bias ? plain + p->weights : NULL,
                        (char *)u->t->data[DDP__CONV_FWD_Y] + out, scratch);
}

int ddp__rows_run(const struct ddp__task *t, struct ddp__plan *p)
{
    struct run u = {t, p, NULL};
    struct ddp__pack *k;
    int rc = ddp__conv_weights(t, p, p->rows[0].dnn, &k, &u.w);

    if (rc < 0)
        return rc;
    rc = ddp__team_each(p->parts, run_rows, &u);
    if (k)
        ddp__pack_put(&p->packs, k);
    return rc;
}
