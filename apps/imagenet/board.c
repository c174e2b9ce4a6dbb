/* board.c - --log: records of a run for other programs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/app.h"
#include "common/app_command.h"
#include "common/app_fail.h"
#include "common/opt_value.h"
#include "board.h"
#include "run_file.h"

/* Each in a folder of that name in the run's. */
static const char *const folders[DDP_LOG_KINDS] = {
    [DDP_LOG_TENSORBOARD] = "tb",
    [DDP_LOG_WANDB] = "wandb",
    [DDP_LOG_MLFLOW] = "mlruns",
};

/* The kind that the next word of a list names, DDP_LOG_KINDS for the records
 * that every run has, negative for another; list is behind it then. */
static int next_kind(const char **list, int *len)
{
    const char *word = *list, *name;
    int kind = 0;

    *len = (int)strcspn(word, ",");
    *list += *len + (word[*len] == ',');
    if (*len == 3 && !strncmp(word, "csv", 3))
        return DDP_LOG_KINDS;
    for (; (name = ddp_log_name((enum ddp_log_kind)kind)); kind++)
        if ((int)strlen(name) == *len && !strncmp(word, name, (size_t)*len))
            return kind;
    return -1;
}

static int refuse(const struct opts *o, const char *word, int len)
{
    const char *name;
    char names[256] = "csv";

    for (int i = 0; (name = ddp_log_name((enum ddp_log_kind)i)); i++) {
        size_t n = strlen(names);

        snprintf(names + n, sizeof(names) - n, ", %s", name);
    }
    opt_complain(o, "--log: unknown '%.*s', expected %s", len, word, names);
    return EXIT_USAGE;
}

int board_check(const struct opts *o, const struct settings *s)
{
    const char *list = s->log ? s->log : "", *word;
    unsigned named = 0; /* bits of kinds */
    int len, rc;

    while (*(word = list)) {
        int kind = next_kind(&list, &len);

        if (kind < 0)
            return refuse(o, word, len);
        named |= 1u << kind;
    }
    rc = opts_only(o, "log-histograms",
                   named >> DDP_LOG_TENSORBOARD & 1 ||
                       named >> DDP_LOG_WANDB & 1,
                   "--log names neither tensorboard nor wandb");
    if (rc != OPTS_GO)
        return rc;
    return opts_only(o, "log-images", named >> DDP_LOG_TENSORBOARD & 1,
                     "--log does not name tensorboard");
}

/* The settings that have a value, without secrets. */
static int set_all(const struct opts *o, ddp_log_t *log)
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
            rc = ddp_log_set(log, r->name, clean);
        free(clean);
        free(text);
    }
    return rc;
}

/* Facts about the run that other programs show. */
static int describe(const struct settings *s, ddp_log_t *log)
{
    const char *name = strrchr(s->output, '/');
    char *command = app_command_line();
    int rc = ddp_log_describe(log, DDP_LOG_NAME,
                              name && name[1] ? name + 1 : s->output);

    if (rc == 0 && command)
        rc = ddp_log_describe(log, DDP_LOG_COMMAND, command);
    if (rc == 0 && *run_file_revision())
        rc = ddp_log_describe(log, DDP_LOG_REVISION, run_file_revision());
    free(command);
    return rc;
}

static int open_log(const struct opts *o, const struct settings *s, int kind,
                    ddp_log_t **log)
{
    char *dir = app_path(s->output, "%s", folders[kind]);
    int rc;

    if (!dir)
        return app_exit_code(DDP_ENOMEM);
    *log = ddp_log_new((enum ddp_log_kind)kind, dir);
    free(dir);
    if (!*log)
        return app_fail(ddp_errcode());
    if ((rc = set_all(o, *log)) == 0)
        rc = describe(s, *log);
    return rc < 0 ? app_fail(rc) : OPTS_GO;
}

int board_open(const struct opts *o, const struct settings *s, struct board *b)
{
    const char *list = s->log ? s->log : "";
    int kind, len, rc;

    while (*list) {
        kind = next_kind(&list, &len);
        if (kind < DDP_LOG_KINDS && !b->log[kind] &&
            (rc = open_log(o, s, kind, &b->log[kind])) != OPTS_GO)
            return rc;
    }
    return OPTS_GO;
}

void board_close(struct board *b)
{
    for (int i = 0; i < DDP_LOG_KINDS; i++)
        ddp_log_free(b->log[i]);
    *b = (struct board){0};
}

int board_sinks(const struct board *b, struct ddp_sink *sinks)
{
    int n = 0;

    for (int i = 0; i < DDP_LOG_KINDS; i++)
        if (b->log[i])
            sinks[n++] = ddp_log_sink(b->log[i]);
    return n;
}

void board_scalar(struct board *b, const char *tag, int64_t step, double value)
{
    for (int i = 0; i < DDP_LOG_KINDS; i++)
        if (b->log[i])
            ddp_log_scalar(b->log[i], tag, step, value);
}

void board_report(struct board *b)
{
    for (int i = 0; i < DDP_LOG_KINDS; i++) {
        if (!b->log[i] || b->said[i] || ddp_log_status(b->log[i]) == 0)
            continue;
        b->said[i] = true;
        app_say("%s; the run continues without %s's files", ddp_errmsg(),
                ddp_log_name((enum ddp_log_kind)i));
    }
}
