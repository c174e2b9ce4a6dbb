/* compare.h - settings of a checkpoint and of a run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CHECKPOINT_COMPARE_H
#define DDP_CHECKPOINT_COMPARE_H

#include "checkpoint/changes.h"

enum { DDP__DIFFERENCES = 3072 };

/* How many settings in one state differ from those in another, but for the
 * allowed changes; text: the first, by name with both values. */
int ddp__settings_differences(const json_t *there, const json_t *here,
                              struct ddp__changes *changes,
                              char text[DDP__DIFFERENCES]);

/* DDP_EINVAL, and the first differences by name with both values, if those in
 * the state of the checkpoint in the folder path are not those of this run, but
 * for the allowed changes. */
int ddp__settings_compare(const char *path, const json_t *there,
                          const json_t *here, struct ddp__changes *changes);

#endif
