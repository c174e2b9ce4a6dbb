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
struct ddp__decoded;

/* Decode, crop, resize and flip an image file in memory into x (size, size,
 * 3).  DDP_EDATA: a bad image, and the message says why. */
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

/* Whether a suffix such as ".gif" is that of a format which not all builds
 * read, but this one. */
bool ddp__image_suffix(const char *suffix);

/* All pixels of an image file, which the caller frees.  DDP_EDATA, also for
 * damage that the functions above skip; DDP_ENOMEM above `most` bytes. */
int ddp__image_whole(const uint8_t *data, size_t len, int64_t max_pixels,
                     size_t most, struct ddp__decoded *d);

/* The sample that the file of these pixels would give. */
int ddp__image_again(const struct ddp__decoded *d,
                     const struct ddp_image_options *o, uint64_t key,
                     uint8_t *x);

/* Memory of this thread for a file, or NULL; and to be called after use, which
 * releases what a single huge one needed. */
struct ddp__bytes *ddp__image_file(void);
void ddp__image_trim(struct ddp__bytes *b);

/* The same for pixels in memory, (h, w, 3). */
int ddp__image_pixels(const uint8_t *rgb, int w, int h,
                      const struct ddp_image_options *o, uint64_t key,
                      uint8_t *x);

#endif
