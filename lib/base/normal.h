/* normal.h - many normal numbers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_NORMAL_H
#define DDP_NORMAL_H

#include <stddef.h>
#include <stdint.h>

/* Numbers first .. first + n - 1 of a key: mean 0, variance 1. */
void ddp__normals(uint64_t key, uint64_t first, float *out, size_t n);

#endif
