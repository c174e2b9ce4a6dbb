/* report_classes.c - which classes a network takes for which, in a report
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/app.h"
#include "common/opt.h"
#include "html.h"
#include "report_classes.h"

enum {
    CLASSES = 1 << 20, /* more are no classes */
    MATRIX = 25,       /* more do not fit on a page as a matrix */
    PAIRS = 30,
    PICTURE = 300000 /* bytes; larger ones are not put into the page */
};

/* ---- reading ------------------------------------------------------------ */

static bool have_class(struct report_classes *c, int class)
{
    int count = class + 1;
    void *name, *n, *right;

    if (class < c->count)
        return true;
    if (!(name = realloc(c->name, (size_t)count * sizeof(*c->name))))
        return false;
    c->name = name;
    if (!(n = realloc(c->n, (size_t)count * sizeof(*c->n))))
        return false;
    c->n = n;
    if (!(right = realloc(c->right, (size_t)count * sizeof(*c->right))))
        return false;
    c->right = right;
    for (; c->count < count; c->count++) {
        c->name[c->count] = NULL;
        c->n[c->count] = c->right[c->count] = 0;
    }
    return true;
}

static void name_class(struct report_classes *c, int class, const json_t *name)
{
    if (!c->name[class] && json_is_string(name))
        c->name[class] = strdup(json_string_value(name));
}

/* Pairs are counted one by one first. */
static bool add_pair(struct report_classes *c, int class, int taken_for)
{
    if (c->pairs == c->pair_room) {
        size_t room = c->pair_room ? 2 * c->pair_room : 1024;
        void *more = realloc(c->pair, room * sizeof(*c->pair));

        if (!more)
            return false;
        c->pair = more;
        c->pair_room = room;
    }
    c->pair[c->pairs++] = (struct report_pair){class, taken_for, 1};
    return true;
}

/* Keep it if it is among the worst so far, which are in order. */
static void add_example(struct report_classes *c, struct report_example e,
                        const char *path)
{
    int at = c->worsts;

    while (at > 0 && e.own < c->worst[at - 1].own)
        at--;
    if (at == WORST || !(e.path = strdup(path)))
        return;
    if (c->worsts == WORST)
        free(c->worst[--c->worsts].path);
    memmove(&c->worst[at + 1], &c->worst[at],
            (size_t)(c->worsts - at) * sizeof(e));
    c->worst[at] = e;
    c->worsts++;
}

/* Whether there is memory; what is no prediction is skipped. */
static bool add_line(struct report_classes *c, const json_t *o)
{
    const json_t *class = json_object_get(o, "class");
    const json_t *taken = json_object_get(o, "predicted");
    const char *path = json_string_value(json_object_get(o, "path"));
    json_int_t a = json_integer_value(class), b = json_integer_value(taken);

    if (!json_is_integer(class) || !json_is_integer(taken) || a < 0 || b < 0 ||
        a >= CLASSES || b >= CLASSES)
        return true;
    if (!have_class(c, (int)(a > b ? a : b)))
        return false;
    name_class(c, (int)a, json_object_get(o, "name"));
    name_class(c, (int)b, json_object_get(o, "predicted_name"));
    c->samples++;
    c->n[a]++;
    c->right[a] += a == b;
    if (a == b)
        return true;
    add_example(
        c,
        (struct report_example){
            .class = (int)a,
            .taken_for = (int)b,
            .share = json_number_value(json_object_get(o, "probability")),
            .own = json_number_value(json_object_get(o, "class_probability"))},
        path ? path : "");
    return add_pair(c, (int)a, (int)b);
}

static int by_classes(const void *pa, const void *pb)
{
    const struct report_pair *a = pa, *b = pb;

    return a->class != b->class ? a->class - b->class
                                : a->taken_for - b->taken_for;
}

static int by_number(const void *pa, const void *pb)
{
    const struct report_pair *a = pa, *b = pb;

    return a->n != b->n ? (a->n < b->n ? 1 : -1) : by_classes(pa, pb);
}

static void join_pairs(struct report_classes *c)
{
    size_t n = 0;

    if (!c->pairs)
        return;
    qsort(c->pair, c->pairs, sizeof(*c->pair), by_classes);
    for (size_t i = 1; i < c->pairs; i++)
        if (by_classes(&c->pair[n], &c->pair[i]) == 0)
            c->pair[n].n++;
        else
            c->pair[++n] = c->pair[i];
    c->pairs = n + 1;
    qsort(c->pair, c->pairs, sizeof(*c->pair), by_number);
}

int report_classes_read(struct report_classes *c, const char *path)
{
    FILE *f = app_open_text(path);
    char *line = NULL;
    size_t size = 0;
    bool room = true;

    *c = (struct report_classes){0};
    if (!f && errno == ENOENT)
        app_say("%s does not exist: imagenet eval --predictions writes it",
                path);
    if (!f)
        return EXIT_USAGE;
    while (room && getline(&line, &size, f) > 0) {
        json_t *o = json_loads(line, 0, NULL);

        room = add_line(c, o);
        json_decref(o);
    }
    free(line);
    fclose(f);
    join_pairs(c);
    if (!room)
        app_say("out of memory for %s", path);
    return room ? OPTS_GO : EXIT_MEMORY;
}

void report_classes_free(struct report_classes *c)
{
    for (int i = 0; i < c->count; i++)
        free(c->name[i]);
    for (int i = 0; i < c->worsts; i++)
        free(c->worst[i].path);
    free(c->name);
    free(c->n);
    free(c->right);
    free(c->pair);
}

/* ---- the matrix --------------------------------------------------------- */

static void put_name(const struct report_classes *c, int class, FILE *f)
{
    char number[16];

    snprintf(number, sizeof(number), "%d", class);
    html_text(f, c->name[class] ? c->name[class] : number);
}

static int64_t cell_of(const struct report_classes *c, int class, int taken_for)
{
    if (class == taken_for)
        return c->right[class];
    for (size_t i = 0; i < c->pairs; i++)
        if (c->pair[i].class == class && c->pair[i].taken_for == taken_for)
            return c->pair[i].n;
    return 0;
}

static void matrix_row(const struct report_classes *c, int class, FILE *f)
{
    fputs("<tr><th><span class=\"name\">", f);
    put_name(c, class, f);
    fputs("</span></th>", f);
    for (int k = 0; k < c->count; k++) {
        int64_t n = cell_of(c, class, k);
        double share = c->n[class] ? (double)n / (double)c->n[class] : 0;

        fprintf(f, "<td class=\"n %s\" style=\"--s:%.0f%%\">",
                k == class ? "yes" : "no", 100 * share);
        if (n)
            fprintf(f, "%lld", (long long)n);
        fputs("</td>", f);
    }
    fputs("</tr>\n", f);
}

static void print_matrix(const struct report_classes *c, FILE *f)
{
    fputs("<h2>Confusion</h2>\n<p class=\"sub\">rows: the class of an image; "
          "columns: what it was taken for</p>\n<div class=\"box\"><table "
          "class=\"matrix\" id=\"confusion\"><thead><tr><th></th>",
          f);
    for (int k = 0; k < c->count; k++) {
        fputs("<th><span class=\"name\">", f);
        put_name(c, k, f);
        fputs("</span></th>", f);
    }
    fputs("</tr></thead><tbody>\n", f);
    for (int k = 0; k < c->count; k++)
        matrix_row(c, k, f);
    fputs("</tbody></table></div>\n", f);
}

static void print_pairs(const struct report_classes *c, FILE *f)
{
    fputs("<h2>Most often confused</h2>\n<div class=\"box\"><table "
          "id=\"pairs\"><thead><tr><th>Class</th><th>taken for</th>"
          "<th class=\"n\">Images</th></tr></thead><tbody>\n",
          f);
    for (size_t i = 0; i < c->pairs && i < PAIRS; i++) {
        fputs("<tr><td>", f);
        put_name(c, c->pair[i].class, f);
        fputs("</td><td>", f);
        put_name(c, c->pair[i].taken_for, f);
        fprintf(f, "</td><td class=\"n\">%lld</td></tr>\n",
                (long long)c->pair[i].n);
    }
    fputs("</tbody></table></div>\n", f);
}

/* ---- class by class ----------------------------------------------------- */

/* The class that those of one are taken for most often: pairs are in order. */
static const struct report_pair *worst_pair(const struct report_classes *c,
                                            int class)
{
    for (size_t i = 0; i < c->pairs; i++)
        if (c->pair[i].class == class)
            return &c->pair[i];
    return NULL;
}

static void class_row(const struct report_classes *c, int class, FILE *f)
{
    const struct report_pair *p = worst_pair(c, class);
    double share =
        c->n[class] ? 100 * (double)c->right[class] / (double)c->n[class] : 0;

    fputs("<tr><td>", f);
    put_name(c, class, f);
    fprintf(f, "</td><td class=\"n\">%lld</td><td class=\"n\">",
            (long long)c->n[class]);
    if (c->n[class])
        fprintf(f, "%.1f", share);
    fprintf(f, "</td><td class=\"bar\"><i style=\"--s:%.1f%%\"></i></td><td>",
            share);
    if (p) {
        put_name(c, p->taken_for, f);
        fprintf(f, " <span class=\"none\">%lld</span>", (long long)p->n);
    }
    fputs("</td></tr>\n", f);
}

static void print_classes(const struct report_classes *c, FILE *f)
{
    fputs("<h2>Classes</h2>\n<div class=\"box tall\"><table id=\"classes\">"
          "<thead><tr><th>Class</th><th class=\"n\">Images</th>"
          "<th class=\"n\">Top-1, %</th><th></th><th>Most often taken for</th>"
          "</tr></thead><tbody>\n",
          f);
    for (int k = 0; k < c->count; k++)
        class_row(c, k, f);
    fputs("</tbody></table></div>\n", f);
}

/* ---- examples ----------------------------------------------------------- */

static void put_base64(const unsigned char *s, size_t n, FILE *f)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz0123456789+/";

    for (; n > 0; s += 3, n -= n < 3 ? n : 3) {
        unsigned v = (unsigned)s[0] << 16 | (n > 1 ? (unsigned)s[1] << 8 : 0) |
                     (n > 2 ? s[2] : 0);

        fputc(digit[v >> 18], f);
        fputc(digit[v >> 12 & 63], f);
        fputc(n > 1 ? digit[v >> 6 & 63] : '=', f);
        fputc(n > 2 ? digit[v & 63] : '=', f);
    }
}

/* Pictures that browsers know are put into the page. */
static bool put_picture(const char *path, FILE *f)
{
    FILE *in = fopen(path, "re");
    unsigned char *s = malloc(PICTURE + 1);
    size_t n = in && s ? fread(s, 1, PICTURE + 1, in) : 0;
    const char *type = n < 8 || n > PICTURE               ? NULL
                       : !memcmp(s, "\xff\xd8\xff", 3)    ? "jpeg"
                       : !memcmp(s, "\x89PNG\r\n\x1a", 7) ? "png"
                                                          : NULL;

    if (type) {
        fprintf(f, "<img alt=\"\" src=\"data:image/%s;base64,", type);
        put_base64(s, n, f);
        fputs("\">", f);
    }
    free(s);
    if (in)
        fclose(in);
    return type != NULL;
}

static void print_example(const struct report_classes *c,
                          const struct report_example *e, FILE *f)
{
    const char *slash = strrchr(e->path, '/');

    fputs("<figure class=\"tile\" title=\"", f);
    html_text(f, e->path);
    fputs("\">", f);
    if (!put_picture(e->path, f))
        fputs("<div class=\"blank\">no picture</div>", f);
    fputs("<figcaption><b>", f);
    put_name(c, e->class, f);
    fprintf(f, "</b> %.1f %%<br>taken for <b>", 100 * e->own);
    put_name(c, e->taken_for, f);
    fprintf(f, "</b> %.1f %%<br><small>", 100 * e->share);
    html_text(f, slash ? slash + 1 : e->path);
    fputs("</small></figcaption></figure>\n", f);
}

void report_classes_print(const struct report_classes *c, FILE *f)
{
    if (!c->samples)
        return;
    if (c->count <= MATRIX)
        print_matrix(c, f);
    else if (c->pairs)
        print_pairs(c, f);
    print_classes(c, f);
    if (c->worsts)
        fputs("<h2>Worst examples</h2>\n<div class=\"examples\">\n", f);
    for (int i = 0; i < c->worsts; i++)
        print_example(c, &c->worst[i], f);
    if (c->worsts)
        fputs("</div>\n", f);
}
