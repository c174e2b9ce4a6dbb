/* test_defer.c - which batch norms of training convolutions compute, and that
 * this changes no bit of the forward pass
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the operations compute is tested by test_ops.c, and steps of whole
 * networks by test_torch.c.
 */
#include "config.h"

#include "check.h"
#include "defaults.h"
#include "graph/graph.h"
#include "tap.h"
#ifdef HAVE_ONEDNN
#include "cpu/backend.h"
#include "cpu/isa.h"
#endif

enum { CHANNELS = 32 };

static ddp_t *ddp;
static int cap = 1024; /* so that what norms read is large */

/* ---- graphs ------------------------------------------------------------- */

static ddp_graph_t *build(ddp_chain_t *m, struct ddp_shape shape, bool defers)
{
    struct ddp__graph_spec spec = {.ddp = ddp,
                                   .mode = DDP__PULL,
                                   .shape = shape,
                                   .type = DDP_F32,
                                   .dtype = DDP_F32,
                                   .cap = cap,
                                   .defers = defers,
                                   .fill = ddp__graph_no_host,
                                   .fill_dy = ddp__graph_no_host,
                                   .output = ddp__graph_no_host};
    ddp_graph_t *g = NULL;

    if (!m || ddp__graph_new(&g, m, ddp__params_of(m), &spec, false) < 0)
        bail_out("%s", ddp_errmsg());
    return g;
}

static int count(const ddp_graph_t *g, enum ddp__op op)
{
    int n = 0;

    for (int i = 0; i < g->nodes; i++)
        n += g->node[i]->call.op == op;
    return n;
}

/* Whether this machine has the kernels. */
static bool can_defer(void)
{
#ifdef HAVE_ONEDNN
    return ddp__avx512_here();
#else
    return false;
#endif
}

/* Where it is possible, so many norms of the chain are deferred, and with each
 * of them its convolution, and its gradient if the filters are trained; and so
 * many are joined backward with the convolution behind them. */
static void test_counts(const char *what, ddp_chain_t *m,
                        struct ddp_shape shape, int norms, int joined)
{
    ddp_graph_t *g = build(m, shape, true), *plain = build(m, shape, false);
    int all = count(plain, DDP__OP_BN_FWD), n = can_defer() ? norms : 0;
    int back = can_defer() ? joined : 0;

    is_int(count(g, DDP__OP_BN_STAT), n, "%s: norms deferred", what);
    is_int(count(g, DDP__OP_BN_FWD), all - n, "%s: other norms", what);
    is_int(count(g, DDP__OP_NORM_CONV_FWD), n, "%s: convolutions", what);
    is_int(count(g, DDP__OP_NORM_CONV_BWD_W), n, "%s: their gradients", what);
    is_int(count(g, DDP__OP_NORM_CONV_BWD_X), back, "%s: joined backward",
           what);
    is_int(count(g, DDP__OP_BN_BWD), all - back, "%s: other norms backward",
           what);
    is_int(g->nodes, plain->nodes - back, "%s: nodes", what);
    ddp__graph_free(g);
    ddp__graph_free(plain);
    ddp_chain_free(m);
}

static ddp_layer_t *depthwise(bool bias)
{
    return ddp_conv_new(CHANNELS, CHANNELS, 3,
                        &(struct ddp_conv_options){CONV_DEFAULTS, .pad = 1,
                                                   .groups = CHANNELS,
                                                   .no_bias = !bias});
}

static ddp_layer_t *pointwise(void)
{
    return ddp_conv_new(CHANNELS, CHANNELS, 1, NULL);
}

static ddp_layer_t *norm(void)
{
    return ddp_batch_norm_new(CHANNELS, NULL);
}

static void test_readers(void)
{
    const struct ddp_shape shape = {9, 17, CHANNELS};
    ddp_layer_t *skip = ddp_skip_new(
        ddp_chain_new(depthwise(false), pointwise(), DDP_END), DDP_END);

    test_counts("relu6",
                ddp_chain_new(pointwise(), norm(), ddp_relu6_new(),
                              depthwise(false), DDP_END),
                shape, 1, 1);
    test_counts("no activation",
                ddp_chain_new(pointwise(), norm(), depthwise(false), DDP_END),
                shape, 1, 1);
    test_counts("silu, which forward would be computed twice",
                ddp_chain_new(pointwise(), norm(), ddp_silu_new(),
                              depthwise(false), DDP_END),
                shape, 0, 1);
    test_counts("tanh, whose slope x does not tell",
                ddp_chain_new(pointwise(), norm(), ddp_tanh_new(),
                              depthwise(false), DDP_END),
                shape, 0, 0);
    test_counts(
        "a residual",
        ddp_chain_new(
            pointwise(),
            ddp_skip_new(ddp_chain_new(pointwise(), norm(), DDP_END), DDP_END),
            ddp_relu_new(), depthwise(false), DDP_END),
        shape, 0, 0);
    test_counts("a bias",
                ddp_chain_new(pointwise(), norm(), ddp_relu_new(),
                              depthwise(true), DDP_END),
                shape, 0, 1);
    test_counts("a convolution of all channels",
                ddp_chain_new(pointwise(), norm(), ddp_relu_new(), pointwise(),
                              DDP_END),
                shape, 0, 0);
    test_counts(
        "an output that is also a residual",
        ddp_chain_new(pointwise(), norm(), ddp_relu_new(), skip, DDP_END),
        shape, 0, 0);
    test_counts("the last layer", ddp_chain_new(pointwise(), norm(), DDP_END),
                shape, 0, 0);
}

static void test_models(void)
{
    const struct ddp_shape shape = {64, 64, 3};

    /* 17 before depthwise layers, 6 before 1x1 layers of few channels */
    test_counts("mobilenet_v2", ddp_model_new("mobilenet_v2", NULL), shape, 23,
                17);
    test_counts("resnet18", ddp_model_new("resnet18", NULL), shape, 0, 0);
    cap = 1;
    test_counts("mobilenet_v2, one small image",
                ddp_model_new("mobilenet_v2", NULL), shape, 0, 0);
}

/* ---- bits --------------------------------------------------------------- */

#ifdef HAVE_ONEDNN
/* One operation of a row by CPU workers; false: they do not have it. */
static bool run(struct check *k, enum ddp__op op)
{
    struct ddp__call c = check_call(k, op);
    void *plan = NULL;
    int rc = ddp__cpu.prepare(&c, &plan);

    if (rc == DDP_ENODEV)
        return false;
    c.on[DDP_CPU].plan = plan;
    if (rc < 0 || check_run(k, &ddp__cpu, &c, k->row.n, false) < 0)
        bail_out("%s", ddp_errmsg());
    if (plan)
        ddp__cpu.release(plan);
    return true;
}

static struct check *new_check(const struct check_row *row,
                               enum ddp_dtype dtype)
{
    struct check *k = check_new(row, dtype);

    if (!k)
        bail_out("out of memory");
    return k;
}

static void copy(struct check *to, enum check_role a, struct check *from,
                 enum check_role b)
{
    memcpy(check_tensor(to, a)->data, check_tensor(from, b)->data,
           check_tensor(to, a)->size);
}

/* What the norm of a row gives, with its statistics in place of the running
 * ones. */
static struct check *normalise(struct check *k)
{
    const struct ddp__conv *c = &k->row.call.conv;
    struct check_row row = {CHECK_BN_EVAL, "norm",
                            k->row.n,      k->row.cap,
                            .x = k->row.x, .call.bn = {c->eps, c->norm_act}};
    struct check *norm = new_check(&row, k->dtype);
    float *w = check_tensor(norm, ROLE_W)->data;
    size_t half = 2 * (size_t)row.x.c * sizeof(*w);

    copy(norm, ROLE_X, k, ROLE_X);
    memcpy(w, check_tensor(k, ROLE_BN)->data, half);
    memcpy(w + half / sizeof(*w), check_tensor(k, ROLE_STAT)->data, half);
    run(norm, DDP__OP_BN_EVAL);
    return norm;
}

static bool same(struct check *a, struct check *b, enum check_role role)
{
    size_t size = check_len(check_tensor(a, role), a->row.n) *
                  ddp__dtype_size(check_tensor(a, role)->view.type);

    return !memcmp(check_tensor(a, role)->data, check_tensor(b, role)->data,
                   size);
}

static void test_bits(const struct check_row *row, enum ddp_dtype dtype)
{
    const char *type = dtype == DDP_BF16 ? "bf16" : "f32";
    struct check *k = new_check(row, dtype), *norm, *conv;
    struct check_row plain = *row;

    check_fill(k);
    if (!run(k, DDP__OP_NORM_CONV_FWD) || !run(k, DDP__OP_NORM_CONV_BWD_W)) {
        skip(2, "%s, %s: not done by CPU workers here", row->what, type);
        check_free(k);
        return;
    }
    norm = normalise(k);
    plain.family = CHECK_CONV;
    conv = new_check(&plain, dtype);
    copy(conv, ROLE_X, norm, ROLE_Y);
    copy(conv, ROLE_W, k, ROLE_W);
    copy(conv, ROLE_DY, k, ROLE_DY);
    run(conv, DDP__OP_CONV_FWD);
    run(conv, DDP__OP_CONV_BWD_W);
    ok(same(k, conv, ROLE_Y), "%s, %s: output of norm and convolution",
       row->what, type);
    ok(same(k, conv, ROLE_G), "%s, %s: gradient of the filters", row->what,
       type);
    check_free(k);
    check_free(norm);
    check_free(conv);
}

static void test_rows(void)
{
    for (int i = 0; i < op_row_count; i++) {
        if (op_rows[i].family != CHECK_NORM_CONV)
            continue;
        test_bits(&op_rows[i], DDP_F32);
        if (ddp__cpu.computes(DDP_BF16))
            test_bits(&op_rows[i], DDP_BF16);
    }
}
#endif

int main(void)
{
    if (!(ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .cpus = 1})))
        bail_out("%s", ddp_errmsg());
    test_readers();
    test_models();
#ifdef HAVE_ONEDNN
    test_rows();
#endif
    ddp_finish(ddp);
    return done_testing();
}
