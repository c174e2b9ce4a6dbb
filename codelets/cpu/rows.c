/* rows.c - a convolution of one image in parts, each of some rows
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Which parts there are depends on the layer alone, so that its bits do not
 * depend on how many workers share them.
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/team.h"
#include "conv.h"
#include "cpu.h"
#include "onednn_pd.h"
#include "rows.h"
#include "thread.h"

/* What a part should take at least, and an estimate of how long a core takes:
 * FLOPs and bytes in a microsecond. */
enum { MOST_PARTS = 8, PART_US = 25, FLOPS = 60000, BYTES = 20000 };

/* A part: rows of output, the first row of input that it reads. */
struct ddp__rows {
    int first, in;
    struct ddp__dnn *dnn; /* owned */
};

static int count_parts(const struct ddp__dnn_shape *s)
{
    const struct ddp__conv *k = &s->conv;
    double in = (double)s->h * s->w * s->c, out = (double)s->oh * s->ow * s->o;
    double flops = 2 * out * k->kh * k->kw * s->c / k->groups;
    double us =
        flops / FLOPS + (in + out) * (double)ddp__dtype_size(s->type) / BYTES;
    int parts = us / PART_US < MOST_PARTS ? (int)(us / PART_US) : MOST_PARTS;

    return parts < s->oh ? parts : s->oh;
}

/* The layer that computes rows first .. end - 1 of s, and where its input
 * begins. */
static struct ddp__dnn_shape shape_of_rows(const struct ddp__dnn_shape *s,
                                           int first, int end, int *in)
{
    const struct ddp__conv *k = &s->conv;
    int above = first * k->sh - k->top;
    int below = (end - 1) * k->sh - k->top + k->dh * (k->kh - 1) + 1;
    struct ddp__dnn_shape u = *s;

    *in = above > 0 ? above : 0;
    u.conv.top = *in - above;
    u.conv.bottom = below > s->h ? below - s->h : 0;
    u.h = (below < s->h ? below : s->h) - *in;
    u.oh = end - first;
    return u;
}

static int make_part(struct ddp__plan *p, int i, int parts)
{
    const struct ddp__dnn_shape *s = &p->shape;
    struct ddp__rows *r = &p->rows[i];
    struct ddp__dnn_shape u;

    r->first = i * s->oh / parts;
    u = shape_of_rows(s, r->first, (i + 1) * s->oh / parts, &r->in);
    if (u.h <= 0 || ddp__dnn_is_wrong(&u))
        return DDP_ENODEV;
    return ddp__dnn_new(&r->dnn, &u, DDP__FWD, false);
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
    struct ddp__plan *p;
};

static int run_rows(void *arg, int i)
{
    enum { IN = DDP__CONV_FWD_X, WEIGHT = DDP__CONV_FWD_W };
    const struct ddp__task *t = ((struct run *)arg)->t;
    struct ddp__plan *p = ((struct run *)arg)->p;
    const struct ddp__dnn_shape *s = &p->shape;
    const struct ddp__rows *r = &p->rows[i];
    size_t size = ddp__dtype_size(s->type);
    size_t in = (size_t)r->in * (size_t)s->w * (size_t)s->c * size;
    size_t out = (size_t)r->first * (size_t)s->ow * (size_t)s->o * size;
    float *plain = t->data[WEIGHT];
    struct ddp__pack *k;
    char *scratch;
    void *w;
    int rc = ddp__conv_weights(t, p, r->dnn, &k, &w);

    if (rc < 0)
        return rc;
    if ((scratch = ddp__scratch(ddp__align(ddp__dnn_scratch(r->dnn)))))
        rc = ddp__dnn_run(r->dnn, (char *)t->data[IN] + in, w,
                          s->conv.bias ? plain + p->weights : NULL,
                          (char *)t->data[DDP__CONV_FWD_Y] + out, scratch);
    else
        rc = DDP_ENOMEM;
    if (k)
        ddp__pack_put(&p->packs, k);
    return rc;
}

int ddp__rows_run(const struct ddp__task *t, struct ddp__plan *p)
{
    return ddp__team_each(p->parts, run_rows, &(struct run){t, p});
}
