/* shrink.c - an image file as a smaller one, a JPEG file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "base/file.h"
#include "image/image.h"
#include "image/jpeg_write.h"
#include "image/shrink.h"

int ddp__image_shrink(struct ddp__bytes *file, const struct ddp__shrink *how)
{
    const struct ddp__jpeg_quality quality = {.percent = how->quality};
    struct ddp__bytes rgb = {0};
    struct ddp_shape s = {.c = 3};
    struct ddp__crop c;
    int w, h, rc;

    if ((rc = ddp__image_size(file->data, file->len, how->max_pixels, &w, &h)) <
        0)
        return rc;
    if (w <= how->side || h <= how->side)
        return DDP__AS_IT_WAS;
    c = ddp__crop_whole(w, h, how->side);
    c.filter = how->filter;
    s.w = (int)c.w;
    s.h = (int)c.h;
    if ((rc = ddp__bytes_reserve(&rgb, (size_t)(c.w * c.h) * 3)) == 0 &&
        (rc = ddp__image_crop(file->data, file->len, how->max_pixels, &c, s.w,
                              s.h, rgb.data)) == 0)
        rc = ddp__jpeg_write(s, rgb.data, quality, file);
    free(rgb.data);
    return rc;
}
