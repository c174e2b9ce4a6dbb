/* onednn_room.h - memory for oneDNN
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_ONEDNN_ROOM_H
#define DDP_CPU_ONEDNN_ROOM_H

/* Before each use of oneDNN, on the thread that uses it: have a reserve for
 * it; DDP_ENOMEM. */
int ddp__dnn_room(void);

/* Before a thread makes a primitive: have room for it and for those of other
 * threads; DDP_ENOMEM: there is too little, and nothing to end. */
int ddp__dnn_maker_begin(void);
void ddp__dnn_maker_end(void);

#endif
