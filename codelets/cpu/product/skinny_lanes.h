/* skinny_lanes.h - which vectors products with few rows have here
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SKINNY_LANES_H
#define DDP_SKINNY_LANES_H

/* Floats of a vector: 16 with AVX-512, 8 with AVX2, else 0: there are no such
 * loops. */
int ddp__skinny_lanes(void);

#endif
