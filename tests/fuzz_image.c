/* fuzz_image.c - no bytes in an image file do any harm
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Built with -DDDP_FUZZ and clang's -fsanitize=fuzzer it is a fuzz target.
 * Built plainly it is a test: it decodes the files it is given, or without any
 * good images with some thousand small damages.
 */
#include "config.h"

#include "image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
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
    ddp__image_decode(data, len, &o, key % 2 ? DDP__UPRIGHT : DDP__AS_STORED,
                      key, x);
    return 0;
}

#ifndef DDP_FUZZ

#include "base/file.h"
#include "defaults.h"
#include "make_image.h"
#include "tap.h"

static uint32_t state = 1;

static uint32_t draw(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)state * n >> 32);
}

/* Change, remove or repeat some bytes; headers more often than the rest. */
static size_t damage(const struct bytes *from, uint8_t *to)
{
    size_t len = from->len, n = draw(4) + 1;

    memcpy(to, from->data, len);
    for (; n > 0; n--) {
        size_t limit = draw(2) && len > 700 ? 700 : len;
        size_t at = draw((uint32_t)limit), more = draw(64);

        if (at + more > len)
            more = len - at;
        switch (draw(4)) {
        case 0:
            to[at] = (uint8_t)draw(256);
            break;
        case 1:
            to[at] ^= (uint8_t)(1 << draw(8));
            break;
        case 2:
            memmove(to + at, to + at + more, len - at - more);
            len -= more;
            break;
        default:
            memmove(to + at + more, to + at, len - at - more);
        }
    }
    return draw(8) ? len : draw((uint32_t)len + 1);
}

static void fuzz(const char *what, struct bytes b)
{
    uint8_t *x = malloc(b.len);

    for (int i = 0; i < 1500; i++)
        LLVMFuzzerTestOneInput(x, damage(&b, x));
    pass("%s: 1500 damaged copies are decoded or refused", what);
    free(x);
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

int main(int argc, char **argv)
{
    struct ddp__bytes b = {0};

    for (int i = 1; i < argc; i++)
        if (ddp__file_load(argv[i], (size_t)1 << 30, &b) == 0)
            pass("%s: %d", argv[i], LLVMFuzzerTestOneInput(b.data, b.len));
    free(b.data);
    if (argc > 1)
        return done_testing();
    fuzz("JPEG", jpeg(JCS_RGB, false, 0));
    fuzz("JPEG with restart markers", jpeg(JCS_RGB, false, 1));
    fuzz("progressive JPEG", jpeg(JCS_RGB, true, 0));
    fuzz("gray JPEG", jpeg(JCS_GRAYSCALE, false, 0));
    fuzz("CMYK JPEG", jpeg(JCS_CMYK, false, 0));
    fuzz("PNG", png());
    return done_testing();
}

#endif
