/* setup.h - recipe, storage and devices as the settings name them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef SETUP_H
#define SETUP_H

#include "ddp.h"

#include "options.h"

/* How servers of data are asked; its exit code, or OPTS_GO. */
int setup_storage(const struct settings *s);

/* Take options that were not given from --config; its exit code, or OPTS_GO. */
int setup_config(struct opts *o, const struct settings *s);

/* Start the devices; its exit code, or OPTS_GO and *ddp. */
int setup_devices(const struct settings *s, ddp_t **ddp);

#endif
