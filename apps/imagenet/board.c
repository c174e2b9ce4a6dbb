/* board.c - --log: records of a run for other programs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "common/app.h"
#include "common/app_command.h"
#include "common/app_fail.h"
#include "common/opt_value.h"
#include "board.h"

/* Whether the list of --log has a kind. */
static bool has(const char *list, const char *kind)
{
    size_t n = strlen(kind), len;

    for (; *list; list += len + (list[len] == ',')) {
        len = strcspn(list, ",");
        if (len == n && !strncmp(list, kind, n))
            return true;
    }
    return false;
}

int board_check(const struct opts *o, const struct settings *s)
{
    const char *list = s->log ? s->log : "csv";
    size_t len;

    for (; *list; list += len + (list[len] == ',')) {
        len = strcspn(list, ",");
        if (!(len == 3 && !strncmp(list, "csv", len)) &&
            !(len == 11 && !strncmp(list, "tensorboard", len))) {
            opt_complain(o, "--log: unknown '%.*s', expected csv, tensorboard",
                         (int)len, list);
            return EXIT_USAGE;
        }
    }
    return OPTS_GO;
}

/* The settings that have a value, without secrets. */
static int set_all(const struct opts *o, ddp_tensorboard_t *tb)
{
    const struct opt *r;
    int rc = 0;

    for (int i = 0; rc == 0 && (r = opt_at(o->cmd, i)); i++) {
        char *text = NULL, *clean;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        if (!f)
            return DDP_ENOMEM;
        opt_print_value(r, o->values, f);
        if (fclose(f) != 0)
            return DDP_ENOMEM;
        clean = *text ? app_redact(text) : NULL;
        if (clean)
            rc = ddp_tensorboard_set(tb, r->name, clean);
        free(clean);
        free(text);
    }
    return rc;
}

int board_open(const struct opts *o, const struct settings *s,
               ddp_tensorboard_t **tb)
{
    char *dir;
    int rc;

    if (!s->log || !has(s->log, "tensorboard"))
        return OPTS_GO;
    if (!(dir = app_path(s->output, "tb")))
        return app_exit_code(DDP_ENOMEM);
    *tb = ddp_tensorboard_new(dir);
    free(dir);
    if (!*tb)
        return app_fail(ddp_errcode());
    return (rc = set_all(o, *tb)) < 0 ? app_fail(rc) : OPTS_GO;
}

void board_report(const ddp_tensorboard_t *tb, bool *said)
{
    if (!tb || *said || ddp_tensorboard_status(tb) == 0)
        return;
    *said = true;
    app_say("%s; the run goes on without event files", ddp_errmsg());
}
