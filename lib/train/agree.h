/* agree.h - ranks that train together train the same
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_AGREE_H
#define DDP_AGREE_H

struct ddp_trainer;

/* With rc, how making the trainer ended here: whether it is made on all ranks
 * and is the same everywhere; else the error of the first rank that differs. */
int ddp__agree_on_trainer(struct ddp_trainer *t, int rc);

#endif
