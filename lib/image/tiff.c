/* tiff.c - TIFF images, by libtiff
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The first picture of a file, if it is gray, of a palette or RGB, with 1 or 8
 * bits per channel in rows; alpha is dropped.  Pixels are Pillow's.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tiffio.h>

#include "base/error.h"
#include "image/tiff.h"
#include "image/whole.h"

static const tmsize_t max_alloc = 1 << 28; /* of libtiff, at a time */

/* A file in memory, and its picture. */
struct reading {
    const uint8_t *data;
    size_t len, at;
    TIFF *tiff;     /* owned */
    char text[160]; /* what libtiff says is wrong */
    uint32_t w, h;
    uint16_t bits, channels, kind, orientation;
    uint8_t palette[256][3]; /* of gray and palettes */
};

/* ---- the file ----------------------------------------------------------- */

static tmsize_t read_bytes(thandle_t arg, void *to, tmsize_t n)
{
    struct reading *r = arg;
    size_t some = r->at < r->len ? r->len - r->at : 0;

    some = some < (size_t)n ? some : (size_t)n;
    memcpy(to, r->data + r->at, some);
    r->at += some;
    return (tmsize_t)some;
}

static tmsize_t write_bytes(thandle_t arg, void *from, tmsize_t n)
{
    (void)arg;
    (void)from;
    (void)n;
    return 0;
}

static toff_t seek(thandle_t arg, toff_t to, int whence)
{
    struct reading *r = arg;

    r->at = whence == SEEK_SET   ? (size_t)to
            : whence == SEEK_CUR ? r->at + (size_t)to
                                 : r->len + (size_t)to;
    return r->at;
}

static int close_nothing(thandle_t arg)
{
    (void)arg;
    return 0;
}

static toff_t size_of(thandle_t arg)
{
    return ((struct reading *)arg)->len;
}

/* The first message says most. */
static int keep_error(TIFF *t, void *arg, const char *module, const char *fmt,
                      va_list ap)
{
    struct reading *r = arg;

    (void)t;
    (void)module;
    if (!*r->text)
        vsnprintf(r->text, sizeof(r->text), fmt, ap);
    return 1;
}

static int ignore_warning(TIFF *t, void *arg, const char *module,
                          const char *fmt, va_list ap)
{
    (void)t;
    (void)arg;
    (void)module;
    (void)fmt;
    (void)ap;
    return 1;
}

static int fail_invalid(const struct reading *r)
{
    return ddp__fail(DDP_EDATA, "is not a valid TIFF image: %s",
                     *r->text ? r->text : "it is damaged or truncated");
}

static int open_file(struct reading *r)
{
    TIFFOpenOptions *o = TIFFOpenOptionsAlloc();

    if (!o)
        return ddp__fail(DDP_ENOMEM, "out of memory for a TIFF decoder");
    TIFFOpenOptionsSetMaxSingleMemAlloc(o, max_alloc);
    TIFFOpenOptionsSetErrorHandlerExtR(o, keep_error, r);
    TIFFOpenOptionsSetWarningHandlerExtR(o, ignore_warning, r);
    r->tiff = TIFFClientOpenExt("memory", "rm", r, read_bytes, write_bytes,
                                seek, close_nothing, size_of, NULL, NULL, o);
    TIFFOpenOptionsFree(o);
    return r->tiff ? 0 : fail_invalid(r);
}

/* ---- the header --------------------------------------------------------- */

/* Gray levels as colours, dark to light or light to dark. */
static void set_grays(struct reading *r)
{
    int most = (1 << r->bits) - 1;

    for (int i = 0; i <= most; i++)
        memset(r->palette[i],
               255 * (r->kind == PHOTOMETRIC_MINISWHITE ? most - i : i) / most,
               3);
}

static bool set_palette(struct reading *r)
{
    uint16_t *map[3];

    if (r->kind != PHOTOMETRIC_PALETTE) {
        set_grays(r);
        return true;
    }
    if (!TIFFGetField(r->tiff, TIFFTAG_COLORMAP, &map[0], &map[1], &map[2]))
        return false;
    for (int i = 0; i < 1 << r->bits; i++)
        for (int c = 0; c < 3; c++)
            r->palette[i][c] = (uint8_t)(map[c][i] >> 8);
    return true;
}

static bool is_indexed(const struct reading *r)
{
    return r->kind == PHOTOMETRIC_PALETTE ||
           r->kind == PHOTOMETRIC_MINISBLACK ||
           r->kind == PHOTOMETRIC_MINISWHITE;
}

/* Kinds that read_row() knows. */
static int check_kind(struct reading *r)
{
    uint16_t planes = PLANARCONFIG_CONTIG;
    bool indexed = is_indexed(r);

    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_PLANARCONFIG, &planes);
    if (!TIFFIsTiled(r->tiff) &&
        (planes == PLANARCONFIG_CONTIG || r->channels == 1) &&
        (r->bits == 8 ? indexed ? r->channels >= 1
                                : r->kind == PHOTOMETRIC_RGB && r->channels >= 3
                      : r->bits == 1 && r->channels == 1 && indexed))
        return set_palette(r) ? 0 : fail_invalid(r);
    return ddp__fail(DDP_EDATA,
                     "is a TIFF image of %d channels of %d bits, of "
                     "photometric kind %d%s: expected gray, a palette or RGB "
                     "of 8 bits, in rows",
                     r->channels, r->bits, r->kind,
                     TIFFIsTiled(r->tiff) ? ", in tiles" : "");
}

/* JPEG's colours inside of a TIFF become RGB. */
static void read_kind(struct reading *r)
{
    uint16_t packing = COMPRESSION_NONE;

    r->orientation = 1;
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_BITSPERSAMPLE, &r->bits);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_SAMPLESPERPIXEL, &r->channels);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_ORIENTATION, &r->orientation);
    TIFFGetFieldDefaulted(r->tiff, TIFFTAG_COMPRESSION, &packing);
    if (!TIFFGetField(r->tiff, TIFFTAG_PHOTOMETRIC, &r->kind))
        r->kind = PHOTOMETRIC_MINISBLACK;
    if (packing == COMPRESSION_JPEG && r->kind == PHOTOMETRIC_YCBCR) {
        TIFFSetField(r->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
        r->kind = PHOTOMETRIC_RGB;
    }
}

/* Open the file and read its header: w and h are checked before the rest. */
static int read_header(struct reading *r, struct ddp__picture *p)
{
    int rc = open_file(r);

    if (rc < 0)
        return rc;
    if (!TIFFGetField(r->tiff, TIFFTAG_IMAGEWIDTH, &r->w) ||
        !TIFFGetField(r->tiff, TIFFTAG_IMAGELENGTH, &r->h))
        return fail_invalid(r);
    if ((rc = ddp__whole_check(p, r->w, r->h)) < 0)
        return rc;
    read_kind(r);
    return check_kind(r);
}

static void end_reading(struct reading *r)
{
    if (r->tiff)
        TIFFClose(r->tiff);
}

static int open_image(void *state, struct ddp__picture *p)
{
    struct reading r = {.data = p->data, .len = p->len};
    int rc = read_header(&r, p);

    (void)state;
    p->orientation = p->upright && r.orientation >= 1 && r.orientation <= 8
                         ? r.orientation
                         : 1;
    end_reading(&r);
    return rc;
}

/* ---- pixels ------------------------------------------------------------- */

static void convert_row(const struct reading *r, const uint8_t *from,
                        uint8_t *to)
{
    for (uint32_t i = 0; i < r->w; i++, to += 4)
        if (r->bits == 1)
            memcpy(to, r->palette[from[i / 8] >> (7 - i % 8) & 1], 3);
        else if (is_indexed(r))
            memcpy(to, r->palette[from[(size_t)i * r->channels]], 3);
        else
            memcpy(to, from + (size_t)i * r->channels, 3);
}

/* A row may be no shorter than the header says. */
static int read_picture(struct reading *r, const struct ddp__picture *p,
                        struct ddp__whole *s)
{
    tmsize_t need = ((tmsize_t)r->w * r->channels * r->bits + 7) / 8;
    tmsize_t size = TIFFScanlineSize(r->tiff);
    uint8_t *row;
    bool good = true;

    if (size < need)
        return fail_invalid(r);
    if (!(row = malloc((size_t)size)))
        return ddp__fail(DDP_ENOMEM, "out of memory to decode a TIFF image");
    for (uint32_t y = 0; good && y < r->h; y++) {
        good = TIFFReadScanline(r->tiff, row, y, 0) == 1;
        if (good)
            convert_row(r, row, s->x + (size_t)y * p->stride);
    }
    free(row);
    return good ? 0 : fail_invalid(r);
}

static int start_box(void *state, struct ddp__picture *p,
                     const struct ddp__box *b)
{
    struct reading r = {.data = p->data, .len = p->len};
    int rc = ddp__whole_reserve(state, p, b);

    if (rc == 0 && (rc = read_header(&r, p)) == 0)
        rc = read_picture(&r, p, state);
    end_reading(&r);
    return rc;
}

static bool is_tiff(const uint8_t *data, size_t len)
{
    return len >= 4 && (!memcmp(data, "II*\0", 4) || !memcmp(data, "MM\0*", 4));
}

const struct ddp__format ddp__tiff = {
    .name = "TIFF",
    .match = is_tiff,
    .new = ddp__whole_new,
    .open = open_image,
    .box = start_box,
    .rows = ddp__whole_rows,
    .close = ddp__whole_close,
    .free = ddp__whole_free,
};
