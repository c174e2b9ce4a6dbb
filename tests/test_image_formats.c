/* test_image_formats.c - images that are damaged, BMP and PNG
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#ifdef HAVE_PNG
#include <png.h>
#endif

#include "image_oracle.h"

/* ---- bad files ---------------------------------------------------------- */

static void check_bad(const char *what, const uint8_t *data, size_t len,
                      int64_t max_pixels, const char *says)
{
    static uint8_t x[32 * 32 * 3];
    struct ddp_image_options o,
        in = {IMAGE_DEFAULTS, .size = 32, .max_pixels = max_pixels};
    int rc;

    ddp__image_options(&in, 224, &o);
    rc = ddp__image_decode(data, len, &o, DDP__AS_STORED, 0, x);
    ok(rc == DDP_EDATA && strstr(ddp_errmsg(), says), "%s: a bad image", what);
    if (rc != DDP_EDATA || !strstr(ddp_errmsg(), says))
        diag("rc %d: %s", rc, ddp_errmsg());
}

/* Set the height and width in the frame header. */
static void set_size(struct bytes *b, int w, int h)
{
    for (size_t i = 2; i + 9 < b->len; i++)
        if (b->data[i] == 0xff &&
            (b->data[i + 1] == 0xc0 || b->data[i + 1] == 0xc2)) {
            b->data[i + 5] = (uint8_t)(h >> 8);
            b->data[i + 6] = (uint8_t)h;
            b->data[i + 7] = (uint8_t)(w >> 8);
            b->data[i + 8] = (uint8_t)w;
            return;
        }
}

/* The last scan of a progressive image of one colour, many times over. */
static struct bytes many_scans(int w, int h, int times)
{
    struct jpeg_kind k = {.w = w, .h = h, .in = JCS_RGB, .progressive = true};
    uint8_t *pixels = calloc((size_t)w * (size_t)h, 3);
    struct bytes b = make_jpeg(&k, pixels), r;
    size_t scan = b.len - 2, len;

    while (b.data[scan] != 0xff || b.data[scan + 1] != 0xda)
        scan--;
    len = b.len - 2 - scan;
    r.data = malloc(scan + len * (size_t)times + 2);
    memcpy(r.data, b.data, scan);
    for (int i = 0; i < times; i++)
        memcpy(r.data + scan + len * (size_t)i, b.data + scan, len);
    r.len = scan + len * (size_t)times + 2;
    memcpy(r.data + r.len - 2, "\xff\xd9", 2);
    free(pixels);
    free(b.data);
    return r;
}

/* Decoding a box at the top does not get to where the file ends. */
static void check_bad_top(const char *what, const uint8_t *data, size_t len)
{
    const struct ddp__crop c = {.box = {0, 0, 16, 8}, .w = 16, .h = 16};
    uint8_t x[16 * 16 * 3];

    ok(ddp__image_crop(data, len, most, &c, 16, 16, x) == DDP_EDATA &&
           strstr(ddp_errmsg(), "truncated"),
       "%s: a bad image", what);
}

static void test_bad(void)
{
    struct bytes b = make_photo(200, 150, 1), s;
    uint8_t *trailing = calloc(b.len + 1000, 1);
    uint8_t x[32 * 32 * 3];
    struct ddp_image_options o, in = {IMAGE_DEFAULTS, .size = 32};

    ddp__image_options(&in, 224, &o);
    memcpy(trailing, b.data, b.len);
    is_int(ddp__image_decode(trailing, b.len + 1000, &o, 0, 0, x), 0,
           "bytes after the end do no harm");
    check_bad("cut in half", b.data, b.len / 2, most, "truncated");
    check_bad_top("cut below the box", b.data, b.len / 2);
    check_bad("without its end", b.data, b.len - 2, most, "truncated");
    check_bad("header only", b.data, 100, most, "not a valid JPEG");
    check_bad("three bytes", b.data, 3, most, "not an image");
    check_bad("more pixels than the limit", b.data, b.len, 29999,
              "200 x 150 pixels, more than the limit 29999");
    set_size(&b, 0, 150);
    check_bad("no width", b.data, b.len, most, "not a valid JPEG");
    set_size(&b, 65500, 2700);
    check_bad("a bomb within the limit", b.data, b.len, most,
              "claims 65500 x 2700 pixels");
    set_size(&b, 65500, 65500);
    check_bad("a bomb beyond it", b.data, b.len, most, "more than the limit");
    s = many_scans(64, 64, 600);
    check_bad("600 scans", s.data, s.len, most, "more than 500 scans");
    free(s.data);
    s = many_scans(64, 64, 100);
    is_int(ddp__image_decode(s.data, s.len, &o, 0, 0, x), 0,
           "100 scans are accepted");
    free(s.data);
    s = many_scans(5000, 3000, 100);
    check_bad("100 scans of a large image", s.data, s.len, most,
              "scans of 5000 x 3000 pixels take too long");
    free(s.data);
    s = many_scans(5000, 3000, 1);
    is_int(ddp__image_decode(s.data, s.len, &o, 0, 0, x), 0,
           "the usual scans of one are accepted");
    free(s.data);
    check_bad("text", (const uint8_t *)"hello, world", 12, most,
              "not an image");
    check_bad("GIF", (const uint8_t *)"GIF89a......", 12, most,
#ifdef HAVE_GIF
              "is not a valid GIF"
#else
              "is a GIF"
#endif
    );
    check_bad("TIFF", (const uint8_t *)"II*\0\10\0\0\0\0\0......", 16, most,
#ifdef HAVE_TIFF
              "is not a valid TIFF"
#else
              "is a TIFF"
#endif
    );
    check_bad("AVIF", (const uint8_t *)"\0\0\0\20ftypavif\0\0\0\0", 16, most,
#ifdef HAVE_AVIF
              "is not a valid AVIF"
#else
              "is an AVIF"
#endif
    );
#ifdef HAVE_WEBP
    check_bad("WebP", (const uint8_t *)"RIFF\x8\0\0\0WEBPVP8 ", 16, most,
              "is not a valid WebP");
#else
    check_bad("WebP", (const uint8_t *)"RIFF....WEBPVP8 ", 16, most,
              "is a WebP");
#endif
    free(b.data);
    free(trailing);
}

/* ---- BMP ---------------------------------------------------------------- */

/* An image of 2 x 2 pixels in 16 bits: red, green; blue, white. */
enum { BMP_HEAD = 14 + 40 };

static struct bytes make_bmp(bool down, bool masks)
{
    static const uint16_t of_15[] = {0x7c00, 0x3e0, 0x1f, 0x7fff};
    static const uint16_t of_16[] = {0xf800, 0x7e0, 0x1f, 0xffff};
    static const uint32_t mask[] = {0xf800, 0x7e0, 0x1f};
    size_t head = BMP_HEAD + (masks ? sizeof(mask) : 0);
    struct bytes b = {calloc(1, head + 8), head + 8};
    int32_t size[] = {2, down ? -2 : 2};

    memcpy(b.data, "BM", 2);
    b.data[10] = (uint8_t)head;
    b.data[14] = 40;
    memcpy(b.data + 18, size, 8);
    b.data[26] = 1;
    b.data[28] = 16;
    b.data[30] = masks ? 3 : 0;
    if (masks)
        memcpy(b.data + BMP_HEAD, mask, sizeof(mask));
    for (int i = 0; i < 4; i++) {
        int at = down ? i : i ^ 2;

        memcpy(b.data + head + 2 * i, masks ? &of_16[at] : &of_15[at], 2);
    }
    return b;
}

/* By the definition of the format. */
static void test_bmp(void)
{
    static const uint8_t want[] = {255, 0, 0,   0,   255, 0,
                                   0,   0, 255, 255, 255, 255};
    const struct ddp__crop all = {.box = {0, 0, 2, 2}, .w = 2, .h = 2};
    uint8_t x[12];

    for (int i = 0; i < 4; i++) {
        struct bytes b = make_bmp(i & 1, i & 2);

        memset(x, 7, sizeof(x));
        ok(ddp__image_crop(b.data, b.len, 100, &all, 2, 2, x) == 0 &&
               !memcmp(x, want, sizeof(want)),
           "BMP of 16 bits%s%s", i & 1 ? ", the highest row first" : "",
           i & 2 ? ", with masks" : "");
        check_bad("BMP", b.data, b.len - 1, 100, "too few for its 2 x 2");
        b.data[30] = 1;
        check_bad("BMP", b.data, b.len, 100, "with compression 1");
        free(b.data);
    }
}

/* ---- PNG ---------------------------------------------------------------- */

#ifdef HAVE_PNG

static void png_write(png_structp png, png_bytep data, size_t len)
{
    struct bytes *b = png_get_io_ptr(png);

    b->data = realloc(b->data, b->len + len);
    memcpy(b->data + b->len, data, len);
    b->len += len;
}

static void png_flush_nothing(png_structp png)
{
    (void)png;
}

static struct bytes make_png(int w, int h, int depth, int colour, int interlace,
                             const uint8_t *x, size_t row)
{
    struct bytes b = {0};
    png_structp png =
        png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_color palette[256];
    png_bytep rows[256];

    for (int i = 0; i < 256; i++)
        palette[i] =
            (png_color){(png_byte)i, (png_byte)(255 - i), (png_byte)(i * 7)};
    png_set_write_fn(png, &b, png_write, png_flush_nothing);
    png_set_IHDR(png, info, (png_uint_32)w, (png_uint_32)h, depth, colour,
                 interlace, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (colour == PNG_COLOR_TYPE_PALETTE)
        png_set_PLTE(png, info, palette, 1 << depth);
    if (colour == PNG_COLOR_TYPE_PALETTE)
        png_set_tRNS(png, info, (png_bytep) "\0\200", 2, NULL);
    png_write_info(png, info);
    for (int i = 0; i < h; i++)
        rows[i] = (png_bytep)(uintptr_t)(x + (size_t)i * row);
    png_write_image(png, rows);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return b;
}

/* What one stored pixel is in 8 bits of red, green, blue: by the rules of
 * png.c, from bytes as they are stored. */
static void png_pixel(const uint8_t *row, int i, int depth, int colour,
                      uint8_t *rgb)
{
    int samples = colour == PNG_COLOR_TYPE_RGB          ? 3
                  : colour == PNG_COLOR_TYPE_RGB_ALPHA  ? 4
                  : colour == PNG_COLOR_TYPE_GRAY_ALPHA ? 2
                                                        : 1;
    int bytes = depth / 8, v;

    if (depth < 8) {
        v = row[i * depth / 8] >> (8 - depth - i * depth % 8);
        v &= (1 << depth) - 1;
        if (colour == PNG_COLOR_TYPE_GRAY)
            v = v * 255 / ((1 << depth) - 1);
    } else {
        v = row[i * samples * bytes];
    }
    for (int c = 0; c < 3; c++)
        rgb[c] = samples >= 3 ? row[(i * samples + c) * bytes] : (uint8_t)v;
    if (colour == PNG_COLOR_TYPE_PALETTE) {
        rgb[1] = (uint8_t)(255 - v);
        rgb[2] = (uint8_t)(v * 7);
    }
}

static void check_png(const char *what, int depth, int colour, int interlace)
{
    enum { W = 53, H = 38 };
    size_t row = W * 8;
    uint8_t *x = make_pixels(W, H, 8, 9), rgb[H * W * 3];
    struct bytes b = make_png(W, H, depth, colour, interlace, x, row);

    for (int i = 0; i < H; i++)
        for (int j = 0; j < W; j++)
            png_pixel(x + (size_t)i * row, j, depth, colour,
                      rgb + (i * W + j) * 3);
    ok(compare_boxes(&b, rgb, W, H, 30) <= 1,
       "PNG, %s: boxes of the image, within 1 level", what);
    free(x);
    free(b.data);
}

/* 280 MB of nothing in a third of a megabyte. */
static void test_empty_png(void)
{
    enum { W = 140000, H = 250 };
    uint8_t *x = calloc(W, 8);
    struct bytes b = make_png(W, H, 16, PNG_COLOR_TYPE_RGB_ALPHA, 0, x, 0);

    check_bad("a PNG that is a bomb", b.data, b.len, most,
              "to 280000000: images of more than");
    free(b.data);
    free(x);
}

static void test_png(void)
{
    struct bytes b;
    uint8_t *x = make_pixels(60, 50, 3, 2);

    check_png("RGB", 8, PNG_COLOR_TYPE_RGB, 0);
    check_png("RGB of 16 bits", 16, PNG_COLOR_TYPE_RGB, 0);
    check_png("alpha", 8, PNG_COLOR_TYPE_RGB_ALPHA, 0);
    check_png("alpha of 16 bits", 16, PNG_COLOR_TYPE_RGB_ALPHA, 0);
    check_png("gray", 8, PNG_COLOR_TYPE_GRAY, 0);
    check_png("gray of 1 bit", 1, PNG_COLOR_TYPE_GRAY, 0);
    check_png("gray of 2 bits", 2, PNG_COLOR_TYPE_GRAY, 0);
    check_png("gray of 16 bits", 16, PNG_COLOR_TYPE_GRAY, 0);
    check_png("gray and alpha", 8, PNG_COLOR_TYPE_GRAY_ALPHA, 0);
    check_png("palette", 8, PNG_COLOR_TYPE_PALETTE, 0);
    check_png("palette of 4 bits", 4, PNG_COLOR_TYPE_PALETTE, 0);
    check_png("RGB, interlaced", 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_ADAM7);
    check_png("palette, interlaced", 8, PNG_COLOR_TYPE_PALETTE,
              PNG_INTERLACE_ADAM7);
    b = make_png(60, 50, 8, PNG_COLOR_TYPE_RGB, 0, x, 180);
    check_bad("PNG cut in half", b.data, b.len / 2, most, "truncated");
    b.data[b.len / 2] ^= 0x55;
    check_bad("PNG with a wrong byte", b.data, b.len, most, "not a valid PNG");
    b.data[b.len / 2] ^= 0x55;
    b.data[16] = 0; /* width 60 to 12 x 2^8: the header's CRC is wrong too */
    b.data[18] = 12;
    check_bad("PNG with a wrong header", b.data, b.len, most,
              "not a valid PNG");
    free(b.data);
    free(x);
    test_empty_png();
}

#else

static void test_png(void)
{
    skip(1, "built without libpng");
    check_bad("PNG without libpng", (const uint8_t *)"\x89PNG\r\n\x1a\n", 8,
              most, "is a PNG");
}

#endif

int main(void)
{
    test_bad();
    test_bmp();
    test_png();
    return done_testing();
}
