/* conv.c - convolutions and dense layers of CPU workers, by oneDNN */
#include "config.h"

#include <stdlib.h>

#include "amx.h"
#include "cpu.h"
#include "onednn.h"
#include "pack.h"
#include "wino.h"

/* The primitive for sub-batches of n samples. */
struct variant {
    struct variant *next;
    int n;
    struct ddp__dnn *dnn; /* owned */
};

/* What a call keeps.  The list of variants only grows. */
struct plan {
    struct ddp__dnn_shape shape; /* of the layer; n is the call's cap */
    enum ddp__dnn_pass pass;
    bool transposed; /* the data gradient as a forward pass */
    bool wino, amx;  /* own kernels instead of primitives */
    size_t weights;  /* elements */
    pthread_mutex_t lock;
    struct variant *variant; /* owned */
    struct ddp__packs packs;
};

/* ---- plans -------------------------------------------------------------- */

/* The layer as it is seen by the forward pass: buffers of x and y. */
static void describe(const struct ddp__call *c, struct plan *p)
{
    bool dense = c->op == DDP__OP_DENSE_FWD || c->op == DDP__OP_DENSE_BWD_X ||
                 c->op == DDP__OP_DENSE_BWD_W;
    int at_x = p->pass == DDP__BWD_X ? 2 : 0;
    int at_y = p->pass == DDP__FWD ? 2 : p->pass == DDP__BWD_X ? 0 : 1;
    struct ddp_shape x = c->buf[at_x].shape, y = c->buf[at_y].shape;
    struct ddp__dnn_shape *s = &p->shape;

    *s = (struct ddp__dnn_shape){.dense = dense,
                                 .type = c->buf[at_x].type,
                                 .n = c->cap,
                                 .h = x.h,
                                 .w = x.w,
                                 .c = x.c,
                                 .oh = y.h,
                                 .ow = y.w,
                                 .o = y.c};
    if (dense) {
        s->c = x.h * x.w * x.c;
        s->o = y.h * y.w * y.c;
        s->h = s->w = s->oh = s->ow = 1;
        s->conv = (struct ddp__conv){.kh = 1,
                                     .kw = 1,
                                     .sh = 1,
                                     .sw = 1,
                                     .dh = 1,
                                     .dw = 1,
                                     .groups = 1,
                                     .bias = c->dense.bias,
                                     .act = c->dense.act};
    } else {
        s->conv = c->conv;
    }
    p->weights = (size_t)s->o * (size_t)s->conv.kh * (size_t)s->conv.kw *
                 (size_t)(s->c / s->conv.groups);
}

/* dx of a layer of stride 1 is a forward pass over dy with the filters turned
 * round, which oneDNN 2 does faster than its own data gradient. */
static bool transpose(const struct ddp__dnn_shape *s, struct ddp__dnn_shape *t)
{
    const struct ddp__conv *k = &s->conv;
    struct ddp__conv *u = &t->conv;
    int spread_h = k->dh * (k->kh - 1), spread_w = k->dw * (k->kw - 1);

    *t = *s;
    t->c = s->o;
    t->o = s->c;
    t->h = s->oh;
    t->w = s->ow;
    t->oh = s->h;
    t->ow = s->w;
    u->bias = false;
    u->act = DDP_IDENTITY;
    u->top = spread_h - k->top;
    u->left = spread_w - k->left;
    u->bottom = s->h + spread_h - s->oh - u->top;
    u->right = s->w + spread_w - s->ow - u->left;
    return !s->dense && k->groups == 1 && k->sh == 1 && k->sw == 1 &&
           u->top >= 0 && u->left >= 0 && u->bottom >= 0 && u->right >= 0;
}

static int variant_new(struct plan *p, int n, struct variant **out)
{
    struct ddp__dnn_shape s = p->shape;
    struct variant *v;
    int rc;

    if (p->transposed)
        transpose(&p->shape, &s);
    s.n = n;
    if (!(v = calloc(1, sizeof(*v))))
        return ddp__fail(DDP_ENOMEM, "a convolution of %d samples", n);
    rc = ddp__dnn_new(&v->dnn, &s, p->transposed ? DDP__FWD : p->pass,
                      p->transposed);
    if (rc < 0) {
        free(v);
        return rc;
    }
    v->n = n;
    v->next = p->variant;
    __atomic_store_n(&p->variant, v, __ATOMIC_RELEASE);
    *out = v;
    return 0;
}

static struct variant *find(struct plan *p, int n)
{
    struct variant *v = __atomic_load_n(&p->variant, __ATOMIC_ACQUIRE);

    while (v && v->n != n)
        v = v->next;
    return v;
}

/* The primitive for n samples, made at its first use. */
static int variant_get(struct plan *p, int n, struct ddp__dnn **out)
{
    struct variant *v = find(p, n);
    int rc = 0;

    if (!v) {
        pthread_mutex_lock(&p->lock);
        if (!(v = find(p, n)))
            rc = variant_new(p, n, &v);
        pthread_mutex_unlock(&p->lock);
    }
    if (!rc)
        *out = v->dnn;
    return rc;
}

static void plan_free(struct plan *p)
{
    struct variant *v, *next;

    for (v = p->variant; v; v = next) {
        next = v->next;
        ddp__dnn_free(v->dnn);
        free(v);
    }
    ddp__packs_free(&p->packs);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

int ddp__cpu_conv_prepare(struct ddp__call *c)
{
    struct ddp__dnn_shape t;
    struct ddp__dnn *d;
    struct plan *p;
    int rc;

    if (!(p = calloc(1, sizeof(*p))))
        return ddp__fail(DDP_ENOMEM, "the plan of a convolution");
    if (c->op == DDP__OP_CONV_BWD_X || c->op == DDP__OP_DENSE_BWD_X)
        p->pass = DDP__BWD_X;
    else if (c->op == DDP__OP_CONV_BWD_W || c->op == DDP__OP_DENSE_BWD_W)
        p->pass = DDP__BWD_W;
    describe(c, p);
    p->transposed = p->pass == DDP__BWD_X && transpose(&p->shape, &t);
    pthread_mutex_init(&p->lock, NULL);
    ddp__packs_init(&p->packs);
    p->wino = ddp__wino_fits(&p->shape) &&
              (p->pass != DDP__BWD_X || p->transposed) &&
              (p->pass != DDP__BWD_W || !p->shape.conv.bias);
    p->amx = p->pass == DDP__BWD_W && ddp__amx_fits(&p->shape);
    if (p->wino || p->amx) {
        c->plan = p;
        return 0;
    }
    if ((rc = variant_get(p, c->cap, &d)) < 0)
        plan_free(p);
    else
        c->plan = p;
    return rc;
}

void ddp__cpu_conv_release(struct ddp__call *c)
{
    if (c->plan)
        plan_free(c->plan);
    c->plan = NULL;
}

/* ---- forward and data gradient ------------------------------------------ */

/* How weights get packed. */
struct fill {
    const struct plan *plan;
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
    const struct plan *p = f->plan;
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

static int apply_wino(const struct ddp__task *t, struct plan *p)
{
    struct ddp__dnn_shape s = p->shape;
    const float *w = t->data[1];
    struct ddp__pack *k;
    int rc;

    if (p->transposed)
        transpose(&p->shape, &s);
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
    struct plan *p = t->call->plan;
    float *w = t->data[1];
    bool bias = p->shape.conv.bias && p->pass == DDP__FWD;
    struct ddp__pack *k = NULL;
    struct ddp__dnn *d;
    void *packed = w, *scratch, *in = t->data[0], *out = t->data[2];
    int rc;

    if (p->wino)
        return apply_wino(t, p);
    if ((rc = variant_get(p, t->n, &d)) < 0)
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
    struct plan *p = t->call->plan;
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
    if ((rc = variant_get(p, t->n, &d)) < 0)
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
    packed = ddp__dnn_is_plain(d) ? plain
                                  : (float *)(void *)(scratch + at_packed);
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
