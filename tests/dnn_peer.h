/* dnn_peer.h - oneDNN's primitives for what an operation of a row does
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DNN_PEER_H
#define DNN_PEER_H

#include "check.h"

struct dnn_peer;

/* For operation op of k, whose tensors it reads; results are its own.  What it
 * needs of a forward pass is made here.  NULL: oneDNN has none. */
struct dnn_peer *dnn_peer_new(struct check *k, enum ddp__op op);
void dnn_peer_free(struct dnn_peer *p);

/* Weights of layers are packed before: those of training change at each step.
 */
void dnn_peer_run(struct dnn_peer *p);

/* |ours - its result| / |its result|, of y or the gradient of x or w. */
double dnn_peer_differs(const struct dnn_peer *p, struct check *k);

#endif
