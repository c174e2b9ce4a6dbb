/* toml.h - TOML 1.0 as the values of jansson
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TOML_H
#define DDP_TOML_H

#include <jansson.h>

/* Read a text: tables become objects, dates and times are null, for nothing
 * here uses them.  path is what messages call it.  NULL and a message,
 * DDP_EDATA with path:line or DDP_ENOMEM. */
json_t *ddp__toml_read(const char *path, const char *text, size_t len);

#endif
