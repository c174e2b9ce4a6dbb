/* teach.c - distillation: a chain learns the outputs of another one
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The teacher is a part of the graph, so what was said of tasks, devices and
 * bits holds for it; nobody writes to its parameters.
 *
 * Source   Hinton, Vinyals, Dean, "Distilling the Knowledge in a Neural
 *          Network", 2015.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "graph/pass.h"
#include "graph/teach.h"
#include "ref/ref.h"

/* Its layers see the graph of an evaluation, with its parameters. */
int ddp__graph_teacher(ddp_graph_t *g, ddp_value_t *x)
{
    const struct ddp__graph_spec spec = g->spec;
    struct ddp__params *params = g->params;
    int records = g->records;

    if (!spec.teach.chain)
        return g->rc;
    g->spec.mode = DDP__INFER;
    g->spec.frozen = NULL;
    g->params = spec.teach.params;
    g->teaching = true;
    g->taught = ddp__layer_forward(spec.teach.chain, g, x);
    g->teaching = false;
    g->params = params;
    g->spec = spec;
    g->records = records;
    return g->rc;
}

/* The logits of a sample over the temperature, less the logarithm of the sum of
 * their exponentials. */
static void log_softmax(const struct ddp__ref_buf *b, size_t at, size_t len,
                        double temperature, double *y)
{
    double largest = -INFINITY, sum = 0;

    for (size_t i = 0; i < len; i++) {
        y[i] = (double)ddp__ref_read(b, at + i) / temperature;
        largest = fmax(largest, y[i]);
    }
    for (size_t i = 0; i < len; i++)
        sum += exp(y[i] - largest);
    for (size_t i = 0; i < len; i++)
        y[i] -= largest + log(sum);
}

/* T^2 KL(q || p) of the sample at `at`, of which log p and log q are given; dx
 * += factor T (p - q) */
static double teach_sample(const struct ddp__ref_buf *dx, size_t at, size_t len,
                           double t, double factor, const double *p,
                           const double *q)
{
    double loss = 0;

    for (size_t i = 0; i < len; i++) {
        double share = exp(q[i]), more = factor * t * (exp(p[i]) - share);

        if (share > 0)
            loss += share * (q[i] - p[i]);
        ddp__ref_write(dx, at + i, (double)ddp__ref_read(dx, at + i) + more);
    }
    return t * t * loss;
}

static int teach(const struct ddp__task *t, void *arg)
{
    const struct ddp__teaching *k = arg;
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__TEACH_X);
    struct ddp__ref_buf taught = ddp__ref_buf(t, DDP__TEACH_TAUGHT);
    struct ddp__ref_buf dx = ddp__ref_buf(t, DDP__TEACH_DX);
    size_t len = ddp__ref_sample_len(t, DDP__TEACH_X), at = 0;
    const float *weight = t->data[DDP__TEACH_WEIGHT];
    const double *scale = t->data[DDP__TEACH_SCALE];
    double *p = malloc(2 * len * sizeof(*p)),
           *stats = t->data[DDP__TEACH_STATS];

    if (!p)
        return ddp__fail(DDP_ENOMEM, "out of memory for %zu logits", len);
    for (int n = 0; n < t->n; n++, at += len) {
        double share = k->weight * (double)weight[n];

        log_softmax(&x, at, len, k->temperature, p);
        log_softmax(&taught, at, len, k->temperature, p + len);
        stats[DDP__STAT_LOSS] +=
            share * teach_sample(&dx, at, len, k->temperature,
                                 share * (scale ? *scale : 1), p, p + len);
    }
    free(p);
    return 0;
}

void ddp__graph_teach(ddp_graph_t *g, ddp_value_t *y, ddp_value_t *dx,
                      ddp_value_t *scale)
{
    struct ddp__call c = {.op = DDP__OP_HOST,
                          .host = {DDP__HOST_TEACH, teach, &g->spec.teach}};
    struct ddp_shape s = g->taught->shape, own = y ? y->shape : s;
    struct ddp_shape flat = {1, 1, s.h * s.w * s.c};

    if (g->rc == 0 && flat.c != own.c)
        g->rc = ddp__fail(DDP_ESHAPE,
                          "the teacher gives %d values and the chain %d, "
                          "expected as many",
                          flat.c, own.c);
    if (g->rc == 0)
        ddp__emit(
            g, &c,
            DDP__VALUES(
                [DDP__TEACH_X] = y,
                [DDP__TEACH_TAUGHT] = ddp__value_alias(g, g->taught, flat),
                [DDP__TEACH_WEIGHT] = g->weight, [DDP__TEACH_STATS] = g->stats,
                [DDP__TEACH_DX] = dx, [DDP__TEACH_SCALE] = scale));
}
