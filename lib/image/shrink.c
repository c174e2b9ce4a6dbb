/* shrink.c - an image file as a smaller one, a JPEG file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>
#include <jerror.h>

#include "base/error.h"
#include "base/file.h"
#include "image/image.h"
#include "image/shrink.h"

/* By default libjpeg calls exit() on errors. */
struct encoder {
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr err;
    jmp_buf jump;
    char text[JMSG_LENGTH_MAX];
    unsigned char *data; /* owned */
    unsigned long len;
};

static void leave_encoder(j_common_ptr c)
{
    struct encoder *e = c->client_data;

    c->err->format_message(c, e->text);
    longjmp(e->jump, 1);
}

/* False after a failure of libjpeg. */
static bool compress(struct encoder *e, uint8_t *rgb, int w, int h, int quality)
{
    if (setjmp(e->jump))
        return false;
    jpeg_create_compress(&e->c);
    jpeg_mem_dest(&e->c, &e->data, &e->len);
    e->c.image_width = (JDIMENSION)w;
    e->c.image_height = (JDIMENSION)h;
    e->c.input_components = 3;
    e->c.in_color_space = JCS_RGB;
    jpeg_set_defaults(&e->c);
    jpeg_set_quality(&e->c, quality, TRUE);
    jpeg_start_compress(&e->c, TRUE);
    while (e->c.next_scanline < e->c.image_height) {
        JSAMPROW row = rgb + 3 * (size_t)w * e->c.next_scanline;

        jpeg_write_scanlines(&e->c, &row, 1);
    }
    jpeg_finish_compress(&e->c);
    return true;
}

/* The JPEG file of an image (h, w, 3). */
static int encode(uint8_t *rgb, int w, int h, int quality,
                  struct ddp__bytes *file)
{
    struct encoder e = {.c.client_data = &e};
    bool done;

    e.c.err = jpeg_std_error(&e.err);
    e.err.error_exit = leave_encoder;
    done = compress(&e, rgb, w, h, quality);
    if (!done && e.data) /* it may have moved: libjpeg tells only at the end */
        e.c.dest->term_destination(&e.c);
    jpeg_destroy_compress(&e.c);
    if (done) {
        free(file->data);
        *file =
            (struct ddp__bytes){.data = e.data, .len = e.len, .room = e.len};
        return 0;
    }
    free(e.data);
    if (e.err.msg_code == JERR_OUT_OF_MEMORY)
        return ddp__fail(DDP_ENOMEM, "out of memory to write a JPEG image");
    return ddp__fail(DDP_EDATA, "cannot become a JPEG image of %d x %d: %s", w,
                     h, e.text);
}

int ddp__image_shrink(struct ddp__bytes *file, const struct ddp__shrink *how)
{
    struct ddp__bytes rgb = {0};
    struct ddp__crop c;
    int w, h, rc;

    if ((rc = ddp__image_size(file->data, file->len, how->max_pixels, &w, &h)) <
        0)
        return rc;
    if (w <= how->side || h <= how->side)
        return DDP__AS_IT_WAS;
    c = ddp__crop_whole(w, h, how->side);
    c.filter = how->filter;
    if ((rc = ddp__bytes_reserve(&rgb, (size_t)(c.w * c.h) * 3)) == 0 &&
        (rc = ddp__image_crop(file->data, file->len, how->max_pixels, &c,
                              (int)c.w, (int)c.h, rgb.data)) == 0)
        rc = encode(rgb.data, (int)c.w, (int)c.h, how->quality, file);
    free(rgb.data);
    return rc;
}
