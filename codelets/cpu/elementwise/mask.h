/* mask.h - masks of relu
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_MASK_H
#define DDP_CPU_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bits of y > 0, and dr = dy where they are set, else 0: len is a multiple
 * of 8. */
void ddp__mask_make(const float *y, uint8_t *mask, size_t len);
void ddp__mask_apply(const uint8_t *mask, const void *dy, float *dr, size_t len,
                     bool b);

#endif
