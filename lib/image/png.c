/* png.c - PNG images, by libpng
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * All kinds of PNG become 8 bits of red, green and blue as Pillow's
 * convert('RGB') has them: palettes are looked up, alpha is dropped, of 16 bits
 * the upper 8 are taken (also of gray ones, which Pillow clips to white).
 */
#include "config.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "base/error.h"
#include "image/png.h"

struct state {
    png_structp png;
    png_infop info;
    const uint8_t *at, *end; /* of the file */
    char text[128];
    bool no_memory; /* the text is not the image's fault */
    uint8_t *all;   /* an interlaced image, whole; owned */
    int y, end_of_box, h;
};

/* ---- libpng's calls ----------------------------------------------------- */

static void leave_decoder(png_structp png, png_const_charp text)
{
    struct state *s = png_get_error_ptr(png);

    snprintf(s->text, sizeof(s->text), "%s", text);
    longjmp(png_jmpbuf(png), 1);
}

static void ignore_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void give_bytes(png_structp png, png_bytep data, size_t len)
{
    struct state *s = png_get_io_ptr(png);

    if (len > (size_t)(s->end - s->at))
        png_error(png, "the file is truncated");
    memcpy(data, s->at, len);
    s->at += len;
}

static png_voidp allocate(png_structp png, png_alloc_size_t size)
{
    struct state *s = png_get_mem_ptr(png);
    void *p = malloc(size);

    s->no_memory = s->no_memory || !p;
    return p;
}

static void release(png_structp png, png_voidp p)
{
    (void)png;
    free(p);
}

static int fail_decoding(const struct state *s)
{
    if (s->no_memory)
        return ddp__fail(DDP_ENOMEM, "out of memory to decode a PNG image");
    return ddp__fail(DDP_EDATA, "is not a valid PNG image: %s", s->text);
}

/* ---- the state ---------------------------------------------------------- */

static void *new_state(void)
{
    struct state *s = calloc(1, sizeof(*s));

    if (!s)
        ddp__fail(DDP_ENOMEM, "out of memory for a PNG decoder");
    return s;
}

static void close_image(void *state)
{
    struct state *s = state;

    png_destroy_read_struct(&s->png, &s->info, NULL);
    free(s->all);
    *s = (struct state){0};
}

static void free_state(void *state)
{
    if (state)
        close_image(state);
    free(state);
}

/* ---- the header --------------------------------------------------------- */

/* Deflate makes at most 1032 bytes of one. */
static int64_t most_pixels(const struct state *s)
{
    int bits =
        png_get_bit_depth(s->png, s->info) * png_get_channels(s->png, s->info);

    return 1032 * 8 / bits;
}

static int open_image(void *state, struct ddp__picture *p)
{
    struct state *s = state;
    int rc;

    s->at = p->data;
    s->end = p->data + p->len;
    s->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, s, leave_decoder,
                                      ignore_warning, s, allocate, release);
    if (!s->png || !(s->info = png_create_info_struct(s->png)))
        return ddp__fail(DDP_ENOMEM, "out of memory for a PNG decoder");
    if (setjmp(png_jmpbuf(s->png)))
        return fail_decoding(s);
    png_set_read_fn(s->png, s, give_bytes);
    png_set_keep_unknown_chunks(s->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(s->png, s->info);
    p->w = (int)png_get_image_width(s->png, s->info);
    p->h = s->h = (int)png_get_image_height(s->png, s->info);
    p->orientation = 1;
    rc = ddp__picture_check(p, p->w, p->h, most_pixels(s));
    if (rc < 0) /* by what deflate can do at most */
        return rc;
    return ddp__picture_check_expansion(p, png_get_rowbytes(s->png, s->info) *
                                               (size_t)p->h);
}

/* ---- pixels ------------------------------------------------------------- */

/* Request red, green, blue and a fourth byte. */
static void transform(struct state *s)
{
    png_byte colour = png_get_color_type(s->png, s->info);

    if (colour == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(s->png);
    if (colour == PNG_COLOR_TYPE_GRAY)
        png_set_expand_gray_1_2_4_to_8(s->png);
    if (!(colour & PNG_COLOR_MASK_COLOR))
        png_set_gray_to_rgb(s->png);
    png_set_strip_16(s->png);
    png_set_strip_alpha(s->png);
    png_set_filler(s->png, 0xff, PNG_FILLER_AFTER);
}

/* Adam7's passes need all rows at once. */
static int read_interlaced(struct state *s, struct ddp__picture *p, int passes)
{
    if (!(s->all = malloc(p->stride * (size_t)p->h)))
        return ddp__fail(DDP_ENOMEM, "out of memory for a PNG image");
    for (; passes > 0; passes--)
        for (int y = 0; y < p->h; y++)
            png_read_row(s->png, s->all + (size_t)y * p->stride, NULL);
    return 0;
}

static int start_box(void *state, struct ddp__picture *p,
                     const struct ddp__box *b)
{
    struct state *s = state;
    int passes, rc = 0;

    if (setjmp(png_jmpbuf(s->png)))
        return fail_decoding(s);
    transform(s);
    passes = png_set_interlace_handling(s->png);
    png_read_update_info(s->png, s->info);
    p->stride = (size_t)p->w * 4;
    p->skip = b->x;
    if (png_get_rowbytes(s->png, s->info) != p->stride)
        return ddp__fail(DDP_EDATA, "has an unexpected pixel format");
    if (passes > 1 && (rc = read_interlaced(s, p, passes)) < 0)
        return rc;
    for (s->y = 0; s->y < b->y && !s->all; s->y++)
        png_read_row(s->png, NULL, NULL);
    s->y = b->y;
    s->end_of_box = b->y + b->h;
    return 0;
}

/* Whether a file counts as damaged must not depend on the box. */
static void read_below(struct state *s)
{
    for (; s->y < s->h && !s->all; s->y++)
        png_read_row(s->png, NULL, NULL);
}

static int read_rows(void *state, struct ddp__picture *p, uint8_t *x, int n)
{
    struct state *s = state;
    volatile int done = 0; /* setjmp() */

    if (setjmp(png_jmpbuf(s->png)))
        return fail_decoding(s);
    for (; done < n; done++, s->y++) {
        uint8_t *row = x + (size_t)done * p->stride;

        if (s->all)
            memcpy(row, s->all + (size_t)s->y * p->stride, p->stride);
        else
            png_read_row(s->png, row, NULL);
    }
    if (s->y == s->end_of_box)
        read_below(s);
    return 0;
}

static bool is_png(const uint8_t *data, size_t len)
{
    return len >= 8 && png_sig_cmp(data, 0, 8) == 0;
}

const struct ddp__format ddp__png = {
    .name = "PNG",
    .match = is_png,
    .new = new_state,
    .open = open_image,
    .box = start_box,
    .rows = read_rows,
    .close = close_image,
    .free = free_state,
};
