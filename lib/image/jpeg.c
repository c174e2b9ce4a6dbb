/* jpeg.c - part of a JPEG image, by libjpeg-turbo
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Only the box is reconstructed: what is above it is skipped, what is left and
 * right of it is not transformed back, what is below it is not even read.  The
 * pixels are those of a decoder of the whole image.  Scaled transforms (1/2,
 * 1/4) would be faster for large boxes, but are other pixels: by up to 105 grey
 * levels in photographs resized to 1/2.1, still 25 at 1/8.
 */
#include "config.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "base/error.h"
#include "image/jpeg.h"

enum {
    MAX_SCANS = 500, /* of a progressive image; common ones have about ten */
    FEW_SCANS = 20,  /* that an image of any size may have */
    MARGIN = 2,      /* columns around the box that its chroma depends on */
    CHUNK = 16       /* rows at a time */
};
static const long max_memory = 1L << 30; /* of one decoder */
/* Pixels times scans, which the time to decode grows with: about 5 s. */
static const int64_t max_work = (int64_t)1 << 30;

struct state {
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr err;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    char text[JMSG_LENGTH_MAX];
    bool no_memory; /* the text is not the image's fault */
    bool truncated, damaged;
    JSAMPARRAY unused; /* a row of pixels to discard */
};

/* ---- errors ------------------------------------------------------------- */

static void leave_decoder(j_common_ptr c)
{
    struct state *s = c->client_data;

    c->err->format_message(c, s->text);
    s->no_memory = c->err->msg_code == JERR_OUT_OF_MEMORY;
    longjmp(s->jump, 1);
}

/* Accept damage that the decoder can skip, as Pillow does. */
static void count_warning(j_common_ptr c, int level)
{
    struct state *s = c->client_data;

    s->damaged |= level < 0;
    s->truncated |= level < 0 && c->err->msg_code == JWRN_JPEG_EOF;
}

/* Called between scans. */
static void watch_scans(j_common_ptr c)
{
    struct state *s = c->client_data;

    int64_t pixels = (int64_t)s->c.image_width * s->c.image_height;
    int scans = s->c.input_scan_number;

    if (scans <= MAX_SCANS &&
        (scans <= FEW_SCANS || scans <= max_work / pixels))
        return;
    snprintf(s->text, sizeof(s->text),
             "more than %d scans of %u x %u pixels take too long", scans - 1,
             s->c.image_width, s->c.image_height);
    longjmp(s->jump, 1);
}

static int fail_decoding(struct state *s)
{
    if (s->no_memory) {
        s->no_memory = false;
        return ddp__fail(DDP_ENOMEM, "out of memory to decode a JPEG image");
    }
    return ddp__fail(DDP_EDATA, "is not a valid JPEG image: %s", s->text);
}

/* ---- the state ---------------------------------------------------------- */

static void free_state(void *state)
{
    struct state *s = state;

    if (s)
        jpeg_destroy_decompress(&s->c);
    free(s);
}

static int create_decoder(struct state *s)
{
    s->c.err = jpeg_std_error(&s->err);
    s->c.client_data = s;
    s->err.error_exit = leave_decoder;
    s->err.emit_message = count_warning;
    if (setjmp(s->jump))
        return fail_decoding(s);
    jpeg_create_decompress(&s->c);
    s->c.mem->max_memory_to_use = max_memory;
    s->progress.progress_monitor = watch_scans;
    s->c.progress = &s->progress;
    return 0;
}

static void *new_state(void)
{
    struct state *s = calloc(1, sizeof(*s));

    if (!s) {
        ddp__fail(DDP_ENOMEM, "out of memory for a JPEG decoder");
    } else if (create_decoder(s) < 0) {
        free_state(s);
        s = NULL;
    }
    return s;
}

static void close_image(void *state)
{
    jpeg_abort_decompress(&((struct state *)state)->c);
}

/* ---- the header --------------------------------------------------------- */

static unsigned read_number(const uint8_t *p, int bytes, bool little)
{
    unsigned v = 0;

    for (int i = 0; i < bytes; i++)
        v = v << 8 | p[little ? bytes - 1 - i : i];
    return v;
}

/* The orientation of an EXIF block, or 1 if the block is invalid. */
static int exif_orientation(const uint8_t *p, size_t len)
{
    bool little;
    size_t at, n;

    if (len < 14 || memcmp(p, "Exif\0", 6))
        return 1;
    p += 6;
    len -= 6;
    little = p[0] == 'I';
    at = read_number(p + 4, 4, little);
    if (at > len - 2)
        return 1;
    n = read_number(p + at, 2, little);
    for (at += 2; n > 0 && at + 12 <= len; n--, at += 12) {
        unsigned value = read_number(p + at + 8, 2, little);

        if (read_number(p + at, 2, little) == 0x112)
            return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

static int orientation(const struct state *s)
{
    const struct jpeg_marker_struct *m;

    for (m = s->c.marker_list; m; m = m->next)
        if (m->marker == JPEG_APP0 + 1 && m->data_length > 6 &&
            !memcmp(m->data, "Exif\0", 6))
            return exif_orientation(m->data, m->data_length);
    return 1;
}

/* Whether the image ends with its marker.  A truncated file does not, and is
 * refused even if the box is complete. */
static bool has_end(const struct state *s)
{
    const uint8_t *p = s->c.src->next_input_byte;
    const uint8_t *end = p + s->c.src->bytes_in_buffer;

    while (end - p >= 2 && (end = memrchr(p, 0xff, (size_t)(end - p - 1))))
        if (end[1] == 0xd9)
            return true;
        else if (end == p)
            return false;
        else
            end++;
    return false;
}

/* A block of 64 pixels takes at least one bit, less with an arithmetic
 * coder. */
static int64_t most_pixels(const struct state *s)
{
    return s->c.arith_code ? 8 * 64 * 64 : 8 * 64;
}

/* Everything in the header is checked before memory for pixels is
 * allocated.  libjpeg reports errors by a jump to the setjmp(). */
static int open_image(void *state, struct ddp__picture *p)
{
    struct state *s = state;
    int rc;

    s->truncated = s->damaged = false;
    s->err.num_warnings = 0;
    if (setjmp(s->jump))
        return fail_decoding(s);
    jpeg_save_markers(&s->c, JPEG_APP0 + 1, p->upright ? 0xffff : 0);
    jpeg_mem_src(&s->c, p->data, p->len);
    jpeg_read_header(&s->c, TRUE);
    rc = ddp__picture_check(p, s->c.image_width, s->c.image_height,
                            most_pixels(s));
    if (rc < 0)
        return rc;
    if (s->c.num_components != 1 && s->c.num_components < 3)
        return ddp__fail(DDP_EDATA,
                         "has %d colour components, expected 1, 3 "
                         "or 4",
                         s->c.num_components);
    if (!has_end(s))
        return ddp__fail(DDP_EDATA,
                         "is truncated: a JPEG image of %d x %d "
                         "without its end",
                         (int)s->c.image_width, (int)s->c.image_height);
    p->w = (int)s->c.image_width;
    p->h = (int)s->c.image_height;
    p->orientation = p->upright ? orientation(s) : 1;
    return 0;
}

/* ---- pixels ------------------------------------------------------------- */

/* Whether libjpeg-turbo can decode only some columns, and skip rows.  The
 * result is the same to the bit for the usual kinds of chroma subsampling. */
static bool can_crop(const struct jpeg_decompress_struct *c)
{
    if (c->num_components == 1)
        return true;
    if (c->num_components != 3 || c->max_h_samp_factor > 2 ||
        c->max_v_samp_factor > 2)
        return false;
    for (int i = 1; i < 3; i++)
        if (c->comp_info[i].h_samp_factor != 1 ||
            c->comp_info[i].v_samp_factor != 1)
            return false;
    return c->comp_info[0].h_samp_factor >= c->comp_info[0].v_samp_factor;
}

/* Skip columns far from those of the box. */
static void crop_columns(struct state *s, struct ddp__picture *p,
                         const struct ddp__box *b)
{
    JDIMENSION at = b->x > MARGIN ? (JDIMENSION)(b->x - MARGIN) : 0;
    JDIMENSION end = (JDIMENSION)(b->x + b->w + MARGIN);

    if (end > s->c.output_width)
        end = s->c.output_width;
    end -= at;
    jpeg_crop_scanline(&s->c, &at, &end);
    p->skip = b->x - (int)at;
}

static void skip_rows(struct state *s, bool cropped, int n)
{
    if (cropped && n > 0)
        n -= (int)jpeg_skip_scanlines(&s->c, (JDIMENSION)n);
    if (n <= 0)
        return;
    s->unused = s->c.mem->alloc_sarray((j_common_ptr)&s->c, JPOOL_IMAGE,
                                       s->c.output_width * 4, 1);
    while (n > 0)
        n -= (int)jpeg_read_scanlines(&s->c, s->unused, 1);
}

static int start_box(void *state, struct ddp__picture *p,
                     const struct ddp__box *b)
{
    struct state *s = state;
    bool crop;

    if (setjmp(s->jump))
        return fail_decoding(s);
    crop = can_crop(&s->c);
    s->c.out_color_space = s->c.num_components == 4 ? JCS_CMYK : JCS_EXT_RGBX;
    jpeg_start_decompress(&s->c);
    p->skip = b->x;
    if (crop && b->w < p->w)
        crop_columns(s, p, b);
    p->stride = (size_t)s->c.output_width * 4;
    skip_rows(s, crop, b->y);
    return 0;
}

/* a b / 255, rounded */
static unsigned scale_by(unsigned a, unsigned b)
{
    unsigned t = a * b + 128;

    return ((t >> 8) + t) >> 8;
}

/* Adobe's inverted CMYK, in place; as Pillow converts it. */
static void cmyk_to_rgb(uint8_t *x, size_t n)
{
    for (; n > 0; n--, x += 4)
        for (int i = 0; i < 3; i++)
            x[i] = (uint8_t)(x[3] - scale_by(255u - x[i], x[3]));
}

static int read_some(struct state *s, const struct ddp__picture *p, uint8_t *x,
                     int n)
{
    JSAMPROW row[CHUNK];

    if (setjmp(s->jump))
        return fail_decoding(s);
    for (int i = 0; i < n; i++)
        row[i] = x + (size_t)i * p->stride;
    return (int)jpeg_read_scanlines(&s->c, row, (JDIMENSION)n);
}

static int read_rows(void *state, struct ddp__picture *p, uint8_t *x, int n)
{
    struct state *s = state;
    int done = 0, got;

    while (done < n) {
        got = read_some(s, p, x + (size_t)done * p->stride,
                        n - done < CHUNK ? n - done : CHUNK);
        if (got < 0)
            return got;
        done += got;
    }
    p->damaged = s->damaged;
    if (s->truncated)
        return ddp__fail(DDP_EDATA, "is truncated");
    if (s->c.num_components == 4)
        cmyk_to_rgb(x, (size_t)n * s->c.output_width);
    return 0;
}

static bool is_jpeg(const uint8_t *data, size_t len)
{
    return len > 3 && !memcmp(data, "\xff\xd8\xff", 3);
}

const struct ddp__format ddp__jpeg = {
    .name = "JPEG",
    .match = is_jpeg,
    .new = new_state,
    .open = open_image,
    .box = start_box,
    .rows = read_rows,
    .close = close_image,
    .free = free_state,
};
