/* opt.c - a command line read by its table
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/app.h"
#include "common/opt.h"
#include "common/opt_help.h"
#include "common/opt_nearest.h"
#include "common/opt_value.h"

/* Codes of long options for getopt: rows, then their aliases, help, then names
 * of other programs. */
enum { CODE_ROW = 256, CODE_ALIAS = CODE_ROW + OPT_MAX, CODE_HELP = 1024 };
enum { CODE_FOREIGN = 2048, FOREIGN_MAX = 128 };

const struct opt *opt_at(const struct opt_command *cmd, int i)
{
    for (int g = 0; cmd->group[g]; g++)
        for (const struct opt *r = cmd->group[g]->opt; r->name; r++)
            if (i-- == 0)
                return r;
    return NULL;
}

int opt_index(const struct opt_command *cmd, const char *name)
{
    const struct opt *r;

    for (int i = 0; (r = opt_at(cmd, i)); i++)
        if (!strcmp(r->name, name))
            return i;
    return -1;
}

bool opts_given(const struct opts *o, const char *name)
{
    int i = opt_index(o->cmd, name);

    return i >= 0 && o->given[i];
}

bool opts_have(const struct opts *o, const char *name)
{
    int i = opt_index(o->cmd, name);

    return i >= 0 && (o->given[i] || o->loaded[i]);
}

int opts_only(const struct opts *o, const char *name, bool holds,
              const char *why)
{
    if (holds || !opts_given(o, name))
        return OPTS_GO;
    opt_complain(o, "--%s has no effect here: %s", name, why);
    return EXIT_USAGE;
}

void opt_complain(const struct opts *o, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    app_vsay(o->cmd->name, fmt, ap);
    va_end(ap);
}

void opts_free(struct opts *o)
{
    const struct opt *r;

    for (int i = 0; o->cmd && (r = opt_at(o->cmd, i)); i++) {
        void *at = (char *)o->values + r->at;

        if (r->kind == OPT_TEXT) {
            free(*(char **)at);
            *(char **)at = NULL;
        } else if (r->kind == OPT_TEXTS) {
            for (char **s = *(char ***)at; s && *s; s++)
                free(*s);
            free(*(char ***)at);
            *(char ***)at = NULL;
        }
    }
}

/* ---- the command line --------------------------------------------------- */

/* The arguments of getopt_long(), built from the table. */
struct getopt_tables {
    struct option longs[2 * OPT_MAX + FOREIGN_MAX + 2];
    char letters[3 * OPT_MAX + 8];
};

/* What is always refused is so with or without a value. */
static int foreign_argument(const struct opt_foreign *f)
{
    if (f->why)
        return f->value ? required_argument : optional_argument;
    return f->option && !f->value ? required_argument : no_argument;
}

static int foreign_longs(const struct opt_foreign *f, struct option *longs)
{
    int n = 0;

    for (; f && f[n].name && n < FOREIGN_MAX; n++)
        longs[n] = (struct option){f[n].name, foreign_argument(&f[n]), NULL,
                                   CODE_FOREIGN + n};
    return n;
}

static void getopt_tables(const struct opt_command *cmd,
                          struct getopt_tables *t)
{
    const struct opt *r;
    char *s = t->letters;
    int n = 0;

    s += sprintf(s, "-:h"); /* plain arguments in order; ':' for no value */
    for (int i = 0; i < OPT_MAX && (r = opt_at(cmd, i)); i++) {
        int arg = r->kind == OPT_FLAG ? no_argument : required_argument;

        t->longs[n++] = (struct option){r->name, arg, NULL, CODE_ROW + i};
        if (r->alias)
            t->longs[n++] =
                (struct option){r->alias, arg, NULL, CODE_ALIAS + i};
        if (r->letter)
            s += sprintf(s, "%c%s", r->letter, arg ? ":" : "");
    }
    n += foreign_longs(cmd->foreign, t->longs + n);
    t->longs[n++] = (struct option){"help", no_argument, NULL, CODE_HELP};
    t->longs[n] = (struct option){0};
}

static const char *long_word(const void *t, int i)
{
    return ((const struct getopt_tables *)t)->longs[i].name;
}

/* A word that begins several options. */
static void complain_ambiguous(const struct opts *o,
                               const struct getopt_tables *t, const char *word)
{
    char list[1024] = "";

    for (int i = 0; t->longs[i].name; i++) {
        size_t n = strlen(list);

        if (!strncmp(t->longs[i].name, word, strlen(word)))
            snprintf(list + n, sizeof(list) - n, " --%s", t->longs[i].name);
    }
    opt_complain(o, "--%s could be%s", word, list);
}

/* getopt_long() returned '?' at this argument: unknown, ambiguous, or a value
 * for a flag. */
static void complain_unknown(const struct opts *o,
                             const struct getopt_tables *t, const char *arg)
{
    char word[64];
    const char *near, *eq = strchr(arg, '=');
    int prefixed = 0;

    if (strncmp(arg, "--", 2)) {
        opt_complain(o, "unknown option -%c; see --help", optopt);
        return;
    }
    snprintf(word, sizeof(word), "%.*s", eq ? (int)(eq - arg - 2) : 63,
             arg + 2);
    for (int i = 0; t->longs[i].name; i++) {
        if (!strcmp(t->longs[i].name, word)) {
            opt_complain(o, "--%s takes no value", word);
            return;
        }
        prefixed += !strncmp(t->longs[i].name, word, strlen(word));
    }
    if (prefixed > 1)
        complain_ambiguous(o, t, word);
    else if ((near = opt_nearest(word, long_word, t)))
        opt_complain(o, "unknown option --%s; did you mean --%s?", word, near);
    else
        opt_complain(o, "unknown option --%s; see --help", word);
}

static int row_of_letter(const struct opt_command *cmd, int letter)
{
    const struct opt *r;

    for (int i = 0; (r = opt_at(cmd, i)); i++)
        if (r->letter == letter)
            return i;
    return -1;
}

static int set_plain(struct opts *o, const char *text)
{
    int i = o->cmd->plain ? opt_index(o->cmd, o->cmd->plain) : -1;

    if (i < 0) {
        opt_complain(o, "unexpected argument '%s'; see --help", text);
        return EXIT_USAGE;
    }
    if (o->given[i] && opt_at(o->cmd, i)->kind != OPT_TEXTS) {
        opt_complain(o, "unexpected argument '%s': --%s is already given", text,
                     o->cmd->plain);
        return EXIT_USAGE;
    }
    o->given[i] = true;
    return opt_set(o, opt_at(o->cmd, i), text);
}

static int set_presets(struct opts *o)
{
    const struct opt *r;
    int rc;

    for (int i = 0; (r = opt_at(o->cmd, i)); i++)
        if (r->preset && (rc = opt_set(o, r, r->preset)) != OPTS_GO)
            return rc;
    return OPTS_GO;
}

/* "0.08 1.0" is "0.08,1.0": numbers that follow that of a list, up to as many
 * as it has.  The result is to be freed; NULL: no memory. */
static char *gather_numbers(const struct opt *r, const char *first, int argc,
                            char **argv)
{
    int most = r->kind == OPT_WIDTHS ? OPT_WIDTHS_MAX : r->count;
    char *all = strdup(first), *more, *end;

    for (int n = 1; all && n < most && optind < argc; n++) {
        if (strchr(first, ',') || !*argv[optind] ||
            (strtod(argv[optind], &end), *end))
            break;
        if (asprintf(&more, "%s,%s", all, argv[optind]) < 0)
            more = NULL;
        free(all);
        all = more;
        optind++;
    }
    return all;
}

static int set_foreign(struct opts *o, const struct opt_foreign *f, int argc,
                       char **argv);

/* What "lookahead_" in "lookahead_adam" means; more of the word follows it. */
static int take_prefix(struct opts *o, const struct opt *r, int argc,
                       char **argv)
{
    size_t len = r->prefix ? strlen(r->prefix->name) : 0;

    if (!r->prefix || strncmp(optarg, r->prefix->name, len) != 0)
        return OPTS_GO;
    optarg += len;
    return set_foreign(o, r->prefix, argc, argv);
}

static int set_given(struct opts *o, int i, int argc, char **argv)
{
    const struct opt *r = opt_at(o->cmd, i);
    char *all;
    int rc = take_prefix(o, r, argc, argv);

    if (rc != OPTS_GO)
        return rc;
    o->given[i] = true;
    if (r->kind != OPT_FLOATS && r->kind != OPT_WIDTHS)
        return opt_set(o, r, optarg);
    if (!(all = gather_numbers(r, optarg, argc, argv)))
        return EXIT_MEMORY;
    rc = opt_set(o, r, all);
    free(all);
    return rc;
}

/* Is it one of the words of "a,b"? */
static bool is_listed(const char *word, const char *list)
{
    size_t n = word ? strlen(word) : 0;

    for (const char *s = n ? list : NULL; s && *s; s += *s == ',') {
        size_t len = strcspn(s, ",");

        if (len == n && !strncmp(s, word, n))
            return true;
        s += len;
    }
    return false;
}

static int set_foreign(struct opts *o, const struct opt_foreign *f, int argc,
                       char **argv)
{
    int i = f->option ? opt_index(o->cmd, f->option) : -1;

    if (f->why && is_listed(optarg, f->value))
        return OPTS_GO;
    if (f->why) {
        opt_complain(o, "--%s: %s", f->name, f->why);
        return EXIT_USAGE;
    }
    if (i < 0)
        return OPTS_GO;
    if (!f->value)
        return set_given(o, i, argc, argv);
    if (o->given[i])
        return OPTS_GO;
    o->given[i] = true;
    return opt_set(o, opt_at(o->cmd, i), f->value);
}

static int parse_one(struct opts *o, const struct getopt_tables *t, int code,
                     int at, int argc, char **argv)
{
    const char *arg = argv[at];

    if (code == 1)
        return set_plain(o, optarg);
    if (code == CODE_HELP || code == 'h') {
        opt_help(o->cmd, stdout);
        return 0;
    }
    if (code == ':') {
        opt_complain(o, "%s requires a value", arg);
        return EXIT_USAGE;
    }
    if (code == '?') {
        complain_unknown(o, t, arg);
        return EXIT_USAGE;
    }
    if (code >= CODE_FOREIGN)
        return set_foreign(o, &o->cmd->foreign[code - CODE_FOREIGN], argc,
                           argv);
    return set_given(o,
                     code >= CODE_ALIAS ? code - CODE_ALIAS
                     : code >= CODE_ROW ? code - CODE_ROW
                                        : row_of_letter(o->cmd, code),
                     argc, argv);
}

int opts_parse(struct opts *o, const struct opt_command *cmd, void *values,
               int argc, char **argv)
{
    struct getopt_tables t = {0};
    int code, rc;

    *o = (struct opts){.cmd = cmd, .values = values};
    getopt_tables(cmd, &t);
    if ((rc = set_presets(o)) != OPTS_GO)
        return rc;
    opterr = 0;
    optind = 0; /* glibc: reset */
    for (;;) {
        int at = optind ? optind : 1;

        if ((code = getopt_long(argc, argv, t.letters, t.longs, NULL)) == -1)
            break;
        if ((rc = parse_one(o, &t, code, at, argc, argv)) != OPTS_GO)
            return rc;
    }
    for (; optind < argc; optind++)
        if ((rc = set_plain(o, argv[optind])) != OPTS_GO)
            return rc;
    return OPTS_GO;
}
