/* pool_unit.h - channels of pooling layers in vectors, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Channels go through in units of 32, the last ones under a mask.
 */
#ifndef DDP_POOL_UNIT_H
#define DDP_POOL_UNIT_H

#include "cpu/store.h"
#include "cpu/thread.h"
#include "cpu/vector/unit_v16.h"
#include "pool.h"

#ifdef DDP__X86

enum { DDP__POOL_MOST = 2 /* units at a time, to wait for no addition */ };

/* Whether `len` values at y go past the caches. */
static inline bool ddp__pool_streams(const struct ddp__pooling *g,
                                     const void *y, size_t len)
{
    return ddp__streams(len, g->b) && g->c % DDP__UNIT == 0 &&
           (uintptr_t)y % 64 == 0;
}

/* f(..., c, units, kind) for all channels, whose first is c, `most` units at a
 * time. */
#define DDP__POOL_UNITS(most, channels, b, stream, f, ...)                     \
    do {                                                                       \
        size_t c = 0;                                                          \
                                                                               \
        for (; c + (most)*DDP__UNIT <= (channels); c += (most)*DDP__UNIT)      \
            f(__VA_ARGS__, c, most, (struct ddp__unit){b, true, stream, 0});   \
        for (; c + DDP__UNIT <= (channels); c += DDP__UNIT)                    \
            f(__VA_ARGS__, c, 1, (struct ddp__unit){b, true, stream, 0});      \
        if (c < (channels))                                                    \
            f(__VA_ARGS__, c, 1,                                               \
              (struct ddp__unit){b, false, false,                              \
                                 ((__mmask32)1 << ((channels)-c)) - 1});       \
    } while (0)

/* A function of a line for each kind, and which one a task takes. */
#define DDP__POOL_KINDS(name, type)                                            \
    DDP__UNIT_TARGET static void name##_f32(const type *l)                     \
    {                                                                          \
        name(l, false, false);                                                 \
    }                                                                          \
    DDP__UNIT_TARGET static void name##_f32_past(const type *l)                \
    {                                                                          \
        name(l, false, true);                                                  \
    }                                                                          \
    DDP__UNIT_TARGET static void name##_bf16(const type *l)                    \
    {                                                                          \
        name(l, true, false);                                                  \
    }                                                                          \
    DDP__UNIT_TARGET static void name##_bf16_past(const type *l)               \
    {                                                                          \
        name(l, true, true);                                                   \
    }
#define DDP__POOL_RUN(name, b, stream, l)                                      \
    ((b)        ? (stream) ? name##_bf16_past : name##_bf16                    \
     : (stream) ? name##_f32_past                                              \
                : name##_f32)(l)

/* ---- what results are made of ------------------------------------------- */

/* A value in an image, and its place in a window or the factor it gets. */
struct ddp__pool_tap {
    size_t at;
    union {
        int32_t position;
        float factor;
    };
};

/* Result i of a row has taps end[i - 1] .. end[i] - 1. */
struct ddp__pool_list {
    int *end;
    struct ddp__pool_tap *tap;
};

static inline size_t ddp__pool_list_size(int width, int most)
{
    return ddp__align((size_t)width * sizeof(int)) +
           (size_t)width * (size_t)most * sizeof(struct ddp__pool_tap);
}

static inline struct ddp__pool_list ddp__pool_list_in(void *room, int width)
{
    return (struct ddp__pool_list){
        room, (void *)((char *)room + ddp__align((size_t)width * sizeof(int)))};
}

/* A row of results of one image. */
struct ddp__pool_line {
    const struct ddp__pool_list *row;
    int width;
    size_t c;
    const void *from;
    void *to;
    uint8_t *index; /* of `to` forward, of `from` backward; NULL: mean */
};

#endif
#endif
