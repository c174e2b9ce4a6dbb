/* conv.c - convolutions and dense layers of CPU workers: by oneDNN, or by own
 * kernels where those are faster
 */
#include "config.h"

#include "amx.h"
#include "cpu.h"
#include "plan.h"
#include "wino.h"

/* ---- forward and data gradient ------------------------------------------ */

/* How weights get packed. */
struct fill {
    const struct ddp__plan *plan;
    const struct ddp__dnn *dnn;
    const float *w;
};

/* Turn the taps of each filter round. */
static void flip(const struct ddp__dnn_shape *s, const float *w, float *to)
{
    size_t taps = (size_t)s->conv.kh * (size_t)s->conv.kw;
    size_t c = (size_t)s->c, o = (size_t)s->o;

    for (size_t i = 0; i < o; i++)
        for (size_t k = 0; k < taps; k++)
            memcpy(to + (i * taps + k) * c, w + (i * taps + taps - 1 - k) * c,
                   c * sizeof(*w));
}

static int fill(const void *arg, void *to)
{
    const struct fill *f = arg;
    const struct ddp__plan *p = f->plan;
    size_t need = ddp__align(ddp__dnn_scratch(f->dnn));
    const float *w = f->w;
    char *scratch =
        ddp__scratch(need + (p->transposed ? p->weights * sizeof(*w) : 0));

    if (!scratch)
        return DDP_ENOMEM;
    if (p->transposed && p->shape.conv.kh * p->shape.conv.kw > 1) {
        flip(&p->shape, w, (float *)(void *)(scratch + need));
        w = (float *)(void *)(scratch + need);
    }
    if (!ddp__dnn_is_plain(f->dnn))
        return ddp__dnn_pack(f->dnn, w, to, scratch);
    memcpy(to, w, p->weights * sizeof(*w));
    return 0;
}

static int fill_wino(const void *arg, void *to)
{
    const struct fill *f = arg;
    const struct ddp__dnn_shape *s = &f->plan->shape;

    ddp__wino_weights(f->w, (size_t)s->o, (size_t)s->c, f->plan->transposed,
                      to);
    return 0;
}

static int apply_wino(const struct ddp__task *t, struct ddp__plan *p)
{
    struct ddp__dnn_shape s = p->shape;
    const float *w = t->data[1];
    struct ddp__pack *k;
    int rc;

    if (p->transposed)
        ddp__plan_transpose(&p->shape, &s);
    s.n = t->n;
    rc = ddp__pack_get(&p->packs, &k, ddp__wino_packed_size(&s), NULL, t->id[1],
                       t->version[1], fill_wino, &(struct fill){p, NULL, w});
    if (rc < 0)
        return rc;
    rc = ddp__wino_run(&s, t->data[0], k->data,
                       s.conv.bias ? w + p->weights : NULL, t->data[2]);
    ddp__pack_put(&p->packs, k);
    return rc;
}

/* y = w * x, or its transpose: buffers in, w, out. */
static int apply(const struct ddp__task *t)
{
    struct ddp__plan *p = t->call->plan;
    float *w = t->data[1];
    bool bias = p->shape.conv.bias && p->pass == DDP__FWD;
    struct ddp__pack *k = NULL;
    struct ddp__dnn *d;
    void *packed = w, *scratch, *in = t->data[0], *out = t->data[2];
    int rc;

    if (p->wino)
        return apply_wino(t, p);
    if ((rc = ddp__plan_primitive(p, t->n, &d)) < 0)
        return rc;
    if (p->transposed || !ddp__dnn_is_plain(d)) {
        rc = ddp__pack_get(&p->packs, &k, ddp__dnn_packed_size(d), d, t->id[1],
                           t->version[1], fill, &(struct fill){p, d, w});
        if (rc < 0)
            return rc;
        packed = k->data;
    }
    if (!(scratch = ddp__scratch(ddp__dnn_scratch(d))))
        rc = DDP_ENOMEM;
    else if (p->pass == DDP__FWD || p->transposed)
        rc = ddp__dnn_run(d, in, packed, bias ? w + p->weights : NULL, out,
                          scratch);
    else
        rc = ddp__dnn_run(d, out, packed, NULL, in, scratch);
    if (k)
        ddp__pack_put(&p->packs, k);
    return rc;
}

int ddp__cpu_conv_fwd(const struct ddp__task *t)
{
    return apply(t);
}

int ddp__cpu_conv_bwd_x(const struct ddp__task *t)
{
    return apply(t);
}

int ddp__cpu_dense_fwd(const struct ddp__task *t)
{
    return apply(t);
}

int ddp__cpu_dense_bwd_x(const struct ddp__task *t)
{
    return apply(t);
}

/* ---- weight gradient ---------------------------------------------------- */

/* Buffers x, dy, g.  oneDNN writes its own layout and never adds, so the
 * gradient takes up to two detours. */
static int gradient(const struct ddp__task *t)
{
    struct ddp__plan *p = t->call->plan;
    float *g = t->data[2], *packed = g, *plain = g, *bias;
    size_t o = (size_t)p->shape.o, len = p->weights * sizeof(*g);
    size_t at_packed, at_plain, at_bias;
    struct ddp__dnn *d;
    char *scratch;
    int rc;

    if (p->wino || p->amx) {
        struct ddp__dnn_shape s = p->shape;

        s.n = t->n;
        return p->amx ? ddp__amx_bwd_w(&s, t->data[0], t->data[1],
                                       t->accumulate, g)
                      : ddp__wino_bwd_w(&s, t->data[0], t->data[1],
                                        t->accumulate, g);
    }
    if ((rc = ddp__plan_primitive(p, t->n, &d)) < 0)
        return rc;
    at_packed = ddp__align(ddp__dnn_scratch(d));
    at_plain = at_packed + ddp__align(ddp__dnn_packed_size(d));
    at_bias = at_plain + ddp__align(len);
    if (!(scratch = ddp__scratch(at_bias + o * sizeof(*g))))
        return DDP_ENOMEM;
    bias = g + p->weights;
    if (t->accumulate) {
        plain = (float *)(void *)(scratch + at_plain);
        bias = (float *)(void *)(scratch + at_bias);
    }
    packed =
        ddp__dnn_is_plain(d) ? plain : (float *)(void *)(scratch + at_packed);
    rc = ddp__dnn_run(d, t->data[0], packed, p->shape.conv.bias ? bias : NULL,
                      t->data[1], scratch);
    if (!rc && packed != plain)
        rc = ddp__dnn_pack(d, packed, plain, scratch);
    if (!rc && t->accumulate) {
        ddp__cpu_add_f32(g, plain, p->weights);
        if (p->shape.conv.bias)
            ddp__cpu_add_f32(g + p->weights, bias, o);
    }
    return rc;
}

int ddp__cpu_conv_bwd_w(const struct ddp__task *t)
{
    return gradient(t);
}

int ddp__cpu_dense_bwd_w(const struct ddp__task *t)
{
    return gradient(t);
}
