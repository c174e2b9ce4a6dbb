/* gpu_memory.h - what a GPU has in memory for buffers that come and go
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_GPU_MEMORY_H
#define DDP_GPU_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* StarPU keeps what is freed for buffers of the same size: of each size there
 * are as many as there were at a time. */
struct ddp__gpu_memory {
    struct ddp__gpu_size *size; /* owned */
    int sizes;
    double live, most_live; /* bytes that are not freed */
};

/* For so many sizes; false: no memory. */
bool ddp__gpu_memory_new(struct ddp__gpu_memory *m, int sizes);
void ddp__gpu_memory_free(struct ddp__gpu_memory *m);

void ddp__gpu_memory_take(struct ddp__gpu_memory *m, size_t size);
void ddp__gpu_memory_give(struct ddp__gpu_memory *m, size_t size);
/* All is freed. */
void ddp__gpu_memory_empty(struct ddp__gpu_memory *m);

/* All that StarPU has allocated. */
double ddp__gpu_memory_bytes(const struct ddp__gpu_memory *m);

#endif
