/* concat.c - channels of several tensors, put together and taken apart
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "cpu/backend.h"
#include "cpu/cpu.h"

static void copy_rows(char *to, size_t to_step, const char *from,
                      size_t from_step, size_t bytes, size_t rows)
{
    for (size_t r = 0; r < rows; r++)
        memcpy(to + r * to_step, from + r * from_step, bytes);
}

/* Bytes of `channels` channels of buffer i. */
static size_t width_bytes(const struct ddp__task *t, int i, int channels)
{
    return (size_t)channels * ddp__dtype_size(t->call->buf[i].type);
}

int ddp__cpu_concat(const struct ddp__task *t)
{
    int c = t->call->buf[DDP__CONCAT_X].shape.c;
    int all = t->call->buf[DDP__CONCAT_Y].shape.c;

    copy_rows((char *)t->data[DDP__CONCAT_Y] +
                  width_bytes(t, DDP__CONCAT_Y, t->call->at),
              width_bytes(t, DDP__CONCAT_Y, all), t->data[DDP__CONCAT_X],
              width_bytes(t, DDP__CONCAT_X, c),
              width_bytes(t, DDP__CONCAT_X, c), ddp__rows(t, DDP__CONCAT_X));
    return 0;
}

int ddp__cpu_split(const struct ddp__task *t)
{
    int c = t->call->buf[DDP__SPLIT_DX].shape.c;
    int all = t->call->buf[DDP__SPLIT_DY].shape.c;

    copy_rows(t->data[DDP__SPLIT_DX], width_bytes(t, DDP__SPLIT_DX, c),
              (const char *)t->data[DDP__SPLIT_DY] +
                  width_bytes(t, DDP__SPLIT_DY, t->call->at),
              width_bytes(t, DDP__SPLIT_DY, all),
              width_bytes(t, DDP__SPLIT_DX, c), ddp__rows(t, DDP__SPLIT_DX));
    return 0;
}
