/* weights.h - --weights FILE, and the settings saved with it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef WEIGHTS_H
#define WEIGHTS_H

#include <stdbool.h>
#include <stdio.h>

#include "ddp.h"

#include "options.h"

/* Is the file of --weights, if given, there? */
int weights_check(const struct opts *o, const struct settings *s);

/* A file of the run that weights are of: beside them, or above its checkpoints.
 * To free; NULL: no memory. */
char *weights_file_near(const char *weights, const char *name);

/* Take over what config.txt beside the weights says of the network: OPTS_GO,
 * also without such a file, or the exit code.  What is taken is said. */
int weights_read_config(struct opts *o, const char *weights, FILE *say);

/* All that --weights and what is beside it say of a finished run: OPTS_GO or
 * the exit code. */
int weights_setup(struct opts *o, struct settings *s, FILE *say);

/* Load them, and say what does not fit: OPTS_GO, or the exit code.  new_head:
 * the last layer may have another number of classes; it is random then. */
int weights_load(const struct settings *s, ddp_chain_t *c, bool new_head);

#endif
