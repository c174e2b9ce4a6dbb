/* safetensors_index.h - the files that an index of weights lists
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SAFETENSORS_INDEX_H
#define DDP_SAFETENSORS_INDEX_H

#include "weights/safetensors.h"

/* Open the files that the list at f->path names, and take their tensors. */
int ddp__st_read_index(struct ddp__st_file *f);

#endif
