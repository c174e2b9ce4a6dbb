/* plan_variant.c - a plan's primitives, one for each number of samples
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "plan_shape.h"
#include "plan_variant.h"

static int variant_new(struct ddp__plan *p, int n, struct ddp__variant **out)
{
    struct ddp__conv_shape s = ddp__plan_shape(p, n);
    struct ddp__variant *v;
    int rc;

    if (!(v = calloc(1, sizeof(*v))))
        return ddp__fail(DDP_ENOMEM,
                         "out of memory for a convolution of %d samples", n);
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

static struct ddp__variant *find_variant(struct ddp__plan *p, int n)
{
    struct ddp__variant *v = __atomic_load_n(&p->variant, __ATOMIC_ACQUIRE);

    while (v && v->n != n)
        v = v->next;
    return v;
}

int ddp__plan_primitive(struct ddp__plan *p, int n, struct ddp__dnn **out)
{
    struct ddp__variant *v = find_variant(p, n);
    int rc = 0;

    if (!v) {
        pthread_mutex_lock(&p->lock);
        if (!(v = find_variant(p, n)))
            rc = variant_new(p, n, &v);
        pthread_mutex_unlock(&p->lock);
    }
    if (!rc)
        *out = v->dnn;
    return rc;
}

void ddp__plan_variants_free(struct ddp__plan *p)
{
    struct ddp__variant *v, *next;

    for (v = p->variant; v; v = next) {
        next = v->next;
        ddp__dnn_free(v->dnn);
        free(v);
    }
}
