/* log_tensorboard.c - a log as event files for TensorBoard
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A file is never changed: a run that resumes begins another one, with an event
 * that says where, and readers drop what earlier files have after that.
 */
#include "config.h"

#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "image/jpeg_write.h"
#include "train/events.h"
#include "train/log_tensorboard.h"

/* Fields of the messages Event, SessionLog, Summary and its Value. */
enum { GRAPH = 4, SUMMARY = 5, SESSION_LOG = 7 };
enum { SESSION_STATUS = 1, SESSION_START = 1 };
enum { SUMMARY_VALUE = 1 };
enum {
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2,
    VALUE_IMAGE = 4,
    VALUE_HISTOGRAM,
    VALUE_TENSOR = 8,
    VALUE_METADATA = 9
};

/* Small pictures, which are few. */
static const struct ddp__jpeg_quality image_quality = {95, true};

enum { IMAGE_HEIGHT = 1, IMAGE_WIDTH, IMAGE_CHANNELS, IMAGE_FILE };

/* Of HistogramProto; limits are the right ends of bins. */
enum {
    HISTOGRAM_MIN = 1,
    HISTOGRAM_MAX,
    HISTOGRAM_VALUES,
    HISTOGRAM_SUM,
    HISTOGRAM_SQUARES,
    HISTOGRAM_LIMIT,
    HISTOGRAM_COUNT
};

struct board {
    struct ddp__events file;
    struct ddp__proto summary, value;
};

/* ---- values ------------------------------------------------------------- */

static void add_scalar(struct board *b, const char *tag, double v)
{
    ddp__proto_text(&b->value, VALUE_TAG, tag);
    ddp__proto_float(&b->value, VALUE_SIMPLE, (float)v);
    ddp__proto_message(&b->summary, SUMMARY_VALUE, &b->value);
}

static int put(struct ddp_log *l, int64_t step, const struct ddp__log_value *v,
               int n)
{
    struct board *b = l->own;

    for (int i = 0; i < n; i++)
        add_scalar(b, v[i].tag, v[i].v);
    return ddp__events_write(&b->file, step, SUMMARY, &b->summary);
}

/* The event of a value whose tag and content b->value has. */
static int write_value(struct board *b, int64_t step)
{
    ddp__proto_message(&b->summary, SUMMARY_VALUE, &b->value);
    return ddp__events_write(&b->file, step, SUMMARY, &b->summary);
}

static int histogram(struct ddp_log *l, int64_t step, const char *tag,
                     const struct ddp__histogram *h)
{
    struct board *b = l->own;
    struct ddp__proto p = {0};

    ddp__proto_double(&p, HISTOGRAM_MIN, h->min);
    ddp__proto_double(&p, HISTOGRAM_MAX, h->max);
    ddp__proto_double(&p, HISTOGRAM_VALUES, (double)h->values);
    ddp__proto_double(&p, HISTOGRAM_SUM, h->sum);
    ddp__proto_double(&p, HISTOGRAM_SQUARES, h->squares);
    for (int i = 0; i < h->bins; i++) {
        ddp__proto_double(&p, HISTOGRAM_LIMIT, ddp__histogram_edge(h, i + 1));
        ddp__proto_double(&p, HISTOGRAM_COUNT, (double)h->count[i]);
    }
    ddp__proto_text(&b->value, VALUE_TAG, tag);
    ddp__proto_message(&b->value, VALUE_HISTOGRAM, &p);
    ddp__proto_free(&p);
    return write_value(b, step);
}

static int image(struct ddp_log *l, int64_t step, const char *tag,
                 struct ddp_shape shape, const uint8_t *pixels)
{
    struct board *b = l->own;
    struct ddp__proto p = {0};
    struct ddp__bytes file = {0};
    int rc = ddp__jpeg_write(shape, pixels, image_quality, &file);

    if (rc < 0)
        return rc;
    ddp__proto_int(&p, IMAGE_HEIGHT, (uint64_t)shape.h);
    ddp__proto_int(&p, IMAGE_WIDTH, (uint64_t)shape.w);
    ddp__proto_int(&p, IMAGE_CHANNELS, (uint64_t)shape.c);
    ddp__proto_bytes(&p, IMAGE_FILE, file.data, file.len);
    ddp__proto_text(&b->value, VALUE_TAG, tag);
    ddp__proto_message(&b->value, VALUE_IMAGE, &p);
    ddp__proto_free(&p);
    free(file.data);
    return write_value(b, step);
}

static int graph(struct ddp_log *l, int64_t step, struct ddp__proto *def)
{
    struct board *b = l->own;

    return ddp__events_write(&b->file, step, GRAPH, def);
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
    double v;

    if (ddp__log_number(text, &v))
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
static int write_plugin(struct board *b, const char *tag, int64_t step,
                        int field, struct ddp__proto *what)
{
    struct ddp__proto data = {0}, plugin = {0};

    ddp__proto_message(&data, field, what);
    ddp__proto_text(&plugin, PLUGIN_NAME, "hparams");
    ddp__proto_message(&plugin, PLUGIN_CONTENT, &data);
    ddp__proto_message(&data, METADATA_PLUGIN, &plugin);
    ddp__proto_text(&b->value, VALUE_TAG, tag);
    ddp__proto_bytes(&b->value, VALUE_TENSOR, no_tensor, sizeof(no_tensor));
    ddp__proto_message(&b->value, VALUE_METADATA, &data);
    ddp__proto_free(&data);
    ddp__proto_free(&plugin);
    return write_value(b, step);
}

static int write_settings(const struct ddp_log *l, int64_t step)
{
    struct ddp__proto start = {0};
    int rc;

    for (int i = 0; i < l->settings; i += 2)
        add_setting(&start, l->setting[i], l->setting[i + 1]);
    ddp__proto_double(&start, START_TIME, (double)time(NULL));
    rc = write_plugin(l->own, "_hparams_/session_start_info", step,
                      DATA_SESSION_START, &start);
    ddp__proto_free(&start);
    return rc;
}

static int write_end(struct board *b, bool good)
{
    struct ddp__proto end = {0};
    int rc;

    ddp__proto_int(&end, END_STATUS, good ? STATUS_SUCCESS : STATUS_FAILURE);
    ddp__proto_double(&end, END_TIME, (double)time(NULL));
    rc = write_plugin(b, "_hparams_/session_end_info", 0, DATA_SESSION_END,
                      &end);
    ddp__proto_free(&end);
    return rc;
}

/* ---- the file ----------------------------------------------------------- */

static int open_file(struct ddp_log *l, int64_t steps)
{
    struct board *b = l->own;
    int rc = ddp__events_open(&b->file, l->dir);

    if (rc < 0)
        return rc;
    ddp__proto_int(&b->summary, SESSION_STATUS, SESSION_START);
    rc = ddp__events_write(&b->file, steps ? steps + 1 : 0, SESSION_LOG,
                           &b->summary);
    return rc == 0 && l->settings ? write_settings(l, steps) : rc;
}

/* Continue a run that was stopped. */
static int end(struct ddp_log *l, int rc)
{
    return l->settings && rc != DDP_ESTOPPED ? write_end(l->own, rc == 0) : 0;
}

static void close_file(struct ddp_log *l)
{
    struct board *b = l->own;

    ddp__events_close(&b->file);
    ddp__proto_free(&b->summary);
    ddp__proto_free(&b->value);
}

const struct ddp__log_format ddp__log_tensorboard = {
    .name = "tensorboard",
    .size = sizeof(struct board),
    .open = open_file,
    .put = put,
    .histogram = histogram,
    .image = image,
    .graph = graph,
    .end = end,
    .close = close_file,
};
