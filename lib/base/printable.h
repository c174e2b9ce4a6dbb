/* printable.h - text from files that may reach a terminal
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PRINTABLE_H
#define DDP_PRINTABLE_H

#include <stdbool.h>

bool ddp__is_utf8(const char *s);

/* Replace what a terminal may obey, in place, by question marks: control
 * characters (C0, DEL, and C1 as UTF-8), marks that reverse the direction of
 * text, and bytes that are not UTF-8.  The text may become shorter. */
void ddp__printable(char *s);

#endif
