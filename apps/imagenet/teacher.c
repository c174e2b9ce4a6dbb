/* teacher.c - --teacher FILE
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/app.h"
#include "common/app_fail.h"
#include "setup_network.h"
#include "teacher.h"
#include "weights.h"

/* The file says which network it is; classes and the size of images are the
 * run's. */
static int make_network(struct opts *o, struct settings *own,
                        const struct settings *s, ddp_chain_t **c)
{
    int rc;

    if (access(s->teacher, R_OK) != 0) {
        app_say("--teacher: %s: %s", s->teacher, strerror(errno));
        return EXIT_USAGE;
    }
    if (!(own->weights = strdup(s->teacher)))
        return app_exit_code(DDP_ENOMEM);
    if ((rc = weights_setup(o, own, NULL, NULL)) != OPTS_GO)
        return rc;
    own->classes = s->classes;
    own->img_size = s->img_size;
    if ((rc = setup_network(own, c)) == OPTS_GO)
        rc = weights_load(own, *c, false);
    return rc;
}

int teacher_make(const struct opts *o, const struct settings *s,
                 ddp_chain_t **c)
{
    char name[] = "imagenet", *argv[] = {name, NULL};
    struct settings own = {0};
    struct opts all = {.cmd = NULL};
    int rc = opts_parse(&all, o->cmd, &own, 1, argv);

    if (rc == OPTS_GO)
        rc = make_network(&all, &own, s, c);
    opts_free(&all);
    return rc;
}
