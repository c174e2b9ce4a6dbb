/* report_page.c - a report as one HTML file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Nothing in it comes from elsewhere: no network, no third party's script.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ddp.h"

#include "common/app.h"
#include "html.h"
#include "report_css.h"
#include "report_js.h"
#include "report_page.h"
#include "report_tables.h"

/* ---- curves ------------------------------------------------------------- */

static const struct row {
    const char *id, *title, *unit, *empty;
    enum report_column column;
    bool evaluated, zero, log;
} rows[REPORT_CHARTS] = {
    {"loss", "Loss", "", "no loss is recorded", COLUMN_LOSS, true, false,
     false},
    {"top1", "Top-1 accuracy", "%", "no accuracy is recorded", COLUMN_TOP1,
     true, true, false},
    {"lr", "Learning rate", "", "no learning rate is recorded", COLUMN_LR,
     false, true, false},
    {"norm", "Gradient norm", "before clipping", "no gradient norm is recorded",
     COLUMN_NORM, false, true, true},
    {"speed", "Speed", "images/s", "no speed is recorded", COLUMN_SPEED, false,
     true, false},
    {"data", "Input", "% of the workers' time",
     "no share of the input is recorded", COLUMN_DATA, false, true, false},
    {"busy", "Devices busy", "% of the time, mean of all workers",
     "no share is recorded", COLUMN_BUSY, false, true, false},
    {"memory", "Main memory", "MiB, peak of the process",
     "no memory is recorded", COLUMN_MEMORY, false, true, false},
};

/* What a curve is of. */
enum kind { TRAIN, EVALUATION, AVERAGES };

static void add_curve(struct chart *c, const struct report *r, int run,
                      const struct row *row, enum kind kind)
{
    static const char *const label[] = {"train", "evaluation", "averages"};
    static const int own[] = {0, 1, 3};
    static const enum chart_style drawn[] = {CHART_LINE, CHART_DOTS,
                                             CHART_DASHES};
    const struct report_run *one = &r->run[run];
    const struct report_curve *curve = kind == TRAIN        ? &one->step
                                       : kind == EVALUATION ? &one->eval
                                                            : &one->ema;
    bool several = r->runs > 1;

    chart_add(c, &(struct chart_series){
                     .x = curve->at[COLUMN_EPOCH],
                     .y = curve->at[row->column],
                     .n = curve->n,
                     .colour = several ? run % CHART_COLOURS : own[kind],
                     .label = row->evaluated ? label[kind] : "",
                     .run = several ? one->name : NULL,
                     .style = row->evaluated && kind == TRAIN && one->eval.n
                                  ? CHART_THIN
                                  : drawn[kind],
                 });
}

int report_charts(const struct report *r, struct chart chart[REPORT_CHARTS])
{
    for (int i = 0; i < REPORT_CHARTS; i++) {
        const struct row *row = &rows[i];

        chart[i] = (struct chart){.id = row->id,
                                  .title = row->title,
                                  .unit = row->unit,
                                  .empty = row->empty,
                                  .zero = row->zero,
                                  .log = row->log};
        for (int run = 0; run < r->runs; run++)
            for (int k = TRAIN; k <= (row->evaluated ? AVERAGES : TRAIN); k++)
                add_curve(&chart[i], r, run, row, (enum kind)k);
    }
    return REPORT_CHARTS;
}

/* ---- what tables share -------------------------------------------------- */

const char *report_state(const struct report_run *r, const char **class)
{
    const json_t *segment = report_run_segment(r);
    const json_t *code = json_object_get(segment, "code");

    *class = "warn";
    if (json_is_integer(code) && json_integer_value(code) == EXIT_AGAIN)
        return "interrupted";
    if (json_is_integer(code) && json_integer_value(code) != 0) {
        *class = "bad";
        return "failed";
    }
    if (json_is_integer(code) ||
        (r->reason && !strcmp(r->reason, "complete"))) {
        *class = "good";
        return "complete";
    }
    return r->reason ? "stopped" : "not ended";
}

void report_number(FILE *f, const char *format, double v)
{
    char text[64];

    if (!isfinite(v)) {
        fputs("<span class=\"none\">–</span>", f);
        return;
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof(text), format, v);
#pragma GCC diagnostic pop
    fputs(text, f);
}

double report_epochs(const struct report_run *r)
{
    return r->epoch_steps ? (double)r->steps / (double)r->epoch_steps : NAN;
}

/* ---- one run: tiles ----------------------------------------------------- */

static void begin_tile(FILE *f, const char *key, const char *title)
{
    fprintf(f, "<div class=\"tile\"><span>%s</span><b data-key=\"%s\">", title,
            key);
}

static void end_tile(FILE *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void end_tile(FILE *f, const char *fmt, ...)
{
    va_list ap;

    fputs("</b><small>", f);
    va_start(ap, fmt);
    vfprintf(f, fmt, ap);
    va_end(ap);
    fputs("</small></div>\n", f);
}

/* The mean of the last epoch's steps that were applied. */
static double last_loss(const struct report_run *r)
{
    const double *x = r->step.at[COLUMN_EPOCH], *y = r->step.at[COLUMN_LOSS];
    double sum = 0, from = floor(report_epochs(r) - 1e-9);
    int n = 0;

    for (int i = 0; i < r->step.n; i++)
        if (isfinite(y[i]) && x[i] > from) {
            sum += y[i];
            n++;
        }
    return n ? sum / n : NAN;
}

/* Four digits, and all before the point. */
static const char *speed_format(const struct report_run *r)
{
    return r->speed < 1000 ? "%.4g" : "%.0f";
}

static double known(const struct report_eval *e, double v)
{
    return e->step ? v : NAN;
}

static void print_tiles(const struct report_run *r, FILE *f)
{
    char text[32];

    fputs("<div class=\"tiles\">\n", f);
    begin_tile(f, "best-top1", "Best evaluation, top-1");
    report_number(f, "%.2f %%", known(&r->best, r->best.top1));
    end_tile(f, r->best.step ? "epoch %.4g, step %lld" : "not evaluated",
             r->best.epoch, (long long)r->best.step);
    begin_tile(f, "last-top1", "Last evaluation, top-1");
    report_number(f, "%.2f %%", known(&r->last, r->last.top1));
    end_tile(f, r->last.step ? "loss %.4f, epoch %.4g" : "not evaluated",
             r->last.loss, r->last.epoch);
    begin_tile(f, "train-loss", "Training loss");
    report_number(f, "%.4f", last_loss(r));
    end_tile(f, "mean of the last epoch");
    begin_tile(f, "speed", "Speed");
    report_number(f, speed_format(r), r->speed);
    end_tile(f, "images/s, median of the steps");
    begin_tile(f, "time", "Time");
    fputs(app_duration(r->seconds, text, sizeof(text)), f);
    end_tile(f, "%lld steps, %.4g epochs", (long long)r->steps,
             report_epochs(r));
    if (r->skipped) {
        begin_tile(f, "skipped", "Skipped steps");
        fprintf(f, "%lld", (long long)r->skipped);
        end_tile(f, "not finite, not applied");
    }
    fputs("</div>\n", f);
}

/* ---- several: a table --------------------------------------------------- */

static void cell(FILE *f, const char *format, double v, bool best)
{
    fprintf(f, "<td class=\"n%s\">", best ? " best" : "");
    report_number(f, format, v);
    fputs("</td>", f);
}

static double best_top1(const struct report *r)
{
    double best = -INFINITY;

    for (int i = 0; i < r->runs; i++)
        if (r->run[i].best.step && r->run[i].best.top1 > best)
            best = r->run[i].best.top1;
    return best;
}

static void print_row(const struct report *r, int i, FILE *f)
{
    const struct report_run *one = &r->run[i];
    const char *class, *state = report_state(one, &class);
    char text[32];

    fprintf(f,
            "<tr><td><span class=\"key c%d\"></span><span class=\"name\" "
            "title=\"",
            i % CHART_COLOURS);
    html_text(f, one->dir);
    fputs("\">", f);
    html_text(f, one->name);
    fprintf(f, "</span></td><td class=\"state %s\">%s</td>", class, state);
    cell(f, "%.4g", report_epochs(one), false);
    cell(f, "%.2f", known(&one->best, one->best.top1),
         one->best.top1 == best_top1(r));
    cell(f, "%.4g", known(&one->best, one->best.epoch), false);
    cell(f, "%.2f", known(&one->last, one->last.top1), false);
    cell(f, "%.4f", known(&one->last, one->last.loss), false);
    cell(f, "%.4f", last_loss(one), false);
    cell(f, speed_format(one), one->speed, false);
    fprintf(f, "<td class=\"n\">%s</td></tr>\n",
            app_duration(one->seconds, text, sizeof(text)));
}

static void print_runs(const struct report *r, FILE *f)
{
    static const char *const head[] = {
        "Epochs",   "Best top-1, %", "at epoch", "Last top-1, %",
        "its loss", "Training loss", "Images/s", "Time"};

    fputs("<div class=\"box runs\"><table id=\"runs\"><thead><tr><th>Run</th>"
          "<th>State</th>",
          f);
    for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
        fprintf(f, "<th class=\"n\">%s</th>", head[i]);
    fputs("</tr></thead><tbody>\n", f);
    for (int i = 0; i < r->runs; i++)
        print_row(r, i, f);
    fputs("</tbody></table></div>\n", f);
}

/* ---- the page ----------------------------------------------------------- */

static void print_title(const struct report *r, FILE *f)
{
    if (r->runs > 1)
        fprintf(f, "%d runs compared", r->runs);
    else
        html_text(f, r->run->name);
}

static void print_head(const struct report *r, FILE *f)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
          "<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, "
          "initial-scale=1\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" "
          "content=\"default-src 'none'; style-src 'unsafe-inline'; "
          "script-src 'unsafe-inline'; img-src data:\">\n<title>",
          f);
    print_title(r, f);
    fprintf(f,
            "</title>\n<link rel=\"icon\" href=\"data:,\">\n"
            "<style>\n%s</style>\n</head>\n<body>\n<main>\n<h1>",
            style);
    print_title(r, f);
    fputs("</h1>\n", f);
}

/* The model, data and end of a run, in a line. */
static void print_subtitle(const struct report_run *r, FILE *f)
{
    const json_t *about = json_object_get(r->file, "run");
    const char *class, *state = report_state(r, &class);

    fprintf(f,
            "<p class=\"sub\"><span class=\"state %s\" data-key=\"state\">"
            "%s</span>",
            class, state);
    if (*report_text(r->settings, "model")) {
        fputs(" · ", f);
        html_text(f, report_text(r->settings, "model"));
    }
    if (*report_text(about, "data")) {
        fputs(" · ", f);
        html_text(f, report_text(about, "data"));
    }
    fputs("</p>\n", f);
}

static void print_charts(const struct chart *chart, int n, FILE *f)
{
    fputs("<h2>Curves</h2>\n<div class=\"charts\">\n", f);
    for (int i = 0; i < n; i++)
        chart_html(&chart[i], f);
    fputs("</div>\n", f);
}

static void print_data(const struct chart *chart, int n, FILE *f)
{
    fputs("<script type=\"application/json\" id=\"values\">[", f);
    for (int i = 0, put = 0; i < n; i++)
        if (chart[i].count) {
            fputs(put++ ? ",\n" : "\n", f);
            chart_json(&chart[i], f);
        }
    fprintf(f, "]</script>\n<script>\n%s</script>\n", script);
}

static void print_foot(FILE *f)
{
    time_t now = time(NULL);
    char text[64] = "";
    struct tm tm;

    if (gmtime_r(&now, &tm))
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &tm);
    fputs("<footer>imagenet report of ", f);
    html_text(f, ddp_version());
    fprintf(f, ", %s</footer>\n</main>\n", text);
}

void report_page(const struct report *r, FILE *f)
{
    struct chart *chart = calloc(REPORT_CHARTS, sizeof(*chart));
    int n = chart ? report_charts(r, chart) : 0;

    print_head(r, f);
    if (r->runs == 1) {
        print_subtitle(r->run, f);
        print_tiles(r->run, f);
    } else {
        print_runs(r, f);
    }
    print_charts(chart, n, f);
    if (r->classes)
        report_classes_print(r->classes, f);
    if (r->timeline)
        report_timeline_print(r->timeline, f);
    report_tables(r, f);
    print_foot(f);
    print_data(chart, n, f);
    fputs("</body>\n</html>\n", f);
    free(chart);
}
