/* fuzz_image.c - no bytes in an image file do any harm
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * It decodes the files that it is given, or without any damaged copies of good
 * ones.
 */
#include "config.h"

#include "defaults.h"
#include "fuzz.h"
#include "image/image.h"
#include "make_image.h"

/* Into a size, by an augmentation and a turn that follow from the bytes. */
static int decode(const uint8_t *data, size_t len)
{
    static uint8_t x[40 * 40 * 3];
    struct ddp_image_options o, in;
    uint64_t key = 0;

    ddp_image_options_init(&in);
    in.size = 40;
    in.max_pixels = 1 << 20;
    for (size_t i = len > 8 ? len - 8 : 0; i < len; i++)
        key = key << 8 | data[i];
    in.augment = (enum ddp_augment)(key % 3);
    ddp__image_options(&in, 224, &o);
    return ddp__image_decode(data, len, &o,
                             key % 2 ? DDP__UPRIGHT : DDP__AS_STORED, key, x);
}

enum { IMAGES = 9 };

static int read_image(const char *path, const uint8_t *data, size_t len)
{
    (void)path;
    return decode(data, len);
}

static const struct fuzz_reader reader = {"image", NULL, IMAGES, read_image,
                                          NULL};

static void fuzz_image(const char *what, struct bytes b)
{
    fuzz(&reader, what, b.data, b.len);
    free(b.data);
}

static struct bytes jpeg(J_COLOR_SPACE in, bool progressive, int restart)
{
    struct jpeg_kind k = {.w = 90,
                          .h = 70,
                          .in = in,
                          .progressive = progressive,
                          .restart = restart,
                          .app1 = (const uint8_t *)"Exif\0\0II*\0\10\0\0\0\1\0"
                                                   "\22\1\3\0\1\0\0\0\6\0\0",
                          .app1_len = 28};
    uint8_t *x = make_pixels(k.w, k.h, components(in), 1);
    struct bytes b = make_jpeg(&k, x);

    free(x);
    return b;
}

/* The bytes that hexadecimal digits stand for. */
static struct bytes from_hex(const char *hex)
{
    struct bytes b = {malloc(strlen(hex) / 2), strlen(hex) / 2};

    for (size_t i = 0; i < b.len; i++) {
        unsigned v;

        sscanf(hex + 2 * i, "%2x", &v);
        b.data[i] = (uint8_t)v;
    }
    return b;
}

#ifdef HAVE_PNG
/* 12 x 10 pixels with a palette of four colours. */
static const char png[] =
    "89504e470d0a1a0a0000000d494844520000000c0000000a0203000000fd42576900"
    "00000c504c5445ff000000ff000000ffc8c8c8f29e96d80000000274524e5300809b"
    "2b4e180000002c4944415478da631010956210919463c8c84d62c8494c63d8b07517"
    "c3969dfb184e9c3dc470e6e03106a83c00e6b40c7363d600940000000049454e44ae"
    "426082";
#endif

/* 12 x 10 pixels with a palette of eight colours. */
static const char bmp[] =
    "424da60000000000000056000000280000000c0000000a000000010004000000"
    "0000500000000000000000000000080000000000000036b091003f84940047b7"
    "4e0034844b00336a84003c6a4b002c418c004b44520071771111257700001321"
    "1022224500002227777775450000744511312220000013000000576600001364"
    "4443433400000254441113300000654434133333000000000025564400007666"
    "666444330000";

#ifdef HAVE_WEBP
/* 20 x 14 pixels, and without loss 12 x 10. */
static const char webp[] =
    "52494646100100005745425056503820040100007005009d012a14000e003eb5"
    "489e49a72422a1300800e016896c009d3283182c8073f6d91e9ec938c3633224"
    "a4fba2a9c9bf59d000fec06ffee36fc9128142b768440a6951d3d963862d4be3"
    "5d60a23bcfd46672595590d1614a3427bf73c575ea2cd65dee67a71ed8b36414"
    "421a787b83b2697db1fe5a7d1c6d12e9bda852ea5711b8aa20be586103dcf095"
    "8df07326d7fe3827df478c288945adace8242233d7ebb99f4df06df08dfa6748"
    "843460feaffe9d796be8fe9dff199b08adaf7bd2816ba1616365bbee24528e20"
    "7d5165a60fbd75c84786b3216bacb198abf1ebeb6bdf599e46f87fc5869b7fdf"
    "9f74246ffa1bf994b47ee9ff3b60af910dbca7f400000000";
static const char webp_lossless[] =
    "524946461e010000574542505650384c120100002f0b400200998ce87f6c220a"
    "d2ff80d35adbd6262ecf1b2695052393c214344007a8ad67945534007365e5df"
    "3de05a00404039dbb66ddbb6af3ea3bec2daec1a1b6feedd966ddbb599ef9149"
    "db86c2ee3522970d0bfee80d32d4e193cd70af098e437c6ad5ce0bf874082ad6"
    "b837ba4577373f8915bc1834e74e480d78c438121c99e395ff01878843a0343b"
    "fb1ce917791cdc034a0dbc3a778f96f00d8fadffbf15eb46ee11307825128699"
    "386b9db040f9dee7cc8a7cf48f4bbc138f7facc734f70a94c0da7f1e07c0b408"
    "066e681d5ac10aff1d4f8828fb7268cc8e628941715e680fefec4d2143c4634f"
    "1b6e46133064c11918d4020e7fcb016156e3f4dacc9d0c86080511f0f489575e"
    "8fb3c1d64e28";
#endif

int main(int argc, char **argv)
{
    if (fuzz_replay(&reader, argc, argv))
        return done_testing();
    fuzz_image("a JPEG", jpeg(JCS_RGB, false, 0));
    fuzz_image("a JPEG with restart markers", jpeg(JCS_RGB, false, 1));
    fuzz_image("a progressive JPEG", jpeg(JCS_RGB, true, 0));
    fuzz_image("a gray JPEG", jpeg(JCS_GRAYSCALE, false, 0));
    fuzz_image("a CMYK JPEG", jpeg(JCS_CMYK, false, 0));
#ifdef HAVE_PNG
    fuzz_image("a PNG", from_hex(png));
#endif
    fuzz_image("a BMP", from_hex(bmp));
#ifdef HAVE_WEBP
    fuzz_image("a WebP", from_hex(webp));
    fuzz_image("a WebP without loss", from_hex(webp_lossless));
#endif
    return done_testing();
}
