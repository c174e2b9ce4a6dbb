/* state.c - a run's state as JSON, and its settings compared */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "data/dataset.h"
#include "checkpoint/files.h"
#include "checkpoint/state.h"

enum { FORMAT = 1, TEXT = 512 };

/* ---- settings: what decides the weights --------------------------------- */

/* Appends; a failure shows in the number of settings, at the end. */
static void add(json_t *o, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void add(json_t *o, const char *name, const char *fmt, ...)
{
    char text[TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    json_object_set_new(o, name, json_string(text));
}

/* The operations and shapes of the graph; what a parameter is called. */
static uint32_t network_crc(const struct ddp_trainer *t)
{
    const ddp_graph_t *g = t->engine->graph;
    const struct ddp__params *p = t->engine->params;
    uint32_t crc = 0;

    for (int i = 0; i < g->forward_nodes; i++) {
        const struct ddp__node *n = g->node[i];
        int32_t op = (int32_t)n->call.op;

        crc = ddp__crc32c(crc, &op, sizeof(op));
        for (int b = 0; b < n->call.buffers; b++) {
            const ddp_value_t *v = n->buf[b];
            int32_t dim[3] = {v->shape.h, v->shape.w, v->shape.c};

            if (v->role == DDP__INPUT && !v->per_sample)
                continue; /* as long as a sub-batch */
            crc = ddp__crc32c(crc, dim, sizeof(dim));
        }
    }
    for (int k = 0; k < p->blocks; k++)
        for (int i = 0; i < p->block[k].params; i++) {
            char name[DDP__PARAM_NAME];

            ddp__param_name(&p->block[k], i, name);
            crc = ddp__crc32c(crc, name, strlen(name));
        }
    return crc;
}

static void add_optimizer(json_t *o, const struct ddp_optimizer *p)
{
    static const char *const kind[] = {
        [DDP_SGD] = "sgd",           [DDP_MOMENTUM] = "momentum",
        [DDP_NESTEROV] = "nesterov", [DDP_MOMENTUM_FLUX] = "flux momentum",
        [DDP_ADAM] = "adam",         [DDP_ADAMW] = "adamw",
        [DDP_RMSPROP] = "rmsprop",
    };

    add(o, "optimizer", "%s", kind[p->kind]);
    add(o, "learning rate", "%.9g", (double)p->lr);
    add(o, "momentum", "%.9g", (double)p->momentum);
    add(o, "betas", "%.9g %.9g", (double)p->beta1, (double)p->beta2);
    add(o, "eps", "%.9g", (double)p->eps);
    add(o, "weight decay", "%.9g%s", (double)p->weight_decay,
        p->decay_all ? " of all" : "");
    add(o, "gradient clipping", "%.9g", (double)p->clip_norm);
}

/* The length of the run matters where the schedule spans it. */
static void add_schedule(json_t *o, const struct ddp_trainer *t)
{
    static const char *const kind[] = {
        [DDP_CONSTANT] = "constant",   [DDP_STEPPED] = "stepped",
        [DDP_COSINE] = "cosine",       [DDP_LINEAR] = "linear",
        [DDP_ONE_CYCLE] = "one cycle", [DDP_OWN_SCHEDULE] = "own",
    };
    const struct ddp_schedule *s = &t->cfg.schedule;

    add(o, "schedule", "%s", kind[s->kind]);
    add(o, "warm-up", "%.9g epochs from %.9g", s->warmup, s->warmup_factor);
    if (s->kind == DDP_STEPPED)
        add(o, "decay", "%.9g every %.9g epochs", s->gamma, s->every);
    if (s->kind == DDP_CONSTANT || s->kind == DDP_STEPPED)
        return;
    add(o, "final factor", "%.9g", s->final_factor);
    add(o, "steps", "%" PRId64, t->total);
}

static void add_loss(json_t *o, const struct ddp_train_config *c)
{
    static const char *const kind[] = {
        [DDP_LOGIT_CROSS_ENTROPY] = "logit cross entropy",
        [DDP_MSE] = "mse",
        [DDP_OWN_LOSS] = "own",
    };

    add(o, "loss", "%s", kind[c->loss]);
    add(o, "label smoothing", "%.9g", (double)c->label_smoothing);
}

static json_t *settings(const struct ddp_trainer *t)
{
    static const char *const dtype[] = {
        [DDP_F32] = "f32", [DDP_BF16] = "bf16", [DDP_F16] = "f16"};
    const struct ddp_train_config *c = &t->cfg;
    const struct ddp__params *p = t->engine->params;
    char data[TEXT], how[TEXT];
    json_t *o = json_object();

    ddp__dataset_identity(t->loader.data, data, sizeof(data), how, sizeof(how));
    add(o, "network", "%zu parameters in %d layers, crc32c %08x", p->total,
        p->blocks, network_crc(t));
    add(o, "data", "%s", data);
    add(o, "augmentation", "%s", how);
    add(o, "batch", "%d", c->batch);
    add(o, "sub-batch", "%d", c->sub_batch);
    add(o, "lanes", "%d", c->lanes);
    add(o, "seed", "%" PRIu64, c->seed);
    add(o, "order", "%s", c->order == DDP_SHUFFLE ? "shuffle" : "in order");
    add(o, "dtype", "%s", dtype[c->dtype]);
    add_loss(o, c);
    add_optimizer(o, &c->optimizer);
    add_schedule(o, t);
    if (c->ema_decay > 0)
        add(o, "decay of averages", "%.15g", c->ema_decay);
    return o;
}

/* ---- settings compared -------------------------------------------------- */

static void note(char *text, const char *name, const char *there,
                 const char *here)
{
    size_t n = strlen(text);

    snprintf(text + n, TEXT + TEXT / 2 - n, "%s%s: %s there, %s here",
             n ? "; " : "", name, there ? there : "nothing",
             here ? here : "nothing");
}

/* "lanes: 4 there, 2 here; ..." */
static void differences(const json_t *there, json_t *here,
                        char text[TEXT + TEXT / 2])
{
    const char *name;
    json_t *value;

    *text = 0;
    json_object_foreach(here, name, value)
    {
        const char *a = json_string_value(json_object_get(there, name));

        if (!a || strcmp(a, json_string_value(value)))
            note(text, name, a, json_string_value(value));
    }
    json_object_foreach((json_t *)there, name,
                        value) if (!json_object_get(here, name))
        note(text, name, json_string_value(value), NULL);
    ddp__printable(text);
}

int ddp__checkpoint_check(const struct ddp_trainer *t, const char *path,
                          const json_t *state)
{
    const json_t *there = json_object_get(state, "settings");
    char text[TEXT + TEXT / 2];
    json_t *here;

    if (json_integer_value(json_object_get(state, "format")) != FORMAT ||
        !json_is_object(there))
        return ddp__fail(DDP_EDATA, "%s: %s is none that this version reads",
                         path, DDP__CKPT_STATE);
    if (!(here = settings(t)))
        return ddp__fail(DDP_ENOMEM, "no memory to read a checkpoint");
    differences(there, here, text);
    json_decref(here);
    if (!*text)
        return 0;
    return ddp__fail(DDP_EINVAL, "%s is of a run with other settings: %s", path,
                     text);
}

/* ---- where the run was -------------------------------------------------- */

/* JSON has no NaN. */
static json_t *number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *pack_metrics(const struct ddp_metrics *m)
{
    return json_pack("{s:I, s:o, s:o, s:o, s:o}", "samples",
                     (json_int_t)m->samples, "loss", number(m->loss), "top1",
                     number(m->top1), "top5", number(m->top5), "top10",
                     number(m->top10));
}

static json_t *pack_evaluation(int64_t step, const struct ddp_metrics *m)
{
    return json_pack("{s:I, s:o}", "step", (json_int_t)step, "metrics",
                     pack_metrics(m));
}

static json_t *pack_guard(const double *guard)
{
    json_t *list = json_array();

    for (int i = 0; list && i < DDP__GUARD_STATE; i++)
        json_array_append_new(list, json_real(guard[i]));
    return list;
}

/* Samples of the epoch that the steps so far have had. */
static int64_t samples_in_epoch(const struct ddp_trainer *t)
{
    int64_t n = t->submitted % t->loader.steps * t->loader.batch;

    return n < t->loader.data->count ? n : t->loader.data->count;
}

json_t *ddp__checkpoint_state(const struct ddp_trainer *t)
{
    const struct ddp__run *r = &t->run;
    double seconds = r->seconds + (t->training ? ddp__now() - t->begin : 0);

    return json_pack(
        "{s:i, s:s, s:I, s:I, s:I, s:I, s:f, s:{s:o, s:o}, s:o, s:o, s:o, s:o, "
        "s:o}",
        "format", FORMAT, "library", ddp_version(), "step",
        (json_int_t)t->submitted, "epoch",
        (json_int_t)(t->submitted / t->loader.steps), "samples",
        (json_int_t)samples_in_epoch(t), "told", (json_int_t)r->told, "seconds",
        seconds, "epoch_sums", "sums", pack_metrics(&r->epoch), "divisor",
        number(r->epoch_divisor), "guard", pack_guard(r->guard), "evaluated",
        pack_evaluation(r->evaluated, &r->evaluation), "best",
        pack_evaluation(r->best, &r->best_evaluation), "evaluated_averages",
        pack_evaluation(r->ema_evaluated, &r->ema_evaluation), "settings",
        settings(t));
}

static bool take_integer(const json_t *o, const char *name, int64_t *out)
{
    const json_t *v = json_object_get(o, name);

    *out = json_integer_value(v);
    return json_is_integer(v) && *out >= 0;
}

static bool take_number(const json_t *o, const char *name, double *out)
{
    const json_t *v = json_object_get(o, name);

    *out = json_is_null(v) ? (double)NAN : json_number_value(v);
    return json_is_null(v) || json_is_number(v);
}

static bool take_metrics(const json_t *o, struct ddp_metrics *m)
{
    return take_integer(o, "samples", &m->samples) &&
           take_number(o, "loss", &m->loss) &&
           take_number(o, "top1", &m->top1) &&
           take_number(o, "top5", &m->top5) &&
           take_number(o, "top10", &m->top10);
}

static bool take_evaluation(const json_t *o, int64_t *step,
                            struct ddp_metrics *m)
{
    return take_integer(o, "step", step) &&
           take_metrics(json_object_get(o, "metrics"), m);
}

static bool take_guard(const json_t *o, double *guard)
{
    const json_t *list = json_object_get(o, "guard");

    for (size_t i = 0; i < DDP__GUARD_STATE; i++) {
        const json_t *v = json_array_get(list, i);

        if (!json_is_number(v))
            return false;
        guard[i] = json_number_value(v);
    }
    return true;
}

int ddp__checkpoint_parse(const json_t *state, const char *path,
                          struct ddp__run *r)
{
    const json_t *sums = json_object_get(state, "epoch_sums");

    *r = (struct ddp__run){0};
    if (take_integer(state, "step", &r->step) &&
        take_integer(state, "told", &r->told) &&
        take_number(state, "seconds", &r->seconds) &&
        take_metrics(json_object_get(sums, "sums"), &r->epoch) &&
        take_number(sums, "divisor", &r->epoch_divisor) &&
        take_guard(state, r->guard) &&
        take_evaluation(json_object_get(state, "evaluated"), &r->evaluated,
                        &r->evaluation) &&
        take_evaluation(json_object_get(state, "best"), &r->best,
                        &r->best_evaluation) &&
        take_evaluation(json_object_get(state, "evaluated_averages"),
                        &r->ema_evaluated, &r->ema_evaluation))
        return 0;
    return ddp__fail(DDP_EDATA, "%s: %s lacks something", path,
                     DDP__CKPT_STATE);
}
