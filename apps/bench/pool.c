/* pool.c - images that are generated in advance
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdlib.h>
#include <string.h>

#include "common/app.h"
#include "common/app_fail.h"
#include "pool.h"

enum { POOL = 64 };

int pool_get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    const struct pool *p = arg;

    (void)key;
    memcpy(s->x, p->data + p->size * (size_t)(index % POOL), p->size);
    s->label = (int32_t)(index % POOL % p->classes);
    return 0;
}

int pool_fill(struct pool *p, const struct bench_settings *s)
{
    size_t len = (size_t)(s->img_size * s->img_size * 3);
    uint32_t x = 12345;

    p->classes = (int)s->classes;
    p->size = len * (s->input ? sizeof(float) : 1);
    if (!(p->data = malloc(p->size * POOL)))
        return app_exit_code(DDP_ENOMEM);
    for (size_t i = 0; i < len * POOL; i++) {
        x = x * 1664525u + 1013904223u; /* Numerical Recipes' generator */
        if (s->input)
            ((float *)(void *)p->data)[i] = (float)(x >> 8) * 0x1p-23f - 1;
        else
            p->data[i] = (unsigned char)(x >> 24);
    }
    return OPTS_GO;
}
