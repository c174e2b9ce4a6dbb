/* place.h - the core that each of StarPU's threads runs on
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PLACE_H
#define DDP_PLACE_H

#include "runtime/context.h"

/* Before starpu_init(), when the GPUs are chosen and the topology is loaded: a
 * CPU worker for each core that GPUs and the thread that submits for them
 * leave, unless conf has their number, and a core for each worker.  CPU workers
 * that read input are near its GPUs: where they run is where the pages of their
 * buffers are. */
void ddp__place_workers(ddp_t *ddp, struct starpu_conf *conf);

/* starpu_init(), which would end the process where it cannot bind a thread. */
int ddp__place_init(const struct ddp__topology *t, struct starpu_conf *conf);

/* The machine, and what keeps workers from using it as they should. */
void ddp__place_describe(const ddp_t *ddp, char *s, size_t size);

#endif
