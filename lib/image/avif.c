/* avif.c - AVIF images, by libavif
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Alpha is dropped, as Pillow's convert('RGB') does.
 */
#include "config.h"

#include <avif/avif.h>

#include "base/error.h"
#include "image/avif.h"
#include "image/whole.h"

static int fail_invalid(avifResult why)
{
    return why == AVIF_RESULT_OUT_OF_MEMORY
               ? ddp__fail(DDP_ENOMEM, "out of memory to decode an AVIF image")
               : ddp__fail(DDP_EDATA, "is not a valid AVIF image: %s",
                           avifResultToString(why));
}

/* dav1d, which libavif prefers, prints what it finds wrong; pixels are the same
 * by any decoder of AV1. */
static avifCodecChoice quiet_codec(void)
{
    return avifCodecName(AVIF_CODEC_CHOICE_AOM, AVIF_CODEC_FLAG_CAN_DECODE)
               ? AVIF_CODEC_CHOICE_AOM
               : AVIF_CODEC_CHOICE_AUTO;
}

/* A decoder that has read the header; NULL after a failure.  Sizes are ours to
 * limit. */
static avifDecoder *parse(const struct ddp__picture *p)
{
    avifDecoder *d = avifDecoderCreate();
    avifResult why;

    if (!d) {
        ddp__fail(DDP_ENOMEM, "out of memory for an AVIF decoder");
        return NULL;
    }
    d->codecChoice = quiet_codec();
    d->ignoreExif = d->ignoreXMP = AVIF_TRUE;
    if ((why = avifDecoderSetIOMemory(d, p->data, p->len)) == AVIF_RESULT_OK &&
        (why = avifDecoderParse(d)) == AVIF_RESULT_OK)
        return d;
    fail_invalid(why);
    avifDecoderDestroy(d);
    return NULL;
}

/* Turns of a quarter against the clock, as EXIF numbers them. */
static int orientation(const avifImage *i)
{
    static const int turned[] = {1, 8, 3, 6};

    return i->transformFlags & AVIF_TRANSFORM_IROT ? turned[i->irot.angle & 3]
                                                   : 1;
}

static int open_image(void *state, struct ddp__picture *p)
{
    avifDecoder *d = parse(p);
    int rc;

    (void)state;
    if (!d)
        return ddp_errcode();
    p->orientation = p->upright ? orientation(d->image) : 1;
    rc = d->imageCount > 1
             ? ddp__fail(DDP_EDATA, "is an animation, expected one picture")
             : ddp__whole_check(p, d->image->width, d->image->height);
    avifDecoderDestroy(d);
    return rc;
}

/* The picture may still have another size than the header. */
static int decode(avifDecoder *d, const struct ddp__picture *p,
                  struct ddp__whole *s)
{
    avifResult why = avifDecoderNextImage(d);
    avifRGBImage rgb;

    if (why != AVIF_RESULT_OK)
        return fail_invalid(why);
    if (d->image->width != (uint32_t)p->w || d->image->height != (uint32_t)p->h)
        return fail_invalid(AVIF_RESULT_BMFF_PARSE_FAILED);
    avifRGBImageSetDefaults(&rgb, d->image);
    rgb.depth = 8;
    rgb.pixels = s->x;
    rgb.rowBytes = (uint32_t)p->stride;
    why = avifImageYUVToRGB(d->image, &rgb);
    return why == AVIF_RESULT_OK ? 0 : fail_invalid(why);
}

static int start_box(void *state, struct ddp__picture *p,
                     const struct ddp__box *b)
{
    int rc = ddp__whole_reserve(state, p, b);
    avifDecoder *d;

    if (rc < 0)
        return rc;
    if (!(d = parse(p)))
        return ddp_errcode();
    rc = decode(d, p, state);
    avifDecoderDestroy(d);
    return rc;
}

static bool is_avif(const uint8_t *data, size_t len)
{
    const avifROData file = {data, len};

    return avifPeekCompatibleFileType(&file);
}

const struct ddp__format ddp__avif = {
    .name = "AVIF",
    .suffix = ".avif",
    .match = is_avif,
    .new = ddp__whole_new,
    .open = open_image,
    .box = start_box,
    .rows = ddp__whole_rows,
    .close = ddp__whole_close,
    .free = ddp__whole_free,
};
