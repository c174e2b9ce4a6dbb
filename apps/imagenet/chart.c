/* chart.c - curves as an SVG drawing, and as data for the page's script
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Long curves are drawn by the means of as many pieces as the drawing has
 * room for.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "html.h"

enum {
    TOP = 12,
    BOTTOM = 236,
    RIGHT = 546,
    POINTS = 400, /* most of a curve */
    MARKED = 60,  /* more have no marks: they would touch */
};

/* The width of a digit of the axis. */
#define DIGIT 6.7

/* ---- series ------------------------------------------------------------- */

void chart_add(struct chart *c, const struct chart_series *s)
{
    bool any = false;

    for (int i = 0; i < s->n && !any; i++)
        any = isfinite(s->x[i]) && isfinite(s->y[i]);
    if (any && c->count < CHART_SERIES)
        c->series[c->count++] = *s;
}

/* Points of a series as they are drawn. */
struct thinned {
    double x[POINTS], y[POINTS];
    int n;
};

/* The mean of points begin..end-1; NaN if none has a value. */
static double mean(const double *v, int begin, int end)
{
    double sum = 0;
    int n = 0;

    for (int i = begin; i < end; i++)
        if (isfinite(v[i])) {
            sum += v[i];
            n++;
        }
    return n ? sum / n : NAN;
}

static void thin(const struct chart_series *s, struct thinned *t)
{
    t->n = s->n < POINTS ? s->n : POINTS;
    for (int k = 0; k < t->n; k++) {
        int begin = (int)((int64_t)s->n * k / t->n);
        int end = (int)((int64_t)s->n * (k + 1) / t->n);

        t->x[k] = s->x[end - 1];
        t->y[k] = mean(s->y, begin, end);
    }
}

/* ---- axes --------------------------------------------------------------- */

static double nice_step(double range, int marks)
{
    double raw = range / marks, power = pow(10, floor(log10(raw)));
    double part = raw / power;

    return power * (part <= 1     ? 1
                    : part <= 2   ? 2
                    : part <= 2.5 ? 2.5
                    : part <= 5   ? 5
                                  : 10);
}

/* The least and the greatest value of all series. */
static bool find_limits(const struct chart *c, bool of_x, double *low,
                        double *high)
{
    static struct thinned t;

    *low = INFINITY;
    *high = -INFINITY;
    for (int k = 0; k < c->count; k++) {
        thin(&c->series[k], &t);
        for (int i = 0; i < t.n; i++) {
            double v = of_x ? t.x[i] : t.y[i];

            if (!isfinite(t.y[i]) || !isfinite(v))
                continue;
            *low = v < *low ? v : *low;
            *high = v > *high ? v : *high;
        }
    }
    return *low <= *high;
}

static struct chart_axis linear(double low, double high, int marks, bool fit)
{
    struct chart_axis a = {low, high, 1, false};

    if (a.high - a.low < 1e-12 * fmax(fabs(a.high), 1e-30))
        a.high += a.high != 0 ? fabs(a.high) / 2 : 1;
    a.step = nice_step(a.high - a.low, marks);
    if (fit)
        return a;
    a.low = floor(a.low / a.step + 1e-9) * a.step;
    a.high = ceil(a.high / a.step - 1e-9) * a.step;
    return a;
}

struct chart_axis chart_x_axis(const struct chart *c, int marks)
{
    double low, high;

    if (!find_limits(c, true, &low, &high))
        return linear(0, 1, marks, true);
    return linear(low >= 0 && low < high / 4 ? 0 : low, high, marks, true);
}

struct chart_axis chart_y_axis(const struct chart *c, int marks)
{
    double low, high;

    if (!find_limits(c, false, &low, &high))
        return linear(0, 1, marks, false);
    if (c->log && low > 0 && high > 30 * low)
        return (struct chart_axis){floor(log10(low)), ceil(log10(high)), 1,
                                   true};
    return linear(c->zero && low > 0 ? 0 : low, high, marks, false);
}

double chart_place(const struct chart_axis *a, double v)
{
    double at = a->log ? log10(v) : v;

    return (at - a->low) / (a->high - a->low);
}

/* Of many powers of ten, some. */
static double log_stride(const struct chart_axis *a)
{
    return ceil((a->high - a->low) / 7);
}

bool chart_mark(const struct chart_axis *a, int i, double *v)
{
    double first = ceil(a->low / a->step - 1e-9);

    if (a->log) {
        double power = a->low + i * log_stride(a);

        *v = pow(10, power);
        return power <= a->high + 1e-9;
    }
    *v = (first + i) * a->step;
    if (fabs(*v) < a->step * 1e-6)
        *v = 0;
    return *v <= a->high + a->step * 1e-6;
}

/* As many decimals as tell the marks apart. */
void chart_number(const struct chart_axis *a, double v, char *text, size_t size)
{
    double most = fmax(fabs(a->low), fabs(a->high)), unit = 1;
    const char *suffix = "";
    int decimals;

    if (a->log || (most < 1e-3 && most > 0)) {
        snprintf(text, size, "%.3g", v);
        return;
    }
    if (most >= 1e7) {
        unit = 1e6;
        suffix = "M";
    } else if (most >= 1e4) {
        unit = 1e3;
        suffix = "k";
    }
    decimals = (int)ceil(-log10(a->step / unit) - 1e-9);
    decimals = decimals < 0 ? 0 : decimals > 6 ? 6 : decimals;
    if (fabs(a->step / unit * pow(10, decimals) -
             round(a->step / unit * pow(10, decimals))) > 1e-6)
        decimals++; /* 2.5 */
    snprintf(text, size, "%.*f%s", decimals, v / unit, v != 0 ? suffix : "");
}

/* ---- the drawing -------------------------------------------------------- */

struct frame {
    struct chart_axis x, y;
    double left;
};

static double x_at(const struct frame *fr, double v)
{
    return fr->left + chart_place(&fr->x, v) * (RIGHT - fr->left);
}

static double y_at(const struct frame *fr, double v)
{
    return BOTTOM - chart_place(&fr->y, v) * (BOTTOM - TOP);
}

static struct frame frame_of(const struct chart *c)
{
    struct frame fr = {chart_x_axis(c, 7), chart_y_axis(c, 5), 0};
    char text[32];
    size_t widest = 1;
    double v;

    for (int i = 0; chart_mark(&fr.y, i, &v); i++) {
        chart_number(&fr.y, v, text, sizeof(text));
        if (strlen(text) > widest)
            widest = strlen(text);
    }
    fr.left = 14 + DIGIT * (double)widest;
    return fr;
}

static void draw_axes(const struct frame *fr, FILE *f)
{
    char text[32];
    double v;

    for (int i = 0; chart_mark(&fr->y, i, &v); i++) {
        chart_number(&fr->y, v, text, sizeof(text));
        fprintf(f,
                "<line class=\"grid\" x1=\"%.1f\" x2=\"%d\" y1=\"%.1f\" "
                "y2=\"%.1f\"/><text class=\"tick\" x=\"%.1f\" y=\"%.1f\" "
                "text-anchor=\"end\">%s</text>\n",
                fr->left, RIGHT, y_at(fr, v), y_at(fr, v), fr->left - 7,
                y_at(fr, v) + 4, text);
    }
    for (int i = 0; chart_mark(&fr->x, i, &v); i++) {
        chart_number(&fr->x, v, text, sizeof(text));
        fprintf(f,
                "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" "
                "y2=\"%d\"/><text class=\"tick\" x=\"%.1f\" y=\"%d\" "
                "text-anchor=\"middle\">%s</text>\n",
                x_at(fr, v), x_at(fr, v), BOTTOM, BOTTOM + 4, x_at(fr, v),
                BOTTOM + 17, text);
    }
    fprintf(f,
            "<line class=\"axis\" x1=\"%.1f\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>"
            "<text class=\"tick\" x=\"%.1f\" y=\"%d\" "
            "text-anchor=\"middle\">epoch</text>\n",
            fr->left, RIGHT, BOTTOM, BOTTOM, (fr->left + RIGHT) / 2,
            BOTTOM + 32);
}

static const char *const style_class[] = {
    [CHART_LINE] = "line",
    [CHART_THIN] = "line thin",
    [CHART_DOTS] = "line",
    [CHART_DASHES] = "line dash",
};

static void draw_series(const struct chart_series *s, const struct frame *fr,
                        FILE *f)
{
    static struct thinned t;
    bool pen = false;

    thin(s, &t);
    fprintf(f, "<path class=\"%s c%d\" d=\"", style_class[s->style], s->colour);
    for (int i = 0; i < t.n; i++) {
        bool drawn = isfinite(t.y[i]) && (!fr->y.log || t.y[i] > 0);

        if (drawn)
            fprintf(f, "%c%.1f %.1f", pen ? 'L' : 'M', x_at(fr, t.x[i]),
                    y_at(fr, t.y[i]));
        pen = drawn;
    }
    fprintf(f, "\"/>\n");
    for (int i = 0; i < t.n && t.n <= MARKED && s->style != CHART_THIN; i++)
        if (isfinite(t.y[i]) && (s->style != CHART_LINE || t.n == 1))
            fprintf(f,
                    "<circle class=\"dot c%d\" cx=\"%.1f\" cy=\"%.1f\" "
                    "r=\"2.6\"/>",
                    s->colour, x_at(fr, t.x[i]), y_at(fr, t.y[i]));
}

static void draw_legend(const struct chart *c, FILE *f)
{
    if (c->count == 1 && !c->series[0].run && !*c->series[0].label)
        return; /* the title says it */
    fprintf(f, "<ul class=\"legend\">");
    for (int k = 0; k < c->count; k++) {
        const struct chart_series *s = &c->series[k];

        fprintf(f,
                "<li><svg width=\"22\" height=\"10\" aria-hidden=\"true\">"
                "<path class=\"%s c%d\" d=\"M1 5L21 5\"/>",
                style_class[s->style], s->colour);
        if (s->style == CHART_DOTS)
            fprintf(f, "<circle class=\"dot c%d\" cx=\"11\" cy=\"5\" r=\"3\"/>",
                    s->colour);
        fprintf(f, "</svg><span>");
        html_text(f, s->run ? s->run : s->label);
        if (s->run && *s->label) {
            fprintf(f, " <i>");
            html_text(f, s->label);
            fprintf(f, "</i>");
        }
        fprintf(f, "</span></li>");
    }
    fprintf(f, "</ul>\n");
}

void chart_draw(const struct chart *c, FILE *f)
{
    struct frame fr = frame_of(c);

    draw_axes(&fr, f);
    for (int thin_first = 1; thin_first >= 0; thin_first--)
        for (int k = 0; k < c->count; k++)
            if ((c->series[k].style == CHART_THIN) == thin_first)
                draw_series(&c->series[k], &fr, f);
}

void chart_html(const struct chart *c, FILE *f)
{
    struct frame fr = frame_of(c);

    fprintf(f, "<figure class=\"card\" id=\"%s\"><figcaption><b>%s</b>", c->id,
            c->title);
    if (*c->unit)
        fprintf(f, " <span>%s%s</span>", c->unit,
                c->count && fr.y.log ? ", logarithmic" : "");
    fprintf(f, "</figcaption>\n");
    if (!c->count) {
        fprintf(f, "<p class=\"empty\">%s</p></figure>\n", c->empty);
        return;
    }
    draw_legend(c, f);
    fprintf(f,
            "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" "
            "tabindex=\"0\" aria-label=\"%s by epoch\">\n",
            CHART_WIDTH, CHART_HEIGHT, c->title);
    chart_draw(c, f);
    fprintf(f, "</svg></figure>\n");
}

/* ---- data --------------------------------------------------------------- */

static void json_numbers(const char *key, const double *v, int n, FILE *f)
{
    fprintf(f, ",\"%s\":[", key);
    for (int i = 0; i < n; i++) {
        if (i)
            fputc(',', f);
        html_json_number(f, v[i]);
    }
    fputc(']', f);
}

void chart_json(const struct chart *c, FILE *f)
{
    struct frame fr = frame_of(c);
    static struct thinned t;

    fprintf(f,
            "{\"id\":\"%s\",\"box\":[%.1f,%d,%d,%d],\"x\":[%.9g,%.9g],"
            "\"y\":[%.9g,%.9g],\"log\":%s,\"series\":[",
            c->id, fr.left, TOP, RIGHT, BOTTOM, fr.x.low, fr.x.high, fr.y.low,
            fr.y.high, fr.y.log ? "true" : "false");
    for (int k = 0; k < c->count; k++) {
        const struct chart_series *s = &c->series[k];

        thin(s, &t);
        fprintf(f, "%s{\"label\":", k ? "," : "");
        html_json_text(f, s->label);
        fprintf(f, ",\"run\":");
        html_json_text(f, s->run ? s->run : "");
        fprintf(f, ",\"colour\":%d", s->colour);
        json_numbers("at", t.x, t.n, f);
        json_numbers("value", t.y, t.n, f);
        fputc('}', f);
    }
    fprintf(f, "]}");
}
