/* test_fold.c - which batch norms of evaluation convolutions take in
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the joined operation computes is tested by test_ops.c and test_ref.c,
 * that its memory is not spoilt by test_segment.c, and whole networks by
 * test_zoo.c and test_torch.c, against torchvision.
 */
#include "config.h"

#include "defaults.h"
#include "graph/graph.h"
#include "tap.h"

enum { CHANNELS = 8 };

static int no_host(const struct ddp__task *t, void *arg)
{
    (void)t;
    (void)arg;
    return 0;
}

static ddp_graph_t *build(ddp_chain_t *m, enum ddp__mode mode, bool folds,
                          struct ddp_shape shape)
{
    struct ddp__graph_spec spec = {.mode = mode,
                                   .shape = shape,
                                   .type = DDP_F32,
                                   .dtype = DDP_F32,
                                   .cap = 2,
                                   .folds = folds,
                                   .fill = no_host,
                                   .fill_dy = no_host,
                                   .output = no_host};
    ddp_graph_t *g = NULL;

    if (!m || ddp__graph_new(&g, m, ddp__params_of(m), &spec, false) < 0)
        bail_out("%s", ddp_errmsg());
    return g;
}

static int count_op(const ddp_graph_t *g, enum ddp__op op)
{
    int n = 0;

    for (int i = 0; i < g->nodes; i++)
        n += g->node[i]->call.op == op;
    return n;
}

static int count_sums(const ddp_graph_t *g)
{
    int n = 0;

    for (int i = 0; i < g->nodes; i++)
        n += g->node[i]->call.op == DDP__OP_CONV_NORM && g->node[i]->call.sum;
    return n;
}

/* So many norms are joined, `sums` of them with a residual, and `alone` are
 * not; nor are `adds` sums. */
static void test_all(const char *what, ddp_chain_t *m, struct ddp_shape shape,
                     int joined, int sums, int alone, int adds)
{
    ddp_graph_t *g = build(m, DDP__INFER, true, shape);
    ddp_graph_t *plain = build(m, DDP__INFER, false, shape);

    is_int(count_op(g, DDP__OP_CONV_NORM), joined, "%s: norms joined", what);
    is_int(count_sums(g), sums, "%s: of them with a residual", what);
    is_int(count_op(g, DDP__OP_BN_EVAL), alone, "%s: norms left", what);
    is_int(count_op(g, DDP__OP_ADD), adds, "%s: sums left", what);
    is_int(g->nodes,
           plain->nodes - joined - count_op(plain, DDP__OP_ADD) + adds,
           "%s: a node less for each", what);
    ddp__graph_free(g);
    ddp__graph_free(plain);
    ddp_chain_free(m);
}

static void test_counts(const char *what, ddp_chain_t *m,
                        struct ddp_shape shape, int joined, int sums, int alone)
{
    test_all(what, m, shape, joined, sums, alone, 0);
}

static void test_model(const char *model, int joined, int sums, int alone)
{
    test_counts(model, ddp_model_new(model, NULL),
                (struct ddp_shape){64, 64, 3}, joined, sums, alone);
}

static void test_training(void)
{
    ddp_chain_t *m = ddp_model_new("resnet18", NULL);
    ddp_graph_t *g = build(m, DDP__PULL, true, (struct ddp_shape){64, 64, 3});

    is_int(count_op(g, DDP__OP_CONV_NORM), 0, "training keeps its norms");
    ddp__graph_free(g);
    ddp_chain_free(m);
}

static ddp_layer_t *conv(void)
{
    return ddp_conv_new(CHANNELS, CHANNELS, 3,
                        &(struct ddp_conv_options){CONV_DEFAULTS, .pad = 1});
}

static ddp_layer_t *norm(void)
{
    return ddp_batch_norm_new(CHANNELS, NULL);
}

static ddp_layer_t *add_to(ddp_layer_t *branch)
{
    return ddp_skip_new(branch, DDP_END);
}

/* relu(x + branch(x)), where x is computed. */
static ddp_chain_t *after_norm(ddp_layer_t *branch)
{
    return ddp_chain_new(conv(), norm(), add_to(branch), ddp_relu_new(),
                         DDP_END);
}

/* Chains in which something reads what a join would overwrite or not write. */
static void test_readers(void)
{
    const struct ddp_shape shape = {5, 5, CHANNELS};
    ddp_layer_t *relu = ddp_relu_new();

    test_counts("an activation between",
                ddp_chain_new(conv(), relu, norm(), DDP_END), shape, 0, 0, 1);
    test_all("a norm whose x is also a residual",
             ddp_chain_new(conv(),
                           add_to(ddp_chain_new(norm(), conv(), DDP_END)),
                           DDP_END),
             shape, 0, 0, 1, 1);
    test_counts("a residual that the convolution reads",
                after_norm(ddp_chain_new(conv(), norm(), DDP_END)), shape, 1, 0,
                1);
    test_counts("a residual that nobody reads",
                after_norm(ddp_chain_new(conv(), conv(), norm(), DDP_END)),
                shape, 2, 1, 0);
    test_counts(
        "a residual that is the input",
        ddp_chain_new(add_to(ddp_chain_new(conv(), conv(), norm(), DDP_END)),
                      ddp_relu_new(), DDP_END),
        shape, 0, 0, 1);
}

/* The same with sums that no activation follows. */
static void test_sums(void)
{
    const struct ddp_shape shape = {5, 5, CHANNELS};
    ddp_layer_t *two[2];

    for (int i = 0; i < 2; i++)
        two[i] = add_to(ddp_chain_new(conv(), norm(), conv(), norm(), DDP_END));
    test_all("a sum", ddp_chain_new(conv(), norm(), two[0], DDP_END), shape, 3,
             1, 0, 0);
    test_all("a sum with the input", ddp_chain_new(two[1], DDP_END), shape, 2,
             0, 0, 1);
    test_all("a sum of a sum",
             ddp_chain_new(conv(), norm(),
                           add_to(ddp_chain_new(
                               conv(), norm(),
                               add_to(ddp_chain_new(conv(), norm(), conv(),
                                                    norm(), DDP_END)),
                               DDP_END)),
                           DDP_END),
             shape, 4, 1, 0, 1);
    test_all("a sum with what the convolution reads",
             ddp_chain_new(conv(), norm(),
                           add_to(ddp_chain_new(conv(), norm(), DDP_END)),
                           DDP_END),
             shape, 2, 0, 0, 1);
}

int main(void)
{
    test_model("resnet18", 20, 8, 0);
    test_model("resnet50", 53, 16, 0);
    test_model("mobilenet_v2", 52, 10, 0); /* sums of their own */
    test_model("densenet121", 59, 0, 62);
    test_training();
    test_readers();
    test_sums();
    return done_testing();
}
