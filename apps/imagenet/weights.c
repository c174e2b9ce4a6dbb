/* weights.c - --weights FILE
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "options.h"
#include "setup_network.h"
#include "weights.h"
#include "weights_settings.h"

int weights_check(const struct opts *o, const struct settings *s)
{
    if (!s->weights || access(s->weights, R_OK) == 0)
        return OPTS_GO;
    opt_complain(o, "--weights: %s: %s", s->weights, strerror(errno));
    return EXIT_USAGE;
}

int weights_setup(struct opts *o, struct settings *s, FILE *log,
                  struct names *classes)
{
    int rc;

    if (!s->weights) {
        app_say("--weights FILE is missing");
        return EXIT_USAGE;
    }
    if ((rc = weights_check(o, s)) != OPTS_GO ||
        (rc = weights_settings_read(o, s, log, classes)) != OPTS_GO)
        return rc;
    s->augment = 0;
    return setup_check_model(o, s);
}

/* If they are of another network, that says more than a list of tensors. */
static int fail_load(const struct settings *s, int rc)
{
    const char *other;

    if ((rc != DDP_EDATA && rc != DDP_ESHAPE) ||
        ddp_weights_model(s->weights, &other) < 0 || !other ||
        !strcmp(other, s->model))
        return app_fail(rc);
    app_say(
        "--weights: %s looks like weights of %s, not of %s: use --model %s, "
        "or other weights",
        s->weights, other, s->model, other);
    return app_exit_code(rc);
}

int weights_load(const struct settings *s, ddp_chain_t *c, bool new_head)
{
    struct ddp_load_options o;
    struct ddp_load_report r;
    bool all = !s->partial_weights && !new_head;
    int rc = all ? 0 : ddp_chain_init(c, (uint64_t)s->seed);

    ddp_load_options_init(&o);
    o.partial = s->partial_weights;
    o.new_head = new_head;
    if (rc == 0)
        rc = ddp_chain_load(c, s->weights, &o, &r);
    if (rc < 0)
        return fail_load(s, rc);
    if (r.text[0])
        app_say("%s: %s", s->weights, r.text);
    return OPTS_GO;
}
