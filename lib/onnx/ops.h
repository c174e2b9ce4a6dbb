/* ops.h - ONNX nodes of operations
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ONNX_OPS_H
#define DDP_ONNX_OPS_H

#include "onnx/export.h"

/* Add the ONNX nodes of an operation. */
void ddp__export_node(struct ddp__export *e, const struct ddp__node *n);

#endif
