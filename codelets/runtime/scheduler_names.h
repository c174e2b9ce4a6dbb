/* scheduler_names.h - names of policies, and DDP_INFLIGHT
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SCHEDULER_NAMES_H
#define DDP_SCHEDULER_NAMES_H

#include <starpu_scheduler.h>

/* Whether name (of STARPU_SCHED; NULL or "": unset) is a policy that StarPU
 * will find, and DDP_INFLIGHT a number; DDP_EINVAL and the choices if not. */
int ddp__sched_check(const char *name);

/* How many lanes a worker may have in flight: DDP_INFLIGHT; 0: not set. */
int ddp__sched_inflight(int *lanes);

/* For StarPU (1.4 and later), which looks them up in STARPU_SCHED_LIB. */
struct starpu_sched_policy *starpu_get_sched_lib_policy(const char *name);
struct starpu_sched_policy **starpu_get_sched_lib_policies(void);

#endif
