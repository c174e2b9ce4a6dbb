/* opt_man.c - a table of options as a manual page
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <ctype.h>
#include <string.h>

#include "common/opt_man.h"
#include "common/opt_value.h"

/* ---- text --------------------------------------------------------------- */

/* Text that roff would not read as its own: a hyphen that can be copied, a
 * backslash, and a point or quote at the beginning of a line. */
static void put(const char *text, size_t len, FILE *f)
{
    for (size_t i = 0; i < len && text[i]; i++) {
        if (i == 0 && strchr(".'", text[i]))
            fputs("\\&", f);
        if (text[i] == '-')
            fputs("\\-", f);
        else if (text[i] == '\\')
            fputs("\\e", f);
        else
            fputc(text[i], f);
    }
}

static void put_text(const char *text, FILE *f)
{
    put(text, strlen(text), f);
}

/* A sentence per line, as man pages have it, without blanks at the ends. */
static void put_sentences(const char *text, size_t len, FILE *f)
{
    size_t from = 0;

    for (size_t i = 0; i < len; i++) {
        bool ends = i + 1 < len && strchr(".!?", text[i]) &&
                    text[i + 1] == ' ' && i + 2 < len &&
                    isupper((unsigned char)text[i + 2]);

        if (!ends && i + 1 < len)
            continue;
        put(text + from, i + 1 - from, f);
        fputc('\n', f);
        from = i + 2;
    }
}

/* "imagenet-data-check" of "imagenet data check", in capital letters or not. */
static void put_page_name(const char *name, bool upper, FILE *f)
{
    for (const char *s = name; *s; s++)
        if (*s == ' ' || *s == '-')
            fputs("\\-", f);
        else
            fputc(upper ? toupper((unsigned char)*s) : *s, f);
}

/* Of the page: its title and what it is about. */
static void put_head(const char *name, const char *brief, size_t len, FILE *f)
{
    fputs(".\\\" Made from the table of options by the program itself.\n.TH ",
          f);
    put_page_name(name, true, f);
    fprintf(f, " 1 \"%s\" \"%s\" \"User Commands\"\n.SH NAME\n", DDP_DATE,
            PACKAGE_STRING);
    put_page_name(name, false, f);
    fprintf(f, " \\- %c", tolower((unsigned char)*brief));
    put(brief + 1, len - 1, f);
    fputs("\n.SH SYNOPSIS\n.B ", f);
    put_text(name, f);
    fputc('\n', f);
}

/* Paragraphs, one a line; that on exit codes has a section of its own. */
static void put_about(const char *text, FILE *f)
{
    static const char codes[] = "Exit codes: ";
    bool first = true;

    for (const char *end; *text; text = *end ? end + 1 : end) {
        size_t len = strcspn(text, "\n");

        end = text + len;
        if (len == 0)
            continue;
        if (!strncmp(text, codes, strlen(codes))) {
            fputs(".SH EXIT STATUS\n", f);
            text += strlen(codes);
            len -= strlen(codes);
        } else if (!first) {
            fputs(".PP\n", f);
        }
        put_sentences(text, len, f);
        first = false;
    }
}

/* ---- options ------------------------------------------------------------ */

static void put_option(const char *prefix, const char *name, FILE *f)
{
    fputs("\\fB", f);
    put_text(prefix, f);
    put_text(name, f);
    fputs("\\fR", f);
}

static void put_names(const struct opt *r, FILE *f)
{
    char letter[2] = {r->letter, '\0'};

    fputs(".TP\n", f);
    if (r->letter) {
        put_option("-", letter, f);
        fputs(", ", f);
    }
    put_option("--", r->name, f);
    if (r->alias) {
        fputs(", ", f);
        put_option("--", r->alias, f);
    }
    if (r->kind != OPT_FLAG) {
        fputs(" \\fI", f);
        put_text(r->value ? r->value : "N", f);
        fputs("\\fR", f);
    }
    fputc('\n', f);
}

static void put_choices(const struct opt *r, FILE *f)
{
    for (int i = 0; opt_choice(r, i); i++) {
        fputs(i == 0 ? "One of " : opt_choice(r, i + 1) ? ", " : " or ", f);
        put_option("", opt_choice(r, i), f);
    }
    fputs(".\n", f);
}

static void put_row(const struct opt *r, FILE *f)
{
    char more[320] = "";

    put_names(r, f);
    put_sentences(r->help, strlen(r->help), f);
    if (r->more) {
        r->more(more, sizeof(more));
        put_sentences(more + strspn(more, " "),
                      strlen(more + strspn(more, " ")), f);
    }
    if (r->kind != OPT_CHOICE && !r->preset)
        return;
    fputs(".br\n", f);
    if (r->kind == OPT_CHOICE)
        put_choices(r, f);
    if (r->preset) {
        fputs("The default is ", f);
        put_option("", r->preset, f);
        fputs(".\n", f);
    }
}

/* ---- pages -------------------------------------------------------------- */

/* The word for the plain argument, as --help has it. */
static void put_plain(const struct opt_command *c, FILE *f)
{
    const struct opt *r = c->plain ? opt_at(c, opt_index(c, c->plain)) : NULL;

    fputs("[\\fIoptions\\fR]", f);
    if (!r)
        return;
    fputs(" [\\fI", f);
    for (const char *s = c->plain; *s; s++)
        fputc(*s == '-' ? '_' : toupper((unsigned char)*s), f);
    fprintf(f, "\\fR]%s", r->kind == OPT_TEXTS ? "..." : "");
}

static void put_others(const struct opt_program *p, const struct opt_command *c,
                       FILE *f)
{
    const char *between = ".SH SEE ALSO\n";

    if (c && *opt_words(p, c)) {
        fputs(between, f);
        fputs(".BR ", f);
        put_page_name(p->name, false, f);
        fputs(" (1)", f);
        between = ",\n";
    }
    for (int i = 0; p->command[i] && p->command[1]; i++) {
        if (p->command[i] == c)
            continue;
        fputs(between, f);
        fputs(".BR ", f);
        put_page_name(p->command[i]->name, false, f);
        fputs(" (1)", f);
        between = ",\n";
    }
    if (*between == ',')
        fputc('\n', f);
}

void opt_man(const struct opt_program *p, const struct opt_command *c, FILE *f)
{
    const char *about = c->about;
    size_t len = strcspn(about, "\n"), brief = len;

    if (brief && about[brief - 1] == '.')
        brief--;
    put_head(c->name, about, brief, f);
    put_plain(c, f);
    fputs("\n.SH DESCRIPTION\n", f);
    put_about(about, f);
    fputs(".SH OPTIONS\n", f);
    for (int g = 0; c->group[g]; g++) {
        if (c->group[1]) {
            fputs(".SS ", f);
            put_text(c->group[g]->title, f);
            fputc('\n', f);
        }
        for (const struct opt *r = c->group[g]->opt; r->name; r++)
            put_row(r, f);
    }
    fputs(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nShow a summary.\n", f);
    put_others(p, c, f);
}

void opt_man_program(const struct opt_program *p, FILE *f)
{
    put_head(p->name, p->brief, strlen(p->brief), f);
    fputs("\\fIcommand\\fR [\\fIoptions\\fR]\n.SH DESCRIPTION\n", f);
    put_about(p->about ? p->about : p->brief, f);
    fputs(".SH COMMANDS\n", f);
    for (int i = 0; p->command[i]; i++) {
        const struct opt_command *c = p->command[i];

        fputs(".TP\n.B ", f);
        put_text(opt_words(p, c), f);
        fputc('\n', f);
        put_sentences(c->about, strcspn(c->about, "\n"), f);
    }
    fputs(".SH OPTIONS\n"
          ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nList the commands.\n"
          ".TP\n\\fB\\-\\-version\\fR\nShow the versions of the program and of "
          "StarPU.\n",
          f);
    put_others(p, NULL, f);
}
