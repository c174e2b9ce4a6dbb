/* param_init.c - initial values of parameters
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A value depends on the seed, its parameter and its place alone.  All cores
 * make those of a large network.
 */
#include "config.h"

#include <string.h>

#include "base/normal.h"
#include "base/philox.h"
#include "base/thread.h"
#include "graph/layer.h"
#include "graph/param_init.h"

enum {
    PIECE = 1 << 14,    /* values that are made at a time */
    WORTH_IT = 1 << 20, /* values of a share at least */
    SHARES = 64,
};

/* Number k of those in [-1, 1). */
static float uniform(uint64_t key, size_t k)
{
    return 2 * ddp__uniform(ddp__philox(key, 0, k).v[0]) - 1;
}

/* The values from `begin` on, of which there are at most PIECE. */
static void init_piece(const struct ddp_param *p, uint64_t key, size_t begin,
                       float *w)
{
    size_t len = ddp__param_len(p) - begin;

    len = len < PIECE ? len : PIECE;
    w += begin;
    if (p->std > 0)
        ddp__normals(key, begin, w, len);
    for (size_t k = 0; k < len; k++)
        w[k] = p->std > 0     ? p->std * w[k]
               : p->bound > 0 ? p->bound * uniform(key, begin + k)
                              : p->fill;
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

/* What threads make: shares of every so many-th piece. */
struct shares {
    const struct ddp__params *p;
    uint64_t seed;
    int count;
};

static void init_share(void *arg, int index)
{
    const struct shares *s = arg;
    int piece = 0;

    for (int k = 0; k < s->p->blocks; k++)
        for (int j = 0; j < s->p->block[k].params; j++) {
            const struct ddp__param_block *b = &s->p->block[k];
            uint64_t key = ddp__key(s->seed, (uint64_t)k, (uint64_t)j);
            size_t len = b->set[j] ? 0 : ddp__param_len(&b->param[j]);

            for (size_t at = 0; at < len; at += PIECE)
                if (piece++ % s->count == index)
                    init_piece(&b->param[j], key, at,
                               ddp__param_memory(s->p, b, j));
        }
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

void ddp__params_init_unset(struct ddp__params *p, uint64_t seed)
{
    int worth = (int)(p->total / WORTH_IT) + 1;
    struct shares s = {p, seed, worth < SHARES ? worth : SHARES};

    ddp__threads_each(s.count, s.count, init_share, &s);
    init_identities(p);
}
