/* onednn_wrong.c - which of oneDNN's kernels are wrong, or far too slow
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "onednn_wrong.h"

/* Whether strides leave pixels out: between taps, or the last ones. */
static bool leaves_out(int in, int out, int kernel, int stride, int pad)
{
    return stride > kernel ||
           (kernel > 1 && (out - 1) * stride + kernel < in + pad);
}

static bool leaves_out_any(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return leaves_out(s->h, s->oh, k->kh, k->sh, k->top) ||
           leaves_out(s->w, s->ow, k->kw, k->sw, k->left);
}

bool ddp__dnn_is_wrong(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return !s->dense && (k->sh > 1 || k->sw > 1) &&
           (s->w < k->kw ||
            (s->ow == 1 && k->kh * k->kw > 1 && leaves_out_any(s)));
}

bool ddp__dnn_is_denied(const_dnnl_primitive_desc_t pd,
                        const struct ddp__conv_shape *s,
                        enum ddp__conv_pass pass)
{
    const struct ddp__conv *k = &s->conv;
    const char *name = "";

    if (s->dense || (k->sh == 1 && k->sw == 1) ||
        dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name))
        return false;
    if (s->type == DDP_BF16 && pass == DDP__BWD_X && k->groups == s->c)
        return strstr(name, "brgconv_strided");
    return k->kh * k->kw > 1 && (s->ow == 1 || leaves_out_any(s)) &&
           strstr(name, "amx");
}
