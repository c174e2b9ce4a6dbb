/* plan_names.c - which kernels a plan would have, for people
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "plan.h"
#include "plan_names.h"
#include "plan_shape.h"
#include "way.h"

static int list_names(const struct ddp__plan *p,
                      int (*each)(const char *name, void *arg), void *arg)
{
    struct ddp__conv_shape s = ddp__plan_shape(p, p->shape.n);
    char name[DDP__DNN_NAME];
    int rc = 0;

    if (ddp__way_kernel(p))
        return each(ddp__way_kernel(p), arg);
    if (p->way == DDP__WAY_PATCHES)
        return list_names(p->product, each, arg);
    for (int i = 0; i < ddp__plan_phases(p) && !rc; i++)
        if (p->phase[i])
            rc = list_names(p->phase[i], each, arg);
    if (p->way == DDP__WAY_PHASES)
        return rc;
    rc = ddp__dnn_find(&s, p->transposed ? DDP__FWD : p->pass, p->transposed,
                       name);
    return rc < 0 ? rc : each(name, arg);
}

int ddp__cpu_conv_names(const struct ddp__call *c,
                        int (*each)(const char *name, void *arg), void *arg)
{
    struct ddp__plan *p;
    int rc = ddp__plan_new(c, &p);

    if (rc < 0)
        return rc;
    rc = list_names(p, each, arg);
    ddp__plan_free(p);
    return rc;
}
