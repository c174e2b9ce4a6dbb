/* pool.c - maximum and mean over windows, on CUDA workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "backend.h"
#include "launch.h"
#include "rows.h"
#include "tasks.h"

/* From images of operand `in` to those of `out`; there is an item for each
 * group of channels of operand `item`. */
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
    struct ddp__k_pool p = pool_arguments(
        t, DDP__MAX_POOL_FWD_X, DDP__MAX_POOL_FWD_Y, DDP__MAX_POOL_FWD_Y);
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    p.x = t->data[DDP__MAX_POOL_FWD_X];
    p.y = t->data[DDP__MAX_POOL_FWD_Y];
    p.index = t->data[DDP__MAX_POOL_FWD_INDEX];
    p.narrow_index = t->call->buf[DDP__MAX_POOL_FWD_INDEX].type == DDP_U8;
    p.wide = p.wide && DDP__ALIGNED(t, DDP__MAX_POOL_FWD_INDEX);
    return rc < 0 ? rc : DDP__LAUNCH(&place, max_pool_fwd, &p);
}

int ddp__cuda_max_pool_bwd(const struct ddp__task *t)
{
    struct ddp__k_pool p = pool_arguments(
        t, DDP__MAX_POOL_BWD_DX, DDP__MAX_POOL_BWD_DY, DDP__MAX_POOL_BWD_DX);
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    p.x = t->data[DDP__MAX_POOL_BWD_DY];
    p.y = t->data[DDP__MAX_POOL_BWD_DX];
    p.index = t->data[DDP__MAX_POOL_BWD_INDEX];
    p.narrow_index = t->call->buf[DDP__MAX_POOL_BWD_INDEX].type == DDP_U8;
    p.wide = p.wide && DDP__ALIGNED(t, DDP__MAX_POOL_BWD_INDEX);
    return rc < 0 ? rc : DDP__LAUNCH(&place, max_pool_bwd, &p);
}

/* Means of whole images, which one thread each would take long for. */
static bool is_global(const struct ddp__task *t)
{
    const struct ddp__pool *p = &t->call->pool;
    struct ddp_shape x = t->call->buf[DDP__MEAN_POOL_FWD_X].shape,
                     y = t->call->buf[DDP__MEAN_POOL_FWD_Y].shape;

    return y.h == 1 && y.w == 1 &&
           (p->adaptive || (p->kh == x.h && p->kw == x.w && !p->top &&
                            !p->left && !p->bottom && !p->right));
}

static int launch_global_mean(const struct ddp__task *t,
                              const struct ddp__cuda_place *place)
{
    struct ddp_shape x = t->call->buf[DDP__MEAN_POOL_FWD_X].shape;
    size_t pixels = (size_t)x.h * (size_t)x.w;
    struct ddp__columns k = ddp__columns((size_t)t->n, pixels, x.c);
    struct ddp__k_column_sums sums = {
        .blocks = ddp__columns_blocks(&k),
        .type = t->call->buf[DDP__MEAN_POOL_FWD_X].type,
        .wide = ddp__whole(x.c) && DDP__ALIGNED(t, DDP__MEAN_POOL_FWD_X),
        .k = k,
        .a = t->data[DDP__MEAN_POOL_FWD_X],
        .part = place->scratch};
    struct ddp__k_column_finish finish = {
        .blocks = ddp__columns_finish_blocks(&k),
        .type = t->call->buf[DDP__MEAN_POOL_FWD_Y].type,
        .k = k,
        .part = place->scratch,
        .out = t->data[DDP__MEAN_POOL_FWD_Y],
        .factor = 1 / (float)pixels};
    int rc = DDP__LAUNCH(place, column_sums, &sums);

    return rc < 0 ? rc : DDP__LAUNCH(place, column_finish, &finish);
}

int ddp__cuda_mean_pool_fwd(const struct ddp__task *t)
{
    struct ddp__k_pool p = pool_arguments(
        t, DDP__MEAN_POOL_FWD_X, DDP__MEAN_POOL_FWD_Y, DDP__MEAN_POOL_FWD_Y);
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    if (rc < 0)
        return rc;
    if (is_global(t))
        return launch_global_mean(t, &place);
    p.x = t->data[DDP__MEAN_POOL_FWD_X];
    p.y = t->data[DDP__MEAN_POOL_FWD_Y];
    return DDP__LAUNCH(&place, mean_pool_fwd, &p);
}

int ddp__cuda_mean_pool_bwd(const struct ddp__task *t)
{
    struct ddp__k_pool p = pool_arguments(
        t, DDP__MEAN_POOL_BWD_DX, DDP__MEAN_POOL_BWD_DY, DDP__MEAN_POOL_BWD_DX);
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    p.x = t->data[DDP__MEAN_POOL_BWD_DY];
    p.y = t->data[DDP__MEAN_POOL_BWD_DX];
    return rc < 0 ? rc : DDP__LAUNCH(&place, mean_pool_bwd, &p);
}
