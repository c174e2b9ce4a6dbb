/* ema.c - exponential moving averages of the weights
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Every parameter has one, running statistics too, as timm's ModelEmaV2: after
 * each update e += (1 - decay) (w - e), in the step's graph.  A step that is
 * not applied leaves them as they are.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/ema.h"
#include "graph/param_values.h"
#include "graph/params_bind.h"
#include "runtime/devices.h"
#include "runtime/pool.h"

/* ---- making ------------------------------------------------------------- */

static int make_bucket(const ddp_t *ddp, struct ddp__average *a,
                       const struct ddp__bucket *k, double decay)
{
    struct ddp__view v = {.type = DDP_F32, .shape = {1, 1, (int)k->len}};
    struct ddp__view stats = {.type = DDP_F64, .shape = {1, 1, DDP__STATS}};

    if (!(a->memory = ddp__pool_alloc(k->len * 4)))
        return ddp__fail(DDP_ENOMEM,
                         "out of memory for averages of the weights");
    ddp__handle_register(&a->handle, a->memory, k->len * 4);
    a->call = (struct ddp__call){
        .op = DDP__OP_EMA,
        .cap = 1,
        .buf =
            {[DDP__EMA_DST] = v, [DDP__EMA_SRC] = v, [DDP__EMA_STATS] = stats},
        .buffers = DDP__EMA_BUFFERS,
        .ema = {decay}};
    return ddp__call_prepare(ddp, &a->call);
}

int ddp__ema_new(struct ddp__ema **out, struct ddp__params *p, double decay)
{
    struct ddp__ema *m = calloc(1, sizeof(*m));
    int rc = 0;

    if (m)
        m->bucket = calloc((size_t)p->buckets + 1, sizeof(*m->bucket));
    if (!m || !m->bucket) {
        free(m);
        return ddp__fail(DDP_ENOMEM,
                         "out of memory for averages of the weights");
    }
    m->params = p;
    m->buckets = p->buckets;
    *out = m;
    for (int b = 0; rc == 0 && b < p->buckets; b++)
        rc = make_bucket(p->ddp, &m->bucket[b], &p->bucket[b], decay);
    return rc;
}

void ddp__ema_free(struct ddp__ema *m)
{
    if (!m)
        return;
    for (int b = 0; b < m->buckets; b++) {
        struct ddp__average *a = &m->bucket[b];

        ddp__call_release(&a->call);
        if (!a->memory)
            continue;
        ddp__handle_unregister(&a->handle);
        ddp__pool_free(a->memory, a->handle.size);
    }
    free(m->bucket);
    free(m);
}

/* ---- values ------------------------------------------------------------- */

int ddp__ema_begin(struct ddp__ema *m)
{
    int rc;

    if (m->begun)
        return 0;
    if ((rc = ddp__params_begin(m->params, false)) < 0)
        return rc;
    for (int b = 0; rc == 0 && b < m->params->buckets; b++) {
        const struct ddp__bucket *k = &m->params->bucket[b];

        if (!ddp__handle_open(&m->bucket[b].handle, true, "averages")) {
            rc = ddp_errcode();
            break;
        }
        memcpy(m->bucket[b].memory, k->w, k->len * 4);
        ddp__handle_close(&m->bucket[b].handle);
    }
    ddp__params_end(m->params);
    m->begun = rc == 0;
    return rc;
}

/* Open the average of a parameter for the host. */
struct opened {
    struct ddp__handle *handle;
    const struct ddp_param *param;
    float *values;
};

/* The average of a parameter of len values.  Starts the averages if they have
 * not been started. */
static int open_average(struct ddp__ema *m, const char *name,
                        const float *values, size_t len, bool write,
                        struct opened *to)
{
    const struct ddp__param_block *b;
    int i, rc;

    if ((rc = ddp__ema_begin(m)) < 0 ||
        (rc = ddp__params_find_for(m->params, name, values, len, &b, &i)) < 0)
        return rc;
    to->handle = &m->bucket[b->bucket].handle;
    to->param = &b->param[i];
    to->values = m->bucket[b->bucket].memory + b->offset + b->param_offset[i];
    return ddp__handle_open(to->handle, write, "averages") ? 0 : ddp_errcode();
}

int ddp__ema_get(struct ddp__ema *m, const char *name, float *out, size_t len)
{
    struct opened from = {0};
    int rc = open_average(m, name, out, len, false, &from);

    if (rc < 0)
        return rc;
    ddp__param_export(from.param, from.values, out);
    ddp__handle_close(from.handle);
    return 0;
}

int ddp__ema_set(struct ddp__ema *m, const char *name, const float *in,
                 size_t len)
{
    struct opened to = {0};
    int rc = open_average(m, name, in, len, true, &to);

    if (rc < 0)
        return rc;
    ddp__param_import(to.param, in, to.values);
    ddp__handle_close(to.handle);
    return 0;
}
