/* image_oracle.h - samples of images by plain definitions
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The whole image is decoded by libjpeg's defaults, and a copy of the box
 * resized in double precision.  test_pillow.c compares with Pillow and
 * torchvision.
 */
#ifndef IMAGE_ORACLE_H
#define IMAGE_ORACLE_H

#include <math.h>

#include "image/cache.h"
#include "image/image.h"
#include "defaults.h"
#include "make_image.h"
#include "tap.h"

static const int64_t most = 178956970;

/* n values, `step` apart, to m: the triangle filter, rounded to 8 bits. */
static inline void resize_line(const uint8_t *x, int n, int step, double *y,
                               int m)
{
    double scale = (double)n / m, reach = scale > 1 ? scale : 1;

    for (int i = 0; i < m; i++) {
        double centre = (i + 0.5) * scale, sum = 0, weights = 0;

        for (int j = 0; j < n; j++) {
            double w = 1 - fabs(j + 0.5 - centre) / reach;

            if (w > 0) {
                sum += w * x[j * step];
                weights += w;
            }
        }
        y[i] = floor(sum / weights + 0.5);
    }
}

/* The box of the image (h, w, 3) to w2 x h2: rows first, then columns. */
static inline uint8_t *resize_box(const uint8_t *x, int w,
                                  const struct ddp__box *b, int w2, int h2)
{
    uint8_t *across = malloc((size_t)b->h * (size_t)w2 * 3);
    uint8_t *y = malloc((size_t)h2 * (size_t)w2 * 3);
    double *line = malloc(sizeof(*line) * (size_t)(w2 > h2 ? w2 : h2));

    for (int i = 0; i < b->h; i++)
        for (int c = 0; c < 3; c++) {
            resize_line(x + ((b->y + i) * w + b->x) * 3 + c, b->w, 3, line, w2);
            for (int j = 0; j < w2; j++)
                across[(i * w2 + j) * 3 + c] = (uint8_t)line[j];
        }
    for (int j = 0; j < 3 * w2; j++) {
        resize_line(across + j, b->h, 3 * w2, line, h2);
        for (int i = 0; i < h2; i++)
            y[i * w2 * 3 + j] = (uint8_t)line[i];
    }
    free(across);
    free(line);
    return y;
}

/* Adobe's inverted CMYK to RGB. */
static inline void to_rgb(uint8_t *x, int pixels)
{
    for (int i = 0; i < pixels; i++)
        for (int c = 0; c < 3; c++)
            x[3 * i + c] = (uint8_t)(x[4 * i + c] * x[4 * i + 3] / 255.0 + 0.5);
}

static inline int largest_difference(const uint8_t *a, const uint8_t *b, int n)
{
    int most_so_far = 0;

    for (int i = 0; i < n; i++)
        if (abs(a[i] - b[i]) > most_so_far)
            most_so_far = abs(a[i] - b[i]);
    return most_so_far;
}

/* Crops of random boxes of the image rgb (h, w, 3) that b holds, against the
 * oracle: the largest difference, or 1000 for a failure. */
static inline int compare_boxes(const struct bytes *b, const uint8_t *rgb,
                                int w, int h, int boxes)
{
    static const int sizes[] = {5, 16, 31, 64};
    static uint8_t x[64 * 64 * 3];
    int worst = 0;

    srand(w * 1000 + h);
    for (int i = 0; i < boxes; i++) {
        int size = sizes[i % 4], d;
        struct ddp__crop c = {.w = size, .h = size};
        uint8_t *want;

        c.box.w = 1 + rand() % w;
        c.box.h = 1 + rand() % h;
        c.box.x = rand() % (w - c.box.w + 1);
        c.box.y = rand() % (h - c.box.h + 1);
        if (ddp__image_crop(b->data, b->len, most, &c, size, size, x) < 0) {
            diag("%s", ddp_errmsg());
            return 1000;
        }
        want = resize_box(rgb, w, &c.box, size, size);
        d = largest_difference(x, want, size * size * 3);
        if (d > worst)
            worst = d;
        free(want);
    }
    return worst;
}

/* Samples of a file, and of its pixels as the cache keeps them: how many are
 * not the same, or -1 if the cache does not keep it. */
static inline int compare_kept(const struct bytes *b, int keys)
{
    enum { SIZE = 24 };
    static uint8_t x[SIZE * SIZE * 3], y[SIZE * SIZE * 3];
    struct ddp__decoded d;
    int wrong = 0;

    if (ddp__image_whole(b->data, b->len, most, (size_t)most, &d) < 0)
        return -1;
    for (int i = 0; i < keys; i++) {
        struct ddp_image_options o,
            in = {IMAGE_DEFAULTS, .size = SIZE, .upright = i / 3 % 2,
                  .augment = (enum ddp_augment)(i % 3)};
        uint64_t key = (uint64_t)i;

        ddp__image_options(&in, 224, &o);
        wrong += ddp__image_again(&d, &o, key, x) != 0 ||
                 ddp__image_decode(b->data, b->len, &o,
                                   o.upright ? DDP__UPRIGHT : DDP__AS_STORED,
                                   key, y) != 0 ||
                 memcmp(x, y, sizeof(x)) != 0;
    }
    free(d.rgb);
    return wrong;
}

#endif
