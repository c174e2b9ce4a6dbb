/* test_segment.c - what a task runs, and that its results do not collide
 *
 * Graphs of whole networks are cut, then run on paper: a value that is written
 * spoils those whose bytes it takes, and what is read must not be spoilt.
 * Parameters lie where every library can read them.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "defaults.h"
#include "graph/graph.h"
#include "tap.h"

static int no_host(const struct ddp__task *t, void *arg)
{
    (void)t;
    (void)arg;
    return 0;
}

static bool sums = true; /* as for GPUs */

static ddp_graph_t *build(const char *model, enum ddp__mode mode, double us,
                          bool merged)
{
    ddp_chain_t *m = ddp_model_new(model, NULL);
    struct ddp__graph_spec spec = {.mode = mode,
                                   .shape = {224, 224, 3},
                                   .type = DDP_F32,
                                   .dtype = DDP_BF16,
                                   .cap = 8,
                                   .loss = {.kind = DDP_CUSTOM_LOSS},
                                   .on_gpus = sums,
                                   .gates = !sums,
                                   .folds = mode == DDP__INFER,
                                   .merged = merged,
                                   .segment_us = us,
                                   .fill = no_host,
                                   .fill_dy = no_host,
                                   .output = no_host};
    ddp_graph_t *g = NULL;

    if (!m || ddp__graph_new(&g, m, ddp__params_of(m), &spec, false) < 0)
        bail_out("%s: %s", model, ddp_errmsg());
    ddp_chain_free(m); /* graphs know shapes, not layers */
    return g;
}

/* ---- the cut ------------------------------------------------------------ */

static bool is_alone(const struct ddp__node *n)
{
    return n->call.op == DDP__OP_HOST || n->call.op == DDP__OP_USER ||
           n->call.op == DDP__OP_INPUT_F32;
}

/* Segments are all nodes in order; none joins nodes that must be apart. */
static bool is_cut(const ddp_graph_t *g)
{
    int next = 0;

    for (int k = 0; k < g->segments; k++) {
        const struct ddp__segment *s = &g->segment[k];

        if (s->begin != next || s->end <= s->begin ||
            (g->spec.mode == DDP__PULL && s->begin < g->forward_nodes &&
             s->end > g->forward_nodes))
            return false;
        for (int i = s->begin; i < s->end; i++)
            if (s->end - s->begin > 1 && is_alone(g->node[i]))
                return false;
        next = s->end;
    }
    return next == g->nodes;
}

/* Whether a node writes gradients of another bucket than *bucket, which becomes
 * the first one that is met. */
static bool enters_bucket(const struct ddp__node *n, int *bucket)
{
    for (int b = 0; b < n->call.buffers; b++)
        if (n->buf[b] && n->buf[b]->role == DDP__GRAD) {
            if (*bucket >= 0 && n->buf[b]->bucket != *bucket)
                return true;
            *bucket = n->buf[b]->bucket;
        }
    return false;
}

/* The most that a segment computes before it enters another bucket, in us; 0:
 * no segment does. */
static double most_before(const ddp_graph_t *g)
{
    double most = 0;

    for (int k = 0; k < g->segments; k++) {
        double us = 0;
        int bucket = -1;

        for (int i = g->segment[k].begin; i < g->segment[k].end; i++) {
            if (enters_bucket(g->node[i], &bucket))
                most = fmax(most, us);
            us += ddp__call_us(NULL, &g->node[i]->call, g->spec.cap);
        }
    }
    return most;
}

/* ---- memory ------------------------------------------------------------- */

static bool same_bytes(const ddp_graph_t *g, const ddp_value_t *a,
                       const ddp_value_t *b)
{
    return a != b && a->arena == b->arena &&
           a->offset < b->offset + ddp__value_size(g, b) &&
           b->offset < a->offset + ddp__value_size(g, a);
}

/* Reads of what is spoilt, was dropped or sticks out, over a whole sub-batch.
 */
static int collisions(const ddp_graph_t *g)
{
    bool *good = calloc((size_t)g->values, sizeof(*good));
    int bad = 0;

    for (int k = 0; k < g->segments; k++)
        for (int i = g->segment[k].begin; i < g->segment[k].end; i++) {
            const struct ddp__node *n = g->node[i];

            for (int b = 0; b < n->call.buffers; b++) {
                const ddp_value_t *v = n->buf[b] ? n->buf[b]->base : NULL;
                const struct ddp__arena *home;

                if (!v || v->role != DDP__ACTIVATION)
                    continue;
                home = &g->arena[v->arena];
                bad += n->call.buf[b].offset != v->offset;
                bad += v->offset + ddp__value_size(g, v) > home->size;
                bad += home->segment != v->segment;
                bad += k < v->segment || k > home->last_use;
                bad += n->access[b] != DDP_WRITE && !good[v->id];
            }
            for (int b = 0; b < n->call.buffers; b++) {
                const ddp_value_t *v = n->buf[b] ? n->buf[b]->base : NULL;

                if (!v || v->role != DDP__ACTIVATION ||
                    n->access[b] == DDP_READ)
                    continue;
                for (int w = 0; w < g->values; w++)
                    if (g->value[w]->role == DDP__ACTIVATION &&
                        g->value[w]->base == g->value[w] &&
                        same_bytes(g, g->value[w], v))
                        good[w] = false;
                good[v->id] = true;
            }
        }
    free(good);
    return bad;
}

/* ---- the points --------------------------------------------------------- */

/* Inputs that segment k uses for the first or the last time. */
static size_t input_bytes(const ddp_graph_t *g, int k, bool first)
{
    const struct ddp__segment *s = &g->segment[k];
    size_t sum = 0;

    for (int i = 0; i < g->values; i++) {
        const ddp_value_t *v = g->value[i];
        int use = first ? v->first_use : v->last_use;

        if (v->base == v && v->role == DDP__INPUT && use >= s->begin &&
            use < s->end)
            sum += ddp__value_size(g, v);
    }
    return sum;
}

/* An arena lives from the segment that writes it to the last that uses it. */
static size_t peak_of(const ddp_graph_t *g)
{
    size_t now = 0, peak = 0;

    for (int k = 0; k < g->segments; k++) {
        for (int i = 0; i < g->arenas; i++)
            now += g->arena[i].segment == k ? g->arena[i].size : 0;
        now += input_bytes(g, k, true);
        if (now > peak)
            peak = now;
        for (int i = 0; i < g->arenas; i++)
            if (g->arena[i].last_use == k)
                now -= g->arena[i].size;
        now -= input_bytes(g, k, false);
    }
    return peak;
}

static void test_model(const char *model, enum ddp__mode mode)
{
    static const double us[] = {0, 1000, 20000, 1e9};
    const char *how = mode == DDP__TRAIN  ? "training"
                      : mode == DDP__PULL ? "pullback"
                                          : "inference";
    size_t single = 0;
    int nodes = 0;

    for (int i = 0; i < 4; i++) {
        ddp_graph_t *g = build(model, mode, us[i], true);
        size_t peak = peak_of(g);

        ok(is_cut(g) && most_before(g) <= fmin(us[i] / 2, 500),
           "%s, %s, %g us: %d operations in %d segments", model, how, us[i],
           g->nodes, g->segments);
        is_int(collisions(g), 0, "what is read is what was written");
        if (i == 0) {
            nodes = g->segments;
            single = peak;
            is_int(g->segments, g->nodes, "a segment for each operation");
        } else {
            /* A block is about as large as what is in use at one time, and a
             * task needs its own and those that it reads. */
            ok(g->segments < nodes && (double)peak < 2 * (double)single,
               "fewer segments; %.0f MiB at a time, %.0f with single ones",
               (double)peak / (1 << 20), (double)single / (1 << 20));
        }
        ddp__graph_free(g);
    }
}

/* The most bytes of activations that are read later, or now, at any node. */
static size_t live_peak(const ddp_graph_t *g)
{
    size_t peak = 0;

    for (int i = 0; i < g->nodes; i++) {
        size_t now = 0;

        for (int j = 0; j < g->values; j++) {
            const ddp_value_t *v = g->value[j];

            if (v->base == v && v->role == DDP__ACTIVATION &&
                v->first_use >= 0 && v->first_use <= i && i <= v->last_use)
                now += ddp__value_size(g, v);
        }
        peak = now > peak ? now : peak;
    }
    return peak;
}

/* On CPUs nothing large is kept because something small is, such as statistics.
 * An arena may have less than 64 KiB of it: 1 % in all, since most are kept
 * whole or not at all.  The input is gone where a step holds most. */
static void test_kept(const char *model)
{
    ddp_graph_t *g;
    size_t live, peak;

    sums = false;
    g = build(model, DDP__TRAIN, 0, false);
    sums = true;
    live = live_peak(g);
    peak = peak_of(g);
    ok(peak >= live && peak <= live + live / 100,
       "%s on CPUs: %.1f MiB hold %.1f of values", model,
       (double)peak / (1 << 20), (double)live / (1 << 20));
    is_int(collisions(g), 0, "what is read is what was written");
    ddp__graph_free(g);
}

/* What a sigmoid or hard sigmoid scales is not kept, unless the slope of the
 * relu that it comes from needs it: backward reads the result. */
static void test_gates(const char *model, int gates)
{
    ddp_graph_t *g = build(model, DDP__TRAIN, 0, false);
    int freed = 0;

    for (int i = 0; i < g->forward_nodes; i++)
        if (g->node[i]->call.op == DDP__OP_SCALE_FWD)
            freed += g->node[i]->buf[DDP__SCALE_FWD_X]->base->last_use <
                     g->forward_nodes;
    is_int(freed, gates, "%s: channels to be scaled are not kept", model);
    ddp__graph_free(g);
}

/* On CPUs, no gradient of what is scaled is in memory where a norm makes it:
 * there is nothing to add the mean's to. */
static void test_gated_norms(const char *model, int norms, int pools)
{
    ddp_graph_t *g;
    int gated = 0, means = 0;

    sums = false;
    g = build(model, DDP__TRAIN, 0, false);
    sums = true;
    for (int i = g->forward_nodes; i < g->nodes; i++) {
        gated += g->node[i]->call.op == DDP__OP_BN_GATED_BWD;
        means += g->node[i]->call.op == DDP__OP_MEAN_POOL_BWD;
    }
    ok(gated == norms && means == pools,
       "%s on CPUs: %d norms multiply by a gate, %d gradients of means", model,
       gated, means);
    is_int(collisions(g), 0, "what is read is what was written");
    ddp__graph_free(g);
}

/* One lane has nothing to merge: backward need not stop at a bucket's end. */
static void test_alone(const char *model)
{
    ddp_graph_t *apart = build(model, DDP__TRAIN, 1e9, true);
    ddp_graph_t *g = build(model, DDP__TRAIN, 1e9, false);

    ok(is_cut(g) && g->segments < apart->segments,
       "%s, one lane: %d segments instead of %d", model, g->segments,
       apart->segments);
    is_int(collisions(g), 0, "what is read is what was written");
    ddp__graph_free(g);
    ddp__graph_free(apart);
}

/* ---- images ------------------------------------------------------------- */

/* How many convolutions read an image of 3 channels in 8, and whether all else
 * is as it would be without. */
static int wide_convs(ddp_chain_t *m, struct ddp_shape shape, bool *same)
{
    struct ddp__graph_spec spec = {.mode = DDP__PULL,
                                   .shape = shape,
                                   .type = DDP_F32,
                                   .dtype = DDP_BF16,
                                   .cap = 2,
                                   .fill = no_host,
                                   .fill_dy = no_host,
                                   .output = no_host};
    ddp_graph_t *g = NULL, *plain = NULL;
    int wide = 0;

    if (ddp__graph_new(&plain, m, ddp__params_of(m), &spec, false) < 0)
        bail_out("%s", ddp_errmsg());
    spec.channels = 8;
    if (ddp__graph_new(&g, m, ddp__params_of(m), &spec, false) < 0)
        bail_out("%s", ddp_errmsg());
    *same = g->nodes == plain->nodes;
    for (int i = 0; i < g->nodes; i++)
        for (int b = 0; b < g->node[i]->call.buffers; b++) {
            const struct ddp__call *c = &g->node[i]->call;
            int now = c->buf[b].shape.c;
            int was = plain->node[i]->call.buf[b].shape.c;

            if (now == was)
                continue;
            *same = *same && was == 3 && now == 8 &&
                    ((c->op == DDP__OP_INPUT_F32 && b == DDP__INPUT_F32_Y) ||
                     (b == ddp__op_xwy(c->op).x && c->conv.in == 3));
            wide += c->op != DDP__OP_INPUT_F32;
        }
    ddp__graph_free(g);
    ddp__graph_free(plain);
    return wide;
}

static void test_images(const char *what, ddp_chain_t *m, int convs)
{
    bool same;
    int wide = wide_convs(m, (struct ddp_shape){32, 32, 3}, &same);

    ok(same && wide == convs, "%s: %d convolutions read wide images", what,
       wide);
    ddp_chain_free(m);
}

static ddp_layer_t *conv(int out)
{
    return ddp_conv_new(3, out, 3,
                        &(struct ddp_conv_options){CONV_DEFAULTS, .pad = 1});
}

static void test_pad(void)
{
    test_images("forward and the gradient of weights",
                ddp_model_new("resnet18", NULL), 2);
    test_images("a norm first",
                ddp_chain_new(ddp_batch_norm_new(3, NULL), conv(8), DDP_END),
                0);
    test_images("a skip around the convolution",
                ddp_chain_new(ddp_skip_new(conv(3), DDP_END), DDP_END), 0);
}

/* ---- parameters --------------------------------------------------------- */

/* Blocks of a bucket go up from 0 in steps of 64, last layer first. */
static void test_buckets(const char *model)
{
    ddp_chain_t *m = ddp_model_new(model, NULL);
    const struct ddp__params *p = ddp__params_of(m);
    size_t end = 0, held = 0, total = 0;
    bool apart = true;
    int bucket = 0;

    for (int i = p->blocks - 1; i >= 0; i--) {
        const struct ddp__param_block *b = &p->block[i];

        if (b->bucket != bucket) {
            apart = apart && b->bucket == bucket + 1 &&
                    end <= p->bucket[bucket].len;
            held += p->bucket[bucket++].len;
            end = 0;
        }
        apart = apart && b->offset % 64 == 0 && b->offset >= end &&
                b->offset < end + 64;
        end = b->offset + b->len;
        total += b->len;
    }
    held += p->bucket[bucket].len;
    ok(apart && end <= p->bucket[bucket].len && bucket == p->buckets - 1,
       "%s: %d blocks in %d buckets, apart and aligned", model, p->blocks,
       p->buckets);
    ok(total == p->total && held == p->held && held < total * 1.01,
       "%s: %zu elements in %zu", model, total, held);
    ddp_chain_free(m);
}

/* ---- joins -------------------------------------------------------------- */

/* Passes that add gradients, and kernels that add theirs to others. */
static void count_sums(const char *model, int *apart, int *added)
{
    ddp_graph_t *g = build(model, DDP__TRAIN, 0, false);

    *apart = *added = 0;
    for (int i = 0; i < g->nodes; i++) {
        *apart += g->node[i]->call.op == DDP__OP_ACC;
        *added += g->node[i]->call.sum;
    }
    ddp__graph_free(g);
}

static void test_sums(void)
{
    int apart, added;

    count_sums("resnet50", &apart, &added);
    is_int(apart, 0, "resnet50: no gradient is added in a pass of its own");
    is_int(added, 16, "the convolutions before its 16 joins add theirs");
    sums = false;
    count_sums("resnet50", &apart, &added);
    is_int(apart, 16, "without sums there are 16 passes");
    is_int(added, 0, "and convolutions write");
    count_sums("densenet121", &apart, &added);
    is_int(apart, 0, "densenet121: what its layers pass on has no passes");
    is_int(added, 58, "it is added where they take their gradients apart");
    sums = true;
}

int main(void)
{
    static const char *const model[] = {"resnet18", "googlenet", "densenet121",
                                        "efficientnet_b0", "resnet50"};

    for (size_t i = 0; i < sizeof(model) / sizeof(model[0]); i++) {
        test_model(model[i], DDP__TRAIN);
        test_model(model[i], DDP__PULL);
        test_model(model[i], DDP__INFER);
        test_alone(model[i]);
        test_kept(model[i]);
        test_buckets(model[i]);
    }
    test_gates("efficientnet_b0", 16);
    test_gates("mobilenet_v3_large", 5);
    test_gated_norms("efficientnet_b0", 16, 1);
    test_gated_norms("mobilenet_v3_large", 5, 4);
    test_sums();
    test_pad();
    return done_testing();
}
