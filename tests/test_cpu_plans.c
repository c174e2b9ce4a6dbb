/* test_cpu_plans.c - no layer of a model runs by oneDNN's reference code
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * oneDNN falls back to scalar loops for what none of its generated kernels can
 * do, or may do (ddp__dnn_is_wrong()): a single such layer once took three
 * quarters of a step.  Every model is asked for at its usual image size and at
 * small ones, where layers have unusual shapes; nothing is generated or run.
 */
#include "config.h"

#include <string.h>

#include "tap.h"

#if !defined(HAVE_ONEDNN) || !defined(__x86_64__)
int main(void)
{
    skip_all("built without oneDNN, or not for x86-64");
}
#else
#include "cpu/backend.h"
#include "cpu/conv/plan_names.h"
#include "cpu/onednn/onednn_library.h"
#include "defaults.h"
#include "graph/graph.h"

enum { SUB_BATCH = 16 };

/* 0: the model's usual size.  At 96 pixels Inception v3, which cannot do with
 * fewer, is as small as others at 32. */
static const int sizes[] = {0, 32, 48, 64, 96};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* ---- graphs ------------------------------------------------------------- */

static int no_host(const struct ddp__task *t, void *arg)
{
    (void)t;
    (void)arg;
    return 0;
}

static ddp_chain_t *model_new(const char *name, int size)
{
    int layers[] = {size * size * 3, 512, 512, 0};

    return ddp_model_new(
        name,
        &(struct ddp_model_options){
            MODEL_DEFAULTS, .sizes = strcmp(name, "mlp") == 0 ? layers : NULL});
}

/* A training step, or inference; NULL: images of that size are too small for
 * the model. */
static ddp_graph_t *graph_new(ddp_chain_t *m, enum ddp__mode mode,
                              enum ddp_dtype type, int size)
{
    struct ddp__graph_spec spec = {.mode = mode,
                                   .folds = true,
                                   .shape = {size, size, 3},
                                   .type = DDP_F32,
                                   .dtype = type,
                                   .cap = SUB_BATCH,
                                   .fill = no_host,
                                   .fill_dy = no_host,
                                   .output = no_host};
    struct ddp__params *p = ddp__params_of(m);
    ddp_graph_t *g = NULL;

    if (!p)
        bail_out("%s", ddp_errmsg());
    return ddp__graph_new(&g, m, p, &spec, false) < 0 ? NULL : g;
}

/* ---- kernels ------------------------------------------------------------ */

/* What a graph's convolutions and dense layers came to. */
struct outcome {
    const struct ddp__call *call;
    int kernels, slow;
};

static int note_kernel(const char *name, void *arg)
{
    struct outcome *o = arg;
    char shapes[160];

    o->kernels++;
    if (*name && !strstr(name, "ref"))
        return 0;
    o->slow++;
    ddp__call_describe(o->call, shapes, sizeof(shapes));
    diag("%s, %s: %s", ddp__signature[o->call->op].name, shapes,
         *name ? name : "a kernel without a name");
    return 0;
}

static struct outcome list_kernels(const ddp_graph_t *g)
{
    struct outcome o = {NULL, 0, 0};

    for (int i = 0; i < g->nodes; i++) {
        o.call = &g->node[i]->call;
        if (ddp__op_is(o.call->op, DDP__IS_CONV | DDP__IS_DENSE) &&
            ddp__cpu_conv_names(o.call, note_kernel, &o) < 0) {
            diag("%s", ddp_errmsg());
            o.slow++;
        }
    }
    return o;
}

static void test_size(const char *name, enum ddp__mode mode,
                      enum ddp_dtype type, int size)
{
    int pixels = size ? size : ddp_model_size(name);
    ddp_chain_t *m = model_new(name, pixels);
    ddp_graph_t *g;
    struct outcome o;

    if (!m)
        bail_out("%s", ddp_errmsg());
    if ((g = graph_new(m, mode, type, pixels))) {
        o = list_kernels(g);
        ok(o.kernels > 0 && o.slow == 0,
           "%s, %d pixels, %s, %s: %d fast kernels", name, pixels,
           type == DDP_BF16 ? "bf16" : "f32",
           mode == DDP__PULL ? "training" : "inference", o.kernels);
        ddp__graph_free(g);
    } else if (!size) {
        fail("%s: %s", name, ddp_errmsg());
    }
    ddp_chain_free(m);
}

int main(void)
{
    const char *name;

    for (int i = 0; (name = ddp_model_name(i)); i++)
        for (int j = 0; j < SIZES; j++) {
            for (int k = 0; k < 2; k++) {
                enum ddp__mode mode = k ? DDP__INFER : DDP__PULL;

                test_size(name, mode, DDP_F32, sizes[j]);
                if (ddp__dnn_bf16())
                    test_size(name, mode, DDP_BF16, sizes[j]);
            }
        }
    return done_testing();
}
#endif
