/* gpu_places.h - folders that have CUDA's libraries and cuDNN, all of one place
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_GPU_PLACES_H
#define DDP_GPU_PLACES_H

#include <stdbool.h>
#include <stddef.h>

enum { DDP__MAX_FOLDERS = 64 };

/* The folders of a place: a toolkit, an environment of Python, ... */
struct ddp__folders {
    int count;
    char *path[DDP__MAX_FOLDERS]; /* owned */
};

/* The first place that has all libraries of a list, which NULL ends; what
 * belongs together is never taken from two.  If none has, the message names the
 * place that has most, and what is missing there; "" if nothing was found. */
bool ddp__places_find(const char *const *libraries, struct ddp__folders *f,
                      char *why, size_t size);

/* The folders of DDP_CUDA_LIBS, in the order given; false: it is not set. */
bool ddp__places_given(struct ddp__folders *f);

/* Where they have a library; false: nowhere. */
bool ddp__folders_have(const struct ddp__folders *f, const char *library,
                       char *path, size_t size);

void ddp__folders_free(struct ddp__folders *f);

#endif
