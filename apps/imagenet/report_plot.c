/* report_plot.c - the curves of a report in a terminal
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A character has two by four dots; without UTF-8 it has a letter, that of the
 * last curve which goes through it.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ddp.h"

#include "report_plot.h"

enum { ROWS = 12, MOST_COLUMNS = 200, LEAST_COLUMNS = 24, LABEL = 9 };

struct canvas {
    int columns;
    bool braille, colours;
    unsigned char dots[ROWS][MOST_COLUMNS];
    signed char series[ROWS][MOST_COLUMNS]; /* -1: none */
};

/* ---- the terminal ------------------------------------------------------- */

static bool is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *v = getenv(names[i]);

        if (v && *v)
            return strcasestr(v, "utf-8") || strcasestr(v, "utf8");
    }
    return false;
}

static int width_of(FILE *f)
{
    const char *columns = getenv("COLUMNS");
    struct winsize w;

    if (ioctl(fileno(f), TIOCGWINSZ, &w) == 0 && w.ws_col > 0)
        return w.ws_col - 1;
    return columns && atoi(columns) > 0 ? atoi(columns) - 1 : 79;
}

static void canvas_new(struct canvas *v, FILE *f)
{
    const char *no = getenv("NO_COLOR");
    int columns = width_of(f) - LABEL - 2;

    memset(v, 0, sizeof(*v));
    memset(v->series, -1, sizeof(v->series));
    v->columns = columns < LEAST_COLUMNS  ? LEAST_COLUMNS
                 : columns > MOST_COLUMNS ? MOST_COLUMNS
                                          : columns;
    v->braille = is_utf8();
    v->colours = isatty(fileno(f)) && !(no && *no);
}

/* ---- drawing ------------------------------------------------------------ */

/* A dot, counted from the upper left corner. */
static void set_dot(struct canvas *v, int x, int y, int series)
{
    static const unsigned char bit[4][2] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

    if (x < 0 || y < 0 || x >= 2 * v->columns || y >= 4 * ROWS)
        return;
    v->dots[y / 4][x / 2] |= bit[y % 4][x % 2];
    v->series[y / 4][x / 2] = (signed char)series;
}

static void draw_line(struct canvas *v, double x0, double y0, double x1,
                      double y1, int series)
{
    int n = (int)ceil(fmax(fabs(x1 - x0), fabs(y1 - y0))) + 1;

    for (int i = 0; i <= n; i++)
        set_dot(v, (int)(x0 + (x1 - x0) * i / n + 0.5),
                (int)(y0 + (y1 - y0) * i / n + 0.5), series);
}

/* The mean of each column of dots, joined to the one before. */
static void draw_series(struct canvas *v, const struct chart *c, int k,
                        const struct chart_axis *ax,
                        const struct chart_axis *ay)
{
    const struct chart_series *s = &c->series[k];
    double px = NAN, py = NAN;

    for (int i = 0; i < s->n;) {
        double sum = 0,
               column = floor(chart_place(ax, s->x[i]) * (2 * v->columns - 1));
        int n = 0;

        for (; i < s->n &&
               floor(chart_place(ax, s->x[i]) * (2 * v->columns - 1)) == column;
             i++)
            if (isfinite(s->y[i]) && (!ay->log || s->y[i] > 0)) {
                sum += chart_place(ay, s->y[i]);
                n++;
            }
        if (!n)
            continue;
        sum = (1 - sum / n) * (4 * ROWS - 1);
        draw_line(v, isfinite(px) ? px : column, isfinite(py) ? py : sum,
                  column, sum, k);
        px = column;
        py = sum;
    }
}

/* ---- printing ----------------------------------------------------------- */

static void put_cell(const struct canvas *v, int row, int column, FILE *f)
{
    unsigned dots = v->dots[row][column];
    int series = v->series[row][column];

    if (!dots)
        fputc(' ', f);
    else if (!v->braille)
        fputc('a' + series % 26, f);
    else if (v->colours)
        fprintf(f, "\033[%dm\xe2%c%c\033[0m", 31 + (series + 3) % 6,
                0xa0 + (int)(dots >> 6), 0x80 + (int)(dots & 63));
    else
        fprintf(f, "\xe2%c%c", 0xa0 + (int)(dots >> 6),
                0x80 + (int)(dots & 63));
}

/* The label of a row: that of a mark that is in it. */
static void row_label(const struct chart_axis *a, int row, char *text,
                      size_t size)
{
    double v;

    *text = '\0';
    for (int i = 0; chart_mark(a, i, &v); i++)
        if ((int)((1 - chart_place(a, v)) * (ROWS - 1) + 0.5) == row)
            chart_number(a, v, text, size);
}

static void print_rows(const struct canvas *v, const struct chart_axis *a,
                       FILE *f)
{
    char text[32];

    for (int row = 0; row < ROWS; row++) {
        int last = v->columns;

        row_label(a, row, text, sizeof(text));
        fprintf(f, "%*s %s", LABEL, text, v->braille ? "│" : "|");
        while (last > 0 && !v->dots[row][last - 1])
            last--;
        for (int i = 0; i < last; i++)
            put_cell(v, row, i, f);
        fputc('\n', f);
    }
}

static void print_x_axis(const struct canvas *v, const struct chart_axis *a,
                         const char *name, FILE *f)
{
    char line[MOST_COLUMNS + 32] = "", text[32];
    double mark;

    memset(line, ' ', (size_t)v->columns);
    for (int i = 0; chart_mark(a, i, &mark); i++) {
        int at = (int)(chart_place(a, mark) * (v->columns - 1) + 0.5), len;

        chart_number(a, mark, text, sizeof(text));
        len = (int)strlen(text);
        at = at + len > v->columns ? v->columns - len : at;
        memcpy(line + at, text, (size_t)len);
    }
    fprintf(f, "%*s  %s %s\n", LABEL, "", line, name ? name : "epoch");
}

static void print_legend(const struct canvas *v, const struct chart *c, FILE *f)
{
    fprintf(f, "%s%s%s", c->title, *c->unit ? ", " : "", c->unit);
    for (int k = 0; k < c->count; k++) {
        const struct chart_series *s = &c->series[k];
        char *name = strdup(s->run ? s->run : s->label);

        if (name)
            ddp_printable(name);
        fputs(k ? "  " : "   ", f);
        if (v->colours && v->braille)
            fprintf(f, "\033[%dm", 31 + (k + 3) % 6);
        if (!v->braille)
            fprintf(f, "%c=", 'a' + k % 26);
        fprintf(f, "%s%s%s", name ? name : "", s->run && *s->label ? " " : "",
                s->run ? s->label : "");
        if (v->colours && v->braille)
            fputs("\033[0m", f);
        free(name);
    }
    fputc('\n', f);
}

void report_plot_chart(const struct chart *c, FILE *f)
{
    struct canvas *v = malloc(sizeof(*v));
    struct chart_axis ax, ay;

    if (!v)
        return;
    canvas_new(v, f);
    ax = chart_x_axis(c, v->columns / 12 + 1);
    ay = chart_y_axis(c, 5);
    for (int k = 0; k < c->count; k++)
        draw_series(v, c, k, &ax, &ay);
    print_legend(v, c, f);
    print_rows(v, &ay, f);
    print_x_axis(v, &ax, c->x_name, f);
    free(v);
}

void report_plot(const struct report *r, FILE *f)
{
    struct chart *chart = calloc(REPORT_CHARTS, sizeof(*chart));
    int n = chart ? report_charts(r, chart) : 0;

    for (int i = 0, put = 0; i < n; i++)
        if (chart[i].count) {
            if (put++)
                fputc('\n', f);
            report_plot_chart(&chart[i], f);
        }
    free(chart);
}
