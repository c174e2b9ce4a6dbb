/* lane_buffers.h - what a lane has in memory: input, activations, gradients
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_LANE_BUFFERS_H
#define DDP_LANE_BUFFERS_H

struct ddp__engine;
struct ddp__lane;

/* Register its handles, which get memory at first use.  DDP_ENOMEM; to be freed
 * all the same. */
/* Whether sums over ranks, which are lane 0's, come to this rank's first lane,
 * whose own gradients nobody needs any more then: lane 0 is another rank's, and
 * there are no GPUs, whose memory is planned for both. */
bool ddp__lanes_in_place(const struct ddp__engine *e);

int ddp__lane_new(struct ddp__engine *e, struct ddp__lane *l);
void ddp__lane_free(struct ddp__engine *e, struct ddp__lane *l);

/* Free the memory of activations and inputs until the next submission. */
void ddp__engine_rest(struct ddp__engine *e);

/* After a failure, when the lane is idle: have buffers that got no memory ask
 * for it again. */
void ddp__engine_retry_memory(struct ddp__engine *e, int lane);

#endif
