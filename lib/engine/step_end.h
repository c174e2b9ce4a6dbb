/* step_end.h - the last tasks of a step, for which the program waits
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_STEP_END_H
#define DDP_STEP_END_H

struct ddp__engine;
struct ddp__step;

/* The step ends when all of it is done, so a failure in its last task is still
 * reported for this step.  Of a step that was submitted in part (so far is its
 * error) nothing need be waited for, and nothing may be read: it may be that no
 * task writes it, and StarPU aborts then. */
int ddp__step_end(struct ddp__engine *e, const struct ddp__step *s, int so_far);

#endif
