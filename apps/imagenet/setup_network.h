/* setup_network.h - the network that the settings name, and how it is evaluated
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef SETUP_NETWORK_H
#define SETUP_NETWORK_H

#include "ddp.h"

#include "options.h"

/* Refuse an unknown model, and give one of another name ours: OPTS_GO, or an
 * exit code after a message. */
int setup_check_model(const struct opts *o, struct settings *s);

/* The network; NULL after a failure of the library. */
ddp_chain_t *setup_model(const struct settings *s);

/* The same, for images of s->img_size: OPTS_GO, or an exit code after a
 * message.  *c is to be freed. */
int setup_network(const struct settings *s, ddp_chain_t **c);

/* How to evaluate; who gets the predictions, the caller sets. */
void setup_evaluation(const struct settings *s, struct ddp_evaluate_config *c);

/* The number of trained parameters. */
size_t setup_params(const ddp_chain_t *c);

enum ddp_dtype setup_dtype(const struct settings *s);
const char *setup_dtype_name(const struct settings *s);
enum ddp_tta setup_tta(const struct settings *s);

#endif
