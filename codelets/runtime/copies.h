/* copies.h - which memories StarPU last copied between
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_RUNTIME_COPIES_H
#define DDP_RUNTIME_COPIES_H

#include <starpu.h>

/* StarPU's variable's, and each thread knows its last copy. */
extern const struct starpu_data_copy_methods ddp__copy_methods;

/* As StarPU names the threads of devices: "CUDA 1". */
void ddp__memory_name(unsigned node, char *name, size_t size);

#endif
