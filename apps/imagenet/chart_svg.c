/* chart_svg.c - a chart as a file of its own
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "chart_svg.h"
#include "html.h"

enum { MARGIN = 14, TITLE = 28, ROW = 17, KEY = 28, GAP = 16 };

/* The width of most letters of the legend, which is not measured. */
#define LETTER 6.6

static const char style[] =
    "svg { font-family: 'DejaVu Sans', Roboto, Arial, sans-serif }\n"
    "text { fill: #1b2129; font-size: 12px }\n"
    ".title { font-size: 15px; font-weight: bold }\n"
    ".unit { font-size: 12px; font-weight: normal; fill: #5b6673 }\n"
    ".tick { fill: #5b6673 }\n"
    ".grid { stroke: #e9ecf0 } .axis { stroke: #b4bcc6 }\n"
    ".line { fill: none; stroke-width: 1.9; stroke-linejoin: round }\n"
    ".thin { stroke-width: 1.3; opacity: .55 }\n"
    ".dash { stroke-dasharray: 5 4 }\n"
    ".dot { stroke: #fff; stroke-width: 1 }\n";

/* Those of the page on white. */
static const char *const colours[CHART_COLOURS] = {
    "#2563c9", "#d9571e", "#14866a", "#8a4cc7",
    "#a87900", "#c2326e", "#4b7d1c", "#5b6472"};

static void put_style(FILE *f)
{
    fprintf(f, "<style>\n%s", style);
    for (int i = 0; i < CHART_COLOURS; i++)
        fprintf(f, "path.c%d { stroke: %s } circle.c%d { fill: %s }\n", i,
                colours[i], i, colours[i]);
    fprintf(f, "</style>\n");
}

/* ---- the legend --------------------------------------------------------- */

static double entry_width(const struct chart_series *s)
{
    size_t letters = strlen(s->label);

    if (s->run)
        letters += strlen(s->run) + 1;
    return KEY + LETTER * (double)letters + GAP;
}

static void put_entry(const struct chart_series *s, double x, int y, FILE *f)
{
    static const char *const class[] = {[CHART_LINE] = "line",
                                        [CHART_THIN] = "line thin",
                                        [CHART_DOTS] = "line",
                                        [CHART_DASHES] = "line dash"};

    fprintf(f, "<path class=\"%s c%d\" d=\"M%.0f %dl22 0\"/>", class[s->style],
            s -> colour, x, y - 4);
    if (s->style == CHART_DOTS)
        fprintf(f,
                "<circle class=\"dot c%d\" cx=\"%.1f\" cy=\"%d\" "
                "r=\"3\"/>",
                s->colour, x + 11, y - 4);
    fprintf(f, "<text x=\"%.1f\" y=\"%d\">", x + KEY, y);
    html_text(f, s->run ? s->run : s->label);
    if (s->run && *s->label) {
        fputc(' ', f);
        html_text(f, s->label);
    }
    fprintf(f, "</text>\n");
}

/* Returns how high it is; f: NULL only measures. */
static int put_legend(const struct chart *c, FILE *f)
{
    double x = MARGIN;
    int y = TITLE + ROW - 5;

    if (c->count == 1 && !c->series[0].run && !*c->series[0].label)
        return 0; /* the title says it */
    for (int k = 0; k < c->count; k++) {
        double width = entry_width(&c->series[k]);

        if (x > MARGIN && x + width > CHART_WIDTH) {
            x = MARGIN;
            y += ROW;
        }
        if (f)
            put_entry(&c->series[k], x, y, f);
        x += width;
    }
    return y + 5 - TITLE;
}

/* ---- the document ------------------------------------------------------- */

void chart_svg(const struct chart *c, FILE *f)
{
    int top = TITLE + put_legend(c, NULL), height = top + CHART_HEIGHT;

    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%d\" viewBox=\"0 0 %d %d\">\n",
            CHART_WIDTH, height, CHART_WIDTH, height);
    put_style(f);
    fprintf(f,
            "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n"
            "<text class=\"title\" x=\"%d\" y=\"19\">%s"
            "<tspan class=\"unit\" dx=\"6\">%s</tspan></text>\n",
            CHART_WIDTH, height, MARGIN, c->title, c->unit);
    put_legend(c, f);
    fprintf(f, "<g transform=\"translate(0 %d)\">\n", top);
    chart_draw(c, f);
    fprintf(f, "</g>\n</svg>\n");
}
