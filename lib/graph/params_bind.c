/* params_bind.c - parameters that a context holds as StarPU data
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "graph/params_bind.h"

#include <string.h>

#include "base/error.h"
#include "graph/param_values.h"
#include "runtime/lost.h"

/* The context ends before the chain does. */
static void unbind_params(struct ddp__bound *b)
{
    ddp__params_unbind((struct ddp__params *)b);
}

int ddp__params_bind(struct ddp__params *p, ddp_t *ddp, bool values)
{
    int rc;

    if (p->ddp && p->ddp != ddp)
        return ddp__fail(DDP_EINVAL, "the chain belongs to another context");
    if ((rc = values ? ddp__params_need_values(p) : ddp__params_reserve(p)) <
            0 ||
        p->ddp)
        return rc;
    for (int b = 0; b < p->buckets; b++)
        ddp__handle_register(&p->bucket[b].handle, p->bucket[b].w,
                             p->bucket[b].len * 4);
    p->ddp = ddp;
    p->bound.unbind = unbind_params;
    ddp__context_bind(ddp, &p->bound);
    return 0;
}

struct ddp__kept *ddp__params_take(struct ddp__params *p,
                                   void (*free)(struct ddp__kept *k))
{
    struct ddp__kept **at = &p->kept, *k;

    while (*at && (*at)->free != free)
        at = &(*at)->next;
    if ((k = *at))
        *at = k->next;
    return k;
}

void ddp__params_keep(struct ddp__params *p, struct ddp__kept *k)
{
    struct ddp__kept *old = ddp__params_take(p, k->free);

    if (old)
        old->free(old);
    k->next = p->kept;
    p->kept = k;
}

void ddp__params_unbind(struct ddp__params *p)
{
    struct ddp__kept *k;

    if (!p->ddp)
        return;
    while ((k = p->kept)) {
        p->kept = k->next;
        k->free(k);
    }
    for (int b = 0; b < p->buckets; b++) {
        ddp__handle_unregister(&p->bucket[b].handle);
        if (ddp__lost_any()) /* NaN: nobody takes them for weights */
            memset(p->bucket[b].w, 0xff, p->bucket[b].len * 4);
    }
    ddp__context_unbind(p->ddp, &p->bound);
    p->ddp = NULL;
}

int ddp__params_begin(struct ddp__params *p, bool write)
{
    int rc = write ? ddp__params_reserve(p) : ddp__params_need_values(p);

    if (rc < 0)
        return rc;
    for (int b = 0; p->ddp && b < p->buckets; b++)
        if (!ddp__handle_open(&p->bucket[b].handle, write, "weights")) {
            while (b-- > 0)
                ddp__handle_close(&p->bucket[b].handle);
            return ddp_errcode();
        }
    return 0;
}

void ddp__params_end(struct ddp__params *p)
{
    for (int b = 0; p->ddp && b < p->buckets; b++)
        ddp__handle_close(&p->bucket[b].handle);
}
