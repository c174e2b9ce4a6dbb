/* picture.h - an image file that is being decoded, and its format
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PICTURE_H
#define DDP_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/augment.h"

/* An image that is being decoded. */
struct ddp__picture {
    const uint8_t *data; /* the file; not owned */
    size_t len;
    int64_t max_pixels;
    bool upright;    /* orientation is wanted */
    int w, h;        /* as stored */
    int orientation; /* EXIF's, 1 to 8 */
    bool damaged;    /* set by rows(): something was skipped */
    /* Set by box(): bytes of a row buffer, and the pixels in it before the
     * box. */
    size_t stride;
    int skip;
};

/* A file format.  new() creates the state of one thread, which decodes one
 * image after another: open, box, rows ..., close. */
struct ddp__format {
    const char *name;
    const char *suffix; /* of files that are images only if this format is
                           read; NULL: they always are */
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

/* DDP_EDATA if the file cannot contain an image of w x h, or if p does not
 * allow its size, before anything is allocated for it.  `most` is the maximum
 * number of pixels that one byte of the file can encode. */
int ddp__picture_check(const struct ddp__picture *p, int64_t w, int64_t h,
                       int64_t most);

/* DDP_EDATA if the file expands to so many bytes, and so many times its own,
 * that it is an empty area which costs seconds. */
int ddp__picture_check_expansion(const struct ddp__picture *p, size_t bytes);

#endif
