/* opt_help.c - a table of options as the text of --help
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdlib.h>
#include <string.h>

#include "common/opt_help.h"
#include "common/opt_value.h"

enum { WIDTH = 79, INDENT = 28 };

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

/* One row in the order it is printed: names, text, choices, default. */
static void help_row(const struct opt *r, FILE *f)
{
    char left[96], extra[320] = "";
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
    if (r->more) {
        r->more(extra, sizeof(extra));
        wrap(extra, &col, INDENT, f);
    }
    for (int i = 0; r->kind == OPT_CHOICE && opt_choice(r, i); i++) {
        snprintf(extra, sizeof(extra), "%s%s%s", i ? "" : "(", opt_choice(r, i),
                 opt_choice(r, i + 1) ? "," : ")");
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

/* The whole text, top to bottom. */
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
    fprintf(f, "\n  -h, --help%*sshow this help; defaults are in [brackets]\n",
            INDENT - 12, "");
}
