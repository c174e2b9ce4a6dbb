/* image.h - from the bytes of an image file to the pixels of a sample
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_IMAGE_H
#define DDP_IMAGE_H

#include "data/data.h"

struct ddp__box {
    int x, y, w, h;
};

/* ---- augment.c: what becomes of an image of a given size ---------------- */

/* The box of the image is resized to w x h; of that the square of the sample's
 * size at (x, y) is taken, flipped left to right if asked, then moved by
 * (dx, dy) pixels, with zeros coming in, and a box of it painted over. */
struct ddp__crop {
    struct ddp__box box;
    int64_t w, h, x, y; /* a long image is longer still when it is resized */
    bool flip;
    int dx, dy;
    struct ddp__box erased; /* in the sample; empty: nothing is */
    uint8_t fill[3];
};

/* Copy the options with their defaults filled in; DDP_EINVAL.  size is the
 * default of the size. */
int ddp__image_options(const struct ddp_image_options *in, int size,
                       struct ddp_image_options *out);

/* In words, what becomes of an image; for data sets' identity. */
void ddp__image_describe(const struct ddp_image_options *o, char *text,
                         size_t size);

/* The crop of an image of w x h, as the options and the key decide. */
struct ddp__crop ddp__augment(const struct ddp_image_options *o, uint64_t key,
                              int w, int h);

/* The last steps, on x (size, size, 3): moved and erased. */
void ddp__augment_finish(const struct ddp__crop *c, int size, uint8_t *x);

/* ---- resize.c: the triangle filter, as Pillow has it -------------------- */

/* What resizing takes along one axis: output i is the sum over t < taps of
 * input[start[i] + t] times weight[i * taps + t], over 2^22. */
struct ddp__filter {
    int count, taps;
    int lo, hi;      /* the inputs that are used: lo <= i < hi */
    int *start;      /* owned */
    int32_t *weight; /* owned */
    int outputs;     /* room of start */
    size_t room;     /* of weight */
};

/* The filter for outputs first .. first + count - 1 of `out`, from inputs
 * at .. at + in - 1; reuses what f has.  DDP_ENOMEM. */
int ddp__filter_set(struct ddp__filter *f, int at, int in, int64_t out,
                    int64_t first, int count);

/* Reverse the outputs; the inputs, which are 0 .. size - 1. */
void ddp__filter_flip(struct ddp__filter *f);
void ddp__filter_mirror(struct ddp__filter *f, int size);

void ddp__filter_free(struct ddp__filter *f);

/* DDP__ROWS rows of pixels of 4 bytes, `stride` bytes apart, the first pixel
 * being input f->lo, to as many rows of f->count pixels of 3 bytes.  room is
 * ddp__resize_room() bytes. */
enum { DDP__ROWS = 16 };
void ddp__resize_columns(const struct ddp__filter *f, const uint8_t *x,
                         size_t stride, void *room, uint8_t *y);
size_t ddp__resize_room(const struct ddp__filter *f);

/* Rows of `len` bytes, the first being input f->lo, to f->count rows. */
void ddp__resize_rows(const struct ddp__filter *f, const uint8_t *x, int len,
                      uint8_t *y);

/* ---- jpeg.c, png.c, raw: image formats ---------------------------------- */

/* An image that is being decoded. */
struct ddp__picture {
    const uint8_t *data; /* the file; not owned */
    size_t len;
    int64_t max_pixels;
    bool upright;    /* orientation is wanted */
    int w, h;        /* as stored */
    int orientation; /* EXIF's, 1 to 8 */
    /* Once a box is asked for: bytes of a row buffer, and the pixels in it
     * before the box. */
    size_t stride;
    int skip;
};

/* A file format.  The state is one thread's, made by new, and serves one
 * image after another: open, box, rows ..., close. */
struct ddp__format {
    const char *name;
    bool (*match)(const uint8_t *data, size_t len);
    void *(*new)(void);
    /* Read the header: fills in w, h, orientation.  DDP_EDATA. */
    int (*open)(void *state, struct ddp__picture *p);
    /* Prepare for the rows of a box. */
    int (*box)(void *state, struct ddp__picture *p, const struct ddp__box *b);
    /* The next n rows of it, pixels of 4 bytes (red, green, blue, any). */
    int (*rows)(void *state, struct ddp__picture *p, uint8_t *x, int n);
    void (*close)(void *state);
    void (*free)(void *state);
};

extern const struct ddp__format ddp__jpeg, ddp__png;

/* DDP_EDATA if an image of w x h cannot be, or is more than p allows, so that
 * nothing is allocated for it: `most` is the pixels that one byte of its file
 * can hold at best. */
int ddp__picture_check(const struct ddp__picture *p, int64_t w, int64_t h,
                       int64_t most);

/* ---- image.c: all of it ------------------------------------------------- */

/* Turn images as their EXIF orientation says?  torchvision does not. */
enum ddp__turn { DDP__AS_STORED, DDP__UPRIGHT };

/* Read, decode, crop, resize and flip the image at path, relative to the open
 * directory dir, into x (size, size, 3).  DDP_EDATA, DDP_EIO: a bad image, and
 * the message says why, without the path. */
int ddp__image_load(int dir, const char *path,
                    const struct ddp_image_options *o, enum ddp__turn turn,
                    uint64_t key, uint8_t *x);

/* The same for a file in memory. */
int ddp__image_decode(const uint8_t *data, size_t len,
                      const struct ddp_image_options *o, enum ddp__turn turn,
                      uint64_t key, uint8_t *x);

/* Decode with a given crop: what the two above do once they have one. */
int ddp__image_crop(const uint8_t *data, size_t len, int64_t max_pixels,
                    const struct ddp__crop *c, int size, uint8_t *x);

/* The same for pixels in memory, (h, w, 3). */
int ddp__image_pixels(const uint8_t *rgb, int w, int h,
                      const struct ddp_image_options *o, uint64_t key,
                      uint8_t *x);

#endif
