/* opt_value.c - one value of an option: read from text, and printed
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/app.h"
#include "common/opt_nearest.h"
#include "common/opt_value.h"

/* ---- one value ---------------------------------------------------------- */

void opt_complain_word(const struct opts *o, const char *name, const char *text,
                       const char *(*next)(const void *arg, int i),
                       const void *arg)
{
    const char *near = opt_nearest(text, next, arg), *word;
    char list[2048] = "";

    for (int i = 0; (word = next(arg, i)); i++) {
        size_t n = strlen(list);

        snprintf(list + n, sizeof(list) - n, " %s", word);
    }
    opt_complain(o, "--%s: unknown value '%s'%s%s%s  Available:%s", name, text,
                 near ? "; did you mean '" : "", near ? near : "",
                 near ? "'?" : "", list);
}

const char *opt_choice(const struct opt *r, int i)
{
    return r->word ? r->word(i) : r->choice ? r->choice[i] : NULL;
}

static const char *choice_word(const void *row, int i)
{
    return opt_choice(row, i);
}

/* The word that another one stands for, or the word itself. */
static const char *meaning(const struct opt *r, const char *text)
{
    for (const struct opt_word *w = r->also; w && w->name; w++)
        if (!strcmp(text, w->name))
            return w->means;
    return text;
}

static int set_choice(const struct opts *o, const struct opt *r,
                      const char *given, int *out)
{
    const char *text = meaning(r, given);

    for (int i = 0; opt_choice(r, i); i++)
        if (!strcmp(text, opt_choice(r, i))) {
            *out = i;
            return OPTS_GO;
        }
    opt_complain_word(o, r->name, text, choice_word, r);
    return EXIT_USAGE;
}

static int check_range(const struct opts *o, const struct opt *r, double v,
                       const char *text)
{
    if ((r->min == 0 && r->max == 0) || (v >= r->min && v <= r->max))
        return OPTS_GO;
    opt_complain(o, "--%s: %s is not between %.10g and %.10g", r->name, text,
                 r->min, r->max);
    return EXIT_USAGE;
}

static int set_int(const struct opts *o, const struct opt *r, const char *text,
                   int64_t *out)
{
    char *end;
    long long v;

    errno = 0;
    v = strtoll(text, &end, 10);
    if (end == text || *end || errno || isspace((unsigned char)*text)) {
        opt_complain(o, "--%s: '%s' is not a whole number", r->name, text);
        return EXIT_USAGE;
    }
    *out = v;
    return check_range(o, r, (double)v, text);
}

static void complain_list(const struct opts *o, const struct opt *r,
                          const char *text)
{
    opt_complain(o, "--%s: '%s' is not a list of %s%d numbers", r->name, text,
                 r->least ? "up to " : "", r->count);
}

/* One number up to `stop`; *text moves past it. */
static int set_float(const struct opts *o, const struct opt *r,
                     const char **text, char stop, double *out)
{
    char *end;
    double v = strtod(*text, &end);

    if (r->kind == OPT_SHARE && *end == '%') {
        v /= 100;
        end++;
    }
    if (end == *text || *end != stop || !isfinite(v)) {
        if (r->kind == OPT_FLOATS)
            complain_list(o, r, *text);
        else
            opt_complain(o, "--%s: '%s' is not %s", r->name, *text,
                         r->kind == OPT_SHARE ? "a fraction such as 0.01 or 1%"
                                              : "a number");
        return EXIT_USAGE;
    }
    *out = v;
    if (check_range(o, r, v, *text) != OPTS_GO)
        return EXIT_USAGE;
    *text = end + (stop != 0);
    return OPTS_GO;
}

/* One field of a time, of at most `most`, up to ':' or '-' or the end. */
static bool take_field(const char **s, double most, double *out)
{
    char *end;
    long long v;

    if (!isdigit((unsigned char)**s))
        return false;
    v = strtoll(*s, &end, 10);
    *s = end;
    *out = (double)v;
    return v <= most;
}

/* [D-]H:MM:SS as sbatch writes it, with fewer fields M:SS, S, D-H, D-H:MM. */
static bool read_time(const char *s, double *out)
{
    static const double unit[] = {86400, 3600, 60, 1};
    double field[4] = {0}, first = 1e9;
    int n = 0, begin;
    bool days = strchr(s, '-') != NULL;

    for (; n < 4; n++, first = 59) {
        char stop = days && n == 0 ? '-' : ':';

        if (!take_field(&s, n == 1 && days ? 23 : first, &field[n]))
            return false;
        if (*s != stop)
            break;
        s++;
    }
    if (*s || n == 4 || (days && n == 0) || (!days && n > 2))
        return false;
    begin = days ? 0 : 3 - n;
    *out = 0;
    for (int i = 0; i <= n; i++)
        *out += field[i] * unit[begin + i];
    return true;
}

static int set_time(const struct opts *o, const struct opt *r, const char *text,
                    double *out)
{
    if (!read_time(text, out)) {
        opt_complain(
            o, "--%s: '%s' is not a time such as 3600, 1:00:00 or 1-12:00",
            r->name, text);
        return EXIT_USAGE;
    }
    return check_range(o, r, *out, text);
}

static int set_floats(const struct opts *o, const struct opt *r,
                      const char *text, double *out)
{
    int n = 1;

    for (const char *s = text; (s = strchr(s, ',')); s++)
        n++;
    if (n > r->count || n < (r->least ? r->least : r->count)) {
        complain_list(o, r, text);
        return EXIT_USAGE;
    }
    if (n < r->count && set_floats(o, r, r->preset, out) != OPTS_GO)
        return EXIT_USAGE;
    for (int i = 0; i < n; i++)
        if (set_float(o, r, &text, i + 1 < n ? ',' : 0, &out[i]) != OPTS_GO)
            return EXIT_USAGE;
    for (int i = 1; n == 1 && i < r->spread; i++)
        out[i] = out[0];
    return OPTS_GO;
}

static int set_widths(const struct opts *o, const struct opt *r,
                      const char *text, int *out)
{
    int n = 0;

    for (const char *s = text;; s++) {
        char *end;
        long v = strtol(s, &end, 10);

        if (end == s || (*end && *end != ',') || v < 1 || v > 1 << 24 ||
            n == OPT_WIDTHS_MAX) {
            opt_complain(o,
                         "--%s: '%s' is not a list of whole numbers such as "
                         "64,32 (at most %d)",
                         r->name, text, OPT_WIDTHS_MAX);
            return EXIT_USAGE;
        }
        out[n++] = (int)v;
        if (!*(s = end))
            break;
    }
    out[n] = 0;
    return OPTS_GO;
}

static int set_text(const struct opts *o, const struct opt *r, const char *text,
                    char **out)
{
    char *copy;

    if (!*text) {
        opt_complain(o, "--%s: the value is empty", r->name);
        return EXIT_USAGE;
    }
    if (!(copy = strdup(text)))
        return EXIT_MEMORY;
    free(*out);
    *out = copy;
    return OPTS_GO;
}

static int add_text(const struct opts *o, const struct opt *r, const char *text,
                    char ***out)
{
    size_t n = 0;
    char **more;

    while (*out && (*out)[n])
        n++;
    if (!(more = realloc(*out, (n + 2) * sizeof(*more))))
        return EXIT_MEMORY;
    *out = more;
    more[n] = more[n + 1] = NULL;
    return set_text(o, r, text, &more[n]);
}

/* One case per kind of value. */
int opt_set(const struct opts *o, const struct opt *r, const char *text)
{
    void *at = (char *)o->values + r->at;

    switch (r->kind) {
    case OPT_FLAG:
        *(bool *)at = !text || !strcmp(text, "true");
        return OPTS_GO;
    case OPT_INT:
        return set_int(o, r, text, at);
    case OPT_FLOAT:
    case OPT_SHARE:
        return set_float(o, r, &text, 0, at);
    case OPT_TIME:
        return set_time(o, r, text, at);
    case OPT_FLOATS:
        return set_floats(o, r, text, at);
    case OPT_WIDTHS:
        return set_widths(o, r, text, at);
    case OPT_TEXT:
        return set_text(o, r, text, at);
    case OPT_TEXTS:
        return add_text(o, r, text, at);
    case OPT_CHOICE:
        return set_choice(o, r, text, at);
    }
    return EXIT_USAGE;
}

/* ---- printing ----------------------------------------------------------- */

static void print_floats(const double *v, int n, FILE *f)
{
    for (int i = 0; i < n; i++)
        fprintf(f, "%s%.9g", i ? "," : "", v[i]);
}

static void print_widths(const int *v, FILE *f)
{
    for (int i = 0; v[i]; i++)
        fprintf(f, "%s%d", i ? "," : "", v[i]);
}

/* The inverse of opt_set(), one case per kind of value. */
void opt_print_value(const struct opt *r, const void *values, FILE *f)
{
    const void *at = (const char *)values + r->at;

    switch (r->kind) {
    case OPT_FLAG:
        fputs(*(const bool *)at ? "true" : "false", f);
        break;
    case OPT_INT:
        fprintf(f, "%lld", (long long)*(const int64_t *)at);
        break;
    case OPT_FLOAT:
    case OPT_SHARE:
    case OPT_TIME:
        print_floats(at, 1, f);
        break;
    case OPT_FLOATS:
        print_floats(at, r->count, f);
        break;
    case OPT_WIDTHS:
        print_widths(at, f);
        break;
    case OPT_TEXT:
        if (*(char *const *)at)
            fputs(*(char *const *)at, f);
        break;
    case OPT_TEXTS:
        for (char *const *s = *(char *const *const *)at; s && *s; s++)
            fprintf(f, "%s%s", s == *(char *const *const *)at ? "" : " ", *s);
        break;
    case OPT_CHOICE:
        fputs(opt_choice(r, *(const int *)at), f);
        break;
    }
}
