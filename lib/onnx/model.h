/* model.h - an ONNX model under construction
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A failure is kept in rc; later calls do nothing and return NULL, so that one
 * check at the end is enough.  Whoever needs a tensor names it.
 */
#ifndef DDP_ONNX_MODEL_H
#define DDP_ONNX_MODEL_H

#include "onnx/onnx.pb-c.h"

enum { DDP__ONNX_OPSET = 14, DDP__ONNX_IR = 7 };

struct ddp__onnx {
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
    Onnx__OperatorSetIdProto opset, *opsets[1];
    Onnx__ValueInfoProto *input, *output;
    void **memory; /* all memory that the above points to; owned, like each
                      entry */
    int pieces;
    int rc;
};

void ddp__onnx_init(struct ddp__onnx *m);
void ddp__onnx_clear(struct ddp__onnx *m);

/* A string that lives as long as the model. */
char *ddp__onnx_text(struct ddp__onnx *m, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Add a node; returns the name of its output.  label: its name, NULL: its kind
 * and number. */
const char *ddp__onnx_node(struct ddp__onnx *m, const char *kind,
                           const char *label, int inputs,
                           const char *const input[]);

/* Attributes of the node added last. */
void ddp__onnx_int(struct ddp__onnx *m, const char *name, int value);
void ddp__onnx_float(struct ddp__onnx *m, const char *name, float value);
void ddp__onnx_ints(struct ddp__onnx *m, const char *name, int n,
                    const int value[]);

/* Add a constant tensor of that name: room for its values, to be filled in. */
float *ddp__onnx_tensor(struct ddp__onnx *m, const char *name, int ndim,
                        const int dim[]);
/* Add a scalar, or a vector of integers, with a new name; returns the name. */
const char *ddp__onnx_scalar(struct ddp__onnx *m, float value);
const char *ddp__onnx_vector(struct ddp__onnx *m, int n, const int value[]);

/* Describe the model's input or output: (N, dim...). */
void ddp__onnx_describe(struct ddp__onnx *m, Onnx__ValueInfoProto **which,
                        const char *name, int ndim, const int dim[]);

/* Rename a tensor wherever it is written or read. */
void ddp__onnx_rename(struct ddp__onnx *m, const char *from, const char *to);

/* on_count, unless NULL, gets counts of bytes.
 * Errors   DDP_EIO, DDP_EINVAL: over the 2 GB that the format can hold. */
int ddp__onnx_save(struct ddp__onnx *m, const char *path, ddp_count_f on_count,
                   void *arg);

#endif
