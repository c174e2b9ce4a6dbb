/* weights.c - --weights FILE, and the settings saved with it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "common/opt_file.h"
#include "common/opt_value.h"
#include "options.h"
#include "setup.h"
#include "weights.h"

int weights_check(const struct opts *o, const struct settings *s)
{
    if (!s->weights || access(s->weights, R_OK) == 0)
        return OPTS_GO;
    opt_complain(o, "--weights: %s: %s", s->weights, strerror(errno));
    return EXIT_USAGE;
}

char *weights_file_near(const char *weights, const char *name)
{
    static const char *const up[] = {"", "../../"};
    const char *slash = strrchr(weights, '/');
    int n = slash ? (int)(slash - weights) : 1;
    char *path[2];

    for (int i = 0; i < 2; i++)
        if (asprintf(&path[i], "%.*s/%s%s", n, slash ? weights : ".", up[i],
                     name) < 0)
            path[i] = NULL;
    if (path[0] && path[1] && access(path[0], R_OK) != 0 &&
        access(path[1], R_OK) == 0) {
        free(path[0]);
        return path[1];
    }
    free(path[1]);
    return path[0];
}

int weights_read_config(struct opts *o, const char *weights, FILE *log)
{
    char *path = weights_file_near(weights, "config.txt");
    const struct opt *row;
    int rc = path ? opts_load(o, path) : EXIT_MEMORY, n = 0;

    for (int i = 0; rc == OPTS_GO && (row = opt_at(o->cmd, i)); i++)
        if (o->loaded[i]) {
            fprintf(log, "%s %s=", n++ ? "" : path, row->name);
            opt_print_value(row, o->values, log);
        }
    if (n)
        fprintf(log, "\n");
    free(path);
    return rc;
}

int weights_setup(struct opts *o, struct settings *s, FILE *log)
{
    int rc;

    if (!s->weights) {
        app_say("--weights FILE is missing");
        return EXIT_USAGE;
    }
    if ((rc = weights_check(o, s)) != OPTS_GO ||
        (rc = weights_read_config(o, s->weights, log)) != OPTS_GO)
        return rc;
    s->augment = 0;
    return setup_check_model(o, s);
}

int weights_load(const struct settings *s, ddp_chain_t *c, bool new_head)
{
    struct ddp_load_options o;
    struct ddp_load_report r;
    int rc = ddp_chain_init(c, (uint64_t)s->seed);

    ddp_load_options_init(&o);
    o.partial = s->partial_weights;
    o.new_head = new_head;
    if (rc == 0)
        rc = ddp_chain_load(c, s->weights, &o, &r);
    if (rc < 0)
        return app_fail(rc);
    if (r.text[0])
        app_say("%s: %s", s->weights, r.text);
    return OPTS_GO;
}
