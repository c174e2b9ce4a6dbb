/* test_image.c - JPEG: decoding, resizing and orientation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "image_oracle.h"

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

int main(void)
{
    test_sampling();
    test_colours();
    test_shapes();
    test_orientation();
    test_absurd_exif();
    return done_testing();
}
