/* state.c - trainer.json: a run's settings, and where it was
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/compare.h"
#include "checkpoint/files.h"
#include "checkpoint/json.h"
#include "checkpoint/settings.h"
#include "checkpoint/state.h"

/* Format 1 compared a checksum of the graph's operations, by their numbers. */
enum { FORMAT = 2 };

/* ---- where the run was -------------------------------------------------- */

static json_t *pack_metrics(const struct ddp_metrics *m)
{
    return json_pack(
        "{s:I, s:o, s:o, s:o, s:o}", "samples", (json_int_t)m->samples, "loss",
        ddp__json_number(m->loss), "top1", ddp__json_number(m->top1), "top5",
        ddp__json_number(m->top5), "top10", ddp__json_number(m->top10));
}

static json_t *pack_evaluation(int64_t step, const struct ddp_metrics *m)
{
    return json_pack("{s:I, s:o}", "step", (json_int_t)step, "metrics",
                     pack_metrics(m));
}

/* The entries of a loss scaler's state, in its order. */
static const char *const scaler_field[] = {
    "updates", "loss_scale", "good_steps", "skipped_steps", "skipped_in_a_row"};
_Static_assert(sizeof(scaler_field) / sizeof(*scaler_field) ==
                   DDP__SCALER_STATE,
               "each entry has a name");

static json_t *pack_scaler(const double *state)
{
    json_t *o = json_object();

    for (int i = 0; i < DDP__SCALER_STATE; i++)
        json_object_set_new(o, scaler_field[i], json_real(state[i]));
    return o;
}

static json_t *pack_run(const struct ddp__run *r)
{
    return json_pack(
        "{s:i, s:s, s:s, s:I, s:I, s:f, s:{s:o, s:o}, s:o, s:o, s:o, s:o}",
        "format", FORMAT, "library", ddp_version(), "devices", r->devices,
        "step", (json_int_t)r->step, "on_epoch_step",
        (json_int_t)r->on_epoch_step, "seconds", r->seconds, "epoch_sums",
        "sums", pack_metrics(&r->epoch), "divisor",
        ddp__json_number(r->epoch_divisor), "loss_scaler",
        pack_scaler(r->scaler), "evaluation",
        pack_evaluation(r->evaluated, &r->evaluation), "best_evaluation",
        pack_evaluation(r->best, &r->best_evaluation), "ema_evaluation",
        pack_evaluation(r->ema_evaluated, &r->ema_evaluation));
}

/* Written where they are used: files of earlier versions do not have them. */
static int add_plateau(json_t *o, const struct ddp__plateau *p)
{
    if (p->evaluations == 0)
        return 0;
    return json_object_set_new(
        o, "plateau",
        json_pack("{s:I, s:o, s:o, s:I, s:I}", "evaluations",
                  (json_int_t)p->evaluations, "factor",
                  ddp__json_number(p->factor), "best",
                  ddp__json_number(p->best), "bad", (json_int_t)p->bad,
                  "cooldown", (json_int_t)p->cooldown));
}

static int add_stale(json_t *o, int64_t stale)
{
    return stale ? json_object_set_new(o, "stale_evaluations",
                                       json_integer((json_int_t)stale))
                 : 0;
}

static int add_stream(json_t *o, const struct ddp__place *p)
{
    if (p->n == 0)
        return 0;
    return json_object_set_new(
        o, "stream",
        json_pack("{s:I, s:I, s:I, s:b}", "epoch", (json_int_t)p->epoch, "step",
                  (json_int_t)p->step, "samples", (json_int_t)(p->first + p->n),
                  "last", (int)p->last));
}

int ddp__state_json(const struct ddp__run *r, json_t *settings, json_t **out)
{
    *out = pack_run(r);
    if (*out && json_object_update(*out, settings) == 0 &&
        add_plateau(*out, &r->plateau) == 0 && add_stale(*out, r->stale) == 0 &&
        add_stream(*out, &r->place) == 0 &&
        (json_array_size(r->changes) == 0 ||
         json_object_set(*out, "changes", r->changes) == 0))
        return 0;
    json_decref(*out);
    *out = NULL;
    return ddp__fail(DDP_ENOMEM, "out of memory to describe a run's state");
}

/* ---- and back ----------------------------------------------------------- */

static bool take_text(const json_t *o, const char *name, char *text,
                      size_t size)
{
    const char *s = json_string_value(json_object_get(o, name));

    snprintf(text, size, "%s", s ? s : "unknown");
    ddp_printable(text);
    return s;
}

int ddp__state_check(const json_t *state, const json_t *settings,
                     const char *path, struct ddp__changes *changes)
{
    const json_t *format = json_object_get(state, "format");
    char library[128];

    if (!json_is_integer(format) ||
        !json_is_object(json_object_get(state, "settings")))
        return ddp__fail(DDP_EDATA, "%s: %s is not the state of a run", path,
                         DDP__CKPT_STATE);
    if (json_integer_value(format) == FORMAT)
        return ddp__settings_compare(path, state, settings, changes);
    take_text(state, "library", library, sizeof(library));
    return ddp__fail(
        DDP_EINVAL,
        "%s has format %lld, which this version (format %d) does not read: "
        "resume with the version that wrote it (%s), or start a new run from "
        "its %s",
        path, (long long)json_integer_value(format), FORMAT, library,
        DDP__CKPT_MODEL);
}

/* What a run counts: a sum of two of these does not overflow. */
static bool take_integer(const json_t *o, const char *name, int64_t *out)
{
    static const int64_t most = (int64_t)1 << 53; /* exact in any JSON */
    const json_t *v = json_object_get(o, name);

    *out = json_integer_value(v);
    return json_is_integer(v) && *out >= 0 && *out <= most;
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

static bool take_evaluation(const json_t *state, const char *name,
                            int64_t *step, struct ddp_metrics *m)
{
    const json_t *o = json_object_get(state, name);

    return take_integer(o, "step", step) &&
           take_metrics(json_object_get(o, "metrics"), m);
}

static bool take_scaler(const json_t *o, double *state)
{
    bool ok = true;

    for (int i = 0; i < DDP__SCALER_STATE; i++)
        ok = take_number(o, scaler_field[i], &state[i]) && ok;
    return ok;
}

static bool take_plateau(const json_t *o, struct ddp__plateau *p)
{
    return take_integer(o, "evaluations", &p->evaluations) &&
           take_number(o, "factor", &p->factor) && p->factor >= 0 &&
           p->factor <= 1 && take_number(o, "best", &p->best) &&
           take_integer(o, "bad", &p->bad) &&
           take_integer(o, "cooldown", &p->cooldown);
}

static bool take_stream(const json_t *o, struct ddp__place *p)
{
    int64_t samples;
    const json_t *last = json_object_get(o, "last");

    if (!take_integer(o, "epoch", &p->epoch) ||
        !take_integer(o, "step", &p->step) ||
        !take_integer(o, "samples", &samples) || samples < 1 ||
        !json_is_boolean(last))
        return false;
    p->first = samples - 1;
    p->n = 1;
    p->last = json_is_true(last);
    return true;
}

/* The field that is missing or invalid; NULL: none. */
static const char *parse_run(const json_t *state, struct ddp__run *r)
{
    const json_t *sums = json_object_get(state, "epoch_sums");

    if (!take_text(state, "devices", r->devices, sizeof(r->devices)))
        return "devices";
    if (!take_integer(state, "step", &r->step))
        return "step";
    if (!take_integer(state, "on_epoch_step", &r->on_epoch_step))
        return "on_epoch_step";
    if (!take_number(state, "seconds", &r->seconds) || !(r->seconds >= 0) ||
        isinf(r->seconds))
        return "seconds";
    if (!take_metrics(json_object_get(sums, "sums"), &r->epoch) ||
        !take_number(sums, "divisor", &r->epoch_divisor))
        return "epoch_sums";
    if (!take_scaler(json_object_get(state, "loss_scaler"), r->scaler))
        return "loss_scaler";
    if (!take_evaluation(state, "evaluation", &r->evaluated, &r->evaluation))
        return "evaluation";
    if (!take_evaluation(state, "best_evaluation", &r->best,
                         &r->best_evaluation))
        return "best_evaluation";
    if (!take_evaluation(state, "ema_evaluation", &r->ema_evaluated,
                         &r->ema_evaluation))
        return "ema_evaluation";
    if (json_object_get(state, "plateau") &&
        !take_plateau(json_object_get(state, "plateau"), &r->plateau))
        return "plateau";
    if (json_object_get(state, "stale_evaluations") &&
        !take_integer(state, "stale_evaluations", &r->stale))
        return "stale_evaluations";
    if (json_object_get(state, "stream") &&
        !take_stream(json_object_get(state, "stream"), &r->place))
        return "stream";
    r->changes = json_object_get(state, "changes");
    if (r->changes && !json_is_array(r->changes))
        return "changes";
    return NULL;
}

int ddp__state_parse(const json_t *state, const char *path, struct ddp__run *r)
{
    const char *missing;

    *r = (struct ddp__run){0};
    if (!(missing = parse_run(state, r)))
        return 0;
    return ddp__fail(DDP_EDATA, "%s: %s: missing or invalid field '%s'", path,
                     DDP__CKPT_STATE, missing);
}

/* ---- epochs of another length ------------------------------------------- */

int64_t ddp__state_epoch_steps(const json_t *state)
{
    const json_t *settings = json_object_get(state, "settings");
    const json_t *data = json_object_get(settings, "data");
    int64_t batch, samples;

    if (!take_integer(settings, "batch", &batch) ||
        !take_integer(data, "samples", &samples) || batch == 0)
        return 0;
    return samples / batch + (samples % batch != 0);
}

/* The same share of an epoch, rounded down to a whole step. */
static int64_t renumber(int64_t step, int64_t from, int64_t to)
{
    long double part = floorl((long double)(step % from) * to / from);
    long double n = (long double)(step / from) * to + part;

    return n < (long double)INT64_MAX ? (int64_t)n : INT64_MAX;
}

/* The best checkpoint has the number of a step of the run before. */
void ddp__run_renumber(struct ddp__run *r, int64_t from, int64_t to)
{
    r->step = renumber(r->step, from, to);
    r->on_epoch_step = renumber(r->on_epoch_step, from, to);
    r->evaluated = renumber(r->evaluated, from, to);
    r->ema_evaluated = renumber(r->ema_evaluated, from, to);
    r->best = 0;
    r->best_evaluation = (struct ddp_metrics){0};
}
