/* wino_tile.c - images in tiles, on their way through Winograd's transforms
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "cpu/cpu.h"
#include "wino_kind.h"
#include "wino_tile.h"

const float ddp__wino_no_pixel[16];

/* Where a tile is: sample, and its first output pixel. */
struct place {
    size_t n;
    int y, x;
};

static struct place place_of_tile(const struct ddp__wino_map *m, size_t tile)
{
    size_t row = tile / (size_t)m->across;

    return (struct place){.n = row / (size_t)m->down,
                          .y = (int)(row % (size_t)m->down) * m->kind->high,
                          .x = (int)(tile % (size_t)m->across) * m->kind->wide};
}

/* An image of pixels of c values. */
struct image {
    const void *x;
    int h, w;
    size_t c;
    bool b;
};

/* Pointers to high x wide pixels from (y, x) on of sample n. */
static void pixels_of_tile(const struct image *m, size_t n, int y, int x,
                           int high, int wide, const void **p)
{
    for (int i = y; i < y + high; i++)
        for (int j = x; j < x + wide; j++) {
            bool inside = i >= 0 && i < m->h && j >= 0 && j < m->w;
            size_t row = n * (size_t)m->h + (size_t)i;

            *p++ = inside
                       ? ddp__at(m->x, (row * (size_t)m->w + (size_t)j) * m->c,
                                 m->b)
                       : ddp__wino_no_pixel;
        }
}

void ddp__wino_input(const struct ddp__wino_map *m, const void *x,
                     const struct ddp__wino_tiles *t, float *v)
{
    const struct ddp__wino_kind *k = m->kind;
    const struct image from = {x, m->h, m->w, m->c, m->b};
    int high = k->high + k->kh - 1, wide = k->wide + k->kw - 1;
    const void *p[DDP__WINO_POS];

    for (size_t i = 0; i < t->count; i++) {
        struct place q = place_of_tile(m, t->first + i);
        int y = q.y - m->top, left = q.x - m->left;
        bool padded =
            y < 0 || left < 0 || y + high > m->h || left + wide > m->w;

        pixels_of_tile(&from, q.n, y, left, high, wide, p);
        k->input(p, m->c, padded, t->step, v + i * t->ld);
    }
}

void ddp__wino_spread(const struct ddp__wino_map *m, const void *dy,
                      const struct ddp__wino_tiles *t, float *z)
{
    const struct ddp__wino_kind *k = m->kind;
    const struct image from = {dy, m->oh, m->ow, m->o, m->b};
    const void *p[DDP__WINO_POS];

    for (size_t i = 0; i < t->count; i++) {
        struct place q = place_of_tile(m, t->first + i);

        pixels_of_tile(&from, q.n, q.y, q.x, k->high, k->wide, p);
        k->spread(p, m->o, t->step, z + i * t->ld);
    }
}

bool ddp__wino_has(enum ddp_act act)
{
    return act <= DDP_RELU6 || act == DDP_SILU || act == DDP_HARDSWISH;
}

void ddp__wino_output(const struct ddp__wino_map *m, const float *p,
                      const struct ddp__wino_tiles *t,
                      const struct ddp__wino_result *r)
{
    struct ddp__wino_target to = {.pixel = m->o,
                                  .pitch = (size_t)m->ow * m->o,
                                  .bias = r->bias ? r->bias + r->column : NULL,
                                  .sum = r->sum,
                                  .past = r->past,
                                  .act = r->act};

    for (size_t i = 0; i < t->count; i++) {
        struct place q = place_of_tile(m, t->first + i);
        size_t at =
            (q.n * (size_t)m->oh + (size_t)q.y) * to.pitch + (size_t)q.x * m->o;

        to.y = ddp__to(r->y, at + r->column, m->b);
        to.rows = m->oh - q.y;
        to.cols = m->ow - q.x;
        m->kind->output(p + i * t->ld, t->step, r->columns, &to);
    }
}
