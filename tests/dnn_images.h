/* dnn_images.h - oneDNN's primitives for operations on images
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DNN_IMAGES_H
#define DNN_IMAGES_H

#include "dnn_steps.h"

/* Add the steps of a row's pool, activation or batch norm to those of p; what
 * they need of a forward pass is computed here. */
void dnn_pool_new(struct dnn_steps *p, struct check *k, bool backward);
void dnn_act_new(struct dnn_steps *p, struct check *k, bool backward);
void dnn_norm_new(struct dnn_steps *p, struct check *k, bool backward);

#endif
