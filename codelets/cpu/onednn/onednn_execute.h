/* onednn_execute.h - primitives of oneDNN, with operands that are kept
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ONEDNN_EXECUTE_H
#define DDP_ONEDNN_EXECUTE_H

#include "onednn_md.h"

/* An operand by oneDNN's name for it. */
struct ddp__dnn_arg {
    int arg;
    cmd_t md;
    void *data;
};

/* oneDNN's objects for the operands of a call.  To make them takes longer than
 * many a small layer, so a primitive keeps those of its last call; a call that
 * finds them in use makes its own. */
struct ddp__operands;
void ddp__operands_free(struct ddp__operands *o);

/* Run a primitive.  *kept: of its last call, or NULL. */
int ddp__dnn_execute(dnnl_primitive_t prim,
                     _Atomic(struct ddp__operands *) *kept,
                     const struct ddp__dnn_arg *a, int count);

#endif
