/* image.c - from the bytes of an image file to the pixels of a sample
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Rows are decoded a few at a time, filtered across while they are in the
 * cache, and filtered down at the end; only what the crop needs is decoded.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/file.h"
#include "image/avif.h"
#include "image/bmp.h"
#include "image/cache.h"
#include "image/gif.h"
#include "image/image.h"
#include "image/jpeg.h"
#include "image/png.h"
#include "image/resize.h"
#include "image/tiff.h"
#include "image/webp.h"

static const size_t max_kept = (size_t)64 << 20;

/* ---- formats ------------------------------------------------------------ */

static const struct ddp__format *const formats[] = {
    &ddp__jpeg,
#ifdef HAVE_PNG
    &ddp__png,
#endif
#ifdef HAVE_WEBP
    &ddp__webp,
#endif
#ifdef HAVE_GIF
    &ddp__gif,
#endif
#ifdef HAVE_TIFF
    &ddp__tiff,
#endif
#ifdef HAVE_AVIF
    &ddp__avif,
#endif
    &ddp__bmp,
};
enum { FORMATS = sizeof(formats) / sizeof(*formats) };

bool ddp__image_suffix(const char *suffix)
{
    for (int i = 0; i < FORMATS; i++)
        if (formats[i]->suffix && !strcasecmp(suffix, formats[i]->suffix))
            return true;
    return false;
}

/* The first bytes of image files in formats that this build does not read. */
static const struct {
    const char *name, *magic;
    size_t len, at;
} others[] = {
    {"a PNG", "\x89PNG", 4, 0}, {"a GIF", "GIF8", 4, 0},
    {"a WebP", "WEBP", 4, 8},   {"a TIFF", "II*\0", 4, 0},
    {"a TIFF", "MM\0*", 4, 0},  {"a PGM", "P5", 2, 0},
    {"a PPM", "P6", 2, 0},      {"an AVIF", "ftyp", 4, 4},
};

static int fail_format(const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (len >= others[i].at + others[i].len &&
            !memcmp(data + others[i].at, others[i].magic, others[i].len))
            return ddp__fail(DDP_EDATA,
                             "is %s image, which this build of "
                             "libddp does not read",
                             others[i].name);
    return ddp__fail(DDP_EDATA, "is not an image");
}

/* ---- what a thread keeps from one image to the next --------------------- */

struct scratch {
    void *state[FORMATS];   /* of the formats, created at first use */
    struct ddp__bytes file; /* the last one read */
    struct ddp__bytes rows; /* some decoded rows */
    struct ddp__bytes room; /* for filtering them */
    struct ddp__bytes wide; /* all rows, filtered across */
    struct ddp__bytes side; /* a square that is still to be rotated */
    struct ddp__filter across, down;
};

static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;
static int scratch_rc;

static void scratch_free(void *p)
{
    struct scratch *s = p;

    for (int i = 0; i < FORMATS; i++)
        formats[i]->free(s->state[i]);
    free(s->file.data);
    free(s->rows.data);
    free(s->room.data);
    free(s->wide.data);
    free(s->side.data);
    ddp__filter_free(&s->across);
    ddp__filter_free(&s->down);
    free(s);
}

static void scratch_init(void)
{
    scratch_rc = pthread_key_create(&scratch_key, scratch_free);
}

/* This thread's; freed when the thread ends. */
static struct scratch *scratch_get(void)
{
    struct scratch *s;

    pthread_once(&scratch_once, scratch_init);
    if (scratch_rc == 0 && (s = pthread_getspecific(scratch_key)))
        return s;
    if (scratch_rc != 0 || !(s = calloc(1, sizeof(*s)))) {
        ddp__fail(DDP_ENOMEM, "out of memory for a decoder");
        return NULL;
    }
    if (pthread_setspecific(scratch_key, s) != 0) {
        free(s);
        ddp__fail(DDP_ENOMEM, "out of memory for a decoder");
        return NULL;
    }
    return s;
}

struct ddp__bytes *ddp__image_file(void)
{
    struct scratch *s = scratch_get();

    return s ? &s->file : NULL;
}

void ddp__image_trim(struct ddp__bytes *b)
{
    if (b->room <= max_kept)
        return;
    free(b->data);
    *b = (struct ddp__bytes){0};
}

/* ---- decoding ----------------------------------------------------------- */

/* The orientation of the stored image, one of the eight of EXIF. */
static bool mirrored_x(int o)
{
    return o == 2 || o == 3 || o == 7 || o == 8;
}

static bool mirrored_y(int o)
{
    return o == 3 || o == 4 || o == 6 || o == 7;
}

static bool on_side(int o)
{
    return o >= 5;
}

/* Set the filters for the stored image's rows and columns. */
static int set_filters(struct scratch *s, const struct ddp__picture *p,
                       const struct ddp__crop *c, int w, int h)
{
    bool side = on_side(p->orientation);
    struct ddp__filter *x = side ? &s->down : &s->across;
    struct ddp__filter *y = side ? &s->across : &s->down;
    int rc;

    if ((rc = ddp__filter_set(x, c->filter, c->box.x, c->box.w, c->w, c->x,
                              w)) < 0 ||
        (rc = ddp__filter_set(y, c->filter, c->box.y, c->box.h, c->h, c->y,
                              h)) < 0)
        return rc;
    if (c->flip)
        ddp__filter_flip(x);
    if (c->vertical_flip)
        ddp__filter_flip(y);
    if (mirrored_x(p->orientation))
        ddp__filter_mirror(&s->across, p->w);
    if (mirrored_y(p->orientation))
        ddp__filter_mirror(&s->down, p->h);
    return 0;
}

/* Decode what the filters need and filter it across, into s->wide. */
static int decode_rows(struct scratch *s, const struct ddp__format *f,
                       void *state, struct ddp__picture *p)
{
    struct ddp__box b = {s->across.lo, s->down.lo, s->across.hi - s->across.lo,
                         s->down.hi - s->down.lo};
    size_t width = (size_t)s->across.count * 3;
    size_t height = ((size_t)b.h + DDP__ROWS - 1) / DDP__ROWS * DDP__ROWS;
    int rc;

    if ((rc = f->box(state, p, &b)) < 0 ||
        (rc = ddp__bytes_reserve(&s->rows, p->stride * DDP__ROWS)) < 0 ||
        (rc = ddp__bytes_reserve(&s->room, ddp__resize_room(&s->across))) < 0 ||
        (rc = ddp__bytes_reserve(&s->wide, width * height)) < 0)
        return rc;
    for (int y = 0; y < b.h; y += DDP__ROWS) {
        int n = b.h - y < DDP__ROWS ? b.h - y : DDP__ROWS;

        if ((rc = f->rows(state, p, s->rows.data, n)) < 0)
            return rc;
        ddp__resize_columns(&s->across, s->rows.data + (size_t)p->skip * 4,
                            p->stride, s->room.data,
                            s->wide.data + (size_t)y * width);
    }
    return 0;
}

/* y[j][i] = x[i][j], pixels of a square */
static void transpose(const uint8_t *x, int size, uint8_t *y)
{
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            memcpy(y + ((size_t)j * (size_t)size + (size_t)i) * 3,
                   x + ((size_t)i * (size_t)size + (size_t)j) * 3, 3);
}

/* Convert an opened image to the sample, of w x h pixels: those of an image on
 * its side, and those that are augmented, are square. */
static int decode_crop(struct scratch *s, const struct ddp__format *f,
                       void *state, struct ddp__picture *p,
                       const struct ddp__crop *c, int w, int h, uint8_t *x)
{
    int rc;

    if ((rc = set_filters(s, p, c, w, h)) < 0 ||
        (rc = decode_rows(s, f, state, p)) < 0)
        return rc;
    if (on_side(p->orientation)) {
        if ((rc = ddp__bytes_reserve(&s->side, (size_t)w * (size_t)h * 3)) < 0)
            return rc;
        ddp__resize_rows(&s->down, s->wide.data, w * 3, s->side.data);
        transpose(s->side.data, w, x);
    } else {
        ddp__resize_rows(&s->down, s->wide.data, w * 3, x);
    }
    return ddp__augment_finish(c, w, &s->side, x);
}

/* The crop: a given one, or the one that the options choose for the image's
 * size; without either, all of the image in one pixel. */
struct choice {
    const struct ddp__crop *crop;
    const struct ddp_image_options *o;
    uint64_t key;
    int w, h; /* of the sample */
};

static struct ddp__crop choose_crop(const struct choice *a,
                                    const struct ddp__picture *p)
{
    bool side = on_side(p->orientation);

    if (!a->crop && !a->o)
        return (struct ddp__crop){.box = {0, 0, p->w, p->h}, .w = 1, .h = 1};
    return a->crop ? *a->crop
                   : ddp__augment(a->o, a->key, side ? p->h : p->w,
                                  side ? p->w : p->h);
}

static int decode_with(struct scratch *s, const struct ddp__format *f,
                       void *state, struct ddp__picture *p,
                       const struct choice *a, uint8_t *x)
{
    struct ddp__crop c;
    int rc = f->open(state, p);

    if (rc == 0) {
        c = choose_crop(a, p);
        rc = decode_crop(s, f, state, p, &c, a->w, a->h, x);
    }
    f->close(state);
    ddp__image_trim(&s->rows);
    ddp__image_trim(&s->room);
    ddp__image_trim(&s->wide);
    return rc;
}

/* The number of the format of a file, whose state the thread then has. */
static int find_format(struct scratch *s, const struct ddp__picture *p)
{
    for (int i = 0; i < FORMATS; i++)
        if (formats[i]->match(p->data, p->len))
            return s->state[i] || (s->state[i] = formats[i]->new ())
                       ? i
                       : DDP_ENOMEM;
    return fail_format(p->data, p->len);
}

static int decode_picture(struct scratch *s, struct ddp__picture *p,
                          const struct choice *a, uint8_t *x)
{
    int i = find_format(s, p);

    return i < 0 ? i : decode_with(s, formats[i], s->state[i], p, a, x);
}

/* ---- pixels in memory --------------------------------------------------- */

static int open_pixels(void *state, struct ddp__picture *p)
{
    (void)state;
    (void)p;
    return 0;
}

static int box_pixels(void *state, struct ddp__picture *p,
                      const struct ddp__box *b)
{
    *(const uint8_t **)state =
        p->data + ((size_t)b->y * (size_t)p->w + (size_t)b->x) * 3;
    p->stride = (size_t)b->w * 4;
    p->skip = 0;
    return 0;
}

static int read_pixels(void *state, struct ddp__picture *p, uint8_t *x, int n)
{
    const uint8_t **from = state;

    for (int y = 0; y < n; y++, *from += (size_t)p->w * 3)
        for (size_t i = 0; i < p->stride; i += 4, x += 4)
            memcpy(x, *from + i / 4 * 3, 3);
    return 0;
}

static void close_pixels(void *state)
{
    (void)state;
}

static const struct ddp__format pixels = {
    .name = "pixels",
    .open = open_pixels,
    .box = box_pixels,
    .rows = read_pixels,
    .close = close_pixels,
};

/* ---- the ways in -------------------------------------------------------- */

int ddp__image_pixels(const uint8_t *rgb, int w, int h,
                      const struct ddp_image_options *o, uint64_t key,
                      uint8_t *x)
{
    const struct ddp__decoded d = {w, h, 1, (uint8_t *)(uintptr_t)rgb};

    return ddp__image_again(&d, o, key, x);
}

int ddp__image_again(const struct ddp__decoded *d,
                     const struct ddp_image_options *o, uint64_t key,
                     uint8_t *x)
{
    struct ddp__picture p = {.data = d->rgb,
                             .w = d->w,
                             .h = d->h,
                             .orientation = o->upright ? d->orientation : 1};
    struct choice a = {.o = o, .key = key, .w = o->size, .h = o->size};
    struct scratch *s = scratch_get();
    const uint8_t *from;

    return s ? decode_with(s, &pixels, &from, &p, &a, x) : DDP_ENOMEM;
}

int ddp__image_size(const uint8_t *data, size_t len, int64_t max_pixels, int *w,
                    int *h)
{
    struct ddp__picture p = {
        .data = data, .len = len, .max_pixels = max_pixels};
    struct scratch *s = scratch_get();
    int i = s ? find_format(s, &p) : DDP_ENOMEM, rc;

    if (i < 0)
        return i;
    if ((rc = formats[i]->open(s->state[i], &p)) == 0) {
        *w = p.w;
        *h = p.h;
    }
    formats[i]->close(s->state[i]);
    return rc;
}

int ddp__image_crop(const uint8_t *data, size_t len, int64_t max_pixels,
                    const struct ddp__crop *c, int w, int h, uint8_t *x)
{
    struct ddp__picture p = {
        .data = data, .len = len, .max_pixels = max_pixels};
    struct choice a = {.crop = c, .w = w, .h = h};
    struct scratch *s = scratch_get();

    return s ? decode_picture(s, &p, &a, x) : DDP_ENOMEM;
}

int ddp__image_check(const uint8_t *data, size_t len, int64_t max_pixels)
{
    struct ddp__picture p = {
        .data = data, .len = len, .max_pixels = max_pixels};
    struct choice a = {.w = 1, .h = 1};
    struct scratch *s = scratch_get();
    uint8_t pixel[3];

    return s ? decode_picture(s, &p, &a, pixel) : DDP_ENOMEM;
}

int ddp__image_decode(const uint8_t *data, size_t len,
                      const struct ddp_image_options *o, enum ddp__turn turn,
                      uint64_t key, uint8_t *x)
{
    struct ddp__picture p = {.data = data,
                             .len = len,
                             .max_pixels = o->max_pixels,
                             .upright = turn == DDP__UPRIGHT};
    struct choice a = {.o = o, .key = key, .w = o->size, .h = o->size};
    struct scratch *s = scratch_get();

    return s ? decode_picture(s, &p, &a, x) : DDP_ENOMEM;
}

/* Rows of pixels of 4 bytes to 3. */
static int decode_all(struct scratch *s, const struct ddp__format *f,
                      void *state, struct ddp__picture *p, uint8_t *rgb)
{
    const struct ddp__box all = {0, 0, p->w, p->h};
    int rc;

    if ((rc = f->box(state, p, &all)) < 0 ||
        (rc = ddp__bytes_reserve(&s->rows, p->stride * DDP__ROWS)) < 0)
        return rc;
    for (int y = 0; y < p->h; y += DDP__ROWS) {
        int n = p->h - y < DDP__ROWS ? p->h - y : DDP__ROWS;

        if ((rc = f->rows(state, p, s->rows.data, n)) < 0)
            return rc;
        for (int r = 0; r < n; r++) {
            const uint8_t *x =
                s->rows.data + (size_t)r * p->stride + (size_t)p->skip * 4;

            for (int i = 0; i < p->w; i++, x += 4, rgb += 3)
                memcpy(rgb, x, 3);
        }
    }
    return p->damaged ? ddp__fail(DDP_EDATA, "is damaged") : 0;
}

static int open_all(struct scratch *s, const struct ddp__format *f, void *state,
                    struct ddp__picture *p, size_t most, struct ddp__decoded *d)
{
    size_t size;
    int rc = f->open(state, p);

    if (rc < 0)
        return rc;
    if ((size = (size_t)p->w * (size_t)p->h * 3) > most)
        return ddp__fail(DDP_ENOMEM, "more than %zu bytes", most);
    if (!(d->rgb = malloc(size)))
        return ddp__fail(DDP_ENOMEM, "out of memory for an image");
    d->w = p->w;
    d->h = p->h;
    d->orientation = p->orientation;
    return decode_all(s, f, state, p, d->rgb);
}

int ddp__image_whole(const uint8_t *data, size_t len, int64_t max_pixels,
                     size_t most, struct ddp__decoded *d)
{
    struct ddp__picture p = {
        .data = data, .len = len, .max_pixels = max_pixels, .upright = true};
    struct scratch *s = scratch_get();
    int i = s ? find_format(s, &p) : DDP_ENOMEM, rc;

    *d = (struct ddp__decoded){0};
    if (i < 0)
        return i;
    rc = open_all(s, formats[i], s->state[i], &p, most, d);
    formats[i]->close(s->state[i]);
    ddp__image_trim(&s->rows);
    if (rc < 0) {
        free(d->rgb);
        d->rgb = NULL;
    }
    return rc;
}
