/* replay_next.h - of a replayed step: which task a GPU takes next
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_REPLAY_NEXT_H
#define DDP_REPLAY_NEXT_H

#include "engine/replay_sums.h"

/* With nothing else to do the GPU waits for the sums of a merge. */
struct ddp__replay_job ddp__replay_next(struct ddp__replay_state *r, int gpu);
bool ddp__replay_is_job(const struct ddp__replay_job *j);
/* How long it takes. */
double ddp__replay_us(const struct ddp__replay_state *r,
                      const struct ddp__replay_job *j);

/* When something may change for a GPU that has nothing to do: the sums of a
 * merge come, or another GPU ends a task. */
double ddp__replay_next_change(const struct ddp__replay_state *r,
                               const struct ddp__replay_gpu *g);

#endif
