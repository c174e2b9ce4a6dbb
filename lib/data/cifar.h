/* cifar.h - CIFAR-10's and CIFAR-100's files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CIFAR_H
#define DDP_CIFAR_H

#include <stdbool.h>

enum { DDP__CIFAR_SIDE = 32 };

/* Whether the files of CIFAR-10 (-100) are in dir, or in the folder there that
 * the archive makes. */
bool ddp__cifar_is_10(const char *dir);
bool ddp__cifar_is_100(const char *dir);

#endif
