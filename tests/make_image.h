/* make_image.h - image files for tests, of every kind that is met
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef MAKE_IMAGE_H
#define MAKE_IMAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#define MAKE_UNUSED __attribute__((unused))

struct bytes {
    uint8_t *data;
    size_t len;
};

/* Smooth colours with some noise, (h, w, c); the caller frees. */
static MAKE_UNUSED uint8_t *make_pixels(int w, int h, int c, uint32_t seed)
{
    uint8_t *x = malloc((size_t)w * (size_t)h * (size_t)c), *p = x;

    for (int i = 0; i < h; i++)
        for (int j = 0; j < w; j++)
            for (int k = 0; k < c; k++) {
                seed = seed * 1664525u + 1013904223u;
                *p++ = (uint8_t)(((i * (5 + k) + j * (7 - k)) / 3 * 2 % 200) +
                                 (int)(seed >> 27));
            }
    return x;
}

struct jpeg_kind {
    int w, h;
    J_COLOR_SPACE in;     /* of the pixels */
    J_COLOR_SPACE stored; /* JCS_UNKNOWN: the usual for in */
    int hs, vs;           /* sampling of the first component; 0: 2 and 2 */
    bool progressive;
    int restart;         /* rows of blocks between restart markers */
    const uint8_t *app1; /* an EXIF block */
    unsigned app1_len;
};

static MAKE_UNUSED int components(J_COLOR_SPACE s)
{
    return s == JCS_GRAYSCALE ? 1 : s == JCS_CMYK ? 4 : 3;
}

static MAKE_UNUSED struct bytes make_jpeg(const struct jpeg_kind *k,
                                          const uint8_t *x)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr err;
    unsigned char *out = NULL;
    unsigned long len = 0;
    int n = components(k->in);

    c.err = jpeg_std_error(&err);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &out, &len);
    c.image_width = (JDIMENSION)k->w;
    c.image_height = (JDIMENSION)k->h;
    c.input_components = n;
    c.in_color_space = k->in;
    jpeg_set_defaults(&c);
    if (k->stored != JCS_UNKNOWN)
        jpeg_set_colorspace(&c, k->stored);
    jpeg_set_quality(&c, 90, TRUE);
    if (n > 1 || k->hs) {
        c.comp_info[0].h_samp_factor = k->hs ? k->hs : 2;
        c.comp_info[0].v_samp_factor = k->vs ? k->vs : 2;
        if (n == 4) {
            c.comp_info[3].h_samp_factor = c.comp_info[0].h_samp_factor;
            c.comp_info[3].v_samp_factor = c.comp_info[0].v_samp_factor;
        }
    }
    c.restart_in_rows = k->restart;
    if (k->progressive)
        jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    if (k->app1)
        jpeg_write_marker(&c, JPEG_APP0 + 1, k->app1, k->app1_len);
    while (c.next_scanline < c.image_height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(x + (size_t)c.next_scanline *
                                                     (size_t)(k->w * n));

        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    return (struct bytes){out, len};
}

/* A colour JPEG of w x h of the usual kind. */
static MAKE_UNUSED struct bytes make_photo(int w, int h, uint32_t seed)
{
    struct jpeg_kind k = {.w = w, .h = h, .in = JCS_RGB};
    uint8_t *x = make_pixels(w, h, 3, seed);
    struct bytes b = make_jpeg(&k, x);

    free(x);
    return b;
}

/* The whole image as libjpeg decodes it by default; (h, w, 3), or 4 of CMYK. */
static MAKE_UNUSED uint8_t *decode_whole(const struct bytes *b, int *w, int *h,
                                         int *n)
{
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr err;
    uint8_t *x;

    c.err = jpeg_std_error(&err);
    jpeg_create_decompress(&c);
    jpeg_mem_src(&c, b->data, b->len);
    jpeg_read_header(&c, TRUE);
    c.out_color_space = c.num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&c);
    *w = (int)c.output_width;
    *h = (int)c.output_height;
    *n = c.output_components;
    x = malloc((size_t)*w * (size_t)*h * (size_t)*n);
    while (c.output_scanline < c.output_height) {
        JSAMPROW row = x + (size_t)c.output_scanline * (size_t)(*w * *n);

        jpeg_read_scanlines(&c, &row, 1);
    }
    jpeg_finish_decompress(&c);
    jpeg_destroy_decompress(&c);
    return x;
}

static MAKE_UNUSED bool write_file(const char *path, const void *data,
                                   size_t len)
{
    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(data, 1, len, f) == len;

    return f && fclose(f) == 0 && good;
}

#endif
