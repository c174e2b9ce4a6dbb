/* printable.h - text from files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BASE_PRINTABLE_H
#define DDP_BASE_PRINTABLE_H

#include <stdbool.h>

bool ddp__is_utf8(const char *s);

#endif
