/* jpeg_write.c - a picture as the bytes of a JPEG file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>
#include <jerror.h>

#include "base/error.h"
#include "base/file.h"
#include "image/jpeg_write.h"

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

static void set_format(struct encoder *e, struct ddp_shape s,
                       struct ddp__jpeg_quality q)
{
    e->c.image_width = (JDIMENSION)s.w;
    e->c.image_height = (JDIMENSION)s.h;
    e->c.input_components = s.c;
    e->c.in_color_space = s.c == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&e->c);
    jpeg_set_quality(&e->c, q.percent, TRUE);
    if (q.colour)
        e->c.comp_info[0].h_samp_factor = e->c.comp_info[0].v_samp_factor = 1;
}

/* False after a failure of libjpeg. */
static bool compress(struct encoder *e, struct ddp_shape s,
                     const uint8_t *pixels, struct ddp__jpeg_quality q)
{
    size_t len = (size_t)s.w * (size_t)s.c;

    if (setjmp(e->jump))
        return false;
    jpeg_create_compress(&e->c);
    jpeg_mem_dest(&e->c, &e->data, &e->len);
    set_format(e, s, q);
    jpeg_start_compress(&e->c, TRUE);
    while (e->c.next_scanline < e->c.image_height) {
        /* libjpeg only reads it */
        JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + len * e->c.next_scanline);

        jpeg_write_scanlines(&e->c, &row, 1);
    }
    jpeg_finish_compress(&e->c);
    return true;
}

int ddp__jpeg_write(struct ddp_shape s, const uint8_t *pixels,
                    struct ddp__jpeg_quality q, struct ddp__bytes *file)
{
    struct encoder e = {.c.client_data = &e};
    bool done;

    e.c.err = jpeg_std_error(&e.err);
    e.err.error_exit = leave_encoder;
    done = compress(&e, s, pixels, q);
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
    return ddp__fail(DDP_EDATA, "cannot become a JPEG image of %d x %d: %s",
                     s.w, s.h, e.text);
}
