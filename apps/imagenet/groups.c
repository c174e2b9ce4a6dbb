/* groups.c - which parameters are trained, and how, from options
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "groups.h"

/* What earlier options say, else the optimizer's. */
enum { USUAL = -1 };

static void add(struct groups *g, const char *match, size_t len, double lr,
                double decay)
{
    struct ddp_param_group *more =
        realloc(g->group, ((size_t)g->count + 1) * sizeof(*more));
    char *copy = strndup(match, len);

    if (more)
        g->group = more;
    if (!more || !copy) {
        free(copy);
        g->rc = app_exit_code(DDP_ENOMEM);
        return;
    }
    more += g->count++;
    more->match = copy;
    more->lr = (float)lr;
    more->weight_decay = (float)decay;
}

void groups_free(struct groups *g)
{
    for (int i = 0; i < g->count; i++)
        free((char *)g->group[i].match);
    free(g->group);
    *g = (struct groups){0};
}

/* The length of the name of the layer that has a parameter. */
static size_t layer_len(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot ? (size_t)(dot - name) : strlen(name);
}

/* ---- frozen ones -------------------------------------------------------- */

static void freeze_patterns(struct groups *g, const char *list)
{
    for (; *list; list += *list == ',') {
        size_t len = strcspn(list, ",");

        if (len)
            add(g, list, len, 0, USUAL);
        list += len;
    }
}

/* All layers with running statistics. */
static void freeze_norms(struct groups *g, const ddp_chain_t *c)
{
    struct ddp_param_info p;

    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++)
        if (p.role == DDP_RUNNING)
            add(g, p.name, layer_len(p.name), 0, USUAL);
}

/* All parameters before number n, layer by layer. */
static void freeze_before(struct groups *g, const ddp_chain_t *c, int n)
{
    struct ddp_param_info p, before = {.name = ""};

    for (int i = 0; i < n && ddp_chain_param(c, i, &p) == 0; i++) {
        size_t len = layer_len(p.name);

        if (len != layer_len(before.name) || strncmp(p.name, before.name, len))
            add(g, p.name, len, 0, USUAL);
        before = p;
    }
}

/* One more than the last parameter of a layer; 0: there is none. */
static int end_of_layer(const ddp_chain_t *c, const char *layer)
{
    struct ddp_param_info p;
    size_t len = strlen(layer);
    int end = 0;

    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++)
        if (!strncmp(p.name, layer, len) && p.name[len] == '.')
            end = i + 1;
    return end;
}

static int freeze_to(const struct opts *o, struct groups *g,
                     const ddp_chain_t *c, const char *layer)
{
    int end = end_of_layer(c, layer);

    if (end == 0) {
        opt_complain(o,
                     "--freeze-to: the network has no layer '%s'; imagenet "
                     "inspect lists its layers",
                     layer);
        return EXIT_USAGE;
    }
    freeze_before(g, c, end);
    return g->rc;
}

/* The head is the layer of the last parameter. */
static void freeze_body(struct groups *g, const ddp_chain_t *c)
{
    struct ddp_param_info p, last = {.name = ""};
    int n = 0;

    while (ddp_chain_param(c, n, &p) == 0) {
        last = p;
        n++;
    }
    while (n > 0 && ddp_chain_param(c, n - 1, &p) == 0 &&
           layer_len(p.name) == layer_len(last.name) &&
           !strncmp(p.name, last.name, layer_len(p.name)))
        n--;
    freeze_before(g, c, n);
}

/* ---- rates and decays --------------------------------------------------- */

/* Each "PATTERN=X" of a list. */
static int add_values(const struct opts *o, struct groups *g, const char *name,
                      const char *list, bool rate)
{
    while (*list) {
        const char *eq = strchr(list, '=');
        char *end = NULL;
        double v = eq ? strtod(eq + 1, &end) : 0;

        if (!eq || eq == list || end == eq + 1 || (*end && *end != ',') ||
            !(v >= 0 && v <= 1e6)) {
            opt_complain(o, "--%s: '%s' is not PATTERN=X,... with X from 0",
                         name, list);
            return EXIT_USAGE;
        }
        add(g, list, (size_t)(eq - list), rate ? v : USUAL, rate ? USUAL : v);
        list = end + (*end == ',');
    }
    return OPTS_GO;
}

/* torchvision's decays of all parameters of a kind. */
static void decay_role(struct groups *g, const ddp_chain_t *c,
                       enum ddp_param_role role, double decay)
{
    struct ddp_param_info p;

    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++)
        if (p.role == role)
            add(g, p.name, strlen(p.name), USUAL, decay);
}

/* Frozen ones are last: they hold with all else that a parameter has. */
int groups_make(const struct opts *o, const struct settings *s,
                const ddp_chain_t *c, struct groups *g)
{
    int rc = OPTS_GO;

    g->rc = OPTS_GO;
    if (s->norm_decay >= 0)
        decay_role(g, c, DDP_NORM, s->norm_decay);
    if (s->bias_decay >= 0)
        decay_role(g, c, DDP_BIAS, s->bias_decay);
    if (s->group_decay)
        rc = add_values(o, g, "group-weight-decay", s->group_decay, false);
    if (s->group_lr && rc == OPTS_GO)
        rc = add_values(o, g, "group-lr", s->group_lr, true);
    if (s->freeze)
        freeze_patterns(g, s->freeze);
    if (s->freeze_bn)
        freeze_norms(g, c);
    if (s->head_only)
        freeze_body(g, c);
    if (s->freeze_to && rc == OPTS_GO)
        rc = freeze_to(o, g, c, s->freeze_to);
    return rc == OPTS_GO ? g->rc : rc;
}
