/* gif.c - the first picture of a GIF file, by giflib
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * As Pillow has it: the picture may cover a part of the canvas, of which the
 * rest has the transparent colour, or the first one, of the picture's palette;
 * colours beyond a palette are gray, and alpha is dropped.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <gif_lib.h>

#include "base/error.h"
#include "image/gif.h"
#include "image/whole.h"

/* A file in memory, and what was found in it. */
struct reading {
    const uint8_t *data;
    size_t len;
    GifFileType *gif; /* owned */
    int transparent;  /* a number of the palette, or -1 */
};

static int read_bytes(GifFileType *gif, GifByteType *to, int n)
{
    struct reading *r = gif->UserData;
    size_t some = r->len < (size_t)n ? r->len : (size_t)n;

    memcpy(to, r->data, some);
    r->data += some;
    r->len -= some;
    return (int)some;
}

/* Blocks of an extension; that of graphics says which colour is transparent. */
static bool read_extension(struct reading *r)
{
    GifByteType *block;
    int kind;

    if (DGifGetExtension(r->gif, &kind, &block) != GIF_OK)
        return false;
    if (kind == GRAPHICS_EXT_FUNC_CODE && block && block[0] >= 4)
        r->transparent = block[1] & 1 ? block[4] : -1;
    while (block)
        if (DGifGetExtensionNext(r->gif, &block) != GIF_OK)
            return false;
    return true;
}

/* Go to the first picture. */
static bool find_picture(struct reading *r)
{
    GifRecordType kind;
    int error;

    r->transparent = -1;
    if (!(r->gif = DGifOpen(r, read_bytes, &error)))
        return false;
    while (DGifGetRecordType(r->gif, &kind) == GIF_OK)
        if (kind == IMAGE_DESC_RECORD_TYPE)
            return DGifGetImageDesc(r->gif) == GIF_OK;
        else if (kind != EXTENSION_RECORD_TYPE || !read_extension(r))
            return false;
    return false;
}

static void end_reading(struct reading *r)
{
    int error;

    if (r->gif)
        DGifCloseFile(r->gif, &error);
}

static int fail_invalid(void)
{
    return ddp__fail(DDP_EDATA,
                     "is not a valid GIF image: it is damaged or truncated");
}

/* A picture that leaves the canvas makes it larger. */
static int open_image(void *state, struct ddp__picture *p)
{
    struct reading r = {.data = p->data, .len = p->len};
    int w = 0, h = 0;
    bool good = find_picture(&r);

    (void)state;
    if (good) {
        const GifImageDesc *i = &r.gif->Image;

        w = i->Left + i->Width;
        h = i->Top + i->Height;
        w = w > r.gif->SWidth ? w : r.gif->SWidth;
        h = h > r.gif->SHeight ? h : r.gif->SHeight;
        good = i->Width > 0 && i->Height > 0;
    }
    end_reading(&r);
    p->orientation = 1;
    return good ? ddp__whole_check(p, w, h) : fail_invalid();
}

/* ---- pixels ------------------------------------------------------------- */

static void set_palette(const GifFileType *gif, uint8_t palette[256][4])
{
    const ColorMapObject *map =
        gif->Image.ColorMap ? gif->Image.ColorMap : gif->SColorMap;

    for (int i = 0; i < 256; i++)
        memset(palette[i], i, 4);
    for (int i = 0; map && i < map->ColorCount && i < 256; i++) {
        palette[i][0] = map->Colors[i].Red;
        palette[i][1] = map->Colors[i].Green;
        palette[i][2] = map->Colors[i].Blue;
    }
}

static void fill_canvas(struct ddp__whole *s, const struct ddp__picture *p,
                        const uint8_t colour[4])
{
    for (size_t i = 0; i < (size_t)p->w * (size_t)p->h; i++)
        memcpy(s->x + 4 * i, colour, 4);
}

/* The n-th row that is stored, of h: interlaced pictures have every eighth row
 * first. */
static int row_of(int n, int h, bool interlaced)
{
    static const int first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2};

    for (int i = 0; interlaced && i < 4; i++) {
        int rows = (h - first[i] + step[i] - 1) / step[i];

        if (n < rows)
            return first[i] + n * step[i];
        n -= rows > 0 ? rows : 0;
    }
    return n;
}

static int read_picture(struct reading *r, const struct ddp__picture *p,
                        struct ddp__whole *s)
{
    const GifImageDesc *d = &r->gif->Image;
    uint8_t palette[256][4], *line = malloc((size_t)d->Width);
    bool good = true;

    if (!line)
        return ddp__fail(DDP_ENOMEM, "out of memory to decode a GIF image");
    set_palette(r->gif, palette);
    fill_canvas(s, p, palette[r->transparent < 0 ? 0 : r->transparent]);
    for (int i = 0; good && i < d->Height; i++) {
        int y = d->Top + row_of(i, d->Height, d->Interlace);
        uint8_t *to = s->x + (size_t)y * p->stride + (size_t)d->Left * 4;

        good = DGifGetLine(r->gif, line, d->Width) == GIF_OK;
        for (int j = 0; good && j < d->Width; j++)
            memcpy(to + 4 * (size_t)j, palette[line[j]], 4);
    }
    free(line);
    return good ? 0 : fail_invalid();
}

static int start_box(void *state, struct ddp__picture *p,
                     const struct ddp__box *b)
{
    struct reading r = {.data = p->data, .len = p->len};
    int rc = ddp__whole_reserve(state, p, b);

    if (rc == 0)
        rc = find_picture(&r) ? read_picture(&r, p, state) : fail_invalid();
    end_reading(&r);
    return rc;
}

static bool is_gif(const uint8_t *data, size_t len)
{
    return len >= 6 &&
           (!memcmp(data, "GIF87a", 6) || !memcmp(data, "GIF89a", 6));
}

const struct ddp__format ddp__gif = {
    .name = "GIF",
    .suffix = ".gif",
    .match = is_gif,
    .new = ddp__whole_new,
    .open = open_image,
    .box = start_box,
    .rows = ddp__whole_rows,
    .close = ddp__whole_close,
    .free = ddp__whole_free,
};
