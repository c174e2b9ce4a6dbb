/* plan.c - what a convolution or dense layer keeps between its runs */
#include "config.h"

#include <stdlib.h>

#include "amx.h"
#include "cpu.h"
#include "plan.h"
#include "wino.h"

/* The layer as it is seen by the forward pass: buffers of x and y. */
static void describe(const struct ddp__call *c, struct ddp__plan *p)
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

bool ddp__plan_transpose(const struct ddp__dnn_shape *s,
                         struct ddp__dnn_shape *t)
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

static int variant_new(struct ddp__plan *p, int n, struct ddp__variant **out)
{
    struct ddp__dnn_shape s = p->shape;
    struct ddp__variant *v;
    int rc;

    if (p->transposed)
        ddp__plan_transpose(&p->shape, &s);
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

static struct ddp__variant *find(struct ddp__plan *p, int n)
{
    struct ddp__variant *v = __atomic_load_n(&p->variant, __ATOMIC_ACQUIRE);

    while (v && v->n != n)
        v = v->next;
    return v;
}

int ddp__plan_primitive(struct ddp__plan *p, int n, struct ddp__dnn **out)
{
    struct ddp__variant *v = find(p, n);
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

static void plan_free(struct ddp__plan *p)
{
    struct ddp__variant *v, *next;

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
    struct ddp__plan *p;
    int rc;

    if (!(p = calloc(1, sizeof(*p))))
        return ddp__fail(DDP_ENOMEM, "the plan of a convolution");
    if (c->op == DDP__OP_CONV_BWD_X || c->op == DDP__OP_DENSE_BWD_X)
        p->pass = DDP__BWD_X;
    else if (c->op == DDP__OP_CONV_BWD_W || c->op == DDP__OP_DENSE_BWD_W)
        p->pass = DDP__BWD_W;
    describe(c, p);
    p->transposed = p->pass == DDP__BWD_X && ddp__plan_transpose(&p->shape, &t);
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
    if ((rc = ddp__plan_primitive(p, c->cap, &d)) < 0)
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
