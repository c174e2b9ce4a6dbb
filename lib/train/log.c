/* log.c - sinks that write values of a run in the formats of other programs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/printable.h"
#include "image/jpeg_write.h"
#include "train/graph_def.h"
#include "train/log.h"
#include "train/log_mlflow.h"
#include "train/log_tensorboard.h"
#include "train/log_wandb.h"

static const struct ddp__log_format *const formats[] = {
    [DDP_LOG_TENSORBOARD] = &ddp__log_tensorboard,
    [DDP_LOG_WANDB] = &ddp__log_wandb,
    [DDP_LOG_MLFLOW] = &ddp__log_mlflow,
};

enum { FORMATS = sizeof(formats) / sizeof(*formats) };

const char *ddp_log_name(enum ddp_log_kind kind)
{
    return (unsigned)kind < FORMATS ? formats[kind]->name : NULL;
}

/* ---- its life ----------------------------------------------------------- */

ddp_log_t *ddp_log_new(enum ddp_log_kind kind, const char *dir)
{
    ddp_log_t *l;

    if (!ddp_log_name(kind)) {
        ddp__fail(DDP_EINVAL, "there is no kind %d of logs", (int)kind);
        return NULL;
    }
    if (!dir || !*dir) {
        ddp__fail(DDP_EINVAL, "a log needs a folder");
        return NULL;
    }
    if (!(l = calloc(1, sizeof(*l))) || !(l->dir = strdup(dir)) ||
        !(l->own = calloc(1, formats[kind]->size))) {
        ddp_log_free(l);
        ddp__fail(DDP_ENOMEM, "out of memory for a log");
        return NULL;
    }
    l->format = formats[kind];
    return l;
}

static void close_files(ddp_log_t *l)
{
    if (l->open && l->rc == 0)
        l->format->close(l);
}

void ddp_log_free(ddp_log_t *l)
{
    if (!l)
        return;
    close_files(l);
    for (int i = 0; i < l->settings; i++)
        free(l->setting[i]);
    for (int i = 0; i < DDP_LOG_FACTS; i++)
        free(l->fact[i]);
    free(l->setting);
    free(l->own);
    free(l->dir);
    free(l);
}

int ddp_log_status(const ddp_log_t *l)
{
    if (!l)
        return ddp__fail_null("log");
    return l->rc < 0 ? ddp__fail(l->rc, "%s", l->why) : 0;
}

/* After a failure the run continues, and nothing more is written, since what
 * follows a part of a record cannot be read. */
static void note(ddp_log_t *l, int rc)
{
    if (rc == 0 || l->rc < 0)
        return;
    snprintf(l->why, sizeof(l->why), "%s", ddp_errmsg());
    close_files(l);
    l->rc = rc;
}

/* ---- text ---------------------------------------------------------------- */

/* Protocol Buffers have no other text than UTF-8, and their readers refuse a
 * whole file for a byte. */
static int check_name(const char *what, const char *text)
{
    return ddp__is_utf8(text)
               ? 0
               : ddp__fail(DDP_EINVAL, "the %s \"%s\" of a log is not UTF-8",
                           what, text);
}

/* A copy that may be shown, such as of a path. */
static char *copy_text(const char *text)
{
    char *copy = strdup(text);

    if (copy && !ddp__is_utf8(copy))
        ddp_printable(copy);
    return copy;
}

/* ---- settings ----------------------------------------------------------- */

bool ddp__log_number(const char *text, double *v)
{
    char *end;

    *v = strtod(text, &end);
    return *text && !*end;
}

/* Whether it is not too late for one. */
static int check_before(const ddp_log_t *l, const char *name)
{
    return l->open ? ddp__fail(DDP_EINVAL,
                               "%s: settings come before the first event", name)
                   : 0;
}

int ddp_log_set(ddp_log_t *l, const char *name, const char *value)
{
    char **more, *copy[2];
    int rc;

    if (!l || !name || !value)
        return ddp__fail_null(!l ? "log" : !name ? "name" : "value");
    if ((rc = check_before(l, name)) < 0 ||
        (rc = check_name("setting", name)) < 0)
        return rc;
    more = realloc(l->setting, (size_t)(l->settings + 2) * sizeof(*more));
    if (more)
        l->setting = more;
    copy[0] = strdup(name);
    copy[1] = copy_text(value);
    if (!more || !copy[0] || !copy[1]) {
        free(copy[0]);
        free(copy[1]);
        return ddp__fail(DDP_ENOMEM, "out of memory for the setting %s", name);
    }
    memcpy(l->setting + l->settings, copy, sizeof(copy));
    l->settings += 2;
    return 0;
}

int ddp_log_describe(ddp_log_t *l, enum ddp_log_fact fact, const char *text)
{
    char *copy;
    int rc;

    if (!l || !text)
        return ddp__fail_null(!l ? "log" : "text");
    if ((unsigned)fact >= DDP_LOG_FACTS)
        return ddp__fail(DDP_EINVAL, "there is no fact %d of logs", (int)fact);
    if ((rc = check_before(l, text)) < 0)
        return rc;
    if (!(copy = copy_text(text)))
        return ddp__fail(DDP_ENOMEM, "out of memory for a log");
    free(l->fact[fact]);
    l->fact[fact] = copy;
    return 0;
}

/* ---- events ------------------------------------------------------------- */

/* The files, if there are none yet, of a run that has made so many steps. */
static void begin(ddp_log_t *l, int64_t steps)
{
    if (l->open)
        return;
    l->open = true;
    note(l, l->format->open(l, steps));
}

static void put(ddp_log_t *l, int64_t step, const struct ddp__log_value *v,
                int n)
{
    if (l->rc == 0)
        note(l, l->format->put(l, step, v, n));
}

static void on_run(const ddp_trainer_t *t, void *arg)
{
    begin(arg, ddp_trainer_steps(t));
}

static void on_step(const struct ddp_progress *p, void *arg)
{
    const struct ddp__log_value v[] = {
        {"epoch", (double)p->epoch + p->epoch_share},
        {"loss/train", p->now.loss},
        {"acc/top1_train", p->now.top1},
        {"acc/top5_train", p->now.top5},
        {"lr", p->lr},
        {"gradient_norm", p->gradient_norm},
        {"loss_scale", p->loss_scale},
        {"throughput/images_per_s", p->samples_per_s},
        {"throughput/data_share", p->data_share},
        {"memory/peak_mib", (double)p->memory_peak / (1 << 20)},
    };

    put(arg, p->step, v, sizeof(v) / sizeof(*v));
}

static void on_eval(const struct ddp_evaluation *e, void *arg)
{
    const struct ddp__log_value v[] = {
        {e->averages ? "loss/ema" : "loss/val", e->result.loss},
        {e->averages ? "acc/top1_ema" : "acc/top1_val", e->result.top1},
        {e->averages ? "acc/top5_ema" : "acc/top5_val", e->result.top5},
    };

    begin(arg, e->step);
    put(arg, e->step, v, sizeof(v) / sizeof(*v));
}

static void on_checkpoint(int64_t step, void *arg)
{
    ddp_log_t *l = arg;

    if (l->open && l->rc == 0 && l->format->saved)
        note(l, l->format->saved(l, step));
}

static void on_end(int rc, void *arg)
{
    ddp_log_t *l = arg;

    if (l->open && l->rc == 0)
        note(l, l->format->end(l, rc));
}

struct ddp_sink ddp_log_sink(ddp_log_t *l)
{
    if (!l) {
        ddp__fail_null("log");
        return (struct ddp_sink){0};
    }
    return (struct ddp_sink){.on_run = on_run,
                             .on_step = on_step,
                             .on_eval = on_eval,
                             .on_checkpoint = on_checkpoint,
                             .on_end = on_end,
                             .arg = l};
}

/* ---- what a program adds ------------------------------------------------ */

/* A call for such a tag, once it is checked. */
static int begin_tag(ddp_log_t *l, const char *tag, int64_t step)
{
    int rc;

    if (!l || !tag)
        return ddp__fail_null(!l ? "log" : "tag");
    if ((rc = check_name("tag", tag)) < 0)
        return rc;
    begin(l, step);
    return ddp_log_status(l);
}

int ddp_log_scalar(ddp_log_t *l, const char *tag, int64_t step, double value)
{
    const struct ddp__log_value v = {tag, value};
    int rc = begin_tag(l, tag, step);

    if (rc < 0)
        return rc;
    put(l, step, &v, 1);
    return ddp_log_status(l);
}

int ddp_log_histogram(ddp_log_t *l, const char *tag, int64_t step,
                      const float *values, size_t len)
{
    struct ddp__histogram h;
    int rc;

    if (!values)
        return ddp__fail_null("values");
    if ((rc = begin_tag(l, tag, step)) < 0)
        return rc;
    h = ddp__histogram(values, len);
    if (h.values && l->format->histogram)
        note(l, l->format->histogram(l, step, tag, &h));
    return ddp_log_status(l);
}

int ddp_log_image(ddp_log_t *l, const char *tag, int64_t step,
                  struct ddp_shape s, const uint8_t *pixels)
{
    int rc;

    if (!pixels)
        return ddp__fail_null("pixels");
    if (s.h < 1 || s.w < 1 || (s.c != 1 && s.c != 3) || s.w > DDP__JPEG_SIDE ||
        s.h > DDP__JPEG_SIDE)
        return ddp__fail(DDP_EINVAL,
                         "an image of %dx%d pixels with %d channels, expected "
                         "1 or 3 channels and sides of at most %d pixels",
                         s.w, s.h, s.c, DDP__JPEG_SIDE);
    if ((rc = begin_tag(l, tag, step)) < 0)
        return rc;
    if (l->format->image)
        note(l, l->format->image(l, step, tag, s, pixels));
    return ddp_log_status(l);
}

/* As for inference: without what only training has. */
static int make_graph(ddp_chain_t *c, struct ddp_shape in,
                      struct ddp__proto *def)
{
    const struct ddp__graph_spec spec = {.mode = DDP__INFER,
                                         .shape = in,
                                         .type = DDP_F32,
                                         .dtype = DDP_F32,
                                         .cap = 1};
    struct ddp__params *p = ddp__params_of(c);
    ddp_graph_t *g;
    int rc = p ? ddp__graph_new(&g, c, p, &spec, true) : ddp_errcode();

    if (rc < 0)
        return rc;
    rc = ddp__graph_def(g, def);
    ddp__graph_free(g);
    return rc;
}

int ddp_log_graph(ddp_log_t *l, int64_t step, ddp_chain_t *c,
                  struct ddp_shape in)
{
    struct ddp__proto def = {0};
    int rc;

    if (!l || !c)
        return ddp__fail_null(!l ? "log" : "chain");
    begin(l, step);
    if ((rc = ddp_log_status(l)) < 0 || !l->format->graph)
        return rc;
    if ((rc = make_graph(c, in, &def)) == 0) {
        note(l, l->format->graph(l, step, &def));
        rc = ddp_log_status(l);
    }
    ddp__proto_free(&def);
    return rc;
}
