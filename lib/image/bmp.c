/* bmp.c - BMP images without compression
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Microsoft's BITMAPFILEHEADER, BITMAPCOREHEADER, BITMAPINFOHEADER: a
 *          palette or bit masks follow; rows begin at multiples of 4 bytes, the
 *          lowest row first unless the height is negative.
 *
 * Channels of fewer than 8 bits become v * 255 / most, as in Pillow; alpha is
 * dropped.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "image/bmp.h"

enum { FILE_HEADER = 14, CORE_HEADER = 12, INFO_HEADER = 40 };
enum { RGB = 0, BITFIELDS = 3 };

struct state {
    const uint8_t *pixels; /* in the file */
    size_t row;            /* bytes of a row */
    int bits;              /* of a pixel */
    bool down;             /* the highest row is first */
    uint32_t mask[3];      /* of red, green, blue, in 16 and 32 bits */
    uint8_t palette[256][3];
    int y; /* the next row */
};

static uint32_t get_16(const uint8_t *x)
{
    return x[0] | (uint32_t)x[1] << 8;
}

static uint32_t get_32(const uint8_t *x)
{
    return get_16(x) | get_16(x + 2) << 16;
}

/* ---- the header --------------------------------------------------------- */

/* The fields that follow from a header of either kind. */
struct header {
    size_t size; /* of the header */
    int64_t w, h;
    uint32_t bits, compression, colours, offset;
};

static int read_header(const struct ddp__picture *p, struct header *h)
{
    const uint8_t *x = p->data + FILE_HEADER;

    if (p->len < FILE_HEADER + CORE_HEADER)
        return ddp__fail(DDP_EDATA,
                         "is not a valid BMP image: it is truncated");
    h->offset = get_32(p->data + 10);
    h->size = get_32(x);
    if (h->size == CORE_HEADER) {
        h->w = get_16(x + 4);
        h->h = get_16(x + 6);
        h->bits = get_16(x + 10);
        return 0;
    }
    if (h->size < INFO_HEADER || h->size > p->len - FILE_HEADER)
        return ddp__fail(DDP_EDATA,
                         "is not a valid BMP image: a header of %zu bytes",
                         h->size);
    h->w = (int32_t)get_32(x + 4);
    h->h = (int32_t)get_32(x + 8);
    h->bits = get_16(x + 14);
    h->compression = get_32(x + 16);
    h->colours = get_32(x + 32);
    return 0;
}

/* Kinds: palettes of 1, 4 and 8 bits, colours of 16, 24 and 32. */
static int check_kind(const struct header *h)
{
    bool masks =
        h->compression == BITFIELDS && (h->bits == 16 || h->bits == 32);

    if (h->compression != RGB && !masks)
        return ddp__fail(DDP_EDATA,
                         "is a BMP image with compression %u, which is not "
                         "read",
                         h->compression);
    if (h->bits != 1 && h->bits != 4 && h->bits != 8 && h->bits != 16 &&
        h->bits != 24 && h->bits != 32)
        return ddp__fail(
            DDP_EDATA, "is not a valid BMP image: %u bits in a pixel", h->bits);
    return 0;
}

/* Masks are in the larger headers, and behind the smallest. */
static int set_masks(struct state *s, const struct ddp__picture *p,
                     const struct header *h)
{
    static const uint32_t of_16[] = {0x7c00, 0x3e0, 0x1f};
    static const uint32_t of_32[] = {0xff0000, 0xff00, 0xff};
    size_t at = FILE_HEADER + INFO_HEADER;

    memcpy(s->mask, h->bits == 16 ? of_16 : of_32, sizeof(s->mask));
    if (h->compression != BITFIELDS)
        return 0;
    if (p->len < at + 12)
        return ddp__fail(DDP_EDATA,
                         "is not a valid BMP image: it is truncated");
    for (int c = 0; c < 3; c++)
        s->mask[c] = get_32(p->data + at + 4 * (size_t)c);
    return 0;
}

static int set_palette(struct state *s, const struct ddp__picture *p,
                       const struct header *h)
{
    size_t at = FILE_HEADER + h->size, entry = h->size == CORE_HEADER ? 3 : 4;
    size_t most = (size_t)1 << h->bits;
    size_t n = h->colours && h->colours < most ? h->colours : most;

    memset(s->palette, 0, sizeof(s->palette));
    if (n * entry > p->len - at)
        return ddp__fail(DDP_EDATA,
                         "is not a valid BMP image: it is truncated");
    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            s->palette[i][c] = p->data[at + entry * i + 2 - (size_t)c];
    return 0;
}

/* All rows must be there, as other formats' whole files must be. */
static int set_pixels(struct state *s, struct ddp__picture *p,
                      const struct header *h)
{
    int rc;

    s->down = h->h < 0;
    s->bits = (int)h->bits;
    if ((rc = ddp__picture_check(p, h->w, s->down ? -h->h : h->h, 8)) < 0)
        return rc;
    p->w = (int)h->w;
    p->h = (int)(s->down ? -h->h : h->h);
    s->row = ((size_t)p->w * h->bits + 31) / 32 * 4;
    if (h->offset > p->len || s->row > (p->len - h->offset) / (size_t)p->h)
        return ddp__fail(DDP_EDATA,
                         "is not a valid BMP image: %zu bytes, too few for its "
                         "%d x %d pixels",
                         p->len, p->w, p->h);
    s->pixels = p->data + h->offset;
    return 0;
}

static int open_image(void *state, struct ddp__picture *p)
{
    struct header h = {0};
    struct state *s = state;
    int rc;

    p->orientation = 1;
    if ((rc = read_header(p, &h)) < 0 || (rc = check_kind(&h)) < 0 ||
        (rc = set_pixels(s, p, &h)) < 0)
        return rc;
    return h.bits <= 8 ? set_palette(s, p, &h) : set_masks(s, p, &h);
}

/* ---- pixels ------------------------------------------------------------- */

static void read_palette(const struct state *s, const uint8_t *from, int w,
                         uint8_t *x)
{
    for (int i = 0; i < w; i++, x += 4) {
        int bit = i * s->bits;
        int index = from[bit / 8] >> (8 - s->bits - bit % 8);

        memcpy(x, s->palette[index & ((1 << s->bits) - 1)], 3);
    }
}

static uint8_t channel(uint32_t pixel, uint32_t mask)
{
    int shift = mask ? __builtin_ctz(mask) : 0;
    uint64_t most = mask >> shift;

    return most ? (uint8_t)(((pixel & mask) >> shift) * (uint64_t)255 / most)
                : 0;
}

static void read_masked(const struct state *s, const uint8_t *from, int w,
                        uint8_t *x)
{
    for (int i = 0; i < w; i++, x += 4, from += s->bits / 8) {
        uint32_t pixel = s->bits == 16 ? get_16(from) : get_32(from);

        for (int c = 0; c < 3; c++)
            x[c] = channel(pixel, s->mask[c]);
    }
}

static void read_bytes(const uint8_t *from, int w, uint8_t *x)
{
    for (int i = 0; i < w; i++, x += 4, from += 3) {
        x[0] = from[2];
        x[1] = from[1];
        x[2] = from[0];
    }
}

static int start_box(void *state, struct ddp__picture *p,
                     const struct ddp__box *b)
{
    struct state *s = state;

    p->stride = (size_t)p->w * 4;
    p->skip = b->x;
    s->y = b->y;
    return 0;
}

static int read_rows(void *state, struct ddp__picture *p, uint8_t *x, int n)
{
    struct state *s = state;

    for (; n > 0; n--, x += p->stride, s->y++) {
        int y = s->down ? s->y : p->h - 1 - s->y;
        const uint8_t *from = s->pixels + (size_t)y * s->row;

        if (s->bits <= 8)
            read_palette(s, from, p->w, x);
        else if (s->bits == 24)
            read_bytes(from, p->w, x);
        else
            read_masked(s, from, p->w, x);
    }
    return 0;
}

/* ---- the state ---------------------------------------------------------- */

static void *new_state(void)
{
    struct state *s = calloc(1, sizeof(*s));

    if (!s)
        ddp__fail(DDP_ENOMEM, "out of memory for a BMP decoder");
    return s;
}

static void close_image(void *state)
{
    (void)state;
}

static bool is_bmp(const uint8_t *data, size_t len)
{
    return len >= 2 && data[0] == 'B' && data[1] == 'M';
}

const struct ddp__format ddp__bmp = {
    .name = "BMP",
    .match = is_bmp,
    .new = new_state,
    .open = open_image,
    .box = start_box,
    .rows = read_rows,
    .close = close_image,
    .free = free,
};
