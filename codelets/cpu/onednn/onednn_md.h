/* onednn_md.h - oneDNN's descriptors of memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ONEDNN_MD_H
#define DDP_ONEDNN_MD_H

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

/* Freed with ddp__md_free(). */
dnnl_status_t ddp__md_tag(md_t *md, int ndims, const dnnl_dims_t dims,
                          dnnl_data_type_t type, dnnl_format_tag_t tag);
void ddp__md_free(md_t *md);

size_t ddp__md_bytes(cmd_t md); /* NULL: 0 */

/* Descriptors of a layer, while its primitive is made; plain: the weights as
 * libddp has them.  has[] records each as it is made. */
struct ddp__mds {
    dnnl_engine_t engine;
    md_t x, y, w, bias, plain;
    bool has[5];
};

/* To be freed also where this failed. */
dnnl_status_t ddp__mds_new(struct ddp__mds *m, dnnl_engine_t engine,
                           const struct ddp__conv_shape *s,
                           enum ddp__conv_pass pass, bool transposed);
void ddp__mds_free(struct ddp__mds *m);

#endif
