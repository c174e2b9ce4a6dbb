/* onednn_pd.h - oneDNN's descriptors, the part where 2.6 and 3.x differ
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ONEDNN_PD_H
#define DDP_ONEDNN_PD_H

#include <oneapi/dnnl/dnnl.h>

#include "onednn.h"

#define V3 (DNNL_VERSION_MAJOR >= 3)

/* A descriptor we own, and one we look at. */
#if V3
typedef dnnl_memory_desc_t md_t;
typedef const_dnnl_memory_desc_t cmd_t;
#define REF(md) (md)
#else
typedef dnnl_memory_desc_t md_t;
typedef const dnnl_memory_desc_t *cmd_t;
#define REF(md) (&(md))
#endif

/* The primitive descriptor of a pass, and the plain layout of its weights,
 * which is to be freed, too. */
dnnl_status_t ddp__dnn_pd(dnnl_primitive_desc_t *pd, md_t *plain,
                          dnnl_engine_t engine, const struct ddp__dnn_shape *s,
                          enum ddp__dnn_pass pass, bool transposed);

/* Freed with ddp__md_free(). */
dnnl_status_t ddp__md_tag(md_t *md, int ndims, const dnnl_dims_t dims,
                          dnnl_data_type_t type, dnnl_format_tag_t tag);
void ddp__md_free(md_t *md);

/* Attributes: scratch memory comes from the caller; the result is added to what
 * is there if `sum`, and act is fused. */
dnnl_status_t ddp__dnn_attr(dnnl_primitive_attr_t *out, bool sum,
                            enum ddp_act act);

/* Whether oneDNN's generated kernels were seen to compute s wrongly, 2.6's or
 * 3.7's: strides with images narrower than a filter, or with outputs of a
 * single column that leave pixels out.  It is right by reference code, which is
 * scalar: hundreds of times slower. */
bool ddp__dnn_is_wrong(const struct ddp__dnn_shape *s);

#endif
