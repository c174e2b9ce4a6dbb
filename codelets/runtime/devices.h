/* devices.h - which backend runs a call, and with what plan
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_DEVICES_H
#define DDP_DEVICES_H

#include "ops.h"

/* Backends of CPU workers in order of preference, NULL at the end. */
extern const struct ddp__backend *const ddp__backends[];

/* Make the codelets for backends of CPU workers from `name` on ("cpu", "ref";
 * NULL: the first that was built) and that of GPUs (NULL: none), and start
 * them.  After starpu_init().  With DDP_HYBRID=1 in the environment both kinds
 * of workers train; else GPUs do what they can, and CPU workers the rest. */
int ddp__codelets_init(const char *name, const struct ddp__backend *gpu,
                       const struct ddp__machine *m);
void ddp__codelets_fini(void);
const char *ddp__codelets_describe(enum ddp_device k);
bool ddp__codelets_hybrid(void);
/* Whether the devices compute in that type of activations. */
bool ddp__codelets_type(enum ddp_dtype type);

/* When calls have been prepared and before their first task; waits for all
 * tasks of the context. */
int ddp__codelets_ready(ddp_t *ddp);

/* Bytes of scratch that each GPU worker has. */
size_t ddp__codelets_scratch(void);

/* These calls will be prepared: the backends begin with what takes long. */
void ddp__calls_warm(const struct ddp__call *const *c, int calls);

/* Have a backend prepare the call; DDP_ENODEV if none can run it. */
int ddp__call_prepare(struct ddp__call *c);
void ddp__call_release(struct ddp__call *c);

/* About how many microseconds a call takes on n samples, on the kind of worker
 * that trains. */
double ddp__call_us(const struct ddp__call *c, int n);

/* STARPU_CPU, STARPU_CUDA, both or, nobody shall run it, STARPU_NOWHERE: where
 * a call that is prepared may run; 0: nowhere at all. */
uint32_t ddp__call_where(const struct ddp__call *c);

#endif
