/* act.c - elementwise activations and sums, on CUDA workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "tasks.h"

/* y is made of a and b, activations of one shape; b -1: of a alone. */
static struct ddp__k_flat flat_arguments(const struct ddp__task *t, int a,
                                         int b, int y, enum ddp_act act)
{
    size_t len = ddp__len(t, y);

    return (struct ddp__k_flat){.items = (unsigned)ddp__groups(len),
                                .type = t->call->buf[y].type,
                                .wide = DDP__ALIGNED(t, a, b < 0 ? a : b, y),
                                .act = act,
                                .a = t->data[a],
                                .b = b < 0 ? NULL : t->data[b],
                                .y = t->data[y],
                                .len = len};
}

/* y = act(x) */
int ddp__cuda_act_fwd(const struct ddp__task *t)
{
    struct ddp__k_flat p = flat_arguments(t, 0, -1, 1, t->call->act);
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    return rc < 0 ? rc : DDP__LAUNCH(&place, act_fwd, &p);
}

/* dx = dy act'(s) */
int ddp__cuda_act_bwd(const struct ddp__task *t)
{
    struct ddp__k_flat p = flat_arguments(t, 0, 1, 2, t->call->act);
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
    struct ddp__k_flat p = flat_arguments(t, 0, 1, 2, t->call->act);

    return launch_add(&p);
}

/* dst += src */
int ddp__cuda_acc(const struct ddp__task *t)
{
    struct ddp__k_flat p = flat_arguments(t, 0, 1, 0, DDP_IDENTITY);

    return launch_add(&p);
}

/* dst += src, of gradients in f32 */
int ddp__cuda_merge(const struct ddp__task *t)
{
    struct ddp__k_flat p = flat_arguments(t, 0, 1, 0, DDP_IDENTITY);

    return launch_add(&p);
}

/* dst += src, of statistics in f64 */
int ddp__cuda_merge_stats(const struct ddp__task *t)
{
    struct ddp__k_merge_stats p = {.blocks = 1,
                                   .dst = t->data[0],
                                   .src = t->data[1],
                                   .len = ddp__len(t, 0)};
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    return rc < 0 ? rc : DDP__LAUNCH(&place, merge_stats, &p);
}
