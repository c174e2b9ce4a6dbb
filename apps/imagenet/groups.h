/* groups.h - which parameters are trained, and how, from options
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef GROUPS_H
#define GROUPS_H

#include "ddp.h"

#include "options.h"

/* For ddp_train_config: outlives the trainer. */
struct groups {
    struct ddp_param_group *group; /* owned, with their patterns */
    int count, rc;
};

/* OPTS_GO, or the exit code after a message. */
int groups_make(const struct opts *o, const struct settings *s,
                const ddp_chain_t *c, struct groups *g);
void groups_free(struct groups *g);

#endif
