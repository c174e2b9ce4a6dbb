/* onednn_md.c - oneDNN's descriptors of memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "onednn_md.h"

dnnl_status_t ddp__md_tag(md_t *md, int ndims, const dnnl_dims_t dims,
                          dnnl_data_type_t type, dnnl_format_tag_t tag)
{
#if V3
    return dnnl_memory_desc_create_with_tag(md, ndims, dims, type, tag);
#else
    return dnnl_memory_desc_init_by_tag(md, ndims, dims, type, tag);
#endif
}

static dnnl_status_t md_strides(md_t *md, int ndims, const dnnl_dims_t dims,
                                dnnl_data_type_t type,
                                const dnnl_dims_t strides)
{
#if V3
    return dnnl_memory_desc_create_with_strides(md, ndims, dims, type, strides);
#else
    return dnnl_memory_desc_init_by_strides(md, ndims, dims, type, strides);
#endif
}

void ddp__md_free(md_t *md)
{
#if V3
    dnnl_memory_desc_destroy(*md);
#else
    (void)md;
#endif
}

void ddp__mds_free(struct ddp__mds *m)
{
    md_t *all[] = {&m->x, &m->y, &m->w, &m->bias, &m->plain};

    for (int i = 0; i < 5; i++)
        if (m->has[i])
            ddp__md_free(all[i]);
    memset(m, 0, sizeof(*m));
}

size_t ddp__md_bytes(cmd_t md)
{
    return md ? dnnl_memory_desc_get_size(md) : 0;
}

/* Dimensions and plain strides of the weights: (o, c, kh, kw) or
 * (g, o / g, c / g, kh, kw), in oneDNN's order of dimensions. */
static int weight_dims(const struct ddp__conv_shape *s, bool transposed,
                       dnnl_dims_t dims, dnnl_dims_t strides)
{
    const struct ddp__conv *k = &s->conv;
    int g = s->dense ? 1 : k->groups, at = 0;
    int64_t c = s->c / g, o = s->o / g, kh = s->dense ? 1 : k->kh,
            kw = s->dense ? 1 : k->kw;
    int64_t step_o = kh * kw * c, step_c = 1, pixel = c;

    if (transposed) {
        step_o = 1;
        step_c = kh * kw * o;
        pixel = o;
    }
    if (g > 1) {
        dims[at] = g;
        strides[at++] = o * kh * kw * c;
    }
    dims[at] = o;
    strides[at++] = step_o;
    dims[at] = c;
    strides[at++] = step_c;
    if (s->dense)
        return at;
    dims[at] = kh;
    strides[at++] = kw * pixel;
    dims[at] = kw;
    strides[at++] = pixel;
    return at;
}

/* has[] records each descriptor as it is made, so that ddp__mds_free() can be
 * called wherever this stopped. */
dnnl_status_t ddp__mds_new(struct ddp__mds *m, dnnl_engine_t engine,
                           const struct ddp__conv_shape *s,
                           enum ddp__conv_pass pass, bool transposed)
{
    dnnl_data_type_t type = s->type == DDP_BF16 ? dnnl_bf16 : dnnl_f32;
    dnnl_dims_t x = {s->n, s->c, s->h, s->w}, y = {s->n, s->o, s->oh, s->ow};
    dnnl_dims_t o = {s->o}, dims = {0}, strides = {0};
    int ndims = s->dense ? 2 : 4;
    int wdims = weight_dims(s, transposed, dims, strides);
    dnnl_format_tag_t tag = s->dense ? dnnl_nc : dnnl_nhwc;
    dnnl_status_t st;

    memset(m, 0, sizeof(*m));
    m->engine = engine;
    if ((st = ddp__md_tag(&m->x, ndims, x, type, tag)))
        return st;
    m->has[0] = true;
    if ((st = ddp__md_tag(&m->y, ndims, y, type, tag)))
        return st;
    m->has[1] = true;
    if ((st = ddp__md_tag(&m->w, wdims, dims,
                          pass == DDP__BWD_W ? dnnl_f32 : type,
                          dnnl_format_tag_any)))
        return st;
    m->has[2] = true;
    if ((st = ddp__md_tag(&m->bias, 1, o, dnnl_f32, dnnl_x)))
        return st;
    m->has[3] = true;
    if ((st = md_strides(&m->plain, wdims, dims, dnnl_f32, strides)))
        return st;
    m->has[4] = true;
    return dnnl_success;
}
