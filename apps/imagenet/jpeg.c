/* jpeg.c - write a picture as a JPEG file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "common/app.h"
#include "jpeg.h"

/* By default libjpeg calls exit() on errors. */
struct failure {
    struct jpeg_error_mgr base; /* first: libjpeg knows this part only */
    jmp_buf back;
};

static void jump_back(j_common_ptr c)
{
    longjmp(((struct failure *)(void *)c->err)->back, 1);
}

static void set_up(struct jpeg_compress_struct *c, int w, int h,
                   const struct jpeg_how *how)
{
    c->image_width = (JDIMENSION)w;
    c->image_height = (JDIMENSION)h;
    c->input_components = 3;
    c->in_color_space = JCS_RGB;
    jpeg_set_defaults(c);
    jpeg_set_quality(c, how->quality, TRUE);
    if (how->grey)
        jpeg_set_colorspace(c, JCS_GRAYSCALE);
    if (how->progressive)
        jpeg_simple_progression(c);
}

/* The file's bytes in *out, to free().  False after a failure of libjpeg. */
static bool compress(const uint8_t *rgb, int w, int h,
                     const struct jpeg_how *how, unsigned char **out,
                     unsigned long *size)
{
    struct jpeg_compress_struct c;
    struct failure f;

    c.err = jpeg_std_error(&f.base);
    f.base.error_exit = jump_back;
    if (setjmp(f.back)) {
        jpeg_destroy_compress(&c);
        return false;
    }
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, out, size);
    set_up(&c, w, h, how);
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < c.image_height) {
        JSAMPROW row =
            (JSAMPROW)(uintptr_t)(rgb + 3 * (size_t)w * c.next_scanline);

        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    return true;
}

int jpeg_write(const char *path, const uint8_t *rgb, int w, int h,
               const struct jpeg_how *how)
{
    unsigned char *data = NULL;
    unsigned long size = 0;
    bool written = false;
    FILE *file;

    if (!compress(rgb, w, h, how, &data, &size)) {
        app_say("%s: libjpeg cannot compress this image", path);
        free(data);
        return EXIT_MEMORY;
    }
    if ((file = fopen(path, "wb"))) {
        written = fwrite(data, 1, size, file) == size;
        written = fclose(file) == 0 && written;
    }
    free(data);
    if (written)
        return 0;
    app_say("%s: %s", path, strerror(errno));
    return EXIT_WRITE;
}
