/* onednn_room.h - memory for oneDNN
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_ONEDNN_ROOM_H
#define DDP_CPU_ONEDNN_ROOM_H

/* Before each use of oneDNN, on the thread that uses it: have a reserve for
 * it; DDP_ENOMEM. */
int ddp__dnn_room(void);

#endif
