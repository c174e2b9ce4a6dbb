/* prediction.c - the best classes of an image, as text, CSV or JSON
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/app.h"
#include "prediction.h"
#include "options.h"

/* NaN ranks last. */
static double rankable(float v)
{
    return isnan(v) ? -INFINITY : v;
}

static int keep_best(const float *output, int len, int k, struct top *top)
{
    int n = 0;

    for (int i = 0; i < len; i++) {
        double v = rankable(output[i]);
        int at = n < k ? n++ : k;

        for (; at > 0 && v > top[at - 1].share; at--)
            if (at < k)
                top[at] = top[at - 1];
        if (at < k)
            top[at] = (struct top){i, v};
    }
    return n;
}

void prediction_top(const float *output, int len, int k, struct top *top)
{
    int n = keep_best(output, len, k, top);
    double best = n ? top[0].share : 0, sum = 0;

    for (int i = 0; i < len; i++)
        sum += exp(output[i] - best);
    for (int i = 0; i < n; i++)
        top[i].share = exp(top[i].share - best) / sum;
}

double prediction_share(const float *output, int len, int class)
{
    double best = -INFINITY, sum = 0;

    for (int i = 0; i < len; i++)
        best = fmax(best, rankable(output[i]));
    for (int i = 0; i < len; i++)
        sum += exp(output[i] - best);
    return exp(output[class] - best) / sum;
}

static const char *name_of(const struct prediction *a, int class)
{
    return class < a->names->count ? a->names->name[class] : NULL;
}

/* ---- text: for people --------------------------------------------------- */

static void print_plain(const char *text, FILE *f)
{
    char *copy = strdup(text);

    if (copy)
        ddp_printable(copy);
    fputs(copy ? copy : "?", f);
    free(copy);
}

static void print_text(const struct prediction *a, FILE *f)
{
    print_plain(a->path, f);
    fputc(':', f);
    if (a->why) {
        fprintf(f, " unreadable: ");
        print_plain(a->why, f);
    }
    for (int i = 0; i < a->k; i++) {
        const char *name = name_of(a, a->top[i].class);

        fprintf(f, "%s %.2f%% %d", i ? ";" : "", 100 * a->top[i].share,
                a->top[i].class);
        if (name) {
            fputc(' ', f);
            print_plain(name, f);
        }
    }
    fputc('\n', f);
}

/* ---- csv ---------------------------------------------------------------- */

static void print_csv(const struct prediction *a, FILE *f)
{
    for (int i = 0; i < a->k; i++) {
        const char *name = name_of(a, a->top[i].class);

        app_csv_text(f, a->path);
        fprintf(f, ",%d,%d,", i + 1, a->top[i].class);
        app_csv_text(f, name ? name : "");
        fprintf(f, ",%.6g,\n", a->top[i].share);
    }
    if (!a->why)
        return;
    app_csv_text(f, a->path);
    fprintf(f, ",,,,,");
    app_csv_text(f, a->why);
    fputc('\n', f);
}

/* ---- jsonl -------------------------------------------------------------- */

/* Bytes that are not UTF-8, which names of files may hold, become U+FFFD. */
static json_t *json_text(const char *text)
{
    json_t *j = json_string(text), *ch;
    char *clean, *to;

    if (j || !(to = clean = malloc(3 * strlen(text) + 1)))
        return j;
    while (*text) {
        size_t len = 0;

        for (size_t n = 1; !len && n <= strnlen(text, 4); n++)
            if ((ch = json_stringn(text, n))) {
                len = n;
                json_decref(ch);
            }
        memcpy(to, len ? text : "\xef\xbf\xbd", len ? len : 3);
        to += len ? len : 3;
        text += len ? len : 1;
    }
    *to = 0;
    j = json_string(clean);
    free(clean);
    return j;
}

static json_t *json_share(double share)
{
    return isfinite(share) ? json_real(share) : json_null();
}

static json_t *json_class(const struct prediction *a, const struct top *t)
{
    const char *name = name_of(a, t->class);
    json_t *o = json_object();

    json_object_set_new(o, "class", json_integer(t->class));
    if (name)
        json_object_set_new(o, "name", json_text(name));
    json_object_set_new(o, "probability", json_share(t->share));
    return o;
}

static void print_jsonl(const struct prediction *a, FILE *f)
{
    json_t *o = json_object(), *list = json_array();

    json_object_set_new(o, "path", json_text(a->path));
    if (a->why)
        json_object_set_new(o, "error", json_text(a->why));
    for (int i = 0; i < a->k; i++)
        json_array_append_new(list, json_class(a, &a->top[i]));
    json_object_set_new(o, "classes", list);
    json_dumpf(o, f, JSON_COMPACT | JSON_REAL_PRECISION(6));
    fputc('\n', f);
    json_decref(o);
}

void prediction_print_judged(const struct judged *j, FILE *f)
{
    json_t *o = json_object();

    json_object_set_new(o, "path", json_text(j->path));
    json_object_set_new(o, "class", json_integer(j->class));
    if (j->name)
        json_object_set_new(o, "name", json_text(j->name));
    json_object_set_new(o, "class_probability", json_share(j->share));
    json_object_set_new(o, "predicted", json_integer(j->taken.class));
    if (j->taken_name)
        json_object_set_new(o, "predicted_name", json_text(j->taken_name));
    json_object_set_new(o, "probability", json_share(j->taken.share));
    json_dumpf(o, f, JSON_COMPACT | JSON_REAL_PRECISION(6));
    fputc('\n', f);
    json_decref(o);
}

void prediction_print_head(int format, FILE *f)
{
    if (format == FORMAT_CSV)
        fprintf(f, "path,rank,class,name,probability,error\n");
}

void prediction_print(const struct prediction *a, int format, FILE *f)
{
    if (format == FORMAT_CSV)
        print_csv(a, f);
    else if (format == FORMAT_JSONL)
        print_jsonl(a, f);
    else
        print_text(a, f);
}
