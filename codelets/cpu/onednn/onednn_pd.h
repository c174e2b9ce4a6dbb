/* onednn_pd.h - oneDNN's descriptors of primitives and their attributes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ONEDNN_PD_H
#define DDP_ONEDNN_PD_H

#include "onednn_md.h"

/* The primitive descriptor of a pass, and the plain layout of its weights,
 * which is to be freed, too. */
dnnl_status_t ddp__dnn_pd(dnnl_primitive_desc_t *pd, md_t *plain,
                          dnnl_engine_t engine, const struct ddp__conv_shape *s,
                          enum ddp__conv_pass pass, bool transposed);

/* Attributes: scratch memory comes from the caller; the result is added to what
 * is there if `sum`, and act is fused. */
dnnl_status_t ddp__dnn_attr(dnnl_primitive_attr_t *out, bool sum,
                            enum ddp_act act);

#endif
