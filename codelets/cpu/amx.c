/* amx.c - weight gradients of bf16 convolutions on AMX tiles
 *
 * An image becomes one long run of positions, in rows of `pitch`: outputs
 * first, then as many columns as the taps reach beyond them, where dy counts
 * as 0.  A tap is then a shift along the run.  With strides, x falls into
 * phases (pixels sh i + a, sw j + b), each a dense image of its own.
 *
 *     a  dy turned: [o / 16][step][16 outputs o][32 positions]
 *     b  x by pairs of positions: [c / 16][pair][16 channels][2]; twice, with
 *        pairs that begin at even and at odd positions, for shifts of both
 *        kinds
 *
 * Few channels would leave tiles empty: the columns of a tap's row then count
 * as channels, which lie side by side in memory anyway.
 *
 * A segment is some rows of an image; a block is some segments, whose products
 * are added up in tiles before they go to memory.
 */
#include "config.h"

#include "amx.h"
#include "cpu.h"

#ifdef DDP__AMX
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AMX                                                                    \
    __attribute__((target("avx512f,avx512bw,avx512vl,amx-tile,amx-bf16")))
#define AMX_INLINE                                                             \
    static inline                                                              \
        __attribute__((always_inline, target("avx512f,avx512bw,avx512vl")))

enum { STEP = 32, PAIRS = STEP / 2, ROW = 32 /* bf16 of a tile row */ };
enum { BLOCK_STEPS = 64 };

/* ---- the processor ------------------------------------------------------ */

/* The kernel gives a process leave to use tiles when it asks. */
static bool ask_for_tiles(void)
{
    const long request_permission = 0x1023, tile_data = 18;
    unsigned a, b, c, d;

    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 22 & 1) ||
        !(d >> 24 & 1) || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl"))
        return false;
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

static bool have_tiles(void)
{
    static int have; /* 0: not yet known, 1: no, 2: yes */
    int is = __atomic_load_n(&have, __ATOMIC_RELAXED);

    if (!is) {
        is = 1 + ask_for_tiles();
        __atomic_store_n(&have, is, __ATOMIC_RELAXED);
    }
    return is == 2;
}

bool ddp__amx_fits(const struct ddp__dnn_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return !s->dense && s->type == DDP_BF16 && k->groups == 1 && k->dh == 1 &&
           k->dw == 1 && !k->bias && s->o % 32 == 0 &&
           (s->c % 32 == 0 || s->c * k->kw <= ROW) && have_tiles();
}

/* ---- geometry ----------------------------------------------------------- */

struct run {
    const struct ddp__dnn_shape *s;
    const uint16_t *x, *dy;
    size_t x_row, x_pixel;  /* from one to the next, in x */
    int reach_y, reach_x;   /* rows and columns the taps reach further */
    int pitch;              /* positions of a row */
    int phases_y, phases_x; /* of x */
    int rows;               /* of outputs, of a segment */
    size_t steps, pairs;    /* of a segment, in a and in b */
    size_t segments;        /* of a block */
    size_t per_image;       /* segments of an image */
    uint16_t *a, *b;
};

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* Segments of about `want` steps, as many of them as make a block of that. */
static void plan(struct run *r, size_t want)
{
    const struct ddp__dnn_shape *s = r->s;
    const struct ddp__conv *k = &s->conv;
    size_t all;

    r->reach_y = (k->kh - 1) / k->sh;
    r->reach_x = (k->kw - 1) / k->sw;
    r->pitch = s->ow + r->reach_x;
    r->phases_y = min_int(k->sh, k->kh);
    r->phases_x = min_int(k->sw, k->kw);
    r->rows = (int)((want * STEP + (size_t)r->pitch - 1) / (size_t)r->pitch);
    r->rows = min_int(r->rows, s->oh);
    r->per_image = (size_t)((s->oh + r->rows - 1) / r->rows);
    r->rows = (s->oh + (int)r->per_image - 1) / (int)r->per_image;
    r->steps = ((size_t)r->rows * (size_t)r->pitch + STEP - 1) / STEP;
    r->pairs = r->steps * PAIRS +
               ((size_t)r->reach_y * (size_t)r->pitch + (size_t)r->reach_x) / 2 +
               1;
    all = r->per_image * (size_t)s->n;
    r->segments = want / r->steps ? want / r->steps : 1;
    r->segments = r->segments < all ? r->segments : all;
}

static size_t size_a(const struct run *r)
{
    return (size_t)r->s->o * r->segments * r->steps * STEP;
}

static size_t size_b(const struct run *r)
{
    return (size_t)r->s->c * 4 * r->segments * r->pairs *
           (size_t)(r->phases_y * r->phases_x);
}

/* Where a segment's part of a panel begins. */
static uint16_t *at_a(const struct run *r, size_t panel, size_t segment)
{
    return r->a + (panel * r->segments + segment) * r->steps * STEP * 16;
}

static uint16_t *at_b(const struct run *r, int phase, int odd, size_t panel,
                      size_t segment)
{
    size_t kind = (size_t)(2 * phase + odd) * (size_t)(r->s->c / 16) + panel;

    return r->b + (kind * r->segments + segment) * r->pairs * ROW;
}

/* ---- images into operands ----------------------------------------------- */

/* Two rows of 32 channels as pairs: channels 0..15 in *lo, 16..31 in *hi. */
AMX_INLINE void interleave(__m512i p, __m512i q, __m512i *lo, __m512i *hi)
{
    /* In each lane of 32 bits: channel i of p below channel i of q. */
    const __m512i both = _mm512_set1_epi32(32 << 16);
    const __m512i i = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
                                        13, 14, 15);
    const __m512i first =
        _mm512_add_epi32(both, _mm512_or_si512(i, _mm512_slli_epi32(i, 16)));
    const __m512i second =
        _mm512_add_epi32(first, _mm512_set1_epi32(16 << 16 | 16));

    *lo = _mm512_permutex2var_epi16(p, first, q);
    *hi = _mm512_permutex2var_epi16(p, second, q);
}

/* 16 x 16 numbers of 32 bits, rows to columns. */
AMX_INLINE void turn(const __m512i in[16], __m512i out[16])
{
    __m512i t[16], u[16];

#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_epi32(in[2 * i], in[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(in[2 * i], in[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        u[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
        u[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
        u[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
        u[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(u[i], u[4 + i], 0x88);
        t[4 + i] = _mm512_shuffle_i32x4(u[i], u[4 + i], 0xdd);
        t[8 + i] = _mm512_shuffle_i32x4(u[8 + i], u[12 + i], 0x88);
        t[12 + i] = _mm512_shuffle_i32x4(u[8 + i], u[12 + i], 0xdd);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        out[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
        out[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xdd);
        out[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
        out[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xdd);
    }
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
static struct walk walk_output(const struct run *r, const uint16_t *image,
                               int first)
{
    return (struct walk){.image = image,
                         .h = min_int(r->s->oh, first + r->rows),
                         .w = r->s->ow,
                         .y = first,
                         .end = r->pitch,
                         .step_y = 1,
                         .step_x = 1,
                         .row = (size_t)r->s->ow * (size_t)r->s->o,
                         .pixel = (size_t)r->s->o};
}

/* A phase of x for these. */
static struct walk walk_input(const struct run *r, const uint16_t *image,
                              int phase, int first)
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

AMX_INLINE __m512i load32(const uint16_t *p, size_t at)
{
    return p ? _mm512_loadu_si512(p + at) : _mm512_setzero_si512();
}

/* One step of a: 32 outputs, all their channels. */
AMX static void fill_step(const struct run *r, const uint16_t *const p[STEP],
                          size_t segment, size_t step)
{
    for (size_t o = 0; o < (size_t)r->s->o; o += 32) {
        uint16_t *to0 = at_a(r, o / 16, segment) + step * STEP * 16;
        uint16_t *to1 = at_a(r, o / 16 + 1, segment) + step * STEP * 16;
        __m512i lo[16], hi[16], t[16];

        for (int i = 0; i < 16; i++)
            interleave(load32(p[2 * i], o), load32(p[2 * i + 1], o), &lo[i],
                       &hi[i]);
        turn(lo, t);
        for (int i = 0; i < 16; i++)
            _mm512_storeu_si512(to0 + i * ROW, t[i]);
        turn(hi, t);
        for (int i = 0; i < 16; i++)
            _mm512_storeu_si512(to1 + i * ROW, t[i]);
    }
}

static void fill_a(const struct run *r, const uint16_t *image, int first,
                   size_t segment)
{
    struct walk w = walk_output(r, image, first);
    const uint16_t *p[STEP];

    for (size_t i = 0; i < r->steps; i++) {
        for (size_t j = 0; j < STEP; j++)
            p[j] = walk_on(&w);
        fill_step(r, p, segment, i);
    }
}

/* A pair of both kinds, of three positions in a row.  Panels of one kind are
 * `step` apart. */
AMX_INLINE void fill_pair(const uint16_t *const p[3], size_t c, size_t step,
                          uint16_t *even, uint16_t *odd)
{
    for (size_t i = 0; i < c; i += 32, even += 2 * step, odd += 2 * step) {
        __m512i p0 = load32(p[0], i), p1 = load32(p[1], i);
        __m512i p2 = load32(p[2], i), lo, hi;

        interleave(p0, p1, &lo, &hi);
        _mm512_storeu_si512(even, lo);
        _mm512_storeu_si512(even + step, hi);
        interleave(p1, p2, &lo, &hi);
        _mm512_storeu_si512(odd, lo);
        _mm512_storeu_si512(odd + step, hi);
    }
}

AMX static void fill_b(const struct run *r, const uint16_t *image, int phase,
                       int first, size_t segment)
{
    size_t step = r->segments * r->pairs * ROW, c = (size_t)r->s->c;
    uint16_t *even = at_b(r, phase, 0, 0, segment);
    uint16_t *odd = at_b(r, phase, 1, 0, segment);
    struct walk w = walk_input(r, image, phase, first);
    const uint16_t *p[3];

    p[2] = walk_on(&w);
    for (size_t i = 0; i < r->pairs; i++, even += ROW, odd += ROW) {
        p[0] = p[2];
        p[1] = walk_on(&w);
        p[2] = walk_on(&w);
        fill_pair(p, c, step, even, odd);
    }
}

/* Segments first .. first + count - 1 of the batch into a and b. */
static void fill(const struct run *r, size_t first, size_t count)
{
    const struct ddp__dnn_shape *s = r->s;

    for (size_t i = 0; i < count; i++) {
        size_t n = (first + i) / r->per_image;
        int row = (int)((first + i) % r->per_image) * r->rows;
        const uint16_t *x = r->x + n * (size_t)s->h * r->x_row;

        fill_a(r, r->dy + n * (size_t)s->oh * (size_t)s->ow * (size_t)s->o, row,
               i);
        for (int k = 0; k < r->phases_y * r->phases_x; k++)
            fill_b(r, x, k, row, i);
    }
}

/* The compiler does not see that tile instructions read memory. */
#define BARRIER() __asm__ volatile("" : : : "memory")

/* ---- products ----------------------------------------------------------- */

/* As ldtilecfg reads it. */
struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
};

AMX static void configure(void)
{
    struct tile_config c = {.palette = 1};

    for (int i = 0; i < 8; i++) {
        c.bytes[i] = 64;
        c.rows[i] = 16;
    }
    BARRIER();
    _tile_loadconfig(&c);
}

/* 32 outputs times 32 channels of one tap, over `count` segments.  shift:
 * pairs. */
AMX static void product(const struct run *r, size_t o, size_t c, int phase,
                        int odd, size_t shift, size_t count, bool add,
                        float *dw, size_t pitch)
{
    const size_t line = 64, row = pitch * sizeof(*dw);
    float *below = dw + 16 * pitch;

    BARRIER();
    if (add) {
        _tile_loadd(0, dw, row);
        _tile_loadd(1, dw + 16, row);
        _tile_loadd(2, below, row);
        _tile_loadd(3, below + 16, row);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (size_t s = 0; s < count; s++) {
        const uint16_t *a0 = at_a(r, o / 16, s), *a1 = at_a(r, o / 16 + 1, s);
        const uint16_t *b0 = at_b(r, phase, odd, c / 16, s) + shift * ROW;
        const uint16_t *b1 = at_b(r, phase, odd, c / 16 + 1, s) + shift * ROW;

        for (size_t i = 0; i < r->steps; i++) {
            _tile_loadd(4, a0 + i * 16 * ROW, line);
            _tile_loadd(6, b0 + i * 16 * ROW, line);
            _tile_loadd(7, b1 + i * 16 * ROW, line);
            _tile_loadd(5, a1 + i * 16 * ROW, line);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, dw, row);
    _tile_stored(1, dw + 16, row);
    _tile_stored(2, below, row);
    _tile_stored(3, below + 16, row);
}

static void multiply(const struct run *r, size_t count, bool add, float *dw)
{
    const struct ddp__conv *k = &r->s->conv;
    size_t taps = (size_t)(k->kh * k->kw), c = (size_t)r->s->c;

    for (size_t j = 0; j < c; j += 32)
        for (size_t o = 0; o < (size_t)r->s->o; o += 32)
            for (size_t t = 0; t < taps; t++) {
                int ky = (int)t / k->kw, kx = (int)t % k->kw;
                int phase = ky % k->sh * r->phases_x + kx % k->sw;
                int shift = ky / k->sh * r->pitch + kx / k->sw;

                product(r, o, j, phase, shift % 2, (size_t)(shift / 2), count,
                        add, dw + (o * taps + t) * c + j, taps * c);
            }
}

AMX static void release(void)
{
    _tile_release();
}

/* All of r; a and b have their memory. */
static void run(const struct run *r, bool accumulate, float *dw)
{
    size_t all = r->per_image * (size_t)r->s->n, count;

    configure();
    for (size_t i = 0; i < all; i += count) {
        count = all - i < r->segments ? all - i : r->segments;
        fill(r, i, count);
        multiply(r, count, accumulate || i > 0, dw);
    }
    release();
}

/* Copy images with their padding to the left and right. */
static void pad(const struct ddp__dnn_shape *s, const uint16_t *x, size_t row,
                uint16_t *to)
{
    size_t left = (size_t)(s->conv.left * s->c);
    size_t len = (size_t)(s->w * s->c);

    for (size_t i = 0; i < (size_t)s->n * (size_t)s->h; i++, to += row) {
        memset(to, 0, row * sizeof(*to));
        memcpy(to + left, x + i * len, len * sizeof(*to));
    }
    memset(to, 0, ROW * sizeof(*to));
}

/* The layer with columns of taps as channels: `wide` is its x. */
static struct ddp__dnn_shape unroll(const struct ddp__dnn_shape *s)
{
    struct ddp__dnn_shape u = *s;

    u.w = s->conv.left + s->w + s->conv.right;
    u.c = ROW;
    u.conv.kw = 1;
    u.conv.left = u.conv.right = 0;
    return u;
}

/* Few channels. */
static int narrow(const struct ddp__dnn_shape *s, const void *x, const void *dy,
                  bool accumulate, float *dw)
{
    struct ddp__dnn_shape u = unroll(s);
    struct run r = {.s = &u,
                    .dy = dy,
                    .x_row = (size_t)(u.w * s->c),
                    .x_pixel = (size_t)s->c};
    size_t size = ((size_t)s->n * (size_t)s->h * r.x_row + 2 * ROW) & ~(size_t)31;
    size_t rows = (size_t)(s->o * s->conv.kh), len = (size_t)(s->conv.kw * s->c);
    uint16_t *wide;
    float *sum;

    plan(&r, BLOCK_STEPS);
    wide = ddp__scratch((size + size_a(&r) + size_b(&r)) * sizeof(*wide) +
                        rows * ROW * sizeof(*sum));
    if (!wide)
        return DDP_ENOMEM;
    r.x = wide;
    r.a = wide + size;
    r.b = r.a + size_a(&r);
    sum = (float *)(void *)(r.b + size_b(&r));
    pad(s, x, r.x_row, wide);
    run(&r, false, sum);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < len; j++)
            dw[i * len + j] =
                (accumulate ? dw[i * len + j] : 0) + sum[i * ROW + j];
    return 0;
}

int ddp__amx_bwd_w(const struct ddp__dnn_shape *s, const void *x,
                   const void *dy, bool accumulate, float *dw)
{
    struct run r = {.s = s,
                    .x = x,
                    .dy = dy,
                    .x_row = (size_t)s->w * (size_t)s->c,
                    .x_pixel = (size_t)s->c};

    if (s->c % 32 != 0)
        return narrow(s, x, dy, accumulate, dw);
    plan(&r, BLOCK_STEPS);
    if (!(r.a = ddp__scratch((size_a(&r) + size_b(&r)) * sizeof(*r.a))))
        return DDP_ENOMEM;
    r.b = r.a + size_a(&r);
    run(&r, accumulate, dw);
    return 0;
}

#else

bool ddp__amx_fits(const struct ddp__dnn_shape *s)
{
    (void)s;
    return false;
}

int ddp__amx_bwd_w(const struct ddp__dnn_shape *s, const void *x,
                   const void *dy, bool accumulate, float *dw)
{
    (void)s, (void)x, (void)dy, (void)accumulate, (void)dw;
    return ddp__fail(DDP_ENODEV, "no tiles");
}

#endif
