/* pack.h - the commands "imagenet data pack" and "data unpack"
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef PACK_H
#define PACK_H

#include "options.h"

/* Return the exit code of the program. */
int pack_run(struct opts *o, struct settings *s);
int unpack_run(struct opts *o, struct settings *s);

#endif
