/* report_tables.c - the tables of a report: settings, weights, machines
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/app.h"
#include "common/app_command.h"
#include "html.h"
#include "report_tables.h"

/* ---- settings ----------------------------------------------------------- */

/* Names of workers and the like. */
static char *list_text(const json_t *list)
{
    char *text = strdup("");

    for (size_t i = 0; i < json_array_size(list) && text; i++) {
        const char *one = json_string_value(json_array_get(list, i));
        char *more;

        if (asprintf(&more, "%s%s%s", text, i ? ", " : "", one ? one : "?") < 0)
            more = NULL;
        free(text);
        text = more;
    }
    return text;
}

/* A value as text, to free(); NULL: there is none. */
static char *value_text(const json_t *v)
{
    if (json_is_array(v))
        return list_text(v);
    if (!v || json_is_null(v))
        return NULL;
    if (json_is_string(v))
        return strdup(json_string_value(v));
    return json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
}

static void value_cell(const json_t *v, FILE *f)
{
    char *text = value_text(v);

    fputs("<td>", f);
    if (text)
        html_text(f, text);
    else
        fputs("<span class=\"none\">–</span>", f);
    fputs("</td>", f);
    free(text);
}

/* What settings, and what versions and machine, a run had. */
static const json_t *facts(const struct report_run *r, int which)
{
    const json_t *s = report_run_segment(r);

    return which == 0   ? r->settings
           : which == 1 ? json_object_get(s, "machine")
                        : json_object_get(s, "versions");
}

static bool same_text(const json_t *a, const json_t *b)
{
    char *x = value_text(a), *y = value_text(b);
    bool same = x && y ? !strcmp(x, y) : !x && !y;

    free(x);
    free(y);
    return same;
}

static bool differs(const struct report *r, int which, const char *key)
{
    const json_t *first = json_object_get(facts(&r->run[0], which), key);

    for (int i = 1; i < r->runs; i++)
        if (!same_text(first, json_object_get(facts(&r->run[i], which), key)))
            return true;
    return false;
}

static void setting_row(const struct report *r, int which, const char *key,
                        FILE *f)
{
    fputs("<tr><th>", f);
    html_text(f, key);
    fputs("</th>", f);
    for (int i = 0; i < r->runs; i++)
        value_cell(json_object_get(facts(&r->run[i], which), key), f);
    fputs("</tr>\n", f);
}

/* Every key of any run once, in the order of the first that has it. */
static int setting_rows(const struct report *r, int which, bool all, FILE *f)
{
    json_t *seen = json_object();
    int rows = 0;

    for (int i = 0; i < r->runs; i++) {
        json_t *o = (json_t *)facts(&r->run[i], which), *v;
        const char *key;

        json_object_foreach(o, key, v)
        {
            if (json_object_get(seen, key) ||
                (!all && (!strcmp(key, "output") || !differs(r, which, key))))
                continue;
            json_object_set_new(seen, key, json_true());
            setting_row(r, which, key, f);
            rows++;
        }
    }
    json_decref(seen);
    return rows;
}

static void run_heads(const struct report *r, const char *first, FILE *f)
{
    fprintf(f, "<thead><tr><th>%s</th>", first);
    for (int i = 0; i < r->runs && r->runs > 1; i++) {
        fprintf(f, "<th><span class=\"key c%d\"></span>", i % CHART_COLOURS);
        html_text(f, r->run[i].name);
        fputs("</th>", f);
    }
    if (r->runs == 1)
        fputs("<th>Value</th>", f);
    fputs("</tr></thead>\n", f);
}

static void print_differences(const struct report *r, FILE *f)
{
    int rows = 0;

    fputs("<h2>Differences</h2>\n<div class=\"box\"><table id=\"diff\">\n", f);
    run_heads(r, "Setting", f);
    fputs("<tbody>\n", f);
    for (int which = 0; which < 3; which++)
        rows += setting_rows(r, which, false, f);
    if (!rows)
        fprintf(f,
                "<tr><td colspan=\"%d\">The runs have the same settings and "
                "ran on equal machines.</td></tr>\n",
                r->runs + 1);
    fputs("</tbody></table></div>\n", f);
}

static void print_settings(const struct report *r, FILE *f)
{
    fputs("<details><summary>All settings</summary>\n<div class=\"box\">"
          "<table id=\"settings\">\n",
          f);
    run_heads(r, "Setting", f);
    fputs("<tbody>\n", f);
    setting_rows(r, 0, true, f);
    fputs("</tbody></table></div></details>\n", f);
}

/* ---- weights ------------------------------------------------------------ */

/* The checkpoint that a link names: its step, or -1. */
static long long linked_step(const char *dir, const char *link)
{
    char *path = app_path(dir, "%s", link), to[PATH_MAX];
    ssize_t n = path ? readlink(path, to, sizeof(to) - 1) : -1;
    long long step = -1;

    free(path);
    if (n > 0) {
        to[n] = '\0';
        if (sscanf(to, "step-%lld", &step) != 1)
            step = -1;
    }
    return step;
}

static void print_size(double bytes, FILE *f)
{
    if (bytes >= 1e6)
        fprintf(f, "%.1f MB", bytes / 1e6);
    else
        fprintf(f, "%.1f kB", bytes / 1e3);
}

static const struct {
    const char *file, *link, *what;
} weight_rows[] = {
    {"weights.safetensors", NULL, "end of the run"},
    {"weights-ema.safetensors", NULL, "end of the run, averages"},
    {"ckpt/best/model.safetensors", "ckpt/best", "best evaluation"},
    {"ckpt/latest/model.safetensors", "ckpt/latest", "newest checkpoint"},
};

static bool weight_row(const struct report *r, int i, size_t k, FILE *f)
{
    const struct report_run *one = &r->run[i];
    const char *link = weight_rows[k].link;
    char *path = app_path(one->dir, "%s", weight_rows[k].file);
    long long step = link ? linked_step(one->dir, link) : one->steps;
    struct stat st;
    bool there = path && stat(path, &st) == 0;

    if (there) {
        fputs("<tr><td>", f);
        if (r->runs > 1)
            fprintf(f, "<span class=\"key c%d\"></span>", i % CHART_COLOURS);
        fputs("<code>", f);
        html_text(f, path);
        fprintf(f, "</code></td><td>%s</td><td class=\"n\">",
                weight_rows[k].what);
        report_number(f, "%.0f", step >= 0 ? (double)step : NAN);
        fputs("</td><td class=\"n\">", f);
        print_size((double)st.st_size, f);
        fputs("</td></tr>\n", f);
    }
    free(path);
    return there;
}

static void print_weights(const struct report *r, FILE *f)
{
    int rows = 0;

    fputs("<h2>Weights</h2>\n<div class=\"box\"><table id=\"weights\"><thead>"
          "<tr><th>File</th><th>What</th><th class=\"n\">Step</th>"
          "<th class=\"n\">Size</th></tr></thead><tbody>\n",
          f);
    for (int i = 0; i < r->runs; i++)
        for (size_t k = 0; k < sizeof(weight_rows) / sizeof(*weight_rows); k++)
            rows += weight_row(r, i, k, f);
    if (!rows)
        fputs("<tr><td colspan=\"4\">There are no weights here yet.</td></tr>",
              f);
    fputs("</tbody></table></div>\n", f);
}

/* ---- processes, machines, commands -------------------------------------- */

static void text_cell(const json_t *o, const char *key, FILE *f)
{
    fputs("<td>", f);
    if (*report_text(o, key))
        html_text(f, report_text(o, key));
    else
        fputs("<span class=\"none\">–</span>", f);
    fputs("</td>", f);
}

static void step_cell(const json_t *o, const char *key, FILE *f)
{
    const json_t *v = json_object_get(o, key);

    fputs("<td class=\"n\">", f);
    report_number(f, "%.0f", json_is_integer(v) ? json_number_value(v) : NAN);
    fputs("</td>", f);
}

static void print_segment(const struct report *r, int i, const json_t *s,
                          FILE *f)
{
    fputs("<tr><td>", f);
    if (r->runs > 1) {
        fprintf(f, "<span class=\"key c%d\"></span>", i % CHART_COLOURS);
        html_text(f, r->run[i].name);
    } else {
        html_text(f, report_text(s, "start"));
    }
    fputs("</td>", f);
    if (r->runs > 1)
        text_cell(s, "start", f);
    text_cell(s, "end", f);
    step_cell(s, "from_step", f);
    step_cell(s, "to_step", f);
    text_cell(json_object_get(s, "machine"), "host", f);
    text_cell(s, "reason", f);
    fputs("</tr>\n", f);
}

static void print_segments(const struct report *r, FILE *f)
{
    fprintf(f,
            "<h2>Processes</h2>\n<div class=\"box\"><table id=\"segments\">"
            "<thead><tr>%s<th>Start</th><th>End</th><th class=\"n\">From step"
            "</th><th class=\"n\">to</th><th>Host</th><th>Reason of its end"
            "</th></tr></thead><tbody>\n",
            r->runs > 1 ? "<th>Run</th>" : "");
    for (int i = 0; i < r->runs; i++) {
        const json_t *all = json_object_get(r->run[i].file, "segments");

        for (size_t k = 0; k < json_array_size(all); k++)
            print_segment(r, i, json_array_get(all, k), f);
    }
    fputs("</tbody></table></div>\n", f);
}

static void print_machines(const struct report *r, FILE *f)
{
    fputs("<h2>Machine</h2>\n<div class=\"box\"><table id=\"machine\">\n", f);
    run_heads(r, "", f);
    fputs("<tbody>\n", f);
    for (int which = 1; which < 3; which++)
        setting_rows(r, which, true, f);
    fputs("</tbody></table></div>\n", f);
}

static void print_words(const json_t *words, FILE *f)
{
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *text = json_string_value(json_array_get(words, i));
        char *quoted = app_shell_word(text ? text : "?");

        if (i)
            fputc(' ', f);
        html_text(f, quoted ? quoted : "?");
        free(quoted);
    }
}

static void print_command(const struct report_run *r, FILE *f)
{
    const json_t *s = report_run_segment(r);
    char *dir = app_shell_word(report_text(s, "directory"));

    fputs("<div class=\"box\"><pre data-key=\"command\">", f);
    if (dir && *report_text(s, "directory")) {
        fputs("cd ", f);
        html_text(f, dir);
        fputc('\n', f);
    }
    print_words(json_object_get(s, "command"), f);
    fputs("</pre></div>\n", f);
    free(dir);
}

static void print_commands(const struct report *r, FILE *f)
{
    fputs("<h2>To make it again</h2>\n", f);
    for (int i = 0; i < r->runs; i++) {
        if (r->runs > 1) {
            fprintf(f, "<p class=\"sub\"><span class=\"key c%d\"></span>",
                    i % CHART_COLOURS);
            html_text(f, r->run[i].name);
            fputs("</p>\n", f);
        }
        print_command(&r->run[i], f);
    }
}

void report_tables(const struct report *r, FILE *f)
{
    if (r->runs > 1)
        print_differences(r, f);
    print_weights(r, f);
    print_segments(r, f);
    print_machines(r, f);
    print_commands(r, f);
    print_settings(r, f);
}
