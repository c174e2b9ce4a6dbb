/* onednn_blocks.c - weights as oneDNN's products read them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Here 16 outputs by 16 words are rounded and turned in registers.  One Zen 5
 * core under load, milliseconds by oneDNN 2.6's reorder and here, to the same
 * bits (bf16, dense layers, inputs x outputs): 1024x512 0.52, 0.09; 2048x1000
 * 1.78, 0.37; 768x3072 0.83, 0.41; 4096x1024 4.3, 1.6.
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

#include "cpu/cpu.h"
#include "cpu/vector/unit_v16.h"
#include "onednn_blocks.h"

enum { PART = 128 << 10 }; /* bytes: fewer cost more to hand out than to pack */

static bool is_layout(cmd_t md, const struct ddp__conv_shape *s,
                      dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_dims_t dims = {s->o, s->c, s->conv.kh, s->conv.kw};
    bool same;
    md_t of;

    if (tag == dnnl_format_tag_undef ||
        ddp__md_tag(&of, s->dense ? 2 : 4, dims, type, tag))
        return false;
    same = dnnl_memory_desc_equal(md, REF(of));
    ddp__md_free(&of);
    return same;
}

/* Of layers without groups, and with channels for whole tiles. */
static bool has_blocks(const struct ddp__blocks *p,
                       const struct ddp__conv_shape *s)
{
    return (s->type == DDP_BF16 || s->type == DDP_F32) && s->c % 16 == 0 &&
           p->words % 16 == 0 && (s->dense || s->conv.groups == 1) &&
           (!p->turned || s->o % 16 == 0) && ddp__unit_v16(!p->wide);
}

struct layout {
    dnnl_format_tag_t dense, conv;
    size_t block, group; /* group 0: all words */
};

static const struct layout of_bf16[] = {
    {dnnl_AB8b16a2b, dnnl_format_tag_undef, 16, 8},
    {dnnl_AB8b32a2b, dnnl_format_tag_undef, 32, 8},
    {dnnl_AB8b64a2b, dnnl_format_tag_undef, 64, 8},
    {dnnl_AB16b16a2b, dnnl_AcdB16b16a2b, 16, 16},
    {dnnl_AB16b32a2b, dnnl_AcdB16b32a2b, 32, 16},
    {dnnl_AB16b48a2b, dnnl_AcdB16b48a2b, 48, 16},
    {dnnl_AB16b64a2b, dnnl_AcdB16b64a2b, 64, 16},
    {dnnl_format_tag_undef, dnnl_format_tag_undef, 0, 0},
};

static const struct layout of_f32[] = {
    {dnnl_format_tag_undef, dnnl_Acdb16a, 16, 0},
    {dnnl_format_tag_undef, dnnl_Acdb32a, 32, 0},
    {dnnl_format_tag_undef, dnnl_Acdb48a, 48, 0},
    {dnnl_format_tag_undef, dnnl_Acdb64a, 64, 0},
    {dnnl_format_tag_undef, dnnl_format_tag_undef, 0, 0},
};

struct ddp__blocks ddp__blocks_of(const struct ddp__conv_shape *s, cmd_t packed,
                                  bool turned)
{
    bool wide = s->type == DDP_F32;
    const struct layout *known = wide ? of_f32 : of_bf16;
    struct ddp__blocks p = {
        .outputs = (size_t)s->o,
        .words = (size_t)s->c / (wide ? 1 : 2),
        .taps = s->dense ? 1 : (size_t)(s->conv.kh * s->conv.kw),
        .wide = wide,
        .turned = turned};

    if (!has_blocks(&p, s))
        return p;
    while (known->block && !is_layout(packed, s, wide ? dnnl_f32 : dnnl_bf16,
                                      s->dense ? known->dense : known->conv))
        known++;
    p.block = known->block;
    p.group = known->group ? known->group : p.words;
    return p;
}

static size_t count_blocks(const struct ddp__blocks *p)
{
    return (p->outputs + p->block - 1) / p->block;
}

static size_t packed_bytes(const struct ddp__blocks *p)
{
    return 4 * p->outputs * p->words * p->taps;
}

int ddp__blocks_parts(const struct ddp__blocks *p)
{
    size_t blocks = count_blocks(p);
    size_t parts = packed_bytes(p) / PART;

    return (int)(parts < 1 ? 1 : parts < blocks ? parts : blocks);
}

#ifdef DDP__X86
#include "cpu/vector/turn16.h"

static size_t inputs_in(const struct ddp__blocks *p)
{
    return p->wide ? 1 : 2;
}

/* Bytes before word i of output o, within a tap. */
static size_t place(const struct ddp__blocks *p, size_t o, size_t i)
{
    size_t group =
        o / p->block * p->taps * (p->words / p->group) + i / p->group;

    return 4 * ((group * p->group + i % p->group) * p->block + o % p->block);
}

/* 16 words from `at` on. */
DDP__UNIT_INLINE __m512i load_words(const float *at, bool wide)
{
    _mm_prefetch((const char *)(at + 64), _MM_HINT_T0);
    if (wide)
        return _mm512_loadu_si512(at);
    _mm_prefetch((const char *)(at + 80), _MM_HINT_T0);
    return (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(at + 16),
                                        _mm512_loadu_ps(at));
}

/* Outputs from o on, 16 of which so many exist, and 16 words from word i on;
 * `row` from one output to the next. */
DDP__UNIT_INLINE void pack_tile(const struct ddp__blocks *p, const float *from,
                                size_t row, size_t o, size_t count, size_t i,
                                char *to, bool wide)
{
    __m512i in[16], out[16];

#pragma GCC unroll 16
    for (size_t k = 0; k < 16; k++)
        in[k] = k < count
                    ? load_words(from + (o + k) * row + i * inputs_in(p), wide)
                    : _mm512_setzero_si512();
    ddp__turn16(in, out);
#pragma GCC unroll 16
    for (size_t k = 0; k < 16; k++)
        _mm512_storeu_si512(to + place(p, o, i + k), out[k]);
}

/* A block of outputs: the last one is filled with zeros. */
DDP__UNIT_INLINE void pack_block(const struct ddp__blocks *p, const float *from,
                                 size_t row, size_t o, char *to, bool wide)
{
    for (size_t i = 0; i < p->words; i += 16)
        for (size_t at = o; at < o + p->block; at += 16) {
            size_t left = at < p->outputs ? p->outputs - at : 0;

            if (left >= 16)
                pack_tile(p, from, row, at, 16, i, to, wide);
            else
                pack_tile(p, from, row, at, left, i, to, wide);
        }
}

/* A word of 16 outputs from rows of outputs, `row` from one input to the
 * next. */
DDP__UNIT_INLINE __m512i load_turned(const float *at, size_t row, bool wide)
{
    const __m512i first = _mm512_setr_epi32(
        16 << 16, 17 << 16 | 1, 18 << 16 | 2, 19 << 16 | 3, 20 << 16 | 4,
        21 << 16 | 5, 22 << 16 | 6, 23 << 16 | 7, 24 << 16 | 8, 25 << 16 | 9,
        26 << 16 | 10, 27 << 16 | 11, 28 << 16 | 12, 29 << 16 | 13,
        30 << 16 | 14, 31 << 16 | 15);

    if (wide)
        return _mm512_loadu_si512(at);
    return _mm512_permutexvar_epi16(
        first, (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(at + row),
                                            _mm512_loadu_ps(at)));
}

DDP__UNIT_INLINE void pack_turned(const struct ddp__blocks *p,
                                  const float *from, size_t row, size_t o,
                                  char *to, bool wide)
{
    for (size_t i = 0; i < p->words; i++)
        for (size_t at = o; at < o + p->block; at += 16)
            _mm512_storeu_si512(
                to + place(p, at, i),
                at < p->outputs
                    ? load_turned(from + i * inputs_in(p) * row + at, row, wide)
                    : _mm512_setzero_si512());
}

/* What to pack: blocks of outputs from `first` to `end`. */
struct piece {
    const float *from;
    size_t row, first, end; /* row: elements */
    char *to;
};

DDP__UNIT_INLINE void pack_piece(const struct ddp__blocks *p, struct piece s,
                                 bool wide)
{
    for (size_t o = s.first; o < s.end; o += p->block)
        if (p->turned)
            pack_turned(p, s.from, s.row, o, s.to, wide);
        else
            pack_block(p, s.from, s.row, o, s.to, wide);
}

DDP__UNIT_TARGET void ddp__blocks_pack(const struct ddp__blocks *p,
                                       const float *from, size_t taps,
                                       size_t tap, void *to, size_t at,
                                       int part)
{
    size_t parts = (size_t)ddp__blocks_parts(p), blocks = count_blocks(p);
    size_t len = p->turned ? p->outputs : p->words * inputs_in(p);
    struct piece s = {from + tap * len, taps * len,
                      (size_t)part * blocks / parts * p->block,
                      ((size_t)part + 1) * blocks / parts * p->block,
                      (char *)to + 4 * at * p->block * p->words};

    if (p->wide)
        pack_piece(p, s, true);
    else
        pack_piece(p, s, false);
}

#endif
