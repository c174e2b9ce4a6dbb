/* replay.h - what GPUs hold in memory during a step, task by task
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_REPLAY_H
#define DDP_REPLAY_H

#include "engine/footprint.h"

struct ddp__replay_plan {
    int gpus; /* up to 32, with a worker each */
    struct ddp__own_lanes lanes;
};

/* Bytes of the GPU that has the most. */
struct ddp__replayed {
    double held;      /* with what StarPU keeps for buffers of the same size */
    double live;      /* without */
    double gradients; /* of these */
    double others;    /* the most of all that are no gradients */
};

/* DDP_ENOMEM. */
int ddp__replay(const struct ddp__engine *e,
                const struct ddp__replay_plan *plan,
                struct ddp__replayed *most);

#endif
