/* checkpoint.h - checkpoints of a run: when they are written, and resuming
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef CHECKPOINT_H
#define CHECKPOINT_H

#include "ddp.h"

#include "options.h"

#define CHECKPOINT_DIR "ckpt" /* in the folder of the run */

/* Refuse a --ckpt-every that cannot be read. */
int checkpoint_check(const struct opts *o, const struct settings *s);

/* When and where checkpoints are written; dir is the folder for them. */
void checkpoint_config(const struct settings *s, const char *dir,
                       struct ddp_train_config *cfg);

/* Print the last one that could not be written. */
void checkpoint_report_failure(const struct ddp_checkpoint_failures *f);

/* Print what to do after a failure. */
void checkpoint_advise(const char *dir);

/* Print which one is left when a device was lost after so many steps. */
void checkpoint_name_newest(const char *dir, int64_t done);

/* Resume as --resume asks.  OPTS_GO, with *c zeroed if there is no checkpoint,
 * or the exit code. */
int checkpoint_resume(const struct opts *o, const struct settings *s,
                      const char *dir, ddp_trainer_t *t,
                      struct ddp_checkpoint *c);

#endif
