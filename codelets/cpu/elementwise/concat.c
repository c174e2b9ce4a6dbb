/* concat.c - channels of several tensors, put together and taken apart
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "act.h"
#include "copy_v16.h"
#include "cpu/backend.h"
#include "cpu/cpu.h"
#include "cpu/store.h"

/* Bytes of `channels` channels of buffer i. */
static size_t width_bytes(const struct ddp__task *t, int i, int channels)
{
    return (size_t)channels * ddp__dtype_size(t->call->buf[i].type);
}

/* Between all channels of `narrow` and those from call.at on of `wide`. */
static struct ddp__copy copy_of(const struct ddp__task *t, int narrow, int wide,
                                bool to_wide)
{
    size_t few = width_bytes(t, narrow, t->call->buf[narrow].shape.c);
    size_t all = width_bytes(t, wide, t->call->buf[wide].shape.c);
    char *part = (char *)t->data[wide] + width_bytes(t, wide, t->call->at);
    size_t rows = ddp__rows(t, narrow), len = rows * (to_wide ? all : few);

    return (struct ddp__copy){.from = to_wide ? t->data[narrow] : part,
                              .to = to_wide ? part : t->data[narrow],
                              .from_step = to_wide ? few : all,
                              .to_step = to_wide ? all : few,
                              .bytes = few,
                              .rows = rows,
                              .stream = ddp__streams(len / 4, false)};
}

static void copy_rows(const struct ddp__copy *c)
{
    const char *from = c->from;
    char *to = c->to;

    if (ddp__copy_fits(c)) {
        ddp__copy_lines(c);
        return;
    }
    for (size_t r = 0; r < c->rows; r++, from += c->from_step, to += c->to_step)
        memcpy(to, from, c->bytes);
}

static void add_rows(const struct ddp__copy *c, bool b)
{
    const char *from = c->from;
    char *to = c->to;

    if (!b && ddp__copy_fits(c)) {
        ddp__copy_add(c);
        return;
    }
    for (size_t r = 0; r < c->rows; r++, from += c->from_step, to += c->to_step)
        ddp__cpu_add_values(to, from, c->bytes / (b ? 2 : 4), b);
}

int ddp__cpu_concat(const struct ddp__task *t)
{
    struct ddp__copy c = copy_of(t, DDP__CONCAT_X, DDP__CONCAT_Y, true);

    copy_rows(&c);
    return 0;
}

int ddp__cpu_split(const struct ddp__task *t)
{
    struct ddp__copy c = copy_of(t, DDP__SPLIT_DX, DDP__SPLIT_DY, false);

    if (t->call->sum)
        add_rows(&c, ddp__is_bf16(t, DDP__SPLIT_DX));
    else
        copy_rows(&c);
    return 0;
}
