/* weights_settings.h - the network's settings in a file of weights
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef WEIGHTS_SETTINGS_H
#define WEIGHTS_SETTINGS_H

#include <stdio.h>

#include "ddp.h"

#include "names.h"
#include "options.h"

/* Take network options from the metadata of --weights, or from config.txt next
 * to it, and print them to log; class names from the same place, or
 * classes.txt, unless classes is NULL.  OPTS_GO, also if there are none, or the
 * exit code: an option that was given must be that of the network. */
int weights_settings_read(struct opts *o, struct settings *s, FILE *log,
                          struct names *classes);

/* Have the files of the chain's weights carry the network options, and the
 * names of the classes; 0 or the library's code. */
int weights_settings_add(const struct opts *o, ddp_chain_t *c,
                         const ddp_dataset_t *d);

#endif
