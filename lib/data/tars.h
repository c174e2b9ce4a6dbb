/* tars.h - images in tar files with an index
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TARS_H
#define DDP_TARS_H

#include <stdint.h>

/* Samples that are mixed with each other: those of one window after the other,
 * in the order of an epoch's shards. */
enum { DDP__TAR_WINDOW = 16384 };

#endif
