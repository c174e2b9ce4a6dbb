/* opt_help.c - a table of options as text, and the nearest word
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdlib.h>
#include <string.h>

#include "common/opt.h"

enum { WIDTH = 79, INDENT = 28, WORD_MAX = 40 };

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
        fputs(r->choice[*(const int *)at], f);
        break;
    }
}

/* ---- help --------------------------------------------------------------- */

/* Words of text from column *col on, broken at WIDTH. */
static void wrap(const char *text, int *col, int indent, FILE *f)
{
    while (*text) {
        int len = (int)strcspn(text, " ");

        if (*col > indent && *col + 1 + len > WIDTH) {
            fprintf(f, "\n%*s", indent, "");
            *col = indent;
        } else if (*col > indent) {
            fputc(' ', f);
            (*col)++;
        }
        fprintf(f, "%.*s", len, text);
        *col += len;
        text += len;
        text += strspn(text, " ");
    }
}

static void help_row(const struct opt *r, FILE *f)
{
    char left[96], extra[160] = "";
    int n = 0, col;

    n = r->letter ? snprintf(left, sizeof(left), "  -%c, ", r->letter)
                  : snprintf(left, sizeof(left), "      ");
    n += snprintf(left + n, sizeof(left) - (size_t)n, "--%s", r->name);
    if (r->kind != OPT_FLAG)
        n += snprintf(left + n, sizeof(left) - (size_t)n, " %s",
                      r->value ? r->value : "N");
    fputs(left, f);
    if (n + 1 >= INDENT)
        fprintf(f, "\n%*s", INDENT, "");
    else
        fprintf(f, "%*s", INDENT - n, "");
    col = INDENT;
    wrap(r->help, &col, INDENT, f);
    for (int i = 0; r->kind == OPT_CHOICE && r->choice[i]; i++) {
        snprintf(extra, sizeof(extra), "%s%s%s", i ? "" : "(", r->choice[i],
                 r->choice[i + 1] ? "," : ")");
        wrap(extra, &col, INDENT, f);
    }
    if (r->alias) {
        snprintf(extra, sizeof(extra), "(also --%s)", r->alias);
        wrap(extra, &col, INDENT, f);
    }
    if (r->preset) {
        snprintf(extra, sizeof(extra), "[%s]", r->preset);
        wrap(extra, &col, INDENT, f);
    }
    fputc('\n', f);
}

void opt_help(const struct opt_command *cmd, FILE *f)
{
    int col = 0;

    fprintf(f, "Usage: %s [options]%s", cmd->name, cmd->plain ? " " : "");
    for (const char *s = cmd->plain ? cmd->plain : ""; *s; s++)
        fputc(*s == '-' ? '_' : *s - ('a' <= *s && *s <= 'z' ? 32 : 0), f);
    if (cmd->plain &&
        opt_at(cmd, opt_index(cmd, cmd->plain))->kind == OPT_TEXTS)
        fprintf(f, "...");
    fprintf(f, "\n\n");
    for (const char *s = cmd->about; s;) {
        const char *end = strchr(s, '\n');
        char line[1024];

        snprintf(line, sizeof(line), "%.*s", end ? (int)(end - s) : 1000, s);
        col = 0;
        wrap(line, &col, 0, f);
        fputc('\n', f);
        s = end ? end + 1 : NULL;
    }
    for (int g = 0; cmd->group[g]; g++) {
        fprintf(f, "\n%s\n", cmd->group[g]->title);
        for (const struct opt *r = cmd->group[g]->opt; r->name; r++)
            help_row(r, f);
    }
    fprintf(f, "\n  -h, --help%*sthis text; defaults are in [brackets]\n",
            INDENT - 12, "");
}

/* ---- the nearest word --------------------------------------------------- */

static int min3(int a, int b, int c)
{
    int m = a < b ? a : b;

    return m < c ? m : c;
}

/* Edits (insert, delete, replace, swap neighbours) from a to b: optimal string
 * alignment, by its recurrence. */
static int distance(const char *a, const char *b)
{
    int d[WORD_MAX + 1][WORD_MAX + 1];
    int n = (int)strlen(a), m = (int)strlen(b);

    if (n > WORD_MAX || m > WORD_MAX)
        return WORD_MAX;
    for (int i = 0; i <= n; i++)
        d[i][0] = i;
    for (int j = 0; j <= m; j++)
        d[0][j] = j;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= m; j++) {
            int change = a[i - 1] != b[j - 1];

            d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1,
                           d[i - 1][j - 1] + change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = min3(d[i][j], d[i - 2][j - 2] + 1, WORD_MAX);
        }
    return d[n][m];
}

const char *opt_nearest(const char *word,
                        const char *(*next)(const void *arg, int i),
                        const void *arg)
{
    const char *best = NULL, *w;
    int best_d = 1 + (int)strlen(word) / 3;

    if (best_d > 3)
        best_d = 3;
    for (int i = 0; (w = next(arg, i)); i++) {
        int d = distance(word, w);

        if (d <= best_d) {
            best_d = d - 1;
            best = w;
        }
    }
    return best;
}
