/* opt_complete.c - a program's options as a completion for a shell
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Its row says what is completed after an option: words of a choice, or
 * names of files or folders where the value is called so.
 */
#include "config.h"
#include <ctype.h>
#include <string.h>

#include "common/opt_complete.h"
#include "common/opt_value.h"

/* ---- what the shells need ----------------------------------------------- */

enum what { NOTHING, WORDS, FILES, FOLDERS };

static enum what value_of(const struct opt *r)
{
    const char *v = r->value ? r->value : "";

    if (r->kind == OPT_FLAG)
        return NOTHING;
    if (opt_choice(r, 0))
        return WORDS;
    if (!strcmp(v, "DIR"))
        return FOLDERS;
    if (strstr(v, "DIR") || strstr(v, "FILE") || strstr(v, "PATH"))
        return FILES;
    return NOTHING;
}

static void put_words(const struct opt *r, FILE *f)
{
    const char *word;

    for (int i = 0; (word = opt_choice(r, i)); i++)
        fprintf(f, "%s%s", i ? " " : "", word);
}

/* Text within single quotes of a shell.  also: what needs a backslash. */
static void put_quoted(const char *text, size_t len, const char *also, FILE *f)
{
    for (size_t i = 0; i < len && text[i]; i++) {
        if (text[i] == '\'')
            fputs("'\\'", f);
        else if (strchr(also, text[i]))
            fputc('\\', f);
        fputc(text[i], f);
    }
}

/* The help text up to its first pause, which fits a line of a menu. */
static void put_brief(const char *help, const char *also, FILE *f)
{
    size_t len = strcspn(help, ":;.[(");

    while (len && help[len - 1] == ' ')
        len--;
    put_quoted(help, len, also, f);
}

/* A name for a function of a shell: "ddp_bench". */
static void put_name(const char *name, FILE *f)
{
    for (; *name; name++)
        fputc(isalnum((unsigned char)*name) ? *name : '_', f);
}

/* The first word of a command, unless an earlier command has it too. */
static bool first_word(const struct opt_program *p, int i, size_t *len)
{
    const char *words = opt_words(p, p->command[i]);

    *len = strcspn(words, " ");
    for (int k = 0; k < i; k++) {
        const char *w = opt_words(p, p->command[k]);

        if (strcspn(w, " ") == *len && !strncmp(w, words, *len))
            return false;
    }
    return *len > 0;
}

/* ---- bash --------------------------------------------------------------- */

static const char bash_begin[] =
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev= option= options= values=\n"
    "    local command= words=\n"
    "    COMPREPLY=()\n"
    "    [ \"$COMP_CWORD\" -lt 1 ] || prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    # --option=value are three words here.\n"
    "    if [ \"$cur\" = = ]; then\n"
    "        cur= option=$prev\n"
    "    elif [ \"$prev\" = = ] && [ \"$COMP_CWORD\" -ge 2 ]; then\n"
    "        option=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    else\n"
    "        option=$prev\n"
    "    fi\n";

static const char bash_end[] =
    "    case $values in\n"
    "    @files) COMPREPLY=($(compgen -f -- \"$cur\"))\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        return ;;\n"
    "    @folders) COMPREPLY=($(compgen -d -- \"$cur\"))\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        return ;;\n"
    "    @nothing) return ;;\n"
    "    ?*) COMPREPLY=($(compgen -W \"$values\" -- \"$cur\"))\n"
    "        return ;;\n"
    "    esac\n"
    "    case $cur in\n"
    "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")) ;;\n"
    "    *) if [ -n \"$words\" ]; then\n"
    "            COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
    "        else\n"
    "            COMPREPLY=($(compgen -f -- \"$cur\"))\n"
    "            compopt -o filenames 2>/dev/null\n"
    "        fi ;;\n"
    "    esac\n"
    "}\n";

static void bash_row(const struct opt *r, FILE *f)
{
    if (r->kind == OPT_FLAG)
        return;
    fprintf(f, "        --%s", r->name);
    if (r->alias)
        fprintf(f, " | --%s", r->alias);
    if (r->letter)
        fprintf(f, " | -%c", r->letter);
    fputs(") values='", f);
    switch (value_of(r)) {
    case NOTHING:
        fputs("@nothing", f);
        break;
    case WORDS:
        put_words(r, f);
        break;
    case FILES:
        fputs("@files", f);
        break;
    case FOLDERS:
        fputs("@folders", f);
        break;
    }
    fputs("' ;;\n", f);
}

static void bash_command(const struct opt_program *p,
                         const struct opt_command *c, FILE *f)
{
    const struct opt *r;

    fprintf(f, "    \"%s\")\n        options='--help", opt_words(p, c));
    for (int i = 0; (r = opt_at(c, i)); i++) {
        fprintf(f, " --%s", r->name);
        if (r->alias)
            fprintf(f, " --%s", r->alias);
    }
    fputs("'\n        case $option in\n", f);
    for (int i = 0; (r = opt_at(c, i)); i++)
        bash_row(r, f);
    fputs("        esac ;;\n", f);
}

/* Which command the first words are, and the words that are missing yet. */
static void bash_words(const struct opt_program *p, FILE *f)
{
    size_t len;

    fputs("    if [ \"$COMP_CWORD\" = 1 ]; then\n        words='", f);
    for (int i = 0; p->command[i]; i++)
        if (first_word(p, i, &len))
            fprintf(f, "%.*s ", (int)len, opt_words(p, p->command[i]));
    fputs("help' options='--help --version'\n    fi\n"
          "    command=${COMP_WORDS[1]}\n    case $command in\n",
          f);
    for (int i = 0; p->command[i]; i++) {
        const char *first = opt_words(p, p->command[i]);

        if (!first_word(p, i, &len) || !first[len])
            continue;
        fprintf(f,
                "    %.*s)\n        command=\"$command ${COMP_WORDS[2]}\"\n"
                "        [ \"$COMP_CWORD\" != 2 ] || words='",
                (int)len, first);
        for (int k = i; p->command[k]; k++) {
            const char *w = opt_words(p, p->command[k]);

            if (!strncmp(w, first, len) && w[len] == ' ')
                fprintf(f, "%s ", w + len + 1);
        }
        fputs("' ;;\n", f);
    }
    fputs("    esac\n", f);
}

static void complete_bash(const struct opt_program *p, FILE *f)
{
    fprintf(f, "# bash completion for %s, made by the program itself\n_",
            p->name);
    put_name(p->name, f);
    fprintf(f, "()\n%s", bash_begin);
    if (p->command[1])
        bash_words(p, f);
    fputs("    case $command in\n", f);
    for (int i = 0; p->command[i]; i++)
        bash_command(p, p->command[i], f);
    fprintf(f, "    esac\n%scomplete -F _", bash_end);
    put_name(p->name, f);
    fprintf(f, " %s\n", p->name);
}

/* ---- zsh ---------------------------------------------------------------- */

static void zsh_spec(const struct opt *r, const char *dashes, const char *name,
                     FILE *f)
{
    fprintf(f, " \\\n        '%s%s%s[", r->kind == OPT_TEXTS ? "*" : "", dashes,
            name);
    put_brief(r->help, "[]:\\", f);
    fputc(']', f);
    if (r->kind != OPT_FLAG) {
        fputc(':', f);
        put_quoted(r->value ? r->value : "N", 64, ":\\", f);
        fputc(':', f);
    }
    switch (value_of(r)) {
    case NOTHING:
        break;
    case WORDS:
        fputc('(', f);
        put_words(r, f);
        fputc(')', f);
        break;
    case FILES:
        fputs("_files", f);
        break;
    case FOLDERS:
        fputs("_files -/", f);
        break;
    }
    fputc('\'', f);
}

static void zsh_options(const struct opt_command *c, FILE *f)
{
    const struct opt *r;

    fputs("_arguments '(-h --help)'{-h,--help}'[show help]'", f);
    for (int i = 0; (r = opt_at(c, i)); i++) {
        char letter[2] = {r->letter, '\0'};

        zsh_spec(r, "--", r->name, f);
        if (r->alias)
            zsh_spec(r, "--", r->alias, f);
        if (r->letter)
            zsh_spec(r, "-", letter, f);
    }
    fputs(" \\\n        '*:argument:_files'", f);
}

static void zsh_word(const char *word, const struct opt_command *c, FILE *f)
{
    fprintf(f, "'%s:", word);
    put_brief(c->about, "\\", f);
    fputs("' ", f);
}

static void zsh_commands(const struct opt_program *p, FILE *f)
{
    size_t len;

    fputs("    local -a commands\n    commands=(", f);
    for (int i = 0; p->command[i]; i++) {
        const char *words = opt_words(p, p->command[i]);

        if (first_word(p, i, &len) && words[len])
            fprintf(f, "%.*s ", (int)len, words);
        else if (!words[len])
            zsh_word(words, p->command[i], f);
    }
    fputs(")\n    if (( CURRENT == 2 )); then\n"
          "        _describe command commands\n        return\n    fi\n"
          "    local command=$words[2]\n    shift words\n"
          "    (( CURRENT-- ))\n",
          f);
}

/* The second words of commands that have two. */
static void zsh_seconds(const struct opt_program *p, FILE *f)
{
    for (int i = 0; p->command[i]; i++) {
        const char *first = opt_words(p, p->command[i]);
        size_t len;

        if (!first_word(p, i, &len) || !first[len])
            continue;
        fprintf(f, "    if [[ $command == %.*s ]]; then\n        commands=(",
                (int)len, first);
        for (int k = i; p->command[k]; k++) {
            const char *w = opt_words(p, p->command[k]);

            if (!strncmp(w, first, len) && w[len] == ' ')
                zsh_word(w + len + 1, p->command[k], f);
        }
        fputs(")\n        if (( CURRENT == 2 )); then\n"
              "            _describe command commands\n            return\n"
              "        fi\n        command=\"$command $words[2]\"\n"
              "        shift words\n        (( CURRENT-- ))\n    fi\n",
              f);
    }
}

static void complete_zsh(const struct opt_program *p, FILE *f)
{
    fprintf(f, "#compdef %s\n# made by the program itself\n_", p->name);
    put_name(p->name, f);
    fputs("()\n{\n", f);
    if (p->command[1]) {
        zsh_commands(p, f);
        zsh_seconds(p, f);
        fputs("    case $command in\n", f);
        for (int i = 0; p->command[i]; i++) {
            fprintf(f, "    \"%s\") ", opt_words(p, p->command[i]));
            zsh_options(p->command[i], f);
            fputs(" ;;\n", f);
        }
        fputs("    esac\n", f);
    } else {
        fputs("    ", f);
        zsh_options(p->command[0], f);
        fputc('\n', f);
    }
    fputs("}\n_", f);
    put_name(p->name, f);
    fputs(" \"$@\"\n", f);
}

/* ---- fish --------------------------------------------------------------- */

/* "__fish_seen_subcommand_from data; and ..." for each word. */
static void fish_seen(const char *words, FILE *f)
{
    for (size_t len; *words; words += len + (words[len] == ' ')) {
        len = strcspn(words, " ");
        fprintf(f, "__fish_seen_subcommand_from %.*s%s", (int)len, words,
                words[len] ? "; and " : "");
    }
}

static void fish_row(const struct opt_program *p, const struct opt_command *c,
                     const struct opt *r, FILE *f)
{
    enum what what = value_of(r);

    fprintf(f, "complete -c %s", p->name);
    if (*opt_words(p, c)) {
        fputs(" -n '", f);
        fish_seen(opt_words(p, c), f);
        fputc('\'', f);
    }
    fprintf(f, " -l %s", r->name);
    if (r->alias)
        fprintf(f, " -l %s", r->alias);
    if (r->letter)
        fprintf(f, " -s %c", r->letter);
    if (r->kind != OPT_FLAG)
        fputs(what == FILES || what == FOLDERS ? " -r" : " -x", f);
    if (what == WORDS) {
        fputs(" -a '", f);
        put_words(r, f);
        fputc('\'', f);
    } else if (what == FOLDERS) {
        fputs(" -a '(__fish_complete_directories)'", f);
    }
    fputs(" -d '", f);
    put_brief(r->help, "'\\", f);
    fputs("'\n", f);
}

/* The first word of a command, or its second where the first is there. */
static void fish_word(const struct opt_program *p, int i, FILE *f)
{
    const struct opt_command *c = p->command[i];
    const char *words = opt_words(p, c);
    size_t len;

    if (first_word(p, i, &len)) {
        fprintf(f, "complete -c %s -n __fish_use_subcommand -f -a %.*s",
                p->name, (int)len, words);
        if (!words[len]) {
            fputs(" -d '", f);
            put_brief(c->about, "'\\", f);
            fputc('\'', f);
        }
        fputc('\n', f);
    }
    if (words[len]) {
        fprintf(f,
                "complete -c %s -n '__fish_seen_subcommand_from %.*s' -f "
                "-a %s -d '",
                p->name, (int)len, words, words + len + 1);
        put_brief(c->about, "'\\", f);
        fputs("'\n", f);
    }
}

static void complete_fish(const struct opt_program *p, FILE *f)
{
    const struct opt *r;

    fprintf(f, "# fish completion for %s, made by the program itself\n",
            p->name);
    for (int i = 0; p->command[i]; i++) {
        if (p->command[1])
            fish_word(p, i, f);
        for (int k = 0; (r = opt_at(p->command[i], k)); k++)
            fish_row(p, p->command[i], r, f);
    }
}

int opt_complete(const struct opt_program *p, const char *shell, FILE *f)
{
    if (!strcmp(shell, "bash"))
        complete_bash(p, f);
    else if (!strcmp(shell, "zsh"))
        complete_zsh(p, f);
    else if (!strcmp(shell, "fish"))
        complete_fish(p, f);
    else
        return -1;
    return 0;
}
