/* cifar.h - CIFAR-10's binary files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CIFAR_H
#define DDP_CIFAR_H

enum { DDP__CIFAR_SIDE = 32 }; /* pixels */

#endif
