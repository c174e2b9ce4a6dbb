/* onednn_pairs.c - weights of dense layers as oneDNN's products of bf16 read
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Here 16 outputs by 16 pairs are rounded and turned in registers.  One Zen 5
 * core under load, milliseconds by oneDNN 2.6's reorder and here, to the same
 * bits (inputs x outputs): 1024x512 0.52, 0.09; 2048x1000 1.78, 0.37; 768x3072
 * 0.83, 0.41; 4096x1024 4.3, 1.6.
 */
#include "config.h"

#include "onednn_pairs.h"
#include "unit_v16.h"

static bool is_layout(cmd_t md, const dnnl_dims_t dims, dnnl_format_tag_t tag)
{
    bool same;
    md_t of;

    if (ddp__md_tag(&of, 2, dims, dnnl_bf16, tag))
        return false;
    same = dnnl_memory_desc_equal(md, REF(of));
    ddp__md_free(&of);
    return same;
}

struct ddp__pairs ddp__pairs_of(const struct ddp__dnn_shape *s, cmd_t packed)
{
    static const struct {
        dnnl_format_tag_t tag;
        size_t block, pairs;
    } known[] = {
        {dnnl_AB8b16a2b, 16, 8},   {dnnl_AB8b32a2b, 32, 8},
        {dnnl_AB8b64a2b, 64, 8},   {dnnl_AB16b16a2b, 16, 16},
        {dnnl_AB16b32a2b, 32, 16}, {dnnl_AB16b48a2b, 48, 16},
        {dnnl_AB16b64a2b, 64, 16},
    };
    struct ddp__pairs p = {(size_t)s->o, (size_t)s->c, 0, 0};
    dnnl_dims_t dims = {s->o, s->c};

    if (!s->dense || s->type != DDP_BF16 || s->c % 32 || !ddp__unit_v16(true))
        return p;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (is_layout(packed, dims, known[i].tag)) {
            p.block = known[i].block;
            p.pairs = known[i].pairs;
        }
    return p;
}

#ifdef DDP__UNIT_V16
#include "turn16.h"

/* Bytes before pair i of output o. */
static size_t place(const struct ddp__pairs *p, size_t o, size_t i)
{
    size_t block = o / p->block * (p->inputs / 2 / p->pairs) + i / p->pairs;

    return 4 * ((block * p->pairs + i % p->pairs) * p->block + o % p->block);
}

/* Outputs from o on, 16 of which so many exist, and 16 pairs from pair i on. */
DDP__UNIT_INLINE void pack_tile(const struct ddp__pairs *p, const float *from,
                                size_t o, size_t count, size_t i, char *to)
{
    __m512i in[16], out[16];

#pragma GCC unroll 16
    for (size_t k = 0; k < 16; k++) {
        const float *at = from + (o + k) * p->inputs + 2 * i;

        in[k] = _mm512_setzero_si512();
        if (k >= count)
            continue;
        in[k] = (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(at + 16),
                                             _mm512_loadu_ps(at));
        _mm_prefetch((const char *)(at + 64), _MM_HINT_T0);
        _mm_prefetch((const char *)(at + 80), _MM_HINT_T0);
    }
    ddp__turn16(in, out);
#pragma GCC unroll 16
    for (size_t k = 0; k < 16; k++)
        _mm512_storeu_si512(to + place(p, o, i + k), out[k]);
}

/* A block of outputs: the last one is filled with zeros. */
DDP__UNIT_TARGET static void pack_block(const struct ddp__pairs *p,
                                        const float *from, size_t o, char *to)
{
    for (size_t i = 0; i < p->inputs / 2; i += 16)
        for (size_t at = o; at < o + p->block; at += 16) {
            size_t left = at < p->outputs ? p->outputs - at : 0;

            if (left >= 16)
                pack_tile(p, from, at, 16, i, to);
            else
                pack_tile(p, from, at, left, i, to);
        }
}

void ddp__pairs_pack(const struct ddp__pairs *p, const float *from, void *to)
{
    for (size_t o = 0; o < p->outputs; o += p->block)
        pack_block(p, from, o, to);
}
#else
void ddp__pairs_pack(const struct ddp__pairs *p, const float *from, void *to)
{
    (void)p, (void)from, (void)to;
}
#endif
