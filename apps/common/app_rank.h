/* app_rank.h - which of the processes of a run this one is
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef APP_RANK_H
#define APP_RANK_H

#include <stddef.h>

/* As its launcher says: known before, and even if, the library starts.  0 for
 * a process that runs alone. */
int app_rank(void);

/* "rank 3 (node7)" in buf, which it returns. */
const char *app_rank_name(char *buf, size_t size);

#endif
