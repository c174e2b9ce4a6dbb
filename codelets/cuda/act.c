/* act.c - elementwise activations and sums, on CUDA workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "backend.h"
#include "launch.h"
#include "tasks.h"

/* y is made of a and b, activations of one shape; b NONE: of a alone. */
enum { NONE = -1 };

static struct ddp__k_flat flat_arguments(const struct ddp__task *t, int a,
                                         int b, int y, enum ddp_act act)
{
    size_t len = ddp__len(t, y);

    return (struct ddp__k_flat){.items = (unsigned)ddp__groups(len),
                                .type = t->call->buf[y].type,
                                .wide =
                                    DDP__ALIGNED(t, a, b == NONE ? a : b, y),
                                .act = act,
                                .a = t->data[a],
                                .b = b == NONE ? NULL : t->data[b],
                                .y = t->data[y],
                                .len = len};
}

/* y = act(x) */
int ddp__cuda_act_fwd(const struct ddp__task *t)
{
    struct ddp__k_flat p =
        flat_arguments(t, DDP__ACT_FWD_X, NONE, DDP__ACT_FWD_Y, t->call->act);
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    return rc < 0 ? rc : DDP__LAUNCH(&place, act_fwd, &p);
}

/* dx = dy act'(s) */
int ddp__cuda_act_bwd(const struct ddp__task *t)
{
    struct ddp__k_flat p = flat_arguments(
        t, DDP__ACT_BWD_SLOPE, DDP__ACT_BWD_DY, DDP__ACT_BWD_DX, t->call->act);
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    return rc < 0 ? rc : DDP__LAUNCH(&place, act_bwd, &p);
}

static int launch_add(const struct ddp__k_flat *p)
{
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    return rc < 0 ? rc : DDP__LAUNCH(&place, add, p);
}

/* y = act(a + b) */
int ddp__cuda_add(const struct ddp__task *t)
{
    struct ddp__k_flat p =
        flat_arguments(t, DDP__ADD_A, DDP__ADD_B, DDP__ADD_Y, t->call->act);

    return launch_add(&p);
}

/* dst += src */
int ddp__cuda_acc(const struct ddp__task *t)
{
    struct ddp__k_flat p = flat_arguments(t, DDP__ACC_DST, DDP__ACC_SRC,
                                          DDP__ACC_DST, DDP_IDENTITY);

    return launch_add(&p);
}

/* dst += src, of gradients in f32 */
int ddp__cuda_merge(const struct ddp__task *t)
{
    struct ddp__k_flat p = flat_arguments(t, DDP__MERGE_DST, DDP__MERGE_SRC,
                                          DDP__MERGE_DST, DDP_IDENTITY);

    return launch_add(&p);
}

/* dst = src */
int ddp__cuda_keep(const struct ddp__task *t)
{
    struct ddp__k_flat p =
        flat_arguments(t, DDP__KEEP_SRC, NONE, DDP__KEEP_DST, DDP_IDENTITY);
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    return rc < 0 ? rc : DDP__LAUNCH(&place, act_fwd, &p);
}

/* dst += src, of statistics in f64 */
int ddp__cuda_merge_stats(const struct ddp__task *t)
{
    struct ddp__k_merge_stats p = {.blocks = 1,
                                   .dst = t->data[DDP__MERGE_STATS_DST],
                                   .src = t->data[DDP__MERGE_STATS_SRC],
                                   .len = ddp__len(t, DDP__MERGE_STATS_DST)};
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    return rc < 0 ? rc : DDP__LAUNCH(&place, merge_stats, &p);
}
