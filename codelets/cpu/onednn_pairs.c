/* onednn_pairs.c - weights as oneDNN's products of bf16 read them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Here 16 outputs by 16 pairs are rounded and turned in registers.  One Zen 5
 * core under load, milliseconds by oneDNN 2.6's reorder and here, to the same
 * bits (dense layers, inputs x outputs): 1024x512 0.52, 0.09; 2048x1000 1.78,
 * 0.37; 768x3072 0.83, 0.41; 4096x1024 4.3, 1.6.
 *
 * Weights of convolutions are those of a dense layer for each tap.  A data
 * gradient reads them with inputs and outputs exchanged and taps in reverse
 * order, for which oneDNN's reorder needs a copy of them.  One core with AMX
 * under load, milliseconds of a pass that packs its weights, by a copy and
 * oneDNN's reorder, and here, to the same bits (tests/kernelbench):
 *
 *     data gradient of 3x3, 14x14, 256, 8 images      2.17 1.35
 *     data gradient of 3x3, 2x2, 512, 2 images        5.33 1.47
 *     data gradient of 3x3/2, 14x14, 512, 1 image     4.01 1.95
 *     forward 1x1, 7x7, 2048 to 512, 1 image          0.94 0.63
 *     forward 3x3, 2x2, 512, 2 images                 1.64 1.31
 */
#include "config.h"

#include "onednn_pairs.h"
#include "unit_v16.h"

static bool is_layout(cmd_t md, int ndims, const dnnl_dims_t dims,
                      dnnl_format_tag_t tag)
{
    bool same;
    md_t of;

    if (tag == dnnl_format_tag_undef ||
        ddp__md_tag(&of, ndims, dims, dnnl_bf16, tag))
        return false;
    same = dnnl_memory_desc_equal(md, REF(of));
    ddp__md_free(&of);
    return same;
}

/* Of layers without groups, and with channels for whole pairs of 16. */
static bool has_pairs(const struct ddp__dnn_shape *s, bool turned)
{
    return s->type == DDP_BF16 && s->c % 32 == 0 &&
           (s->dense || s->conv.groups == 1) && (!turned || s->o % 16 == 0) &&
           ddp__unit_v16(true);
}

struct ddp__pairs ddp__pairs_of(const struct ddp__dnn_shape *s, cmd_t packed,
                                bool turned)
{
    static const struct {
        dnnl_format_tag_t dense, conv;
        size_t block, pairs;
    } known[] = {
        {dnnl_AB8b16a2b, dnnl_format_tag_undef, 16, 8},
        {dnnl_AB8b32a2b, dnnl_format_tag_undef, 32, 8},
        {dnnl_AB8b64a2b, dnnl_format_tag_undef, 64, 8},
        {dnnl_AB16b16a2b, dnnl_AcdB16b16a2b, 16, 16},
        {dnnl_AB16b32a2b, dnnl_AcdB16b32a2b, 32, 16},
        {dnnl_AB16b48a2b, dnnl_AcdB16b48a2b, 48, 16},
        {dnnl_AB16b64a2b, dnnl_AcdB16b64a2b, 64, 16},
    };
    const struct ddp__conv *k = &s->conv;
    struct ddp__pairs p = {.outputs = (size_t)s->o,
                           .inputs = (size_t)s->c,
                           .taps = s->dense ? 1 : (size_t)(k->kh * k->kw),
                           .turned = turned};
    dnnl_dims_t dims = {s->o, s->c, k->kh, k->kw};

    if (!has_pairs(s, turned))
        return p;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (is_layout(packed, s->dense ? 2 : 4, dims,
                      s->dense ? known[i].dense : known[i].conv)) {
            p.block = known[i].block;
            p.pairs = known[i].pairs;
        }
    return p;
}

#ifdef DDP__UNIT_V16
#include "turn16.h"

/* Bytes before pair i of output o, within a tap. */
static size_t place(const struct ddp__pairs *p, size_t o, size_t i)
{
    size_t block =
        o / p->block * p->taps * (p->inputs / 2 / p->pairs) + i / p->pairs;

    return 4 * ((block * p->pairs + i % p->pairs) * p->block + o % p->block);
}

/* Outputs from o on, 16 of which so many exist, and 16 pairs from pair i on;
 * `row` from one output to the next. */
DDP__UNIT_INLINE void pack_tile(const struct ddp__pairs *p, const float *from,
                                size_t row, size_t o, size_t count, size_t i,
                                char *to)
{
    __m512i in[16], out[16];

#pragma GCC unroll 16
    for (size_t k = 0; k < 16; k++) {
        const float *at = from + (o + k) * row + 2 * i;

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
                                        const float *from, size_t row, size_t o,
                                        char *to)
{
    for (size_t i = 0; i < p->inputs / 2; i += 16)
        for (size_t at = o; at < o + p->block; at += 16) {
            size_t left = at < p->outputs ? p->outputs - at : 0;

            if (left >= 16)
                pack_tile(p, from, row, at, 16, i, to);
            else
                pack_tile(p, from, row, at, left, i, to);
        }
}

/* The same from rows of outputs, `row` from one input to the next: 16 outputs
 * of a pair at a time. */
DDP__UNIT_TARGET static void
pack_turned(const struct ddp__pairs *p, const float *from, size_t row, char *to)
{
    const __m512i first = _mm512_setr_epi32(
        16 << 16, 17 << 16 | 1, 18 << 16 | 2, 19 << 16 | 3, 20 << 16 | 4,
        21 << 16 | 5, 22 << 16 | 6, 23 << 16 | 7, 24 << 16 | 8, 25 << 16 | 9,
        26 << 16 | 10, 27 << 16 | 11, 28 << 16 | 12, 29 << 16 | 13,
        30 << 16 | 14, 31 << 16 | 15);
    size_t end = (p->outputs + p->block - 1) / p->block * p->block;

    for (size_t i = 0; i < p->inputs / 2; i += 16)
        for (size_t o = 0; o < end; o += 16)
            for (size_t k = i; k < i + 16; k++) {
                const float *at = from + 2 * k * row + o;
                __m512i v = _mm512_setzero_si512();

                if (o < p->outputs)
                    v = (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(at + row),
                                                     _mm512_loadu_ps(at));
                _mm512_storeu_si512(to + place(p, o, k),
                                    _mm512_permutexvar_epi16(first, v));
            }
}

void ddp__pairs_pack(const struct ddp__pairs *p, const float *from, size_t taps,
                     size_t tap, void *to, size_t at)
{
    char *dest = (char *)to + 4 * at * p->block * (p->inputs / 2);

    if (p->turned)
        pack_turned(p, from + tap * p->outputs, taps * p->outputs, dest);
    for (size_t o = 0; !p->turned && o < p->outputs; o += p->block)
        pack_block(p, from + tap * p->inputs, taps * p->inputs, o, dest);
}
#else
void ddp__pairs_pack(const struct ddp__pairs *p, const float *from, size_t taps,
                     size_t tap, void *to, size_t at)
{
    (void)p, (void)from, (void)taps, (void)tap, (void)to, (void)at;
}
#endif
