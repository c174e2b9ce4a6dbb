/* comm_vector.h - the pieces of a vector, in the memory of this rank
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_COMM_VECTOR_H
#define DDP_COMM_VECTOR_H

#include <stddef.h>

struct ddp__comm;
struct ddp__net_op;
struct ddp__wire;

size_t ddp__comm_elements(const struct ddp__comm *c);
size_t ddp__comm_element_size(const struct ddp__comm *c);

/* Bytes of memory for messages, at least one. */
size_t ddp__comm_room_size(const struct ddp__comm *c);

/* As poll() of an operation. */
int ddp__comm_poll_vector(struct ddp__net_op *op, struct ddp__wire *w);

#endif
