/* files.h - names of the files and folders of checkpoints
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CHECKPOINT_FILES_H
#define DDP_CHECKPOINT_FILES_H

#define DDP__CKPT_MODEL "model.safetensors"
#define DDP__CKPT_OPTIM "optim.safetensors"
#define DDP__CKPT_EMA "ema.safetensors"
#define DDP__CKPT_STATE "trainer.json"
#define DDP__CKPT_MANIFEST "MANIFEST.json"

/* Names of folders: complete ones, and those being written or removed. */
#define DDP__CKPT_NAME "step-%012lld"
#define DDP__CKPT_TEMP ".tmp-"
enum { DDP__CKPT_NAME_MAX = 64 };

/* Which process writes to the folder: see lock.c. */
#define DDP__CKPT_WRITER ".writer"

#endif
