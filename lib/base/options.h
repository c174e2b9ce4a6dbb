/* options.h - structs of options, which grow from version to version
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each begins with its size, which the program's compiler knows: a program
 * built with an older ddp.h has a shorter struct, whose missing fields keep
 * their defaults.
 */
#ifndef DDP_OPTIONS_H
#define DDP_OPTIONS_H

#include <stddef.h>

/* Fill a program's struct of size bytes with the defaults, which are known
 * bytes long. */
void ddp__options_init(void *out, size_t size, const void *defaults,
                       size_t known);

/* Copy a program's struct over own, which holds the defaults; given NULL: leave
 * these.  DDP_EINVAL if the size was not set or is that of a newer version;
 * name is the struct's. */
int ddp__options_copy(void *own, size_t known, const void *given,
                      const char *name);

#endif
