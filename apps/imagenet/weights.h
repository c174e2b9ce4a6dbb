/* weights.h - --weights FILE, and the settings saved with it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef WEIGHTS_H
#define WEIGHTS_H

#include <stdbool.h>
#include <stdio.h>

#include "ddp.h"

#include "options.h"

/* Refuse a --weights that cannot be read. */
int weights_check(const struct opts *o, const struct settings *s);

/* The path of a file of the run that wrote the weights: in their folder, or two
 * folders above for weights of a checkpoint.  To free(); NULL: no memory. */
char *weights_file_near(const char *weights, const char *name);

/* Use the network options of config.txt next to the weights, and print them to
 * log.  OPTS_GO, also if there is no such file, or the exit code. */
int weights_read_config(struct opts *o, const char *weights, FILE *log);

/* Check --weights and the model, with the options saved next to the weights:
 * OPTS_GO or the exit code. */
int weights_setup(struct opts *o, struct settings *s, FILE *log);

/* Load the weights, and print what does not fit: OPTS_GO, or the exit code.
 * new_head: a last layer with another number of classes remains random. */
int weights_load(const struct settings *s, ddp_chain_t *c, bool new_head);

#endif
