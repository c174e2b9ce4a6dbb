/* reduce.c - the reduction of gradients: owners of buckets, the tree over lanes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/half.h"
#include "engine/engine.h"
#include "engine/reduce.h"
#include "engine/slices.h"
#include "engine/strips.h"
#include "engine/vector.h"
#include "runtime/direct.h"

/* In elements: the fixed cost of the tasks and transfers of a bucket; and what
 * only the bucket of a single large layer exceeds. */
enum { BUCKET_COST = 4 << 20, LARGE = 4 << 20 };

/* GPUs that begin with no lane own nothing: sums and weights would travel to
 * them and back. */
static int count_owners(const struct ddp__engine *e)
{
    int lanes = e->lane_end - e->lane_begin, gpus = e->ddp->gpu_workers;

    return gpus && lanes && lanes < gpus ? lanes : e->ddp->workers;
}

void ddp__reduce_owners(struct ddp__engine *e)
{
    size_t load[DDP__MAX_WORKERS] = {0};
    int owners = count_owners(e);

    for (int b = 0; b < e->params->buckets; b++) {
        int least = 0;

        for (int w = 1; w < owners; w++)
            if (load[w] < load[least])
                least = w;
        load[least] += e->params->bucket[b].len + BUCKET_COST;
        e->owner[b] = owners < e->ddp->workers
                          ? ddp__lanes_rank(owners, e->ddp->gpu_workers, least)
                          : least;
    }
}

/* In main memory a merge costs the same anywhere: at one of the lanes that are
 * in its sum, another one for each bucket and level of the tree.  An owner that
 * made all of a bucket would end its own sub-batch long after the others. */
static int place_in_main(const struct ddp__engine *e, int bucket,
                         const struct ddp__merge *m)
{
    int lane = m->to + (bucket + m->stride) % (2 * m->stride);

    return lane < e->spec.lanes && ddp__engine_has_lane(e, lane) ? lane : m->to;
}

/* Whether it is the last one of a bucket. */
static bool is_root(const struct ddp__engine *e, const struct ddp__merge *m)
{
    return m->to == 0 && 2 * m->stride >= e->spec.lanes;
}

/* Workers have neighbouring lanes, so most sums are at one GPU, and are merged
 * there; this is about the others.  Of a layer that is larger than usual
 * buckets one owner would fetch all lanes, so it adds the last two sums only.
 * What a merge adds to neighbours it adds at one of both, so that all workers
 * and links have about as many. */
int ddp__reduce_place(const struct ddp__engine *e, int bucket,
                      const struct ddp__merge *m)
{
    if (!e->ddp->gpu_workers)
        return place_in_main(e, bucket, m);
    if (m->stride == 1)
        return bucket % 2 ? m->from : m->to;
    return e->params->bucket[bucket].len > LARGE && !is_root(e, m) ? m->to : -1;
}

static void choose_place(const struct ddp__engine *e, struct ddp__total total,
                         const struct ddp__merge *m, struct ddp__vector_task *t)
{
    int lane;

    if (total.kind != DDP__TOTAL_BUCKET)
        return;
    lane = ddp__reduce_place(e, total.at, m);
    t->owner = e->owner[total.at];
    t->lane = lane >= 0 ? lane : m->to;
    t->at_lane = lane >= 0;
    t->at_data = true;
}

/* The GPU that begins with a lane. */
static int home_of(const struct ddp__engine *e, int lane)
{
    return ddp__lanes_rank(e->lane_end - e->lane_begin, e->ddp->gpu_workers,
                           lane - e->lane_begin);
}

/* The GPU that makes the sum of `width` lanes from `lane` on, if each lane is
 * computed where it is at home. */
static int place_of_sum(const struct ddp__engine *e, int bucket, int lane,
                        int width)
{
    struct ddp__merge m = {width / 2, lane, lane + width / 2};
    int a, b, place;

    if (width == 1)
        return home_of(e, lane);
    a = place_of_sum(e, bucket, lane, m.stride);
    if (m.from >= e->lane_end)
        return a;
    b = place_of_sum(e, bucket, m.from, m.stride);
    if (a == b)
        return a;
    place = ddp__reduce_place(e, bucket, &m);
    return place < 0 ? e->owner[bucket] : home_of(e, place);
}

/* The next step begins with the layers of the last bucket: nothing else hides
 * the way of its sums. */
static bool is_pressing(const struct ddp__engine *e, struct ddp__total total)
{
    return total.kind == DDP__TOTAL_BUCKET &&
           total.at == e->params->buckets - 1 && e->ddp->gpu_workers > 1 &&
           !e->ddp->devices.hybrid && !e->scarce &&
           e->params->bucket[total.at].len <= LARGE;
}

/* Send each sum of a merge to where it will be made as soon as it is there,
 * without waiting for the other one. */
static void send_ahead(struct ddp__engine *e, int bucket,
                       const struct ddp__merge *m)
{
    int at = place_of_sum(e, bucket, m->to, 2 * m->stride);
    int lane[] = {m->to, m->from};

    for (int i = 0; i < 2; i++)
        if (place_of_sum(e, bucket, lane[i], m->stride) != at)
            ddp__direct_fetch(&e->lane[lane[i]].grad[bucket],
                              ddp__direct_home(e->ddp, at), &e->group);
}

/* Whether this merge makes the sum of a bucket, which is then checked. */
static bool is_checked(const struct ddp__engine *e, const struct ddp__step *s,
                       struct ddp__total total, const struct ddp__merge *m)
{
    return total.kind == DDP__TOTAL_BUCKET && m->to == 0 &&
           2 * m->stride >= ddp__engine_lanes(e, s->subs) &&
           ddp__slices_merged(e, s);
}

static int submit_whole(struct ddp__engine *e, struct ddp__vector_task *t,
                        struct ddp__total total, struct ddp__handle *const *buf,
                        bool check)
{
    int rc =
        ddp__vector_add(t, ddp__total_merge(e, total), t->owner, buf, false);

    if (rc == 0 && check)
        ddp__slices_join(t, total.at, 0);
    return rc < 0 ? rc : ddp__vector_flush(t);
}

static int submit_merge(struct ddp__engine *e, const struct ddp__step *s,
                        struct ddp__total total, const struct ddp__merge *m)
{
    struct ddp__handle *src = ddp__total_handle(e, m->from, total);
    struct ddp__handle *buf[] = {[DDP__MERGE_DST] =
                                     ddp__total_handle(e, m->to, total),
                                 [DDP__MERGE_SRC] = src};
    struct ddp__vector_task t = {.e = e, .s = s};
    bool check = is_checked(e, s, total, m);
    int rc;

    choose_place(e, total, m, &t);
    if (is_pressing(e, total))
        send_ahead(e, total.at, m);
    rc = total.kind == DDP__TOTAL_BUCKET
             ? ddp__strips_merge(e, s, total.at, m, check)
             : 0;
    if (rc == 0)
        rc = submit_whole(e, &t, total, buf, check);
    if (rc < 0)
        return rc;
    ddp__handle_drop(src);
    return 0;
}

static int round_bucket(const struct ddp__task *t, void *arg)
{
    (void)arg;
    ddp__round_to_bf16(t->data[DDP__ROUND_G], ddp__len(t, DDP__ROUND_G));
    return 0;
}

void ddp__reduce_round(struct ddp__engine *e, int bucket)
{
    e->round[bucket] = (struct ddp__call){
        .op = DDP__OP_HOST,
        .cap = 1,
        .buf = {[DDP__ROUND_G] = e->merge_bucket[bucket].buf[DDP__MERGE_DST]},
        .buffers = DDP__ROUND_BUFFERS,
        .host = {DDP__HOST_ROUND, round_bucket, e}};
}

static int submit_round(struct ddp__engine *e, const struct ddp__step *s,
                        struct ddp__total total, int lane)
{
    struct ddp__vector_task t = {.e = e, .s = s, .lane = lane, .at_lane = true};

    if (total.kind != DDP__TOTAL_BUCKET || e->spec.wire != DDP_BF16)
        return 0;
    return ddp__vector_submit(
        &t, &e->round[total.at],
        (struct ddp__handle *[]){ddp__total_handle(e, lane, total)});
}

int ddp__reduce_submit(struct ddp__engine *e, const struct ddp__step *s,
                       struct ddp__total total)
{
    struct ddp__split split = {e->spec.lanes, ddp__engine_lanes(e, s->subs),
                               e->spec.own ? 1 : e->ranks};
    struct ddp__merge m = {0};
    int rc = 0;

    for (int l = 0; rc == 0 && l < split.used; l++)
        if (ddp__engine_has_lane(e, l))
            rc = submit_round(e, s, total, l);
    while (rc == 0 && ddp__tree_next(split.used, &m))
        if (ddp__engine_has_lane(e, m.to) && ddp__merge_is_local(&split, &m) &&
            (rc = submit_merge(e, s, total, &m)) == 0)
            rc = submit_round(e, s, total, m.to);
    return rc;
}
