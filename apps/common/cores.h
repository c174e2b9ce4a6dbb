/* cores.h - the cores that a program may use
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef COMMON_CORES_H
#define COMMON_CORES_H

/* Cores this process may use, not hyper-threads; at least 1. */
int app_cores(void);

/* Pin the calling thread to the nth of them. */
void app_pin(int nth);

#endif
