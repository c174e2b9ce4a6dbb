/* chart.h - curves as an SVG drawing, and as data for the page's script
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef CHART_H
#define CHART_H

#include <stdbool.h>
#include <stdio.h>

/* A curve of a chart; x rises.  What is not finite is a gap. */
struct chart_series {
    const double *x, *y; /* not owned */
    int n;
    int colour;        /* of the palette */
    const char *label; /* "train" */
    const char *run;   /* its run's name, or NULL */
    enum chart_style {
        CHART_LINE,
        CHART_THIN, /* a line behind the others */
        CHART_DOTS, /* a line with a mark at each value */
        CHART_DASHES
    } style;
};

enum { CHART_SERIES = 64, CHART_COLOURS = 8 };

struct chart {
    const char *id, *title, *unit;
    const char *x_name; /* of the x axis in a terminal; NULL: epochs */
    const char *empty;  /* what to say if there are no values */
    bool zero;          /* the axis begins at 0 */
    bool log;           /* logarithmic, if the values are of different sizes */
    struct chart_series series[CHART_SERIES];
    int count;
};

/* Add a curve that has values; no more than the chart has room for. */
void chart_add(struct chart *c, const struct chart_series *s);

void chart_html(const struct chart *c, FILE *f);
/* The axes and curves alone, in a box of this size; a style says how classes
 * look. */
enum { CHART_WIDTH = 560, CHART_HEIGHT = 270 };
void chart_draw(const struct chart *c, FILE *f);
/* An object of its values as drawn. */
void chart_json(const struct chart *c, FILE *f);

/* ---- what the terminal's plot uses too ---------------------------------- */

/* Limits and marks of an axis. */
struct chart_axis {
    double low, high, step;
    bool log; /* low and high are exponents of 10 */
};

struct chart_axis chart_x_axis(const struct chart *c, int marks);
struct chart_axis chart_y_axis(const struct chart *c, int marks);
/* Where a value is on it, 0..1. */
double chart_place(const struct chart_axis *a, double v);
/* The i-th mark, from the lowest; false: there are no more. */
bool chart_mark(const struct chart_axis *a, int i, double *v);
void chart_number(const struct chart_axis *a, double v, char *text,
                  size_t size);

#endif
