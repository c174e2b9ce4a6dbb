/* pool.h - images that are generated in advance
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_POOL_H
#define BENCH_POOL_H

#include "ddp.h"
#include "settings.h"

/* A few different images, used in turn. */
struct pool {
    size_t size; /* bytes of an image */
    int classes;
    unsigned char *data; /* owned */
};

/* Generate those of the settings; a code of the program.  p->data is to be
 * freed. */
int pool_fill(struct pool *p, const struct bench_settings *s);

/* As ddp_source's get; arg is a pool. */
int pool_get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s);

#endif
