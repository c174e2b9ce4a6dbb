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

enum { IMAGES = 6 };

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

#ifdef HAVE_PNG
/* A PNG of 12 x 10 pixels with a palette of four colours. */
static struct bytes png(void)
{
    static const char hex[] =
        "89504e470d0a1a0a0000000d494844520000000c0000000a0203000000fd42576900"
        "00000c504c5445ff000000ff000000ffc8c8c8f29e96d80000000274524e5300809b"
        "2b4e180000002c4944415478da631010956210919463c8c84d62c8494c63d8b07517"
        "c3969dfb184e9c3dc470e6e03106a83c00e6b40c7363d600940000000049454e44ae"
        "426082";
    struct bytes b = {malloc(strlen(hex) / 2), strlen(hex) / 2};

    for (size_t i = 0; i < b.len; i++) {
        unsigned v;

        sscanf(hex + 2 * i, "%2x", &v);
        b.data[i] = (uint8_t)v;
    }
    return b;
}
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
    fuzz_image("a PNG", png());
#endif
    return done_testing();
}
