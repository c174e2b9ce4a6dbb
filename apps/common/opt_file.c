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
