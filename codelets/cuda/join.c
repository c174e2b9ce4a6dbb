/* join.c - channels that are put together, taken apart, scaled: on CUDA
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "backend.h"
#include "launch.h"
#include "rows.h"
#include "tasks.h"

/* Between `small` and channels at, at + 1, ... of `large`. */
static int launch_copy(const struct ddp__task *t, int small, int large,
                       bool to_large)
{
    int s = t->call->buf[small].shape.c, l = t->call->buf[large].shape.c;
    struct ddp__k_copy p = {
        .items = (unsigned)(ddp__pixels(t, small) * ddp__groups((size_t)s)),
        .type = t->call->buf[small].type,
        .wide = ddp__whole(s) && ddp__whole(l) && ddp__whole(t->call->at) &&
                DDP__ALIGNED(t, small, large),
        .to_large = to_large,
        .add = t->call->sum,
        .from = t->data[to_large ? small : large],
        .to = t->data[to_large ? large : small],
        .small = s,
        .large = l,
        .at = t->call->at};
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    return rc < 0 ? rc : DDP__LAUNCH(&place, copy_channels, &p);
}

/* y[..., at + i] = x[..., i] */
int ddp__cuda_concat(const struct ddp__task *t)
{
    return launch_copy(t, DDP__CONCAT_X, DDP__CONCAT_Y, true);
}

/* dx[..., i] = dy[..., at + i], or that is added */
int ddp__cuda_split(const struct ddp__task *t)
{
    return launch_copy(t, DDP__SPLIT_DX, DDP__SPLIT_DY, false);
}

/* y = x s */
int ddp__cuda_scale_fwd(const struct ddp__task *t)
{
    struct ddp_shape x = t->call->buf[DDP__SCALE_FWD_X].shape;
    struct ddp__k_scale p = {
        .items = (unsigned)(ddp__pixels(t, DDP__SCALE_FWD_X) *
                            ddp__groups((size_t)x.c)),
        .type = t->call->buf[DDP__SCALE_FWD_X].type,
        .wide =
            ddp__whole(x.c) && DDP__ALIGNED(t, DDP__SCALE_FWD_X,
                                            DDP__SCALE_FWD_S, DDP__SCALE_FWD_Y),
        .x = t->data[DDP__SCALE_FWD_X],
        .s = t->data[DDP__SCALE_FWD_S],
        .y = t->data[DDP__SCALE_FWD_Y],
        .pixels = (unsigned)x.h * (unsigned)x.w,
        .c = x.c};
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    return rc < 0 ? rc : DDP__LAUNCH(&place, scale_fwd, &p);
}

/* dx = dy s, if it is an operand;  ds = the sum over pixels of x dy, where x
 * may be times s */
int ddp__cuda_scale_bwd(const struct ddp__task *t)
{
    struct ddp_shape x = t->call->buf[DDP__SCALE_BWD_X].shape;
    struct ddp__columns k =
        ddp__columns((size_t)t->n, (size_t)x.h * (size_t)x.w, x.c);
    struct ddp__k_column_sums sums = {
        .blocks = ddp__columns_blocks(&k),
        .type = t->call->buf[DDP__SCALE_BWD_X].type,
        .wide = ddp__whole(x.c) &&
                DDP__ALIGNED(t, DDP__SCALE_BWD_X, DDP__SCALE_BWD_S,
                             DDP__SCALE_BWD_DY, DDP__SCALE_BWD_DX),
        .k = k,
        .a = t->data[DDP__SCALE_BWD_X],
        .b = t->data[DDP__SCALE_BWD_DY],
        .s = t->data[DDP__SCALE_BWD_DX] ? t->data[DDP__SCALE_BWD_S] : NULL,
        .y = t->data[DDP__SCALE_BWD_DX]};
    struct ddp__k_column_finish finish = {
        .blocks = ddp__columns_finish_blocks(&k),
        .type = t->call->buf[DDP__SCALE_BWD_DS].type,
        .k = k,
        .out = t->data[DDP__SCALE_BWD_DS],
        .over = t->call->scaled ? t->data[DDP__SCALE_BWD_S] : NULL,
        .factor = 1};
    struct ddp__cuda_place place;
    int rc;

    if ((rc = ddp__cuda_place(&place)) < 0)
        return rc;
    finish.part = sums.part = place.scratch;
    if ((rc = DDP__LAUNCH(&place, column_sums, &sums)) < 0)
        return rc;
    return DDP__LAUNCH(&place, column_finish, &finish);
}
