/* settings.c - what decides the weights of a run, as JSON
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Enumerators are written as words, which remain valid when a row is added to
 * an enum.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "checkpoint/json.h"
#include "checkpoint/network.h"
#include "checkpoint/settings.h"
#include "data/stream.h"
#include "ops_loss.h"

/* ---- words for enumerators ---------------------------------------------- */
/* An enumerator without a word does not compile. */
#pragma GCC diagnostic error "-Wswitch"

static const char *schedule_word(enum ddp_schedule_kind kind)
{
    switch (kind) {
    case DDP_CONSTANT:
        return "constant";
    case DDP_STEPPED:
        return "stepped";
    case DDP_COSINE:
        return "cosine";
    case DDP_LINEAR:
        return "linear";
    case DDP_ONE_CYCLE:
        return "one_cycle";
    case DDP_CUSTOM_SCHEDULE:
        return "custom";
    case DDP_MULTISTEP:
        return "multistep";
    case DDP_EXPONENTIAL:
        return "exponential";
    case DDP_POLYNOMIAL:
        return "polynomial";
    case DDP_RESTARTS:
        return "restarts";
    case DDP_PLATEAU:
        return "plateau";
    }
    return "unknown";
}

static const char *dtype_word(enum ddp_dtype type)
{
    switch (type) {
    case DDP_F32:
        return "f32";
    case DDP_BF16:
        return "bf16";
    case DDP_F16:
        return "f16";
    case DDP_U8:
        return "u8";
    case DDP_I32:
        return "i32";
    case DDP_I64:
        return "i64";
    case DDP_F64:
        return "f64";
    }
    return "unknown";
}

static const char *order_word(enum ddp_order order)
{
    switch (order) {
    case DDP_SHUFFLE:
        return "shuffle";
    case DDP_IN_ORDER:
        return "in_order";
    }
    return "unknown";
}

/* ---- the settings ------------------------------------------------------- */

/* Put a number into an object, which is freed if that fails; 0 is left out:
 * files of earlier versions do not have it. */
static json_t *add_number(json_t *to, const char *name, double value)
{
    if (to && value != 0 &&
        json_object_set_new(to, name, json_real(value)) < 0) {
        json_decref(to);
        return NULL;
    }
    return to;
}

static json_t *optimizer_json(const struct ddp_optimizer *o)
{
    json_t *all =
        json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:f}", "kind",
                  ddp_optimizer_info(o->kind)->name, "lr", (double)o->lr,
                  "momentum", (double)o->momentum, "beta1", (double)o->beta1,
                  "beta2", (double)o->beta2, "eps", (double)o->eps,
                  "weight_decay", (double)o->weight_decay, "decay_all",
                  o->decay_all, "clip_norm", (double)o->clip_norm);

    all = add_number(all, "clip_value", (double)o->clip_value);
    all = add_number(all, "clip_unit", (double)o->clip_unit);
    all = add_number(all, "lookahead", o->lookahead);
    return add_number(all, "update_states",
                      o->kind == DDP_CUSTOM_OPTIMIZER ? o->update_states : 0);
}

static bool is_any_of(enum ddp_schedule_kind kind, unsigned kinds)
{
    return kinds >> kind & 1;
}

static json_t *milestones_json(const struct ddp_schedule *s)
{
    json_t *all = json_array();

    for (int i = 0; i < DDP_MILESTONES && s->milestones[i] > 0; i++)
        json_array_append_new(all, json_real(s->milestones[i]));
    return all;
}

static int add_noise(json_t *o, const struct ddp_schedule *s)
{
    const struct {
        const char *name;
        double value;
    } row[] = {
        {"noise_from", s->noise_from},
        {"noise_to", s->noise_to},
        {"noise_limit", s->noise_limit},
        {"noise_deviation", s->noise_deviation},
        {"noise_seed", (double)s->noise_seed},
    };
    int rc = 0;

    if (s->kind == DDP_CUSTOM_SCHEDULE || !(s->noise_from < s->noise_to))
        return 0;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        rc |= json_object_set_new(o, row[i].name, json_real(row[i].value));
    return rc;
}

/* What only some kinds use.  The length of the run matters where the schedule
 * spans it. */
static int add_of_kind(json_t *o, const struct ddp_schedule *s, int64_t steps)
{
    enum {
        SPANS = 1 << DDP_COSINE | 1 << DDP_LINEAR | 1 << DDP_ONE_CYCLE |
                1 << DDP_POLYNOMIAL | 1 << DDP_CUSTOM_SCHEDULE,
        ENDS = SPANS | 1 << DDP_RESTARTS | 1 << DDP_PLATEAU,
        EVERY = 1 << DDP_STEPPED | 1 << DDP_RESTARTS,
        GAMMA = 1 << DDP_STEPPED | 1 << DDP_MULTISTEP | 1 << DDP_EXPONENTIAL |
                1 << DDP_PLATEAU,
    };
    const struct {
        const char *name;
        unsigned kinds;
        double value;
    } row[] = {
        {"every", EVERY, s->every},
        {"gamma", GAMMA, s->gamma},
        {"final_factor", ENDS, s->final_factor},
        {"max_momentum", 1 << DDP_ONE_CYCLE, s->max_momentum},
        {"base_momentum", 1 << DDP_ONE_CYCLE, s->base_momentum},
        {"power", 1 << DDP_POLYNOMIAL, s->power},
        {"stretch", 1 << DDP_RESTARTS, s->stretch},
        {"patience", 1 << DDP_PLATEAU, s->patience},
        {"cooldown", 1 << DDP_PLATEAU, s->cooldown},
        {"threshold", 1 << DDP_PLATEAU, s->threshold},
    };
    int rc = 0;

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        if (is_any_of(s->kind, row[i].kinds))
            rc |= json_object_set_new(o, row[i].name, json_real(row[i].value));
    if (is_any_of(s->kind, SPANS))
        rc |= json_object_set_new(o, "steps", json_integer(steps));
    if (s->kind == DDP_MULTISTEP)
        rc |= json_object_set_new(o, "milestones", milestones_json(s));
    if (s->warmup > 0 && s->warmup_steady)
        rc |= json_object_set_new(o, "warmup_steady", json_true());
    if (s->warmup > 0 && s->warmup_prefix)
        rc |= json_object_set_new(o, "warmup_prefix", json_true());
    if (s->warmup > 0 && s->warmup_inside)
        rc |= json_object_set_new(o, "warmup_inside", json_true());
    return rc | add_noise(o, s);
}

/* The steps of a stream count as those of so many epochs. */
static json_t *schedule_json(const struct ddp__settings *of)
{
    const struct ddp_schedule *s = &of->cfg->schedule;
    double from = s->warmup > 0 ? s->warmup_factor : 0; /* else unused */
    json_t *o = json_pack("{s:s, s:f, s:f}", "kind", schedule_word(s->kind),
                          "warmup", s->warmup, "warmup_factor", from);

    if (!o || (add_of_kind(o, s, of->steps) == 0 &&
               (!of->steps || !ddp__is_stream(of->data) ||
                json_object_set_new(o, "epochs",
                                    json_integer(of->cfg->epochs)) == 0)))
        return o;
    json_decref(o);
    return NULL;
}

static json_t *crc_json(uint32_t crc)
{
    return json_sprintf("crc32c %08x", crc);
}

/* The contents of some files by their names. */
static json_t *sample_json(const struct ddp__identity *all)
{
    json_t *sample = json_object();

    for (int i = 0; sample && i < all->count; i++)
        if (json_object_set_new(sample, all->file[i].name,
                                crc_json(all->file[i].crc)) < 0) {
            json_decref(sample);
            return NULL;
        }
    return sample;
}

static json_t *labels_json(const ddp_dataset_t *d)
{
    uint32_t labels = ddp__dataset_labels(d);

    return labels ? crc_json(labels) : json_string("as stored");
}

/* What only some data have: files, and names that classes are renumbered by. */
static json_t *add_details(json_t *samples, const ddp_dataset_t *d)
{
    const struct ddp__identity *all = ddp__dataset_identity(d);

    if (samples && all &&
        (!d->class_name ||
         json_object_set_new(samples, "labels", labels_json(d)) == 0) &&
        (all->count == 0 ||
         json_object_set_new(samples, "sample", sample_json(all)) == 0))
        return samples;
    json_decref(samples);
    return NULL;
}

/* Identifies the samples; "contents" is "unknown" for a callback. */
static json_t *samples_json(const ddp_dataset_t *d)
{
    json_t *contents = d->ops->checksum ? crc_json(d->ops->checksum(d))
                                        : json_string("unknown");

    return add_details(json_pack("{s:I, s:o}", "samples", (json_int_t)d->count,
                                 "contents", contents),
                       d);
}

int ddp__settings_data(const ddp_dataset_t *d, uint32_t *crc)
{
    json_t *samples = samples_json(d);
    char *text = samples ? json_dumps(samples, JSON_SORT_KEYS) : NULL;

    json_decref(samples);
    if (!text)
        return ddp__fail(DDP_ENOMEM, "out of memory to describe data");
    *crc = ddp__crc32c(0, text, strlen(text));
    free(text);
    return 0;
}

/* What ranks have in common: other names would be other classes. */
static json_t *own_json(const ddp_dataset_t *d, const char *own)
{
    json_t *data = json_pack("{s:s}", "own", own);

    if (data && d->class_name &&
        json_object_set_new(data, "labels", labels_json(d)) < 0) {
        json_decref(data);
        return NULL;
    }
    return data;
}

static json_t *data_json(const ddp_dataset_t *d, const char *own)
{
    json_t *data = *own ? own_json(d, own) : samples_json(d);
    json_t *more = json_pack(
        "{s:o, s:s, s:i, s:i}", "shape", ddp__json_shape(d->shape), "type",
        dtype_word(d->type), "classes", d->classes, "targets", d->target_len);

    if (!data || !more || json_object_update(data, more) < 0) {
        json_decref(data);
        data = NULL;
    }
    json_decref(more);
    return data;
}

static json_t *augmentation_json(const ddp_dataset_t *d)
{
    struct ddp_option o[DDP__IMAGE_OPTIONS];

    return ddp__json_options(o, d->ops->options ? d->ops->options(d, o) : 0);
}

/* Files have it where it is used, as those of earlier versions do not. */
static json_t *add_flag(json_t *settings, const char *name, bool is)
{
    if (is && settings &&
        json_object_set_new(settings, name, json_true()) < 0) {
        json_decref(settings);
        return NULL;
    }
    return settings;
}

/* The numbers that some kinds of losses have. */
static json_t *add_loss(json_t *settings, const struct ddp_train_config *c)
{
    bool binary = c->loss == DDP_BINARY_CROSS_ENTROPY;
    bool focal = c->loss == DDP_FOCAL;

    settings = add_number(settings, "target_threshold",
                          binary ? (double)c->target_threshold : 0);
    settings =
        add_number(settings, "focal_gamma", focal ? (double)c->focal_gamma : 0);
    return add_number(settings, "focal_alpha",
                      focal ? (double)c->focal_alpha : 0);
}

/* Those of sub-batches that are mixed. */
static json_t *add_mix(json_t *settings, const struct ddp_train_config *c)
{
    bool both = c->mixup > 0 && c->cutmix > 0;
    bool any = c->mixup > 0 || c->cutmix > 0;

    settings = add_number(settings, "mixup", c->mixup);
    settings = add_number(settings, "cutmix", c->cutmix);
    settings = add_number(settings, "mix_prob", any ? c->mix_prob : 0);
    settings =
        add_number(settings, "mix_switch_prob", both ? c->mix_switch_prob : 0);
    return add_number(settings, "mix_off_epoch",
                      any ? (double)c->mix_off_epoch : 0);
}

/* Written where they are used, as above. */
static json_t *add_groups(json_t *settings, const struct ddp_train_config *c)
{
    json_t *all = c->group_count ? json_array() : NULL;
    int rc = 0;

    for (int i = 0; i < c->group_count; i++)
        rc |= json_array_append_new(
            all, json_sprintf("%s: lr %.9g, weight_decay %.9g",
                              c->groups[i].match, (double)c->groups[i].lr,
                              (double)c->groups[i].weight_decay));
    if (settings && rc == 0 &&
        (!all || json_object_set_new(settings, "groups", all) == 0))
        return add_number(settings, "layer_decay",
                          c->layer_decay < 1 ? (double)c->layer_decay : 0);
    json_decref(settings);
    return NULL;
}

/* A teacher is known by its weights. */
static json_t *add_teacher(json_t *settings, const struct ddp_train_config *c)
{
    uint32_t crc = 0;
    int rc = c->teacher ? ddp_chain_checksum(c->teacher, &crc) : 0;

    if (settings && c->teacher && rc == 0)
        rc = json_object_set_new(settings, "teacher",
                                 json_sprintf("crc32c:%08x", crc));
    settings = add_number(settings, "distill_weight",
                          c->teacher ? c->distill_weight : 0);
    settings = add_number(settings, "distill_temperature",
                          c->teacher ? c->distill_temperature : 0);
    if (rc == 0)
        return settings;
    json_decref(settings);
    return NULL;
}

static json_t *add_weights(json_t *settings, const char *name, int count,
                           const float *weight)
{
    json_t *all = count ? json_array() : NULL;
    int rc = 0;

    for (int i = 0; i < count; i++)
        rc |= json_array_append_new(all, json_real((double)weight[i]));
    if (settings && rc == 0 &&
        (!all || json_object_set_new(settings, name, all) == 0))
        return settings;
    json_decref(settings);
    return NULL;
}

static json_t *add_wire(json_t *settings, enum ddp_dtype wire)
{
    if (settings && wire != DDP_F32 &&
        json_object_set_new(settings, "wire", json_string(dtype_word(wire))) <
            0) {
        json_decref(settings);
        return NULL;
    }
    return settings;
}

/* They decide which weights are the best ones. */
static json_t *add_eval_data(json_t *settings, const ddp_dataset_t *d)
{
    if (d && settings &&
        json_object_set_new(settings, "eval_data", samples_json(d)) < 0) {
        json_decref(settings);
        return NULL;
    }
    return settings;
}

static json_t *settings_json(const struct ddp__settings *s)
{
    const struct ddp_train_config *c = s->cfg;
    char seed[24]; /* JSON's integers are signed */
    json_t *all;

    snprintf(seed, sizeof(seed), "%" PRIu64, c->seed);
    all = add_flag(
        json_pack(
            "{s:i, s:i, s:i, s:s, s:s, s:s, s:s, s:f, s:f, s:o, s:o, s:o, s:o}",
            "batch", c->batch, "sub_batch", c->sub_batch, "lanes", c->lanes,
            "seed", seed, "order", order_word(c->order), "dtype",
            dtype_word(c->dtype), "loss", ddp__loss_info(c->loss)->name,
            "label_smoothing", (double)c->label_smoothing, "ema_decay",
            c->ema_decay, "optimizer", optimizer_json(&c->optimizer),
            "schedule", schedule_json(s), "data", data_json(s->data, s->own),
            "augmentation", augmentation_json(s->data)),
        "drop_last", c->drop_last);
    all = add_flag(all, "ema_warmup", c->ema_decay > 0 && c->ema_warmup);
    all = add_flag(all, "sync_bn", c->sync_bn);
    all = add_number(all, "repeats", c->repeats > 1 ? c->repeats : 0);
    all = add_groups(add_mix(add_loss(all, c), c), c);
    all = add_weights(all, "class_weights", c->class_weight_count,
                      c->class_weights);
    all = add_weights(all, "pos_weight", c->pos_weight_count, c->pos_weight);
    all = add_teacher(all, c);
    return add_eval_data(add_wire(all, c->wire), c->eval_data);
}

int ddp__settings_json(const struct ddp__settings *s, json_t **out)
{
    json_t *network;
    int rc = ddp__network_json(s->chain, s->data->shape, &network);

    *out = NULL;
    if (rc < 0)
        return rc;
    *out = json_pack("{s:o, s:o}", "settings", settings_json(s), "network",
                     network);
    return *out ? 0
                : ddp__fail(DDP_ENOMEM, "out of memory to describe a run's "
                                        "settings");
}
