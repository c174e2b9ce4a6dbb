/* test_image.c - decoding, cropping and resizing, against plain definitions
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The oracle here decodes the whole image by libjpeg's defaults and resizes a
 * copy of the box in double precision.  test_pillow.c compares with Pillow and
 * torchvision themselves.
 */
#include "config.h"

#include <math.h>

#ifdef HAVE_PNG
#include <png.h>
#endif

#include "image/cache.h"
#include "image/image.h"
#include "defaults.h"
#include "make_image.h"
#include "tap.h"

static const int64_t most = 178956970;

/* ---- the oracle --------------------------------------------------------- */

/* n values, `step` apart, to m: the triangle filter, rounded to 8 bits. */
static void resize_line(const uint8_t *x, int n, int step, double *y, int m)
{
    double scale = (double)n / m, reach = scale > 1 ? scale : 1;

    for (int i = 0; i < m; i++) {
        double centre = (i + 0.5) * scale, sum = 0, weights = 0;

        for (int j = 0; j < n; j++) {
            double w = 1 - fabs(j + 0.5 - centre) / reach;

            if (w > 0) {
                sum += w * x[j * step];
                weights += w;
            }
        }
        y[i] = floor(sum / weights + 0.5);
    }
}

/* The box of the image (h, w, 3) to w2 x h2: rows first, then columns. */
static uint8_t *resize_box(const uint8_t *x, int w, const struct ddp__box *b,
                           int w2, int h2)
{
    uint8_t *across = malloc((size_t)b->h * (size_t)w2 * 3);
    uint8_t *y = malloc((size_t)h2 * (size_t)w2 * 3);
    double *line = malloc(sizeof(*line) * (size_t)(w2 > h2 ? w2 : h2));

    for (int i = 0; i < b->h; i++)
        for (int c = 0; c < 3; c++) {
            resize_line(x + ((b->y + i) * w + b->x) * 3 + c, b->w, 3, line, w2);
            for (int j = 0; j < w2; j++)
                across[(i * w2 + j) * 3 + c] = (uint8_t)line[j];
        }
    for (int j = 0; j < 3 * w2; j++) {
        resize_line(across + j, b->h, 3 * w2, line, h2);
        for (int i = 0; i < h2; i++)
            y[i * w2 * 3 + j] = (uint8_t)line[i];
    }
    free(across);
    free(line);
    return y;
}

/* Adobe's inverted CMYK to RGB. */
static void to_rgb(uint8_t *x, int pixels)
{
    for (int i = 0; i < pixels; i++)
        for (int c = 0; c < 3; c++)
            x[3 * i + c] = (uint8_t)(x[4 * i + c] * x[4 * i + 3] / 255.0 + 0.5);
}

static int largest_difference(const uint8_t *a, const uint8_t *b, int n)
{
    int most_so_far = 0;

    for (int i = 0; i < n; i++)
        if (abs(a[i] - b[i]) > most_so_far)
            most_so_far = abs(a[i] - b[i]);
    return most_so_far;
}

/* Crops of random boxes of the image rgb (h, w, 3) that b holds, against the
 * oracle: the largest difference, or 1000 for a failure. */
static int compare_boxes(const struct bytes *b, const uint8_t *rgb, int w,
                         int h, int boxes)
{
    static const int sizes[] = {5, 16, 31, 64};
    static uint8_t x[64 * 64 * 3];
    int worst = 0;

    srand(w * 1000 + h);
    for (int i = 0; i < boxes; i++) {
        int size = sizes[i % 4], d;
        struct ddp__crop c = {.w = size, .h = size};
        uint8_t *want;

        c.box.w = 1 + rand() % w;
        c.box.h = 1 + rand() % h;
        c.box.x = rand() % (w - c.box.w + 1);
        c.box.y = rand() % (h - c.box.h + 1);
        if (ddp__image_crop(b->data, b->len, most, &c, size, size, x) < 0) {
            diag("%s", ddp_errmsg());
            return 1000;
        }
        want = resize_box(rgb, w, &c.box, size, size);
        d = largest_difference(x, want, size * size * 3);
        if (d > worst)
            worst = d;
        free(want);
    }
    return worst;
}

/* Samples of a file, and of its pixels as the cache keeps them: how many are
 * not the same, or -1 if the cache does not keep it. */
static int compare_kept(const struct bytes *b, int keys)
{
    enum { SIZE = 24 };
    static uint8_t x[SIZE * SIZE * 3], y[SIZE * SIZE * 3];
    struct ddp__decoded d;
    int wrong = 0;

    if (ddp__image_whole(b->data, b->len, most, (size_t)most, &d) < 0)
        return -1;
    for (int i = 0; i < keys; i++) {
        struct ddp_image_options o,
            in = {IMAGE_DEFAULTS, .size = SIZE, .upright = i / 3 % 2,
                  .augment = (enum ddp_augment)(i % 3)};
        uint64_t key = (uint64_t)i;

        ddp__image_options(&in, 224, &o);
        wrong += ddp__image_again(&d, &o, key, x) != 0 ||
                 ddp__image_decode(b->data, b->len, &o,
                                   o.upright ? DDP__UPRIGHT : DDP__AS_STORED,
                                   key, y) != 0 ||
                 memcmp(x, y, sizeof(x)) != 0;
    }
    free(d.rgb);
    return wrong;
}

/* ---- JPEG --------------------------------------------------------------- */

/* One grey level is for the rounding of weights to 22 bits, and for CMYK the
 * rounding of the conversion. */
static void check_jpeg(const char *what, struct jpeg_kind k)
{
    uint8_t *pixels = make_pixels(k.w, k.h, components(k.in), 1);
    struct bytes b = make_jpeg(&k, pixels);
    int w, h, n;
    uint8_t *rgb = decode_whole(&b, &w, &h, &n);

    if (n == 4)
        to_rgb(rgb, w * h);
    ok(compare_boxes(&b, rgb, w, h, 40) <= 1,
       "%s: boxes are those of the whole image, within 1 level", what);
    is_int(compare_kept(&b, 60), 0, "%s: the same from decoded pixels", what);
    free(pixels);
    free(rgb);
    free(b.data);
}

static void test_sampling(void)
{
    static const int hv[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {4, 2}};
    char what[64];

    for (int i = 0; i < 6; i++)
        for (int p = 0; p < 2; p++) {
            snprintf(what, sizeof(what), "JPEG %dx%d%s", hv[i][0], hv[i][1],
                     p ? ", progressive" : "");
            check_jpeg(what, (struct jpeg_kind){.w = 149,
                                                .h = 103,
                                                .in = JCS_RGB,
                                                .hs = hv[i][0],
                                                .vs = hv[i][1],
                                                .progressive = p});
        }
}

static void test_colours(void)
{
    struct jpeg_kind k = {.w = 90, .h = 71, .in = JCS_GRAYSCALE};

    check_jpeg("gray", k);
    k.progressive = true;
    check_jpeg("gray, progressive", k);
    k.hs = k.vs = 2;
    check_jpeg("gray with factors of 2, progressive", k);
    k.progressive = false;
    check_jpeg("gray with factors of 2", k);
    k.progressive = true;
    k.hs = k.vs = 0;
    k.in = JCS_CMYK;
    check_jpeg("CMYK, progressive", k);
    k.progressive = false;
    check_jpeg("CMYK", k);
    k.stored = JCS_YCCK;
    check_jpeg("YCCK", k);
    k.in = k.stored = JCS_RGB;
    k.hs = k.vs = 1;
    check_jpeg("RGB stored as it is", k);
}

static void test_shapes(void)
{
    struct jpeg_kind k = {.w = 200, .h = 100, .in = JCS_RGB, .restart = 1};

    check_jpeg("restart markers", k);
    k.restart = 0;
    k.w = 1;
    check_jpeg("1 x 100", k);
    k.h = 1;
    check_jpeg("1 x 1", k);
    k.w = 300;
    check_jpeg("300 x 1", k);
    k.w = 17;
    k.h = 16;
    check_jpeg("17 x 16", k);
}

/* ---- orientation -------------------------------------------------------- */

/* An EXIF block of one entry: the orientation. */
static void make_exif(uint8_t e[32], bool little, int orientation)
{
    static const uint8_t big[] = "Exif\0\0MM\0*\0\0\0\10\0\1\1\22\0\3\0\0\0\1";
    static const uint8_t small[] =
        "Exif\0\0II*\0\10\0\0\0\1\0\22\1\3\0\1\0\0\0";

    memset(e, 0, 32);
    memcpy(e, little ? small : big, 24);
    e[little ? 24 : 25] = (uint8_t)orientation;
}

/* Where pixel (u, v) of the upright image lies in the stored one. */
static int stored_at(int o, int u, int v, int w, int h)
{
    int a = o >= 5 ? v : u, b = o >= 5 ? u : v;

    if (o == 2 || o == 3 || o == 7 || o == 8)
        a = w - 1 - a;
    if (o == 3 || o == 4 || o == 6 || o == 7)
        b = h - 1 - b;
    return 3 * (b * w + a);
}

static uint8_t *turn(const uint8_t *x, int w, int h, int o)
{
    int w2 = o >= 5 ? h : w, h2 = o >= 5 ? w : h;
    uint8_t *y = malloc((size_t)w * (size_t)h * 3);

    for (int v = 0; v < h2; v++)
        for (int u = 0; u < w2; u++)
            memcpy(y + 3 * (v * w2 + u), x + stored_at(o, u, v, w, h), 3);
    return y;
}

static void test_orientation(void)
{
    enum { W = 61, H = 43, SIZE = 32 };
    struct ddp_image_options o;
    struct jpeg_kind k = {.w = W, .h = H, .in = JCS_RGB, .app1_len = 32};
    struct ddp_image_options in = {IMAGE_DEFAULTS, .size = SIZE,
                                   .resize = SIZE};
    uint8_t *pixels = make_pixels(W, H, 3, 3), exif[32], x[SIZE * SIZE * 3];

    ddp__image_options(&in, 224, &o);
    k.app1 = exif;
    for (int i = 1; i <= 8; i++) {
        int w, h, n, w2 = i >= 5 ? H : W, h2 = i >= 5 ? W : H, at;
        struct ddp__box all = {0, 0, w2, h2};
        struct bytes b;
        uint8_t *rgb, *up, *want;
        /* The short side becomes SIZE; the cut is from the middle. */
        int rw = i >= 5 ? SIZE : SIZE * W / H,
            rh = i >= 5 ? SIZE * W / H : SIZE;

        make_exif(exif, i % 2, i);
        b = make_jpeg(&k, pixels);
        rgb = decode_whole(&b, &w, &h, &n);
        up = turn(rgb, W, H, i);
        want = resize_box(up, w2, &all, rw, rh);
        at = ((rh - SIZE) / 2 * rw + (int)rint((rw - SIZE) / 2.0)) * 3;
        if (i >= 5)
            at = (int)rint((rh - SIZE) / 2.0) * rw * 3;
        ddp__image_decode(b.data, b.len, &o, DDP__UPRIGHT, 0, x);
        n = 0;
        for (int r = 0; r < SIZE; r++) {
            int d = largest_difference(x + r * SIZE * 3, want + at + r * rw * 3,
                                       SIZE * 3);

            n = d > n ? d : n;
        }
        /* One level more: rows and columns change places before rounding. */
        ok(n <= 2, "EXIF orientation %d: turned upright", i);
        is_int(compare_kept(&b, 12), 0, "the same from decoded pixels");
        free(rgb);
        free(up);
        free(want);
        free(b.data);
    }
    free(pixels);
}

/* With any error in EXIF the image is decoded as it is stored. */
static void test_absurd_exif(void)
{
    static uint8_t long_block[60000];
    struct jpeg_kind k = {.w = 40, .h = 30, .in = JCS_RGB};
    struct ddp_image_options o, in = {IMAGE_DEFAULTS, .size = 16};
    uint8_t *pixels = make_pixels(40, 30, 3, 4), exif[32], x[768], plain[768];
    struct bytes b = make_jpeg(&k, pixels);
    int wrong = 0;

    ddp__image_options(&in, 224, &o);
    ddp__image_decode(b.data, b.len, &o, DDP__AS_STORED, 0, plain);
    free(b.data);
    for (int i = 0; i < 300; i++) {
        make_exif(exif, i % 2, 6);
        k.app1 = exif;
        k.app1_len = 32;
        if (i < 32)
            k.app1_len = (unsigned)i; /* cut short */
        else if (i < 200)
            exif[6 + i % 24] = (uint8_t)(i * 37); /* or with odd offsets */
        else if (i < 299)
            exif[i % 2 ? 24 : 25] = (uint8_t)(i % 9 ? i : 0);
        else {
            memcpy(long_block, exif, 14); /* or with 65535 entries */
            memset(long_block + 14, 0xff, sizeof(long_block) - 14);
            k.app1 = long_block;
            k.app1_len = sizeof(long_block);
        }
        b = make_jpeg(&k, pixels);
        wrong += ddp__image_decode(b.data, b.len, &o, DDP__UPRIGHT, 0, x) != 0;
        wrong += ddp__image_decode(b.data, b.len, &o, DDP__AS_STORED, 0, x) ||
                 memcmp(x, plain, sizeof(x));
        free(b.data);
    }
    is_int(wrong, 0, "absurd EXIF blocks do no harm");
    free(pixels);
}

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

/* ---- crops -------------------------------------------------------------- */

static void test_random_crop(void)
{
    struct ddp_image_options o,
        in = {IMAGE_DEFAULTS, .augment = DDP_AUGMENT_RANDOM};
    int wrong = 0, flips = 0, n = 4000;
    double areas = 0, ratios = 0, left = 0;

    ddp__image_options(&in, 224, &o);
    for (int i = 0; i < n; i++) {
        uint64_t key = (uint64_t)i * 0x9E3779B97F4A7C15u;
        struct ddp__crop c = ddp__augment(&o, key, 500, 375);
        double area = c.box.w * c.box.h / (500.0 * 375);
        double ratio = (double)c.box.w / c.box.h;

        wrong += c.box.x < 0 || c.box.y < 0 || c.box.w < 1 || c.box.h < 1 ||
                 c.box.x + c.box.w > 500 || c.box.y + c.box.h > 375 ||
                 area < 0.078 || ratio < 0.73 || ratio > 1.36 || c.w != 224 ||
                 c.h != 224;
        flips += c.flip;
        areas += area / n;
        ratios += log(ratio) / n;
        left += (c.box.x + c.box.w / 2.0) / 500 / n;
    }
    is_int(wrong, 0,
           "random crops lie in the image, with areas and ratios as "
           "asked");
    /* torchvision's RandomResizedCrop.get_params gives these over 100000 draws
     * for this size (wide boxes fit more often); the means of 4000 draws
     * deviate by 0.0034, 0.0026, 0.0021 and 32. */
    is_near(areas, 0.4338, 0.015, "of torchvision's mean area");
    is_near(ratios, 0.031, 0.012, "of torchvision's mean ratio");
    is_near(left, 0.5, 0.01, "centred in the mean");
    is_near(flips, n / 2, 160, "half of them flipped");
    in.horizontal_flip = 0;
    in.min_area = 1;
    ddp__image_options(&in, 224, &o);
    for (int i = flips = 0; i < 100; i++)
        flips += ddp__augment(&o, (uint64_t)i, 500, 375).flip;
    is_int(flips, 0, "horizontal_flip 0: none");
    in.horizontal_flip = 0.2f;
    ddp__image_options(&in, 224, &o);
    for (int i = flips = 0; i < n; i++)
        flips += ddp__augment(&o, (uint64_t)i, 500, 375).flip;
    is_near(flips, 0.2 * n, 110, "0.2: a fifth"); /* deviates by 25 */
    in.horizontal_flip = 1;
    ddp__image_options(&in, 224, &o);
    for (int i = flips = 0; i < 100; i++)
        flips += ddp__augment(&o, (uint64_t)i, 500, 375).flip;
    is_int(flips, 100, "1: all");
}

/* Areas and ratios of other ranges than the usual ones. */
static void test_crop_ranges(void)
{
    struct ddp_image_options o,
        in = {IMAGE_DEFAULTS, .augment = DDP_AUGMENT_RANDOM};
    double areas = 0, ratios = 0;
    int n = 4000, upside = 0, cubic = 0;

    in.min_area = 0.2f;
    in.max_area = 0.7f;
    in.ratio[0] = 0.5;
    in.ratio[1] = 3;
    in.vertical_flip = 0.3f;
    in.interpolation = DDP_EITHER_FILTER;
    ddp__image_options(&in, 224, &o);
    for (int i = 0; i < n; i++) {
        uint64_t key = (uint64_t)i * 0x9E3779B97F4A7C15u;
        struct ddp__crop c = ddp__augment(&o, key, 500, 375);

        areas += c.box.w * c.box.h / (500.0 * 375) / n;
        ratios += log((double)c.box.w / c.box.h) / n;
        upside += c.vertical_flip;
        cubic += c.filter == DDP_BICUBIC;
    }
    /* torchvision's RandomResizedCrop.get_params over 100000 draws; the means
     * of 4000 draws deviate by 0.0021 and 0.0072, the counts by 29, 32. */
    is_near(areas, 0.4154, 0.01, "scale 0.2 to 0.7: torchvision's area");
    is_near(ratios, 0.242, 0.033, "ratio 1/2 to 3: torchvision's ratio");
    is_near(upside, 0.3 * n, 140, "vertical_flip 0.3: of 3 in 10");
    is_near(cubic, 0.5 * n, 150, "either filter: bicubic for half of them");
}

/* Factors and deviations are evenly distributed as torchvision draws them. */
static void test_colour_plan(void)
{
    struct ddp_image_options o,
        in = {IMAGE_DEFAULTS, .augment = DDP_AUGMENT_SHIFT,
              .jitter = {0.4f, 1.5f, 0.2f, 0.1f}};
    static const double low[] = {0.6, 0, 0.8, -0.1},
                        high[] = {1.4, 2.5, 1.2, 0.1};
    double sum[4] = {0}, square[4] = {0}, blur = 0;
    int n = 24000, wrong = 0, jittered = 0, gray = 0, blurred = 0;
    int first[4][4] = {{0}}, uneven = 0;

    in.jitter_share = 0.8f;
    in.grayscale = 0.2f;
    in.blur = 0.5f;
    ddp__image_options(&in, 32, &o);
    for (int i = 0; i < n; i++) {
        struct ddp__colour c = ddp__augment(&o, (uint64_t)i, 40, 50).colour;

        for (int k = 0; k < 4; k++) {
            double u = ((double)c.factor[k] - low[k]) / (high[k] - low[k]);

            wrong += u < -1e-6 || u > 1 + 1e-6;
            sum[k] += u / n;
            square[k] += u * u / n;
            first[k][c.order[k]]++;
        }
        jittered += c.jitter;
        gray += c.gray;
        blurred += c.blur > 0;
        blur += (double)c.blur;
    }
    for (int k = 0; k < 4; k++) {
        wrong +=
            fabs(sum[k] - 1 / 2.0) > 0.009 || fabs(square[k] - 1 / 3.0) > 0.009;
        for (int j = 0; j < 4; j++) /* deviations of 67 */
            uneven += abs(first[k][j] - n / 4) > 300;
    }
    is_int(wrong, 0, "factors of jitter are even between their limits");
    is_int(uneven, 0, "each of them comes first to last equally often");
    is_near(jittered, 0.8 * n, 280, "jitter_share 0.8: of 8 in 10");
    is_near(gray, 0.2 * n, 280, "grayscale 0.2: 2 in 10");
    is_near(blurred, 0.5 * n, 350, "blur 0.5: half of them");
    is_near(blur / blurred, 1.05, 0.025, "deviations of 0.1 to 2");
}

/* What is wrong has a sentence that says which. */
static void test_colour_limits(void)
{
    struct ddp_image_options o,
        bad[] = {{IMAGE_DEFAULTS, .jitter = {0, 0, 0, 0.6f}},
                 {IMAGE_DEFAULTS, .grayscale = 2},
                 {IMAGE_DEFAULTS, .blur = -1},
                 {IMAGE_DEFAULTS, .vertical_flip = 1.5f},
                 {IMAGE_DEFAULTS, .interpolation = DDP_EITHER_FILTER}};
    static const char *const word[] = {"hue", "grayscale", "blur",
                                       "vertical_flip", "interpolation"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ok(ddp__image_options(&bad[i], 32, &o) == DDP_EINVAL &&
               strstr(ddp_errmsg(), word[i]),
           "%s out of its range is refused", word[i]);
}

static void test_erased_boxes(void)
{
    struct ddp_image_options o,
        in = {IMAGE_DEFAULTS, .augment = DDP_AUGMENT_SHIFT};
    int wrong = 0, erased = 0, n = 4000;
    double areas = 0, ratios = 0, middle = 0;

    in.erase = 0.25f;
    ddp__image_options(&in, 32, &o);
    for (int i = 0; i < n; i++)
        erased += ddp__augment(&o, (uint64_t)i, 40, 50).erased.box[0].w > 0;
    is_near(erased, n / 4, 140, "erase 0.25: a quarter of the samples");
    in.erase = 1;
    ddp__image_options(&in, 32, &o);
    for (int i = 0; i < n; i++) {
        struct ddp__box b = ddp__augment(&o, (uint64_t)i, 40, 50).erased.box[0];

        wrong += b.w < 1 || b.h < 1 || b.x < 0 || b.y < 0 || b.x + b.w > 32 ||
                 b.y + b.h > 32;
        areas += b.w * b.h / 1024.0 / n;
        ratios += log((double)b.h / b.w) / n;
        middle += (b.x + b.w / 2.0) / 32 / n;
    }
    is_int(wrong, 0, "erase 1: a box within every sample");
    /* torchvision's RandomErasing.get_params over 20000 draws; the means of
     * 4000 draws deviate by 0.0014, 0.011 and 0.0029. */
    is_near(areas, 0.1745, 0.006, "of torchvision's mean area");
    is_near(ratios, -0.004, 0.045, "of torchvision's mean ratio");
    is_near(middle, 0.5, 0.012, "centred in the mean");
}

/* Erasing paints its box in the mean colour and leaves the rest. */
static void test_erase(void)
{
    enum { SIZE = 16 };
    struct ddp_image_options o,
        in = {IMAGE_DEFAULTS, .augment = DDP_AUGMENT_SHIFT};
    static const uint8_t mean[3] = {124, 116, 104}; /* of 255 */
    uint8_t *rgb = make_pixels(SIZE, SIZE, 3, 7), x[SIZE * SIZE * 3],
            y[SIZE * SIZE * 3];
    struct ddp__box b;
    int wrong = 0;

    ddp__image_options(&in, SIZE, &o);
    ddp__image_pixels(rgb, SIZE, SIZE, &o, 5, x);
    o.erase = 1;
    ddp__image_pixels(rgb, SIZE, SIZE, &o, 5, y);
    b = ddp__augment(&o, 5, SIZE, SIZE).erased.box[0];
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            bool in_box =
                i >= b.y && i < b.y + b.h && j >= b.x && j < b.x + b.w;
            int at = (i * SIZE + j) * 3;

            wrong += memcmp(y + at, in_box ? mean : x + at, 3) != 0;
        }
    is_int(wrong, 0, "the box has the mean colour, the rest is as without");
    free(rgb);
}

/* Samples of one colour, erased, of DRAWN keys. */
enum { DRAWN = 8000, DRAWN_SIZE = 32, DRAWN_PIXELS = DRAWN_SIZE * DRAWN_SIZE };

struct drawn {
    double area;      /* mean share of the pixels that are painted over */
    double pixels;    /* how many there are */
    double mean[3];   /* of their values, and their deviation */
    double square[3]; /* mean square */
    double ends[2];   /* shares of red values that are 0 and 255 */
    double pairs;     /* neighbours in a row */
    double next;      /* mean product of their red values */
    double colours;   /* share of those that are equal */
    double same;      /* keys that give the same sample twice */
};

static void count_drawn(const uint8_t *x, struct drawn *d)
{
    const uint8_t *before = NULL;

    for (int i = 0; i < DRAWN_PIXELS; i++, x += 3) {
        if (x[0] == 9 && x[1] == 9 && x[2] == 9) {
            before = NULL;
            continue;
        }
        d->pixels++;
        for (int c = 0; c < 3; c++) {
            d->mean[c] += x[c];
            d->square[c] += x[c] * x[c];
        }
        d->ends[0] += x[0] == 0;
        d->ends[1] += x[0] == 255;
        if (before) {
            d->pairs++;
            d->next += before[0] * x[0];
            d->colours += !memcmp(before, x, 3);
        }
        before = x;
    }
}

static struct drawn draw_erased(enum ddp_erase fill, int count)
{
    struct ddp_image_options o,
        in = {IMAGE_DEFAULTS, .augment = DDP_AUGMENT_SHIFT};
    static uint8_t x[DRAWN_PIXELS * 3], y[DRAWN_PIXELS * 3];
    struct drawn d = {0};

    in.erase = 1;
    in.erase_fill = fill;
    in.erase_count = count;
    ddp__image_options(&in, DRAWN_SIZE, &o);
    for (uint64_t key = 0; key < DRAWN; key++) {
        struct ddp__erasure e = ddp__erase_plan(&o, key, DRAWN_SIZE);

        memset(x, 9, sizeof(x));
        memset(y, 9, sizeof(y));
        ddp__erase(&e, DRAWN_SIZE, x);
        ddp__erase(&e, DRAWN_SIZE, y);
        d.same += !memcmp(x, y, sizeof(x));
        count_drawn(x, &d);
    }
    d.area = d.pixels / DRAWN / DRAWN_PIXELS;
    d.next /= d.pairs;
    d.colours /= d.pairs;
    for (int c = 0; c < 3; c++) {
        d.mean[c] /= d.pixels;
        d.square[c] /= d.pixels;
    }
    d.ends[0] /= d.pixels;
    d.ends[1] /= d.pixels;
    return d;
}

/* timm's RandomErasing of 32 x 32 pixels, over 100000 samples: areas deviate by
 * 0.0901 and 0.0679, so those of 8000 by 0.0010 and 0.00076.  Its noise of 4000
 * samples, clipped to bytes: 720000 pixels, whose means deviate by 0.07 and
 * deviations by 0.05. */
static void test_erased_fills(void)
{
    static const double mean[] = {123.84, 116.52, 104.29};
    static const double deviation[] = {56.93, 55.71, 55.43};
    struct drawn one = draw_erased(DDP_ERASE_NOISE, 1);
    struct drawn three = draw_erased(DDP_ERASE_COLOUR, 3);

    is_int((int)one.same, DRAWN, "a key decides the noise");
    is_near(one.area, 0.1754, 0.0045, "noise: timm's mean area");
    is_near(three.area, 0.1683, 0.0035, "up to three boxes share it");
    for (int c = 0; c < 3; c++) {
        is_near(one.mean[c], mean[c], 0.35, "noise: timm's mean, channel %d",
                c);
        is_near(sqrt(one.square[c] - one.mean[c] * one.mean[c]), deviation[c],
                0.3, "and its deviation");
    }
    is_near(one.ends[0], 0.0175, 0.002, "timm's share of values below black");
    is_near(one.ends[1], 0.0126, 0.002, "and above white");
    ok(one.colours < 0.001 && three.colours > 0.95,
       "neighbours differ, or boxes have one colour");
    /* 1.3 million pairs: this deviates by 0.0003. */
    is_near(one.next / (one.mean[0] * one.mean[0]), 1, 0.002,
            "neighbours do not depend on each other");
    /* 8000 to 24000 colours, of deviation 57 */
    is_near(three.mean[0], mean[0], 4, "colours have the mean of the noise");
}

/* Two pixels of noise agree once in 8 million pairs, the product of three
 * channels of deviation 57: these 512 have 0.016 equal pairs. */
static void test_noise_differs(void)
{
    enum { W = 32, H = 8, PIXELS = 2 * W * H };
    static uint8_t x[W * W * 3];
    struct ddp__erasure e = {.fill = DDP_ERASE_NOISE,
                             .key = 3,
                             .mean = {0.5f, 0.5f, 0.5f},
                             .std = {0.22f, 0.22f, 0.22f},
                             .box = {{0, 0, W, H}, {0, H, W, H}}};
    int equal = 0;

    ddp__erase(&e, W, x);
    for (int i = 0; i < PIXELS; i++)
        for (int j = 0; j < i; j++)
            equal += !memcmp(x + i * 3, x + j * 3, 3);
    is_int(equal, 0, "no pixel of noise repeats another, nor a box another");
}

/* How often a place of `places` is the first, or the last, against the chance
 * that each has: the sum of 1 / places, whose square is the variance's bound.
 */
struct edges {
    int first, last;
    double chance;
};

static void count_edges(struct edges *e, int at, int places)
{
    e->first += at == 0;
    e->last += at == places - 1;
    e->chance += 1.0 / places;
}

static bool edges_are_even(const struct edges *e)
{
    double far = 4.5 * sqrt(e->chance); /* once in 150000 tries */

    if (fabs(e->first - e->chance) <= far && fabs(e->last - e->chance) <= far)
        return true;
    diag("%d first and %d last, expected %.1f -+ %.1f of each", e->first,
         e->last, e->chance, far);
    return false;
}

/* Every place comes as often as the others, the outermost ones too. */
static void test_edges(void)
{
    struct ddp_image_options crop, shift,
        in = {IMAGE_DEFAULTS, .augment = DDP_AUGMENT_RANDOM};
    struct edges x = {0}, y = {0}, dx = {0}, dy = {0}, ex = {0}, ey = {0};

    ddp__image_options(&in, 16, &crop);
    in.augment = DDP_AUGMENT_SHIFT;
    in.erase = 1;
    ddp__image_options(&in, 16, &shift);
    for (int i = 0; i < 8000; i++) {
        uint64_t key = (uint64_t)i * 0x9E3779B97F4A7C15u;
        struct ddp__box b = ddp__augment(&crop, key, 20, 16).box;
        struct ddp__crop c = ddp__augment(&shift, key, 20, 16);

        count_edges(&x, b.x, 20 - b.w + 1);
        count_edges(&y, b.y, 16 - b.h + 1);
        count_edges(&dx, c.dx + shift.shift, 2 * shift.shift + 1);
        count_edges(&dy, c.dy + shift.shift, 2 * shift.shift + 1);
        count_edges(&ex, c.erased.box[0].x, 16 - c.erased.box[0].w + 1);
        count_edges(&ey, c.erased.box[0].y, 16 - c.erased.box[0].h + 1);
    }
    ok(edges_are_even(&x) && edges_are_even(&y),
       "random crops reach all edges of the image equally often");
    ok(edges_are_even(&dx) && edges_are_even(&dy),
       "shifts reach both ends of their range equally often");
    ok(edges_are_even(&ex) && edges_are_even(&ey),
       "erased boxes reach all edges of the sample equally often");
}

static void test_long_images(void)
{
    struct ddp_image_options o,
        in = {IMAGE_DEFAULTS, .augment = DDP_AUGMENT_RANDOM};
    struct ddp__crop c;

    ddp__image_options(&in, 224, &o);
    c = ddp__augment(&o, 1, 1, 1000);
    ok(c.box.w == 1 && c.box.h == 1 && c.box.y == 499,
       "1 x 1000: the centre, of the largest ratio allowed");
    c = ddp__augment(&o, 1, 3000, 9);
    ok(c.box.w == 12 && c.box.h == 9 && c.box.x == 1494, "3000 x 9 likewise");
    in.augment = DDP_AUGMENT_NONE;
    ddp__image_options(&in, 224, &o);
    c = ddp__augment(&o, 1, 1, 1000000);
    ok(c.w == 256 && c.h == 256000000 && c.x == 16 && c.y == 127999888,
       "1 x 1000000: no number overflows");
    c = ddp__augment(&o, 1, 500, 375);
    ok(c.w == 341 && c.h == 256 && c.x == 58 && c.y == 16,
       "500 x 375: torchvision's size and centre");
    c = ddp__augment(&o, 1, 335, 500);
    ok(c.w == 256 && c.h == 382 && c.x == 16 && c.y == 79,
       "335 x 500 likewise");
}

static void test_flip(void)
{
    enum { SIZE = 33 };
    struct bytes b = make_photo(120, 90, 3);
    uint8_t x[SIZE * SIZE * 3], y[SIZE * SIZE * 3];
    struct ddp__crop c = {.box = {11, 7, 80, 70}, .w = SIZE, .h = SIZE};
    int wrong = 0;

    ddp__image_crop(b.data, b.len, most, &c, SIZE, SIZE, x);
    c.flip = true;
    ddp__image_crop(b.data, b.len, most, &c, SIZE, SIZE, y);
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++)
            wrong += memcmp(x + (i * SIZE + j) * 3,
                            y + (i * SIZE + SIZE - 1 - j) * 3, 3) != 0;
    is_int(wrong, 0, "a flipped crop is the crop, flipped");
    free(b.data);
}

/* All numbers of taps, from enlarging to shrinking 40 times. */
static void test_scales(void)
{
    struct jpeg_kind k = {.w = 641, .h = 643, .in = JCS_RGB, .hs = 1, .vs = 1};
    uint8_t *pixels = make_pixels(k.w, k.h, 3, 1), x[40 * 40 * 3];
    struct bytes b = make_jpeg(&k, pixels);
    int w, h, n, worst = 0;
    uint8_t *rgb = decode_whole(&b, &w, &h, &n);

    for (int side = 7; side <= 640; side += side / 5 + 1) {
        struct ddp__crop c = {.box = {1, 2, side, side}, .w = 16, .h = 40};
        uint8_t *want;

        c.w = side % 2 ? 40 : 16;
        c.h = c.w;
        ddp__image_crop(b.data, b.len, most, &c, (int)c.w, (int)c.w, x);
        want = resize_box(rgb, w, &c.box, (int)c.w, (int)c.h);
        n = largest_difference(x, want, (int)(c.w * c.h) * 3);
        worst = n > worst ? n : worst;
        free(want);
    }
    ok(worst <= 1, "scales from 6 up to 40 down: within 1 level");
    free(pixels);
    free(rgb);
    free(b.data);
}

/* Kept pixels give the same sample, also of a damaged file. */
static void test_kept_damage(void)
{
    static const struct jpeg_kind kinds[] = {
        {.w = 149, .h = 103, .in = JCS_RGB},
        {.w = 149, .h = 103, .in = JCS_RGB, .restart = 1},
        {.w = 149, .h = 103, .in = JCS_RGB, .progressive = true}};
    int kept = 0, wrong = 0;

    srand(1);
    for (int i = 0; i < 600; i++) {
        const struct jpeg_kind *k = &kinds[i % 3];
        uint8_t *pixels = make_pixels(k->w, k->h, 3, 1);
        struct bytes b = make_jpeg(k, pixels);
        int rc;

        b.data[700 + (size_t)rand() % (b.len - 702)] ^= 1 << i % 8;
        rc = compare_kept(&b, 6);
        kept += rc >= 0;
        wrong += rc > 0;
        free(pixels);
        free(b.data);
    }
    ok(wrong == 0 && kept > 50,
       "600 damaged files, of which %d are kept: none gives other samples",
       kept);
}

int main(void)
{
    test_kept_damage();
    test_sampling();
    test_colours();
    test_shapes();
    test_orientation();
    test_absurd_exif();
    test_bad();
    test_bmp();
    test_png();
    test_random_crop();
    test_crop_ranges();
    test_colour_plan();
    test_colour_limits();
    test_edges();
    test_long_images();
    test_erased_boxes();
    test_erase();
    test_erased_fills();
    test_noise_differs();
    test_flip();
    test_scales();
    return done_testing();
}
