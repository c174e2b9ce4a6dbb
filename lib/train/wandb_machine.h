/* wandb_machine.h - what Weights & Biases shows about the machine of a run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_WANDB_MACHINE_H
#define DDP_WANDB_MACHINE_H

#include "train/log.h"

#define DDP__WANDB_METADATA "wandb-metadata.json"

/* That file, in the run's folder "files": machine, command, git.
 * Errors   DDP_EIO, DDP_ENOMEM. */
int ddp__wandb_metadata(const struct ddp_log *l, const char *files);

/* What the process has used until a time. */
struct ddp__usage {
    double now, busy; /* seconds */
};

enum { DDP__USAGE_VALUES = 4 };

/* Values that changed since the last call, and the new usage; returns how
 * many: none at first. */
int ddp__wandb_usage(struct ddp__usage *u,
                     struct ddp__log_value v[DDP__USAGE_VALUES]);

#endif
