/* report_timeline.c - one step of a trace, device by device, in a report
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/app.h"
#include "common/opt.h"
#include "html.h"
#include "report_timeline.h"

enum {
    WIDTH = 1140,
    LEFT = 150, /* of the names */
    ROW = 24,
    BAR = 16,
    AXIS = 26,
    ROWS = 256 /* more are not drawn */
};

static const char *const phase_name[TIMELINE_PHASES] = {
    "input",  "forward", "backward", "merge",
    "update", "end",     "transfer", "submission"};

/* ---- reading ------------------------------------------------------------ */

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

/* TIMELINE_PHASES: it is none. */
static enum timeline_phase phase_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    int i = 0;

    while (i < TIMELINE_PHASES && (!text || strcmp(text, phase_name[i]) != 0))
        i++;
    return (enum timeline_phase)i;
}

static bool is(const json_t *o, const char *key, const char *value)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text && !strcmp(text, value);
}

static void read_row(struct report_timeline *t, const json_t *o)
{
    const json_t *name = json_object_get(json_object_get(o, "args"), "name");

    if (is(o, "name", "thread_name") && json_is_string(name) && t->rows < ROWS)
        t->row[t->rows++] =
            (struct timeline_row){.name = strdup(json_string_value(name)),
                                  .thread = (int)number(o, "tid")};
}

static void read_task(struct report_timeline *t, const json_t *o)
{
    const json_t *args = json_object_get(o, "args");
    struct timeline_task a = {.phase = phase_of(o, "cat"),
                              .after = phase_of(args, "after"),
                              .begin = number(o, "ts"),
                              .step = (int64_t)number(args, "step")};
    int thread = (int)number(o, "tid");

    a.end = a.begin + number(o, "dur");
    a.ready = a.begin - number(args, "ready_for_us");
    while (a.row < t->rows && t->row[a.row].thread != thread)
        a.row++;
    if (a.row == t->rows || a.phase == TIMELINE_PHASES)
        return;
    t->row[a.row].worker =
        a.phase != TIMELINE_TRANSFER && a.phase != TIMELINE_SUBMISSION;
    t->task[t->tasks++] = a;
}

static int in_order(const void *pa, const void *pb)
{
    const struct timeline_task *a = pa, *b = pb;

    return a->row != b->row ? a->row - b->row
                            : (a->begin > b->begin) - (a->begin < b->begin);
}

/* The lowest step above `least`, or INT64_MAX. */
static int64_t step_after(const struct report_timeline *t, int64_t least)
{
    int64_t step = INT64_MAX;

    for (int i = 0; i < t->tasks; i++)
        if (t->task[i].step > least && t->task[i].step < step)
            step = t->task[i].step;
    return step;
}

/* The second step if there is one: what runs before the first is unknown.
 * From the first begin to the last end on any worker. */
static void find_step(struct report_timeline *t)
{
    int64_t first = step_after(t, INT64_MIN), second = step_after(t, first);

    t->step = second < INT64_MAX ? second : first;
    t->begin = INFINITY;
    t->end = -INFINITY;
    for (int i = 0; i < t->tasks; i++) {
        const struct timeline_task *a = &t->task[i];

        if (a->step != t->step || !t->row[a->row].worker)
            continue;
        t->begin = fmin(t->begin, a->begin);
        t->end = fmax(t->end, a->end);
    }
}

static bool read_events(struct report_timeline *t, const json_t *all)
{
    size_t n = json_array_size(all);

    t->row = calloc(ROWS, sizeof(*t->row));
    t->task = calloc(n + 1, sizeof(*t->task));
    for (size_t i = 0; t->row && i < n; i++)
        read_row(t, json_array_get(all, i));
    for (size_t i = 0; t->row && t->task && i < n; i++)
        if (is(json_array_get(all, i), "ph", "X"))
            read_task(t, json_array_get(all, i));
    if (!t->row || !t->task)
        return false;
    qsort(t->task, (size_t)t->tasks, sizeof(*t->task), in_order);
    find_step(t);
    return true;
}

int report_timeline_read(struct report_timeline *t, const char *path)
{
    json_error_t e;
    json_t *root = json_load_file(path, 0, &e);
    bool room;

    *t = (struct report_timeline){0};
    if (!root) {
        app_say("%s is not a trace, the report lacks a timeline: %s", path,
                e.text);
        return OPTS_GO;
    }
    room = read_events(t, json_object_get(root, "traceEvents"));
    json_decref(root);
    if (!room)
        app_say("out of memory for %s", path);
    return room ? OPTS_GO : EXIT_MEMORY;
}

void report_timeline_free(struct report_timeline *t)
{
    for (int i = 0; i < t->rows; i++)
        free(t->row[i].name);
    free(t->row);
    free(t->task);
}

/* ---- the drawing -------------------------------------------------------- */

static bool row_is_used(const struct report_timeline *t, int row)
{
    for (int i = 0; i < t->tasks; i++)
        if (t->task[i].row == row && t->task[i].end > t->begin &&
            t->task[i].begin < t->end)
            return true;
    return false;
}

static double x_of(const struct report_timeline *t, double at)
{
    double share = (at - t->begin) / (t->end - t->begin);

    return LEFT + fmin(1, fmax(0, share)) * (WIDTH - LEFT);
}

static void print_bar(const struct report_timeline *t,
                      const struct timeline_task *a, double end, int n, int y,
                      FILE *f)
{
    double x = x_of(t, a->begin);

    fprintf(f,
            "<rect class=\"p%d%s\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" "
            "height=\"%d\"><title>%s of step %lld",
            (int)a->phase, a->step == t->step ? "" : " other", x, y,
            fmax(x_of(t, end) - x, 0.2), BAR, phase_name[a->phase],
            (long long)a->step);
    if (n > 1)
        fprintf(f, ", %d tasks", n);
    fprintf(f, ", %.3f ms</title></rect>\n", (end - a->begin) / 1000);
}

/* Tasks of a kind that follow each other within a third of a point are one
 * bar. */
static void print_bars(const struct report_timeline *t, int row, int y, FILE *f)
{
    const double gap = (t->end - t->begin) / (WIDTH - LEFT) / 3;
    const struct timeline_task *first = NULL;
    double end = 0;
    int n = 0;

    for (int i = 0; i < t->tasks; i++) {
        const struct timeline_task *a = &t->task[i];

        if (a->row != row || a->end <= t->begin || a->begin >= t->end)
            continue;
        if (first && (a->phase != first->phase || a->step != first->step ||
                      a->begin > end + gap)) {
            print_bar(t, first, end, n, y, f);
            first = NULL;
        }
        n = first ? n + 1 : 1;
        first = first ? first : a;
        end = a->end;
    }
    if (first)
        print_bar(t, first, end, n, y, f);
}

static void print_ticks(const struct report_timeline *t, int height, FILE *f)
{
    double ms = (t->end - t->begin) / 1000, unit = pow(10, floor(log10(ms)));
    double step = ms / unit < 2 ? unit / 5 : ms / unit < 5 ? unit / 2 : unit;

    for (double v = 0; v <= ms; v += step)
        fprintf(f,
                "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" "
                "y2=\"%d\"/><text class=\"tick\" x=\"%.1f\" y=\"%d\" "
                "text-anchor=\"%s\">%g ms</text>\n",
                x_of(t, t->begin + 1000 * v), x_of(t, t->begin + 1000 * v),
                height - AXIS, x_of(t, t->begin + 1000 * v), height - 8,
                v + step > ms ? "end" : "middle", v);
}

static void print_drawing(const struct report_timeline *t, FILE *f)
{
    int used = 0, height;

    for (int r = 0; r < t->rows; r++)
        used += row_is_used(t, r);
    height = used * ROW + AXIS;
    fprintf(f,
            "<svg class=\"chart lanes\" viewBox=\"0 0 %d %d\" role=\"img\" "
            "aria-label=\"tasks of step %lld on each worker\">\n",
            WIDTH, height, (long long)t->step);
    print_ticks(t, height, f);
    for (int r = 0, y = 0; r < t->rows; r++) {
        if (!row_is_used(t, r))
            continue;
        fprintf(f, "<text class=\"tick\" x=\"0\" y=\"%d\">", y + BAR - 2);
        html_text(f, t->row[r].name ? t->row[r].name : "?");
        fputs("</text>\n", f);
        print_bars(t, r, y + 2, f);
        y += ROW;
    }
    fputs("</svg>\n", f);
}

/* ---- the table ---------------------------------------------------------- */

/* Microseconds of a worker within the step. */
struct shares {
    double ran[TIMELINE_PHASES];
    double waited[TIMELINE_PHASES]; /* until a task of the phase was done */
    double idle;                    /* a task was ready, but none ran */
};

/* What is between tasks: until the next is ready it waits for another, then
 * for the scheduler and for copies. */
static void add_gap(struct shares *s, double from, double to,
                    const struct timeline_task *next)
{
    double ready = fmin(to, fmax(from, next->ready));

    if (to <= from)
        return;
    if (next->after < TIMELINE_PHASES)
        s->waited[next->after] += ready - from;
    s->idle += to - ready;
}

static struct shares share_time(const struct report_timeline *t, int row)
{
    struct shares s = {0};
    double at = t->begin;

    for (int i = 0; i < t->tasks; i++) {
        const struct timeline_task *a = &t->task[i];
        double begin = fmax(a->begin, t->begin), end = fmin(a->end, t->end);

        if (a->row != row || a->end <= t->begin)
            continue;
        add_gap(&s, at, fmin(begin, t->end), a);
        if (end > begin)
            s.ran[a->phase] += end - begin;
        at = fmax(at, end);
    }
    return s;
}

static void percent_cell(const struct report_timeline *t, double us, FILE *f)
{
    fprintf(f, "<td class=\"n\">%.1f</td>", 100 * us / (t->end - t->begin));
}

static void print_worker(const struct report_timeline *t, int row, FILE *f)
{
    struct shares s = share_time(t, row);
    double busy = 0;

    for (int k = 0; k < TIMELINE_PHASES; k++)
        busy += s.ran[k];
    fputs("<tr><td>", f);
    html_text(f, t->row[row].name ? t->row[row].name : "?");
    fputs("</td>", f);
    percent_cell(t, busy, f);
    for (int k = 0; k <= TIMELINE_UPDATE; k++)
        percent_cell(t, s.ran[k], f);
    for (int k = 0; k <= TIMELINE_UPDATE; k++)
        percent_cell(t, s.waited[k], f);
    percent_cell(t, s.waited[TIMELINE_SUBMISSION], f);
    percent_cell(t, s.idle, f);
    fputs("</tr>\n", f);
}

static void print_heads(FILE *f)
{
    fputs("<div class=\"box\"><table id=\"shares\"><thead><tr><th>% of the "
          "step</th><th class=\"n\">busy</th>",
          f);
    for (int k = 0; k <= TIMELINE_UPDATE; k++)
        fprintf(f, "<th class=\"n\"><i class=\"key p%d\"></i>%s</th>", k,
                phase_name[k]);
    for (int k = 0; k <= TIMELINE_UPDATE; k++)
        fprintf(f, "<th class=\"n\">%s %s</th>", k ? "" : "waits for",
                phase_name[k]);
    fputs("<th class=\"n\">submission</th><th class=\"n\">a worker</th></tr>"
          "</thead><tbody>\n",
          f);
}

void report_timeline_print(const struct report_timeline *t, FILE *f)
{
    if (t->end <= t->begin)
        return;
    fprintf(f,
            "<h2>A step</h2>\n<p class=\"sub\">step %lld took <b "
            "data-key=\"step-ms\">%.3f</b> ms; what belongs to the steps "
            "around it is pale</p>\n<figure class=\"card\" id=\"timeline\">\n",
            (long long)t->step, (t->end - t->begin) / 1000);
    print_drawing(t, f);
    fputs("</figure>\n", f);
    print_heads(f);
    for (int r = 0; r < t->rows; r++)
        if (t->row[r].worker && row_is_used(t, r))
            print_worker(t, r, f);
    fputs("</tbody></table></div>\n", f);
}
