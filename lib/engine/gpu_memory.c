/* gpu_memory.c - what a GPU has in memory for buffers that come and go
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "engine/gpu_memory.h"
#include "runtime/pool.h"

/* StarPU has buffers of up to SMALL bytes in chunks, of which they take whole
 * blocks. */
enum { CHUNK = 32 << 20, SMALL = CHUNK / 8, BLOCK = 16 << 10 };

/* Buffers of a size. */
struct ddp__gpu_size {
    size_t bytes;
    int now, most;
};

bool ddp__gpu_memory_new(struct ddp__gpu_memory *m, int sizes)
{
    m->size = calloc((size_t)sizes + 1, sizeof(*m->size));
    return m->size != NULL;
}

void ddp__gpu_memory_free(struct ddp__gpu_memory *m)
{
    free(m->size);
}

static struct ddp__gpu_size *find_size(struct ddp__gpu_memory *m, size_t bytes)
{
    int i = 0;

    while (i < m->sizes && m->size[i].bytes != bytes)
        i++;
    if (i == m->sizes)
        m->size[m->sizes++].bytes = bytes;
    return &m->size[i];
}

void ddp__gpu_memory_take(struct ddp__gpu_memory *m, size_t size)
{
    struct ddp__gpu_size *s = find_size(m, ddp__pool_size(size));

    s->now++;
    s->most = s->now > s->most ? s->now : s->most;
    m->live += (double)s->bytes;
    m->most_live = fmax(m->most_live, m->live);
}

void ddp__gpu_memory_give(struct ddp__gpu_memory *m, size_t size)
{
    struct ddp__gpu_size *s = find_size(m, ddp__pool_size(size));

    s->now--;
    m->live -= (double)s->bytes;
}

void ddp__gpu_memory_empty(struct ddp__gpu_memory *m)
{
    for (int i = 0; i < m->sizes; i++)
        m->size[i].now = 0;
    m->live = 0;
}

double ddp__gpu_memory_bytes(const struct ddp__gpu_memory *m)
{
    double large = 0, small = 0;

    for (int i = 0; i < m->sizes; i++) {
        const struct ddp__gpu_size *s = &m->size[i];

        if (s->bytes > SMALL)
            large += (double)s->most * (double)s->bytes;
        else
            small += (double)s->most *
                     (double)((s->bytes + BLOCK - 1) / BLOCK * BLOCK);
    }
    return large + ceil(small / CHUNK) * CHUNK;
}
