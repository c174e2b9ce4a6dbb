/* own.h - ranks that train on data of their own
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_OWN_H
#define DDP_OWN_H

struct ddp_trainer;

/* With rc, how reading the configuration ended here: whether it succeeded on
 * all ranks, and if each has data of its own (own_data), what all have: an
 * epoch has the steps of the rank that has most. */
int ddp__own_data(struct ddp_trainer *t, int rc);

#endif
