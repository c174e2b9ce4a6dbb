/* param_init.c - initial values of parameters
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A value depends on the seed, its parameter and its place alone.  Those of a
 * large network take a core more than a second, so all cores make them.
 */
#include "config.h"

#include <math.h>
#include <sched.h>
#include <string.h>

#include "base/philox.h"
#include "base/thread.h"
#include "graph/layer.h"
#include "graph/param_init.h"

enum {
    PIECE = 1 << 14,    /* values that a thread makes at a time */
    WORTH_IT = 1 << 20, /* values per thread at least */
    MOST_THREADS = 16,
};

/* A normal number by Box and Muller's transform of two uniform ones. */
static float normal(struct ddp__philox r)
{
    double u = ((double)r.v[0] + 1) * 0x1p-32, v = (double)r.v[1] * 0x1p-32;

    return (float)(sqrt(-2 * log(u)) * cos(2 * M_PI * v));
}

/* The values from `begin` on, of which there are at most PIECE. */
static void init_piece(const struct ddp_param *p, uint64_t key, size_t begin,
                       float *w)
{
    size_t len = ddp__param_len(p);

    for (size_t k = begin; k < len && k < begin + PIECE; k++) {
        struct ddp__philox r = ddp__philox(key, 0, k);

        w[k] = p->std > 0     ? p->std * normal(r)
               : p->bound > 0 ? p->bound * (2 * ddp__uniform(r.v[0]) - 1)
                              : p->fill;
    }
}

/* Of a convolution, whose inputs are the fastest. */
static void init_identity(const struct ddp_param *p, float *w)
{
    size_t in = (size_t)p->dim[1], kh = (size_t)p->dim[2],
           kw = (size_t)p->dim[3], len = kh * kw * in;
    size_t middle = (kh / 2 * kw + kw / 2) * in;

    for (size_t o = 0; o < in && o < (size_t)p->dim[0]; o++) {
        memset(w + o * len, 0, len * sizeof(*w));
        w[o * len + middle + o] = 1;
    }
}

float *ddp__param_memory(const struct ddp__params *p,
                         const struct ddp__param_block *b, int i)
{
    return p->bucket[b->bucket].w + b->offset + b->param_offset[i];
}

/* What one of `threads` makes: every so many-th piece. */
struct share {
    const struct ddp__params *p;
    uint64_t seed;
    int index, threads;
    pthread_t thread;
    bool started;
};

static void *init_share(void *arg)
{
    const struct share *s = arg;
    int piece = 0;

    for (int k = 0; k < s->p->blocks; k++)
        for (int j = 0; j < s->p->block[k].params; j++) {
            const struct ddp__param_block *b = &s->p->block[k];
            uint64_t key = ddp__key(s->seed, (uint64_t)k, (uint64_t)j);
            size_t len = b->set[j] ? 0 : ddp__param_len(&b->param[j]);

            for (size_t at = 0; at < len; at += PIECE)
                if (piece++ % s->threads == s->index)
                    init_piece(&b->param[j], key, at,
                               ddp__param_memory(s->p, b, j));
        }
    return NULL;
}

static int count_threads(const struct ddp__params *p)
{
    size_t worth = p->total / WORTH_IT, cores = 1;
    cpu_set_t may;

    if (sched_getaffinity(0, sizeof(may), &may) == 0)
        cores = (size_t)CPU_COUNT(&may);
    cores = cores < MOST_THREADS ? cores : MOST_THREADS;
    return (int)(worth < 1 ? 1 : worth < cores ? worth : cores);
}

/* What replaces some of the values. */
static void init_identities(const struct ddp__params *p)
{
    for (int k = 0; k < p->blocks; k++)
        for (int j = 0; j < p->block[k].params; j++) {
            const struct ddp__param_block *b = &p->block[k];

            if (!b->set[j] && b->param[j].identity)
                init_identity(&b->param[j], ddp__param_memory(p, b, j));
        }
}

/* The share of a thread that does not start is made here. */
void ddp__params_init_unset(struct ddp__params *p, uint64_t seed)
{
    struct share share[MOST_THREADS];
    int n = count_threads(p);

    for (int i = 0; i < n; i++)
        share[i] =
            (struct share){.p = p, .seed = seed, .index = i, .threads = n};
    for (int i = 1; i < n; i++)
        share[i].started =
            ddp__thread_start(&share[i].thread, init_share, &share[i]) == 0;
    for (int i = 0; i < n; i++)
        if (!share[i].started)
            init_share(&share[i]);
    for (int i = 1; i < n; i++)
        if (share[i].started)
            pthread_join(share[i].thread, NULL);
    init_identities(p);
}
