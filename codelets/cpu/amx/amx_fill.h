/* amx_fill.h - operands of an AMX weight gradient, in its order
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_AMX_FILL_H
#define DDP_CPU_AMX_FILL_H

#include "amx_run.h"

/* Segments first .. first + count - 1 of the batch into a and b. */
void ddp__amx_fill(const struct ddp__amx_run *r, size_t first, size_t count);

/* A segment, which begins with row `first` of an image of dy, or of a phase of
 * one of x. */
void ddp__amx_fill_a(const struct ddp__amx_run *r, const uint16_t *image,
                     int first, size_t segment);
void ddp__amx_fill_b(const struct ddp__amx_run *r, const uint16_t *image,
                     int phase, int first, size_t segment);

#endif
