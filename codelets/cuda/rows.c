/* rows.c - cutting rows into blocks, and what other ops use of our kernels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "launch.h"
#include "rows.h"
#include "tasks.h"

/* Enough blocks for any GPU, few enough for the sums of chunks to be short:
 * constants, so that the additions are the same on every GPU. */
enum { BLOCKS = 1024, CHUNKS = 512, ROWS_OF_A_THREAD = 4, ACROSS = 16 };

static unsigned threads_across(int c)
{
    unsigned across = 1;

    while (across < ACROSS && across * DDP__WIDTH < (unsigned)c)
        across *= 2;
    return across;
}

static unsigned tiles_of(int c)
{
    unsigned channels = threads_across(c) * DDP__WIDTH;

    return ((unsigned)c + channels - 1) / channels;
}

static size_t divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

struct ddp__columns ddp__columns(size_t segments, size_t rows, int c)
{
    struct ddp__columns k = {.segments = (unsigned)segments,
                             .tiles = tiles_of(c),
                             .across = threads_across(c),
                             .rows = rows,
                             .c = c};
    size_t down = DDP__THREADS / k.across;
    size_t chunks = divide_up(rows, down * ROWS_OF_A_THREAD);
    size_t most = BLOCKS / (segments * k.tiles);

    most = most > CHUNKS ? CHUNKS : most < 1 ? 1 : most;
    chunks = chunks > most ? most : chunks;
    k.chunk = divide_up(rows, chunks);
    k.chunks = (unsigned)divide_up(rows, k.chunk);
    return k;
}

unsigned ddp__columns_blocks(const struct ddp__columns *k)
{
    return k->segments * k->chunks * k->tiles;
}

unsigned ddp__columns_finish_blocks(const struct ddp__columns *k)
{
    return k->segments * (unsigned)divide_up((size_t)k->c, DDP__ABREAST);
}

size_t ddp__columns_scratch(size_t segments, int c)
{
    size_t blocks = segments * tiles_of(c);

    return (blocks > BLOCKS ? blocks : BLOCKS) * threads_across(c) *
           DDP__WIDTH * 2 * sizeof(float);
}

int ddp__cuda_accumulate(const void *x, enum ddp_dtype type, float *g,
                         size_t rows, int c, int cx, bool add)
{
    struct ddp__k_accumulate p = {.items =
                                      (unsigned)(rows * ddp__groups((size_t)c)),
                                  .type = type,
                                  .wide = ddp__whole(c) && ddp__whole(cx) &&
                                          ddp__aligned(x) && ddp__aligned(g),
                                  .add = add,
                                  .x = x,
                                  .g = g,
                                  .rows = rows,
                                  .c = c,
                                  .cx = cx};
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    return rc < 0 ? rc : DDP__LAUNCH(&place, accumulate, &p);
}

int ddp__cuda_convert(const float *x, void *y, enum ddp_dtype type, size_t rows,
                      int c, int cy)
{
    struct ddp__k_input p = {.items = (unsigned)ddp__groups(rows * (size_t)cy),
                             .type = type,
                             .wide = ddp__aligned(y),
                             .x = x,
                             .y = y,
                             .len = rows * (size_t)cy,
                             .c = c,
                             .cy = cy,
                             .factor = {1, 1, 1, 1}};
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    return rc < 0 ? rc : DDP__LAUNCH(&place, input, &p);
}

int ddp__cuda_add_to(void *dst, const void *src, enum ddp_dtype type,
                     size_t len)
{
    struct ddp__k_flat p = {.items = (unsigned)ddp__groups(len),
                            .type = type,
                            .wide = ddp__aligned(dst) && ddp__aligned(src),
                            .act = DDP_IDENTITY,
                            .a = dst,
                            .b = src,
                            .y = dst,
                            .len = len};
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    return rc < 0 ? rc : DDP__LAUNCH(&place, add, &p);
}

/* Two launches: partial sums of chunks of rows, then a fixed tree over them, so
 * that the bits do not depend on the GPU. */
int ddp__cuda_sum_rows(const void *x, enum ddp_dtype type, float *g,
                       size_t rows, int c, bool add, void *scratch)
{
    struct ddp__columns k = ddp__columns(1, rows, c);
    struct ddp__k_column_sums sums = {.blocks = ddp__columns_blocks(&k),
                                      .type = type,
                                      .wide = ddp__whole(c) && ddp__aligned(x),
                                      .k = k,
                                      .a = x,
                                      .part = scratch};
    struct ddp__k_column_finish finish = {.blocks =
                                              ddp__columns_finish_blocks(&k),
                                          .type = DDP_F32,
                                          .k = k,
                                          .part = scratch,
                                          .out = g,
                                          .factor = 1,
                                          .add = add};
    struct ddp__cuda_place place;
    int rc;

    if ((rc = ddp__cuda_place(&place)) < 0 ||
        (rc = DDP__LAUNCH(&place, column_sums, &sums)) < 0)
        return rc;
    return DDP__LAUNCH(&place, column_finish, &finish);
}
