/* amx_fill.c - images into the operands of AMX products; see amx.c
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "amx_fill.h"
#include "amx_run.h"
#include "cpu/cpu.h"
#include "cpu/isa.h"

#ifdef DDP__AMX
#include "cpu/vector/turn16.h"
#include "cpu/vector/v16.h"

/* Two rows of 32 channels as pairs: channels 0..15 in *lo, 16..31 in *hi. */
DDP__V16_INLINE void interleave(__m512i p, __m512i q, __m512i *lo, __m512i *hi)
{
    /* In each lane of 32 bits: channel i of p below channel i of q. */
    const __m512i both = _mm512_set1_epi32(32 << 16);
    const __m512i i =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i first =
        _mm512_add_epi32(both, _mm512_or_si512(i, _mm512_slli_epi32(i, 16)));
    const __m512i second =
        _mm512_add_epi32(first, _mm512_set1_epi32(16 << 16 | 16));

    *lo = _mm512_permutex2var_epi16(p, first, q);
    *hi = _mm512_permutex2var_epi16(p, second, q);
}

/* Goes along the positions of a segment: pixels of an image, or NULL outside.
 */
struct walk {
    const uint16_t *image;
    int h, w;          /* of the image */
    int y, x, x0, end; /* pixel now; columns of a row begin and end here */
    int step_y, step_x;
    size_t row, pixel; /* from one to the next, in memory */
};

static inline const uint16_t *walk_on(struct walk *k)
{
    bool inside = k->y >= 0 && k->y < k->h && k->x >= 0 && k->x < k->w;
    size_t at = (size_t)k->y * k->row + (size_t)k->x * k->pixel;

    k->x += k->step_x;
    if (k->x >= k->end) {
        k->x = k->x0;
        k->y += k->step_y;
    }
    return inside ? k->image + at : NULL;
}

/* The outputs of a segment that begins with row `first`. */
static struct walk walk_output(const struct ddp__amx_run *r,
                               const uint16_t *image, int first)
{
    return (struct walk){.image = image,
                         .h = ddp__min_int(r->s->oh, first + r->rows),
                         .w = r->s->ow,
                         .y = first,
                         .end = r->pitch,
                         .step_y = 1,
                         .step_x = 1,
                         .row = r->dy_row,
                         .pixel = (size_t)r->s->o};
}

/* A phase of x for these. */
static struct walk walk_input(const struct ddp__amx_run *r,
                              const uint16_t *image, int phase, int first)
{
    const struct ddp__conv *k = &r->s->conv;
    int x0 = phase % r->phases_x - k->left;

    return (struct walk){.image = image,
                         .h = r->s->h,
                         .w = r->s->w,
                         .y = first * k->sh + phase / r->phases_x - k->top,
                         .x = x0,
                         .x0 = x0,
                         .end = x0 + r->pitch * k->sw,
                         .step_y = k->sh,
                         .step_x = k->sw,
                         .row = r->x_row,
                         .pixel = r->x_pixel};
}

DDP__V16_INLINE __m512i load32(const uint16_t *p, size_t at)
{
    return p ? _mm512_loadu_si512(p + at) : _mm512_setzero_si512();
}

/* One step of a: 32 outputs, all their channels. */
DDP__V16 static void fill_step(const struct ddp__amx_run *r,
                               const uint16_t *const p[DDP__AMX_STEP],
                               size_t segment, size_t step)
{
    for (size_t o = 0; o < (size_t)r->s->o; o += 32) {
        uint16_t *to0 =
            ddp__amx_a(r, o / 16, segment) + step * DDP__AMX_STEP * 16;
        uint16_t *to1 =
            ddp__amx_a(r, o / 16 + 1, segment) + step * DDP__AMX_STEP * 16;
        __m512i lo[16], hi[16], t[16];

        for (int i = 0; i < 16; i++)
            interleave(load32(p[2 * i], o), load32(p[2 * i + 1], o), &lo[i],
                       &hi[i]);
        ddp__turn16(lo, t);
        for (int i = 0; i < 16; i++)
            _mm512_storeu_si512(to0 + i * DDP__AMX_ROW, t[i]);
        ddp__turn16(hi, t);
        for (int i = 0; i < 16; i++)
            _mm512_storeu_si512(to1 + i * DDP__AMX_ROW, t[i]);
    }
}

void ddp__amx_fill_a(const struct ddp__amx_run *r, const uint16_t *image,
                     int first, size_t segment)
{
    struct walk w = walk_output(r, image, first);
    const uint16_t *p[DDP__AMX_STEP];

    for (size_t i = 0; i < r->steps; i++) {
        for (size_t j = 0; j < DDP__AMX_STEP; j++)
            p[j] = walk_on(&w);
        fill_step(r, p, segment, i);
    }
}

/* A pair of both kinds, or of even ones alone (odd: NULL), of three positions
 * in a row.  Panels of one kind are `step` apart. */
DDP__V16_INLINE void fill_pair(const uint16_t *const p[3], size_t c,
                               size_t step, uint16_t *even, uint16_t *odd)
{
    for (size_t i = 0; i < c; i += 32, even += 2 * step) {
        __m512i p0 = load32(p[0], i), p1 = load32(p[1], i), lo, hi;

        interleave(p0, p1, &lo, &hi);
        _mm512_storeu_si512(even, lo);
        _mm512_storeu_si512(even + step, hi);
        if (!odd)
            continue;
        interleave(p1, load32(p[2], i), &lo, &hi);
        _mm512_storeu_si512(odd, lo);
        _mm512_storeu_si512(odd + step, hi);
        odd += 2 * step;
    }
}

/* Whether a tap of a phase is an odd shift. */
static bool has_odd(const struct ddp__amx_run *r, int phase)
{
    const struct ddp__conv *k = &r->s->conv;
    int y0 = phase / r->phases_x, x0 = phase % r->phases_x;

    for (int y = 0; y0 + y * k->sh < k->kh; y++)
        for (int x = 0; x0 + x * k->sw < k->kw; x++)
            if ((y * r->pitch + x) % 2)
                return true;
    return false;
}

DDP__V16 void ddp__amx_fill_b(const struct ddp__amx_run *r,
                              const uint16_t *image, int phase, int first,
                              size_t segment)
{
    size_t step = r->segments * r->pairs * DDP__AMX_ROW, c = (size_t)r->s->c;
    uint16_t *even = ddp__amx_b(r, phase, 0, 0, segment);
    uint16_t *odd =
        has_odd(r, phase) ? ddp__amx_b(r, phase, 1, 0, segment) : NULL;
    struct walk w = walk_input(r, image, phase, first);
    const uint16_t *p[3];

    p[2] = walk_on(&w);
    for (size_t i = 0; i < r->pairs; i++, even += DDP__AMX_ROW) {
        p[0] = p[2];
        p[1] = walk_on(&w);
        p[2] = walk_on(&w);
        fill_pair(p, c, step, even, odd);
        if (odd)
            odd += DDP__AMX_ROW;
    }
}

void ddp__amx_fill(const struct ddp__amx_run *r, size_t first, size_t count)
{
    const struct ddp__conv_shape *s = r->s;

    for (size_t i = 0; i < count; i++) {
        size_t n = (first + i) / r->per_image;
        int row = (int)((first + i) % r->per_image) * r->rows;
        const uint16_t *x = r->x + n * (size_t)s->h * r->x_row;

        ddp__amx_fill_a(
            r, r->dy + n * (size_t)s->oh * (size_t)s->ow * (size_t)s->o, row,
            i);
        for (int k = 0; k < r->phases_y * r->phases_x; k++)
            ddp__amx_fill_b(r, x, k, row, i);
    }
}

#endif
