/* resize.c - shrink or enlarge, bit for bit as Pillow
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Pillow's Image.resize() with its filters, in its
 *          src/libImaging/Resample.c: the filter is stretched by the scale when
 * shrinking (antialiased), weights are rounded to 22 bits, and rows are
 * filtered before columns, with 8 bits in between.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "image/clones.h"
#include "image/resize.h"

enum { WEIGHT_BITS = 22, HALF = 1 << (WEIGHT_BITS - 1) };

/* ---- weights ------------------------------------------------------------ */

static int fail_memory(void)
{
    return ddp__fail(DDP_ENOMEM, "out of memory for a filter");
}

static int reserve_filter(struct ddp__filter *f, int count, int taps)
{
    size_t room = (size_t)count * (size_t)taps;
    int *start = f->start;
    int32_t *weight = f->weight;

    if (f->outputs < count &&
        (start = realloc(f->start, (size_t)count * sizeof(*start)))) {
        f->start = start;
        f->outputs = count;
    }
    if (f->room < room &&
        (weight = realloc(f->weight, room * sizeof(*weight)))) {
        f->weight = weight;
        f->room = room;
    }
    return start && weight ? 0 : fail_memory();
}

/* Room for the weights of one output, of which there are up to n. */
static int reserve_exact(struct ddp__filter *f, int n)
{
    double *exact;

    if (n <= f->inputs)
        return 0;
    if (!(exact = realloc(f->exact, (size_t)n * sizeof(*exact))))
        return fail_memory();
    f->exact = exact;
    f->inputs = n;
    return 0;
}

void ddp__filter_free(struct ddp__filter *f)
{
    free(f->start);
    free(f->weight);
    free(f->exact);
    *f = (struct ddp__filter){0};
}

static double triangle(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

/* Keys' cubic convolution with a = -1/2. */
static double cubic(double x)
{
    const double a = -0.5;

    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double box(double x)
{
    return x > -0.5 && x <= 0.5 ? 1 : 0;
}

static double sinc(double x)
{
    x *= M_PI;
    return x == 0 ? 1 : sin(x) / x;
}

/* The triangle's reach, and a sinc's shape. */
static double hamming(double x)
{
    x = fabs(x);
    return x >= 1 ? 0 : sinc(x) * (0.54 + 0.46 * cos(M_PI * x));
}

static double lanczos(double x)
{
    return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

/* A filter's weights, which are 0 beyond its reach. */
struct shape {
    double (*weight)(double x);
    double reach;
    bool clips;
};

static struct shape shape_of(enum ddp_interpolation kind)
{
    static const struct shape shape[] = {
        [DDP_BILINEAR] = {triangle, 1, false},
        [DDP_BICUBIC] = {cubic, 2, true},
        [DDP_BOX] = {box, 0.5, false},
        [DDP_HAMMING] = {hamming, 1, false},
        [DDP_LANCZOS] = {lanczos, 3, true},
    };

    return shape[kind];
}

/* The inputs of one output. */
struct window {
    double (*weight)(double x);
    double centre, shrink; /* by which distances are multiplied */
    int lo, n;
};

/* v[i] = weight i; *from <= i < *to are those that are not 0, one at least. The
 * usual filter is no call: there are thousands of weights in an image. */
static void weigh(const struct window *w, double *v, int *from, int *to)
{
    for (int i = 0; i < w->n; i++) {
        double x = (w->lo + i - w->centre + 0.5) * w->shrink;

        v[i] = w->weight == triangle ? triangle(x) : w->weight(x);
    }
    *from = 0;
    *to = w->n;
    while (*from < *to - 1 && v[*from] == 0)
        ++*from;
    while (*to > *from + 1 && v[*to - 1] == 0)
        --*to;
}

/* fmax() and fmin() would be calls. */
static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* The inputs within the filter's support around an output's centre, and inside
 * the image. */
static struct window window(const struct shape *shape, int64_t output,
                            double scale, int in)
{
    double stretch = larger(scale, 1), reach = stretch * shape->reach;
    struct window w = {.weight = shape->weight,
                       .centre = ((double)output + 0.5) * scale,
                       .shrink = 1 / stretch};

    w.lo = (int)larger(w.centre - reach + 0.5, 0);
    w.n = (int)smaller(w.centre + reach + 0.5, in) - w.lo;
    return w;
}

/* Halves away from 0, as Pillow does; round() would be a call. */
static int32_t rounded(double x)
{
    return (int32_t)(x < 0 ? x - 0.5 : x + 0.5);
}

/* Weights as integers from the first that is not 0, whose input is *start;
 * returns how many there are. */
static int integer_weights(const struct window *w, int32_t *k, double *v,
                           int *start)
{
    double sum = 0;
    int from, to;

    weigh(w, v, &from, &to);
    for (int i = 0; i < w->n; i++)
        sum += v[i];
    for (int i = from; i < to; i++)
        k[i - from] = rounded(v[i] / sum * (1 << WEIGHT_BITS));
    *start = w->lo + from;
    return to - from;
}

/* Rows of `room` weights, zeros at their ends, become rows of `taps`, all of
 * which are inside the image. */
static void join_rows(struct ddp__filter *f, int room, int in)
{
    for (int i = 0; i < f->count; i++) {
        const int32_t *from = f->weight + (size_t)i * (size_t)room;
        int32_t *to = f->weight + (size_t)i * (size_t)f->taps;
        int over = f->start[i] + f->taps - in, late = over > 0 ? over : 0;

        memmove(to + late, from, (size_t)(f->taps - late) * sizeof(*to));
        memset(to, 0, (size_t)late * sizeof(*to));
        f->start[i] -= late;
    }
}

/* The weights and inputs of all outputs; the number of taps is the largest. */
static void set_weights(struct ddp__filter *f, enum ddp_interpolation kind,
                        int in, double scale, int64_t first, int room)
{
    struct shape shape = shape_of(kind);

    f->taps = 1;
    for (int i = 0; i < f->count; i++) {
        struct window w = window(&shape, first + i, scale, in);
        int32_t *k = f->weight + (size_t)i * (size_t)room;
        int n = integer_weights(&w, k, f->exact, &f->start[i]);

        memset(k + n, 0, (size_t)(room - n) * sizeof(*k));
        f->taps = n > f->taps ? n : f->taps;
    }
    join_rows(f, room, in);
}

int ddp__filter_set(struct ddp__filter *f, enum ddp_interpolation kind, int at,
                    int in, int64_t out, int64_t first, int count)
{
    double scale = (double)in / (double)out;
    double reach = larger(scale, 1) * shape_of(kind).reach;
    int room = (int)smaller(2 * reach + 2, in), rc;

    if ((rc = reserve_exact(f, room)) < 0 ||
        (rc = reserve_filter(f, count, room)) < 0)
        return rc;
    f->count = count;
    f->clips = shape_of(kind).clips;
    set_weights(f, kind, in, scale, first, room);
    f->lo = at + in;
    f->hi = at;
    for (int i = 0; i < count; i++) {
        f->start[i] += at;
        f->lo = f->start[i] < f->lo ? f->start[i] : f->lo;
        f->hi = f->start[i] + f->taps > f->hi ? f->start[i] + f->taps : f->hi;
    }
    return 0;
}

static void swap(int32_t *a, int32_t *b)
{
    int32_t t = *a;

    *a = *b;
    *b = t;
}

void ddp__filter_flip(struct ddp__filter *f)
{
    for (int i = 0, j = f->count - 1; i < j; i++, j--) {
        int32_t *a = f->weight + (size_t)i * (size_t)f->taps;
        int32_t *b = f->weight + (size_t)j * (size_t)f->taps;

        swap(&f->start[i], &f->start[j]);
        for (int t = 0; t < f->taps; t++)
            swap(&a[t], &b[t]);
    }
}

void ddp__filter_mirror(struct ddp__filter *f, int size)
{
    int lo = f->lo;

    f->lo = size - f->hi;
    f->hi = size - lo;
    for (int i = 0; i < f->count; i++) {
        int32_t *k = f->weight + (size_t)i * (size_t)f->taps;

        f->start[i] = size - (f->start[i] + f->taps);
        for (int a = 0, b = f->taps - 1; a < b; a++, b--)
            swap(&k[a], &k[b]);
    }
}

/* ---- the sums ----------------------------------------------------------- */

/* The sum as a byte.  Where no weight is below 0, it is within 0..255. */
static inline __attribute__((always_inline)) uint8_t byte_of(int32_t sum,
                                                             bool clips)
{
    sum >>= WEIGHT_BITS;
    if (clips)
        sum = sum < 0 ? 0 : sum > 255 ? 255 : sum;
    return (uint8_t)sum;
}

/* y[i] = sum over t of k[t] x[t step + i], where taps is a constant. */
static inline __attribute__((always_inline)) void
blend(const int32_t *k, int taps, const uint8_t *restrict x, size_t step,
      size_t len, bool clips, uint8_t *restrict y)
{
    for (size_t i = 0; i < len; i++) {
        int32_t sum = HALF;

        for (int t = 0; t < taps; t++)
            sum += k[t] * x[(size_t)t * step + i];
        y[i] = byte_of(sum, clips);
    }
}

/* sum[i] += the same for some of the taps. */
static inline __attribute__((always_inline)) void
add(const int32_t *k, int taps, const uint8_t *restrict x, size_t step,
    size_t len, int32_t *restrict sum)
{
    for (size_t i = 0; i < len; i++)
        for (int t = 0; t < taps; t++)
            sum[i] += k[t] * x[(size_t)t * step + i];
}

/* The same as blend() for any number of taps, a block of i at a time. */
static inline __attribute__((always_inline)) void
blend_many(const int32_t *k, int taps, const uint8_t *restrict x, size_t step,
           size_t len, bool clips, uint8_t *restrict y)
{
    enum { STRETCH = 128 };
    int32_t sum[STRETCH];

    for (size_t at = 0; at < len; at += STRETCH) {
        size_t n = len - at < STRETCH ? len - at : STRETCH;
        int t = 0;

        for (size_t i = 0; i < n; i++)
            sum[i] = HALF;
        for (; t + 4 <= taps; t += 4)
            add(k + t, 4, x + (size_t)t * step + at, step, n, sum);
        for (; t < taps; t++)
            add(k + t, 1, x + (size_t)t * step + at, step, n, sum);
        for (size_t i = 0; i < n; i++)
            y[at + i] = byte_of(sum[i], clips);
    }
}

/* All outputs; an input is `step` bytes after the one before it, of which the
 * first len are filtered.  The number of taps is made a constant, as clips is.
 */
static inline __attribute__((always_inline)) void
filter_as(const struct ddp__filter *f, const uint8_t *x, size_t step,
          size_t len, bool clips, uint8_t *y)
{
    const int32_t *k = f->weight;

    for (int i = 0; i < f->count; i++, k += f->taps, y += len) {
        const uint8_t *from = x + (size_t)(f->start[i] - f->lo) * step;

        switch (f->taps) {
        case 1:
            memcpy(y, from, len);
            break;
        case 2:
            blend(k, 2, from, step, len, clips, y);
            break;
        case 3:
            blend(k, 3, from, step, len, clips, y);
            break;
        case 4:
            blend(k, 4, from, step, len, clips, y);
            break;
        case 5:
            blend(k, 5, from, step, len, clips, y);
            break;
        case 6:
            blend(k, 6, from, step, len, clips, y);
            break;
        default:
            blend_many(k, f->taps, from, step, len, clips, y);
        }
    }
}

static inline __attribute__((always_inline)) void
filter(const struct ddp__filter *f, const uint8_t *x, size_t step, size_t len,
       uint8_t *y)
{
    if (f->clips)
        filter_as(f, x, step, len, true, y);
    else
        filter_as(f, x, step, len, false, y);
}

DDP__PIXEL_CLONES void ddp__resize_rows(const struct ddp__filter *f,
                                        const uint8_t *x, int len, uint8_t *y)
{
    filter(f, x, (size_t)len, (size_t)len, y);
}

/* ---- along rows --------------------------------------------------------- */

/* DDP__ROWS rows are interleaved for this, pixel by pixel, so that the sums
 * along them are sums of whole columns, as above. */

typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef uint64_t u64x2 __attribute__((vector_size(16)));
typedef uint8_t u8x16 __attribute__((vector_size(16)));

#ifdef __clang__
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (typeof(a)){__VA_ARGS__})
#endif

/* Columns of four rows of four. */
static inline __attribute__((always_inline)) void transpose(u32x4 v[4])
{
    u32x4 a = SHUFFLE(v[0], v[1], 0, 4, 1, 5);
    u32x4 b = SHUFFLE(v[2], v[3], 0, 4, 1, 5);
    u32x4 c = SHUFFLE(v[0], v[1], 2, 6, 3, 7);
    u32x4 d = SHUFFLE(v[2], v[3], 2, 6, 3, 7);

    v[0] = SHUFFLE(a, b, 0, 1, 4, 5);
    v[1] = SHUFFLE(a, b, 2, 3, 6, 7);
    v[2] = SHUFFLE(c, d, 0, 1, 4, 5);
    v[3] = SHUFFLE(c, d, 2, 3, 6, 7);
}

/* y[i][r] = x[r][i] */
static inline __attribute__((always_inline)) void
interleave(const uint8_t *x, size_t stride, int width, uint8_t *y)
{
    enum { PIXEL = 4 * DDP__ROWS };
    u32x4 v[4];
    int i = 0;

    for (; i + 4 <= width; i += 4, x += 16, y += 4 * PIXEL)
        for (int r = 0; r < DDP__ROWS; r += 4) {
            for (int j = 0; j < 4; j++)
                memcpy(&v[j], x + (size_t)(r + j) * stride, 16);
            transpose(v);
            for (int j = 0; j < 4; j++)
                memcpy(y + j * PIXEL + 4 * r, &v[j], 16);
        }
    for (; i < width; i++, x += 4, y += PIXEL)
        for (int r = 0; r < DDP__ROWS; r++)
            memcpy(y + 4 * r, x + (size_t)r * stride, 4);
}

/* Four pixels without their fourth bytes. */
static inline __attribute__((always_inline)) void pack(u32x4 v, uint8_t *y)
{
    u8x16 b = (u8x16)v;
    uint64_t low;
    uint32_t high;

    b = SHUFFLE(b, b, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0, 0, 0, 0);
    low = ((u64x2)b)[0];
    high = ((u32x4)b)[2];
    memcpy(y, &low, 8);
    memcpy(y + 8, &high, 4);
}

/* y[r][i] = x[i][r], for four rows of the block, pixels of 3 bytes in y. */
static inline __attribute__((always_inline)) void
separate(const uint8_t *x, int width, uint8_t *y)
{
    enum { PIXEL = 4 * DDP__ROWS };
    size_t row = (size_t)width * 3;
    u32x4 v[4];
    int i = 0;

    for (; i + 4 <= width; i += 4, x += 4 * PIXEL, y += 12) {
        for (int j = 0; j < 4; j++)
            memcpy(&v[j], x + j * PIXEL, 16);
        transpose(v);
        for (int r = 0; r < 4; r++)
            pack(v[r], y + (size_t)r * row);
    }
    for (; i < width; i++, x += PIXEL, y += 3)
        for (int r = 0; r < 4; r++)
            memcpy(y + (size_t)r * row, x + 4 * r, 3);
}

size_t ddp__resize_room(const struct ddp__filter *f)
{
    return (size_t)(f->hi - f->lo + f->count) * DDP__ROWS * 4;
}

DDP__PIXEL_CLONES void ddp__resize_columns(const struct ddp__filter *f,
                                           const uint8_t *x, size_t stride,
                                           void *room, uint8_t *y)
{
    enum { PIXEL = 4 * DDP__ROWS };
    uint8_t *in = room, *out = in + (size_t)(f->hi - f->lo) * PIXEL;

    interleave(x, stride, f->hi - f->lo, in);
    filter(f, in, PIXEL, PIXEL, out);
    for (int r = 0; r < DDP__ROWS; r += 4)
        separate(out + 4 * r, f->count, y + (size_t)r * (size_t)f->count * 3);
}
