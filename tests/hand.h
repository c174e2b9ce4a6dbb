/* hand.h - run one op of ref on a few numbers, and look at the result
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef HAND_H
#define HAND_H

#include <math.h>
#include <string.h>

#include "ref/backend.h"
#include "tap.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline struct ddp__view image(int height, int width, int channels)
{
    return (struct ddp__view){.per_sample = true,
                              .shape = {height, width, channels}};
}

static inline struct ddp__view of_type(enum ddp_dtype type, struct ddp__view v)
{
    v.type = type;
    return v;
}

static inline struct ddp__view vector(int len)
{
    return (struct ddp__view){.shape = {1, 1, len}};
}

/* Run an op of ref; data has one pointer per buffer. */
static inline int run(enum ddp__op op, const struct ddp__call *call, int n,
                      bool accumulate, void *const data[])
{
    struct ddp__call c = *call;
    struct ddp__task t = {.call = &c, .n = n, .accumulate = accumulate};

    c.op = op;
    c.cap = c.cap ? c.cap : n;
    t.seed = 1;
    for (int i = 0; i < DDP_MAX_BUFFERS && data[i]; i++) {
        t.data[i] = data[i];
        c.buffers = i + 1;
    }
    return ddp__ref.kernel[op](&t);
}
#define RUN(op, call, n, ...)                                                  \
    run(DDP__OP_##op, call, n, false,                                          \
        (void * [DDP_MAX_BUFFERS + 1]){__VA_ARGS__})
#define RUN_ADDING(op, call, n, ...)                                           \
    run(DDP__OP_##op, call, n, true,                                           \
        (void * [DDP_MAX_BUFFERS + 1]){__VA_ARGS__})

static inline bool same(const float *got, const float *want, size_t len)
{
    bool good = true;

    for (size_t i = 0; i < len; i++) {
        float tol = 1e-6f * fmaxf(1, fabsf(want[i]));

        if (isnan(want[i]) ? isnan(got[i]) : fabsf(got[i] - want[i]) <= tol)
            continue;
        diag("element %zu: got %.9g, want %.9g", i, got[i], want[i]);
        good = false;
    }
    return good;
}
/* same(), for a list of expected values */
#define IS(got, ...)                                                           \
    same(got, (const float[]){__VA_ARGS__}, LEN(((const float[]){__VA_ARGS__})))

#endif
