/* teacher.h - --teacher FILE
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef TEACHER_H
#define TEACHER_H

#include "ddp.h"

#include "options.h"

/* The network of --teacher with its weights: OPTS_GO and *c, to be freed, or
 * the exit code after a message. */
int teacher_make(const struct opts *o, const struct settings *s,
                 ddp_chain_t **c);

#endif
