/* tensorboard.c - a sink that writes event files for TensorBoard
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A file is never changed: a run that resumes begins another one, with an event
 * that says where, and readers drop what earlier files have after that.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "train/events.h"

/* Fields of the messages Event, SessionLog, Summary and its Value. */
enum { SUMMARY = 5, SESSION_LOG = 7 };
enum { SESSION_STATUS = 1, SESSION_START = 1 };
enum { SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_TENSOR = 8, VALUE_METADATA = 9 };

struct ddp_tensorboard {
    char *dir; /* owned, as are the settings */
    char **setting;
    int settings; /* name, value, name, value, ... */
    struct ddp__events file;
    struct ddp__proto summary, value;
    bool open; /* there is a file, or there was until something failed */
    int rc;    /* what failed */
    char why[1024];
};

/* ---- its life ----------------------------------------------------------- */

ddp_tensorboard_t *ddp_tensorboard_new(const char *dir)
{
    ddp_tensorboard_t *tb;

    if (!dir || !*dir) {
        ddp__fail(DDP_EINVAL, "event files need a folder");
        return NULL;
    }
    if (!(tb = calloc(1, sizeof(*tb))) || !(tb->dir = strdup(dir))) {
        free(tb);
        ddp__fail(DDP_ENOMEM, "out of memory for event files");
        return NULL;
    }
    tb->file.fd = -1;
    return tb;
}

void ddp_tensorboard_free(ddp_tensorboard_t *tb)
{
    if (!tb)
        return;
    ddp__events_close(&tb->file);
    ddp__proto_free(&tb->summary);
    ddp__proto_free(&tb->value);
    for (int i = 0; i < tb->settings; i++)
        free(tb->setting[i]);
    free(tb->setting);
    free(tb->dir);
    free(tb);
}

int ddp_tensorboard_status(const ddp_tensorboard_t *tb)
{
    if (!tb)
        return ddp__fail_null("tensorboard");
    return tb->rc < 0 ? ddp__fail(tb->rc, "%s", tb->why) : 0;
}

/* The run goes on; nothing more is written, since what follows a part of a
 * record cannot be read. */
static void give_up(ddp_tensorboard_t *tb, int rc)
{
    tb->rc = rc;
    snprintf(tb->why, sizeof(tb->why), "%s", ddp_errmsg());
    ddp__events_close(&tb->file);
}

/* ---- values ------------------------------------------------------------- */

static void add_scalar(ddp_tensorboard_t *tb, const char *tag, double v)
{
    ddp__proto_text(&tb->value, VALUE_TAG, tag);
    ddp__proto_float(&tb->value, VALUE_SIMPLE, (float)v);
    ddp__proto_message(&tb->summary, SUMMARY_VALUE, &tb->value);
}

static void write_event(ddp_tensorboard_t *tb, int64_t step, int field)
{
    int rc = 0;

    if (tb->rc == 0)
        rc = ddp__events_write(&tb->file, step, field, &tb->summary);
    ddp__proto_clear(&tb->summary);
    if (rc < 0)
        give_up(tb, rc);
}

/* ---- hyperparameters ---------------------------------------------------- */

/* Of tensorboard/plugins/hparams: plugin_data.proto, api.proto. */
enum { DATA_SESSION_START = 3, DATA_SESSION_END = 4 };
enum { START_HPARAMS = 1, START_TIME = 5, MAP_KEY = 1, MAP_VALUE = 2 };
enum { END_STATUS = 1, END_TIME = 2, STATUS_SUCCESS = 1, STATUS_FAILURE = 2 };
enum { WORTH_NUMBER = 2, WORTH_TEXT = 3 };
enum { METADATA_PLUGIN = 1, PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };

/* A tensor of one zero, which a value of the plugin has to have: type 1 is
 * float, its shape has one dimension of length 1. */
static const unsigned char no_tensor[] = {0x08, 1,    0x12, 4, 0x12, 2, 0x08,
                                          1,    0x2a, 4,    0, 0,    0, 0};

static void add_setting(struct ddp__proto *start, const char *name,
                        const char *text)
{
    struct ddp__proto entry = {0}, value = {0};
    char *end;
    double v = strtod(text, &end);

    if (*text && !*end)
        ddp__proto_double(&value, WORTH_NUMBER, v);
    else
        ddp__proto_text(&value, WORTH_TEXT, text);
    ddp__proto_text(&entry, MAP_KEY, name);
    ddp__proto_message(&entry, MAP_VALUE, &value);
    ddp__proto_message(start, START_HPARAMS, &entry);
    ddp__proto_free(&entry);
    ddp__proto_free(&value);
}

/* An event of the plugin; what: a field of its data, which is empty then. */
static void write_plugin(ddp_tensorboard_t *tb, const char *tag, int64_t step,
                         int field, struct ddp__proto *what)
{
    struct ddp__proto data = {0}, plugin = {0};

    ddp__proto_message(&data, field, what);
    ddp__proto_text(&plugin, PLUGIN_NAME, "hparams");
    ddp__proto_message(&plugin, PLUGIN_CONTENT, &data);
    ddp__proto_message(&data, METADATA_PLUGIN, &plugin);
    ddp__proto_text(&tb->value, VALUE_TAG, tag);
    ddp__proto_bytes(&tb->value, VALUE_TENSOR, no_tensor, sizeof(no_tensor));
    ddp__proto_message(&tb->value, VALUE_METADATA, &data);
    ddp__proto_message(&tb->summary, SUMMARY_VALUE, &tb->value);
    write_event(tb, step, SUMMARY);
    ddp__proto_free(&data);
    ddp__proto_free(&plugin);
}

static void write_settings(ddp_tensorboard_t *tb, int64_t step)
{
    struct ddp__proto start = {0};

    for (int i = 0; i < tb->settings; i += 2)
        add_setting(&start, tb->setting[i], tb->setting[i + 1]);
    ddp__proto_double(&start, START_TIME, (double)time(NULL));
    write_plugin(tb, "_hparams_/session_start_info", step, DATA_SESSION_START,
                 &start);
    ddp__proto_free(&start);
}

static void write_end(ddp_tensorboard_t *tb, int64_t step, bool good)
{
    struct ddp__proto end = {0};

    ddp__proto_int(&end, END_STATUS, good ? STATUS_SUCCESS : STATUS_FAILURE);
    ddp__proto_double(&end, END_TIME, (double)time(NULL));
    write_plugin(tb, "_hparams_/session_end_info", step, DATA_SESSION_END,
                 &end);
    ddp__proto_free(&end);
}

int ddp_tensorboard_set(ddp_tensorboard_t *tb, const char *name,
                        const char *value)
{
    char **more, *copy[2];

    if (!tb || !name || !value)
        return ddp__fail_null(!tb ? "tensorboard" : !name ? "name" : "value");
    if (tb->open)
        return ddp__fail(DDP_EINVAL, "%s: settings come before the first event",
                         name);
    more = realloc(tb->setting, (size_t)(tb->settings + 2) * sizeof(*more));
    if (more)
        tb->setting = more;
    copy[0] = strdup(name);
    copy[1] = strdup(value);
    if (!more || !copy[0] || !copy[1]) {
        free(copy[0]);
        free(copy[1]);
        return ddp__fail(DDP_ENOMEM, "out of memory for the setting %s", name);
    }
    memcpy(tb->setting + tb->settings, copy, sizeof(copy));
    tb->settings += 2;
    return 0;
}

/* ---- events ------------------------------------------------------------- */

/* The file, if there is none yet, of a run that has made so many steps. */
static void begin_file(ddp_tensorboard_t *tb, int64_t steps)
{
    int rc;

    if (tb->open)
        return;
    tb->open = true;
    if ((rc = ddp__events_open(&tb->file, tb->dir)) < 0) {
        give_up(tb, rc);
        return;
    }
    ddp__proto_int(&tb->summary, SESSION_STATUS, SESSION_START);
    write_event(tb, steps ? steps + 1 : 0, SESSION_LOG);
    if (tb->settings)
        write_settings(tb, steps);
}

static void on_run(const ddp_trainer_t *t, void *arg)
{
    begin_file(arg, ddp_trainer_steps(t));
}

static void on_step(const struct ddp_progress *p, void *arg)
{
    ddp_tensorboard_t *tb = arg;

    add_scalar(tb, "loss/train", p->now.loss);
    add_scalar(tb, "acc/top1_train", p->now.top1);
    add_scalar(tb, "acc/top5_train", p->now.top5);
    add_scalar(tb, "lr", p->lr);
    add_scalar(tb, "gradient_norm", p->gradient_norm);
    add_scalar(tb, "loss_scale", p->loss_scale);
    add_scalar(tb, "throughput/images_per_s", p->samples_per_s);
    add_scalar(tb, "throughput/data_share", p->data_share);
    add_scalar(tb, "memory/peak_mib", (double)p->memory_peak / (1 << 20));
    write_event(tb, p->step, SUMMARY);
}

static void on_eval(const struct ddp_evaluation *e, void *arg)
{
    ddp_tensorboard_t *tb = arg;
    const struct ddp_metrics *m = &e->result;

    begin_file(tb, e->step);
    add_scalar(tb, e->averages ? "loss/ema" : "loss/val", m->loss);
    add_scalar(tb, e->averages ? "acc/top1_ema" : "acc/top1_val", m->top1);
    add_scalar(tb, e->averages ? "acc/top5_ema" : "acc/top5_val", m->top5);
    write_event(tb, e->step, SUMMARY);
}

/* A run that was stopped goes on. */
static void on_end(int rc, void *arg)
{
    ddp_tensorboard_t *tb = arg;

    if (tb->settings && rc != DDP_ESTOPPED)
        write_end(tb, 0, rc == 0);
}

struct ddp_sink ddp_tensorboard_sink(ddp_tensorboard_t *tb)
{
    if (!tb) {
        ddp__fail_null("tensorboard");
        return (struct ddp_sink){0};
    }
    return (struct ddp_sink){.on_run = on_run,
                             .on_step = on_step,
                             .on_eval = on_eval,
                             .on_end = on_end,
                             .arg = tb};
}

int ddp_tensorboard_scalar(ddp_tensorboard_t *tb, const char *tag, int64_t step,
                           double value)
{
    if (!tb || !tag)
        return ddp__fail_null(!tb ? "tensorboard" : "tag");
    begin_file(tb, step);
    add_scalar(tb, tag, value);
    write_event(tb, step, SUMMARY);
    return ddp_tensorboard_status(tb);
}
