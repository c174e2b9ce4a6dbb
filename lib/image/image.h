/* image.h - from the bytes of an image file to the pixels of a sample
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_IMAGE_H
#define DDP_IMAGE_H

#include "ddp.h"
#include "image/augment.h"

/* Whether to rotate images by their EXIF orientation; torchvision does not. */
enum ddp__turn { DDP__AS_STORED, DDP__UPRIGHT };

struct ddp__bytes;
struct ddp__storage;

/* Read, decode, crop, resize and flip the image at path of a storage into x
 * (size, size, 3).  DDP_EDATA, DDP_EIO: a bad image, and
 * the message says why, without the path. */
int ddp__image_load(struct ddp__storage *in, const char *path,
                    const struct ddp_image_options *o, enum ddp__turn turn,
                    uint64_t key, uint8_t *x);

/* The same for a part of a file; DDP_EDATA if its checksum is another. */
struct ddp__part {
    const char *path;
    int64_t at;
    size_t len;
    bool unchecked; /* there is no checksum */
    uint32_t crc;   /* CRC-32C */
};
int ddp__part_read(struct ddp__storage *in, const struct ddp__part *p,
                   struct ddp__bytes *b);
int ddp__image_load_part(struct ddp__storage *in, const struct ddp__part *p,
                         const struct ddp_image_options *o, enum ddp__turn turn,
                         uint64_t key, uint8_t *x);

/* The same for a file in memory. */
int ddp__image_decode(const uint8_t *data, size_t len,
                      const struct ddp_image_options *o, enum ddp__turn turn,
                      uint64_t key, uint8_t *x);

/* Decode with a given crop into x (h, w, 3), as the functions above do. */
int ddp__image_crop(const uint8_t *data, size_t len, int64_t max_pixels,
                    const struct ddp__crop *c, int w, int h, uint8_t *x);

/* The size of the image that a file has, as stored; the same codes. */
int ddp__image_size(const uint8_t *data, size_t len, int64_t max_pixels, int *w,
                    int *h);

/* Whether the whole image decodes: 0, or as for the functions above. */
int ddp__image_check(const uint8_t *data, size_t len, int64_t max_pixels);

/* The same for pixels in memory, (h, w, 3). */
int ddp__image_pixels(const uint8_t *rgb, int w, int h,
                      const struct ddp_image_options *o, uint64_t key,
                      uint8_t *x);

#endif
