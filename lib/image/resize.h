/* resize.h - the filters of Pillow that resize images
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_RESIZE_H
#define DDP_RESIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ddp.h"

/* The filter of one axis: output i is the sum over t < taps of input[start[i] +
 * t] times weight[i * taps + t], divided by 2^22. */
struct ddp__filter {
    int count, taps;
    bool clips;      /* weights below 0 can lead out of 0..255 */
    int lo, hi;      /* the inputs that are used: lo <= i < hi */
    int *start;      /* owned */
    int32_t *weight; /* owned */
    double *exact;   /* weights of one output; owned */
    int outputs;     /* room of start */
    int inputs;      /* of exact */
    size_t room;     /* of weight */
};

/* The filter for outputs first .. first + count - 1 of `out`, from inputs
 * at .. at + in - 1; reuses what f has.  DDP_ENOMEM. */
int ddp__filter_set(struct ddp__filter *f, enum ddp_interpolation kind, int at,
                    int in, int64_t out, int64_t first, int count);

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

#endif
