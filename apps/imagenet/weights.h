/* weights.h - --weights FILE
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef WEIGHTS_H
#define WEIGHTS_H

#include <stdbool.h>
#include <stdio.h>

#include "ddp.h"

#include "names.h"
#include "options.h"

/* Refuse a --weights that cannot be read. */
int weights_check(const struct opts *o, const struct settings *s);

/* Check --weights and the model, with the options saved with the weights:
 * OPTS_GO or the exit code. */
int weights_setup(struct opts *o, struct settings *s, FILE *log,
                  struct names *classes);

/* Load the weights, and print what does not fit: OPTS_GO, or the exit code.
 * new_head: a last layer with another number of classes remains random. */
int weights_load(const struct settings *s, ddp_chain_t *c, bool new_head);

#endif
