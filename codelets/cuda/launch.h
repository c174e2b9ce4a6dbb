/* launch.h - where libddp's kernels go, and what their launch returns
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CUDA_LAUNCH_H
#define DDP_CUDA_LAUNCH_H

#include <stddef.h>

/* Where kernels go, and memory for what passes between kernels of a task. */
struct ddp__cuda_place {
    void *stream;
    void *scratch;
};

/* Those of the calling worker. */
int ddp__cuda_place(struct ddp__cuda_place *place);
/* 0, or ddp__fail() if a launch returned an error. */
int ddp__cuda_launched(int error, const char *name);
/* Within prepare: scratch memory that a call needs. */
void ddp__cuda_needs(size_t scratch);
#define DDP__LAUNCH(place, name, p)                                            \
    ddp__cuda_launched(ddp__k_##name((p), (place)->stream), #name)

#endif
