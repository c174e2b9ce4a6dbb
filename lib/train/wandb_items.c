/* wandb_items.c - values in records of Weights & Biases
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/printable.h"
#include "train/wandb_items.h"

void ddp__wandb_text(struct ddp__proto *p, int field, const char *text)
{
    ddp__proto_text(p, field, ddp__is_utf8(text) ? text : "?");
}

/* JSON has no numbers that are not finite; these words are W&B's. */
static void number_json(char out[32], double v)
{
    if (isnan(v))
        strcpy(out, "\"NaN\"");
    else if (isinf(v))
        strcpy(out, v > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    else
        snprintf(out, 32, "%.16g", v);
}

static void add_item(struct ddp__proto *p, int item, int key, const char *name,
                     const char *json)
{
    struct ddp__proto i = {0};

    ddp__wandb_text(&i, key, name);
    ddp__proto_text(&i, DDP__WANDB_VALUE_JSON, json);
    ddp__proto_message(p, item, &i);
    ddp__proto_free(&i);
}

void ddp__wandb_number(struct ddp__proto *p, int item, int key,
                       const char *name, double v)
{
    char json[32];

    number_json(json, v);
    add_item(p, item, key, name, json);
}

/* As the package's own class Histogram writes it: one edge more than bins. */
void ddp__wandb_histogram(struct ddp__proto *p, int item, int key,
                          const char *name, const struct ddp__histogram *h)
{
    json_t *values = json_array(), *edges = json_array(), *o;
    char *json;

    for (int i = 0; i < h->bins; i++)
        json_array_append_new(values, json_integer((json_int_t)h->count[i]));
    for (int i = 0; i <= h->bins; i++)
        json_array_append_new(edges, json_real(ddp__histogram_edge(h, i)));
    o = json_pack("{s:s, s:o, s:o}", "_type", "histogram", "values", values,
                  "bins", edges);
    json = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(9));
    if (json)
        add_item(p, item, key, name, json);
    free(json);
    json_decref(o);
}

void ddp__wandb_time(struct ddp__proto *p, int field, double t)
{
    struct ddp__proto time = {0};

    ddp__proto_int(&time, DDP__WANDB_SECONDS, (uint64_t)t);
    ddp__proto_int(&time, DDP__WANDB_NANOS, (uint64_t)(1e9 * (t - floor(t))));
    ddp__proto_message(p, field, &time);
    ddp__proto_free(&time);
}

/* A setting as JSON: numbers and truth values as such; NULL: no memory. */
static char *setting_json(const char *text)
{
    bool is_word = !strcmp(text, "true") || !strcmp(text, "false");
    char number[32], *json;
    json_t *string;
    double v;

    if (is_word)
        return strdup(text);
    if (ddp__log_number(text, &v)) {
        number_json(number, v);
        return strdup(number);
    }
    string = json_string(ddp__is_utf8(text) ? text : "?");
    json = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    json_decref(string);
    return json;
}

void ddp__wandb_settings(const struct ddp_log *l, struct ddp__proto *p)
{
    struct ddp__proto item = {0};

    for (int i = 0; i < l->settings; i += 2) {
        char *json = setting_json(l->setting[i + 1]);

        ddp__wandb_text(&item, DDP__WANDB_KEY, l->setting[i]);
        ddp__proto_text(&item, DDP__WANDB_VALUE_JSON, json ? json : "null");
        ddp__proto_message(p, DDP__WANDB_ITEM, &item);
        free(json);
    }
    ddp__proto_free(&item);
}
