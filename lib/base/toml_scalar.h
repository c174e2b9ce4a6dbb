/* toml_scalar.h - numbers, dates and truth values of TOML
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TOML_SCALAR_H
#define DDP_TOML_SCALAR_H

#include <jansson.h>

/* Read what begins at *at, and move it to the end.  Dates, times, infinities
 * and NaN are null.  NULL, without a message: there is none such. */
json_t *ddp__toml_scalar(const char **at);

#endif
