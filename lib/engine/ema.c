/* ema.c - averages of the weights that trail behind training
 *
 * Every parameter has one, running statistics too, as timm's ModelEmaV2: after
 * each update e += (1 - decay) (w - e), in the step's graph.  A step that is
 * not applied leaves them as they are.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "runtime/devices.h"
#include "train/trainer.h"
#include "weights/weights.h"

/* ---- making ------------------------------------------------------------- */

static int make_bucket(struct ddp__average *a, const struct ddp__bucket *k,
                       double decay)
{
    struct ddp__view v = {.type = DDP_F32, .shape = {1, 1, (int)k->len}};
    struct ddp__view stats = {.type = DDP_F64, .shape = {1, 1, DDP__STATS}};

    if (!(a->memory = ddp__pool_alloc(k->len * 4)))
        return ddp__fail(DDP_ENOMEM, "no memory for averages of the weights");
    ddp__handle_register(&a->handle, a->memory, k->len * 4);
    a->call = (struct ddp__call){
        .op = DDP__OP_EMA,
        .cap = 1,
        .buf =
            {[DDP__EMA_DST] = v, [DDP__EMA_SRC] = v, [DDP__EMA_STATS] = stats},
        .buffers = DDP__EMA_BUFFERS,
        .ema = {decay}};
    return ddp__call_prepare(&a->call);
}

int ddp__ema_new(struct ddp__ema **out, struct ddp__params *p, double decay)
{
    struct ddp__ema *m = calloc(1, sizeof(*m));
    int rc = 0;

    if (m)
        m->bucket = calloc((size_t)p->buckets + 1, sizeof(*m->bucket));
    if (!m || !m->bucket) {
        free(m);
        return ddp__fail(DDP_ENOMEM, "no memory for averages of the weights");
    }
    m->params = p;
    *out = m;
    for (int b = 0; rc == 0 && b < p->buckets; b++)
        rc = make_bucket(&m->bucket[b], &p->bucket[b], decay);
    return rc;
}

void ddp__ema_free(struct ddp__ema *m)
{
    if (!m)
        return;
    for (int b = 0; b < m->params->buckets; b++) {
        struct ddp__average *a = &m->bucket[b];

        ddp__call_release(&a->call);
        if (!a->memory)
            continue;
        ddp__handle_unregister(&a->handle);
        ddp__pool_free(a->memory, m->params->bucket[b].len * 4);
    }
    free(m->bucket);
    free(m);
}

/* ---- values ------------------------------------------------------------- */

/* Let the host at the averages of a bucket, until end(). */
static int begin(struct ddp__average *a, bool write)
{
    if (starpu_data_acquire(a->handle.h, write ? STARPU_RW : STARPU_R) != 0)
        return ddp__fail(DDP_EINVAL, "averages cannot be used inside a task");
    a->handle.version += write;
    return 0;
}

static void end(struct ddp__average *a)
{
    starpu_data_release(a->handle.h);
}

int ddp__ema_begin(struct ddp__ema *m)
{
    int rc;

    if (m->begun)
        return 0;
    if ((rc = ddp__params_begin(m->params, false)) < 0)
        return rc;
    for (int b = 0; rc == 0 && b < m->params->buckets; b++) {
        const struct ddp__bucket *k = &m->params->bucket[b];

        if ((rc = begin(&m->bucket[b], true)) < 0)
            break;
        memcpy(m->bucket[b].memory, k->w, k->len * 4);
        end(&m->bucket[b]);
    }
    ddp__params_end(m->params);
    m->begun = rc == 0;
    return rc;
}

/* The average of a parameter, for the host until end(a). */
struct access {
    struct ddp__average *a;
    const struct ddp_param *param;
    float *values;
};

/* Of a parameter of len values; averages begin if they had not. */
static int open_average(ddp_trainer_t *t, const char *name, size_t len,
                        bool write, struct access *to)
{
    struct ddp__ema *m = t->engine->ema;
    const struct ddp__block *b;
    int i, rc;

    if (!m)
        return ddp__fail(DDP_EINVAL, "no averages are made: set ema_decay");
    if ((rc = ddp__ema_begin(m)) < 0 ||
        (rc = ddp__params_find(m->params, name, &b, &i)) < 0)
        return rc;
    if (ddp__param_len(&b->param[i]) != len)
        return ddp__fail(DDP_ESHAPE, "%s has %zu values, not %zu", name,
                         ddp__param_len(&b->param[i]), len);
    *to = (struct access){.a = &m->bucket[b->bucket], .param = &b->param[i]};
    to->values = to->a->memory + b->offset + b->param_offset[i];
    return begin(to->a, write);
}

int ddp_trainer_ema_get(ddp_trainer_t *t, const char *name, float *out,
                        size_t len)
{
    struct access from = {NULL};
    int rc = open_average(t, name, len, false, &from);

    if (rc < 0)
        return rc;
    ddp__param_export(from.param, from.values, out);
    end(from.a);
    return 0;
}

int ddp_trainer_ema_set(ddp_trainer_t *t, const char *name, const float *in,
                        size_t len)
{
    struct access to = {NULL};
    int rc = open_average(t, name, len, true, &to);

    if (rc < 0)
        return rc;
    ddp__param_import(to.param, in, to.values);
    end(to.a);
    return 0;
}

static int get(void *t, const char *name, float *out, size_t len)
{
    return ddp_trainer_ema_get(t, name, out, len);
}

int ddp_trainer_ema_save(ddp_trainer_t *t, const char *path)
{
    return ddp__weights_save(t->chain, path, DDP_F32, get, t);
}
