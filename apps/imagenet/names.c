/* names.c - lines of a text file, and names of classes as such lines: paths of
 * images, names of classes SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "common/opt.h"
#include "names.h"

int names_add(struct names *n, const char *name)
{
    if ((n->count & (n->count - 1)) == 0) { /* full: room doubles */
        size_t room = n->count ? 2 * (size_t)n->count : 1;
        char **more = realloc(n->name, room * sizeof(*more));

        if (!more)
            return app_exit_code(DDP_ENOMEM);
        n->name = more;
    }
    if (!(n->name[n->count] = strdup(name)))
        return app_exit_code(DDP_ENOMEM);
    n->count++;
    return OPTS_GO;
}

int names_read_from(struct names *n, FILE *f)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    int rc = OPTS_GO;

    while (rc == OPTS_GO && (len = getline(&line, &room, f)) > 0) {
        if (line[len - 1] == '\n')
            line[--len] = 0;
        if (len && line[len - 1] == '\r')
            line[--len] = 0;
        if ((size_t)len != strlen(line)) {
            app_say("a line of the list contains a zero byte, expected text: "
                    "%s...",
                    line);
            rc = EXIT_USAGE;
        } else if (len) {
            rc = names_add(n, line);
        }
    }
    free(line);
    return rc;
}

int names_read(struct names *n, const char *path)
{
    bool is_file = strcmp(path, "-") != 0;
    FILE *f = is_file ? app_open_text(path) : stdin;
    int rc;

    if (!f) {
        if (errno == ENOENT)
            app_say("%s: %s", path, strerror(errno));
        return EXIT_USAGE;
    }
    rc = names_read_from(n, f);
    if (ferror(f)) {
        app_say("cannot read %s: %s", path, strerror(errno));
        rc = EXIT_WRITE;
    }
    if (is_file)
        fclose(f);
    return rc;
}

void names_free(struct names *n)
{
    for (int64_t i = 0; i < n->count; i++)
        free(n->name[i]);
    free(n->name);
    *n = (struct names){0};
}

void names_print(const ddp_dataset_t *d, FILE *f)
{
    for (int i = 0; i < ddp_dataset_classes(d); i++) {
        const char *name = ddp_dataset_class_name(d, i);

        if (name && *name)
            fprintf(f, "%s\n", name);
        else
            fprintf(f, "%d\n", i);
    }
}
