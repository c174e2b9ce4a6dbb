/* opt_file.c - the values of options in a text file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/app.h"
#include "common/opt_file.h"
#include "common/opt_value.h"

void opts_save(const struct opts *o, FILE *f)
{
    const struct opt *r;

    for (int i = 0; (r = opt_at(o->cmd, i)); i++) {
        fprintf(f, "%s = ", r->name);
        opt_print_value(r, o->values, f);
        fprintf(f, "\n");
    }
}

static int load_line(struct opts *o, char *line)
{
    char *eq = strstr(line, " = ");
    const struct opt *r;
    int i, rc;

    line[strcspn(line, "\n")] = 0;
    if (!eq || !eq[3])
        return OPTS_GO; /* a comment, or a value that has no default */
    *eq = 0;
    if ((i = opt_index(o->cmd, line)) < 0)
        return OPTS_GO; /* an option of another command */
    r = opt_at(o->cmd, i);
    if (!r->of_network || o->given[i])
        return OPTS_GO;
    rc = opt_set(o, r, eq + 3);
    o->loaded[i] = rc == OPTS_GO;
    return rc;
}

int opts_load(struct opts *o, const char *path)
{
    FILE *f = app_open_text(path);
    char *line = NULL;
    size_t room = 0;
    int rc = OPTS_GO;

    if (!f)
        return errno == ENOENT ? OPTS_GO : EXIT_USAGE;
    while (rc == OPTS_GO && getline(&line, &room, f) > 0)
        rc = load_line(o, line);
    if (rc != OPTS_GO)
        opt_complain(o, "the value above comes from %s", path);
    free(line);
    fclose(f);
    return rc;
}

/* ---- recipes ------------------------------------------------------------ */

static char *print_value(const struct opts *o, const struct opt *r)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    if (!f)
        return NULL;
    opt_print_value(r, o->values, f);
    return fclose(f) == 0 ? text : NULL;
}

/* A value that is the default says nothing: records of runs have all. */
static int take_value(struct opts *o, int i, const char *text)
{
    const struct opt *r = opt_at(o->cmd, i);
    char *before = print_value(o, r);
    int rc = OPTS_GO;

    if (!before)
        return EXIT_MEMORY;
    if (strcmp(before, text) != 0) {
        rc = opt_set(o, r, text);
        o->loaded[i] = rc == OPTS_GO;
    }
    free(before);
    return rc;
}

static int index_of(const struct opt_command *cmd, const char *name)
{
    const struct opt *r;

    for (int i = 0; (r = opt_at(cmd, i)); i++)
        if (!strcmp(r->name, name) || (r->alias && !strcmp(r->alias, name)))
            return i;
    return -1;
}

static int configure_line(struct opts *o, char *line)
{
    char *eq = strstr(line, " =");
    int i;

    line[strcspn(line, "\n")] = 0;
    if (!*line || *line == '#')
        return OPTS_GO;
    if (!eq || (eq[2] && eq[2] != ' ')) {
        opt_complain(o, "'%s' is not NAME = VALUE", line);
        return EXIT_USAGE;
    }
    *eq = 0;
    if ((i = index_of(o->cmd, line)) < 0) {
        opt_complain(o, "there is no option --%s", line);
        return EXIT_USAGE;
    }
    if (!eq[2] || !eq[3] || opt_at(o->cmd, i)->of_run || o->given[i])
        return OPTS_GO;
    return take_value(o, i, eq + 3);
}

int opts_configure(struct opts *o, const char *path)
{
    FILE *f = app_open_text(path);
    char *line = NULL;
    size_t room = 0;
    int rc = OPTS_GO, number = 0;

    if (!f) {
        opt_complain(o, "%s: %s", path, strerror(errno));
        return EXIT_USAGE;
    }
    while (rc == OPTS_GO && getline(&line, &room, f) > 0) {
        rc = configure_line(o, line);
        number++;
    }
    if (rc != OPTS_GO)
        opt_complain(o, "the option above is in line %d of %s", number, path);
    free(line);
    fclose(f);
    return rc;
}
