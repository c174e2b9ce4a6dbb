/* pool.c - maximum and mean over windows, on CUDA workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "tasks.h"

/* From images of buffer `in` to those of buffer `out`; `small` tells on which
 * side an item is. */
static struct ddp__k_pool pool_arguments(const struct ddp__task *t, int in,
                                         int out, int item)
{
    const struct ddp__pool *p = &t->call->pool;
    struct ddp_shape x = t->call->buf[in].shape, y = t->call->buf[out].shape;

    return (struct ddp__k_pool){
        .items = (unsigned)(ddp__pixels(t, item) * ddp__groups((size_t)x.c)),
        .type = t->call->buf[in].type,
        .wide = ddp__whole(x.c) && DDP__ALIGNED(t, in, out),
        .count_pad = p->count_pad,
        .v = {x.h, y.h, p->kh, p->sh, p->top, p->bottom, p->adaptive},
        .h = {x.w, y.w, p->kw, p->sw, p->left, p->right, p->adaptive},
        .c = x.c};
}

int ddp__cuda_max_pool_fwd(const struct ddp__task *t)
{
    struct ddp__k_pool p = pool_arguments(t, 0, 1, 1);
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    p.x = t->data[0];
    p.y = t->data[1];
    p.index = t->data[2];
    p.narrow_index = t->call->buf[2].type == DDP_U8;
    p.wide = p.wide && DDP__ALIGNED(t, 2);
    return rc < 0 ? rc : DDP__LAUNCH(&place, max_pool_fwd, &p);
}

int ddp__cuda_max_pool_bwd(const struct ddp__task *t)
{
    struct ddp__k_pool p = pool_arguments(t, 2, 0, 2);
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    p.x = t->data[0];
    p.y = t->data[2];
    p.index = t->data[1];
    p.narrow_index = t->call->buf[1].type == DDP_U8;
    p.wide = p.wide && DDP__ALIGNED(t, 1);
    return rc < 0 ? rc : DDP__LAUNCH(&place, max_pool_bwd, &p);
}

/* Means of whole images, which one thread each would take long for. */
static bool is_global(const struct ddp__task *t)
{
    const struct ddp__pool *p = &t->call->pool;
    struct ddp_shape x = t->call->buf[0].shape, y = t->call->buf[1].shape;

    return y.h == 1 && y.w == 1 &&
           (p->adaptive || (p->kh == x.h && p->kw == x.w && !p->top &&
                            !p->left && !p->bottom && !p->right));
}

static int launch_global_mean(const struct ddp__task *t,
                              const struct ddp__cuda_place *place)
{
    struct ddp_shape x = t->call->buf[0].shape;
    size_t pixels = (size_t)x.h * (size_t)x.w;
    struct ddp__columns k = ddp__columns((size_t)t->n, pixels, x.c);
    struct ddp__k_column_sums sums = {.blocks = ddp__columns_blocks(&k),
                                      .type = t->call->buf[0].type,
                                      .wide =
                                          ddp__whole(x.c) && DDP__ALIGNED(t, 0),
                                      .k = k,
                                      .a = t->data[0],
                                      .part = place->scratch};
    struct ddp__k_column_finish finish = {.blocks =
                                              ddp__columns_finish_blocks(&k),
                                          .type = t->call->buf[1].type,
                                          .k = k,
                                          .part = place->scratch,
                                          .out = t->data[1],
                                          .factor = 1 / (float)pixels};
    int rc = DDP__LAUNCH(place, column_sums, &sums);

    return rc < 0 ? rc : DDP__LAUNCH(place, column_finish, &finish);
}

int ddp__cuda_mean_pool_fwd(const struct ddp__task *t)
{
    struct ddp__k_pool p = pool_arguments(t, 0, 1, 1);
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    if (rc < 0)
        return rc;
    if (is_global(t))
        return launch_global_mean(t, &place);
    p.x = t->data[0];
    p.y = t->data[1];
    return DDP__LAUNCH(&place, mean_pool_fwd, &p);
}

int ddp__cuda_mean_pool_bwd(const struct ddp__task *t)
{
    struct ddp__k_pool p = pool_arguments(t, 1, 0, 1);
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    p.x = t->data[0];
    p.y = t->data[1];
    return rc < 0 ? rc : DDP__LAUNCH(&place, mean_pool_bwd, &p);
}
