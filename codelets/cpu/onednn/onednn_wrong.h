/* onednn_wrong.h - which of oneDNN's kernels are wrong, or far too slow
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ONEDNN_WRONG_H
#define DDP_ONEDNN_WRONG_H

#include <oneapi/dnnl/dnnl.h>

#include "onednn.h"

/* Whether oneDNN's generated kernels were seen to compute s wrongly, 2.6's or
 * 3.7's: strides with images narrower than a filter, or with outputs of a
 * single column that leave pixels out.  It is right by reference code, which is
 * scalar: hundreds of times slower. */
bool ddp__dnn_is_wrong(const struct ddp__conv_shape *s);

/* What not to use: 3.7's strided kernel, 400 times too slow for the data
 * gradient of depthwise bf16; and those on AMX that were seen to be wrong with
 * strides, where pixels are left out or outputs have a single column. */
bool ddp__dnn_is_denied(const_dnnl_primitive_desc_t pd,
                        const struct ddp__conv_shape *s,
                        enum ddp__conv_pass pass);

#endif
