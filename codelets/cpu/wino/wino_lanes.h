/* wino_lanes.h - which vectors Winograd's convolutions have here
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_WINO_LANES_H
#define DDP_CPU_WINO_LANES_H

/* Floats of a vector: 16 with AVX-512, 8 with AVX2, 0: the processor has
 * neither. */
int ddp__wino_lanes(void);

#endif
