/* starpu_home.h - the folder in which StarPU stores its measurements
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_STARPU_HOME_H
#define DDP_STARPU_HOME_H

#include <stdbool.h>

struct ddp__starpu_home {
    char temporary[64]; /* made by ddp__starpu_home_choose(); "": none */
    char *before;       /* STARPU_PERF_MODEL_DIR, owned; NULL: not set */
    char why[320];      /* why the usual one is not used; "" */
    bool locked;        /* by lock, a descriptor, while StarPU starts */
    int lock;
};

/* Before StarPU starts: have it use a temporary folder where the usual one
 * cannot be written, or has files that StarPU could not read.  Processes that
 * start at the same time wait for the one that writes these files.
 * Errors   DDP_EIO: no temporary folder can be made either; DDP_ENOMEM. */
int ddp__starpu_home_choose(struct ddp__starpu_home *h);

/* Before ddp__starpu_home_started(): what StarPU has measured is wrong, so that
 * the next start measures again. */
void ddp__starpu_home_forget(void);

/* StarPU has started, or will not: others may write its files. */
void ddp__starpu_home_started(struct ddp__starpu_home *h);

/* After StarPU has ended: delete that folder. */
void ddp__starpu_home_free(struct ddp__starpu_home *h);

#endif
