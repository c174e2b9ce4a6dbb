/* pullback.c - a network as a function, and its derivative
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The derivative by each input is compared with finite differences, and the
 * derivative by a weight as well.
 */
#include <ddp.h>
#include <math.h>
#include <stdio.h>

enum { SAMPLES = 3, INPUTS = 5, LEN = SAMPLES * INPUTS };
static const struct ddp_shape shape = {1, 1, INPUTS};

/* The sum of the network's outputs on all samples. */
static double sum_of(ddp_t *ddp, ddp_chain_t *net, const float *x)
{
    float y[SAMPLES];

    if (ddp_chain_forward(ddp, net, x, DDP_F32, shape, SAMPLES, 0, y) < 0)
        return NAN;
    return (double)y[0] + y[1] + y[2];
}

/* Its slope along *value, by central differences; w is set if that is where
 * value points. */
static double slope(ddp_t *ddp, ddp_chain_t *net, const float *x, float *value,
                    const float *w)
{
    const float h = 1e-2f, was = *value;
    double sum[2];

    for (int i = 0; i < 2; i++) {
        *value = was + (i ? -h : h);
        if (w && ddp_chain_set(net, "0.weight", w, 8 * INPUTS) < 0)
            return NAN;
        sum[i] = sum_of(ddp, net, x);
    }
    *value = was;
    return (sum[0] - sum[1]) / (2 * (double)h);
}

static bool compare(ddp_t *ddp, ddp_chain_t *net, ddp_pullback_t *p, float *x)
{
    float dy[SAMPLES] = {1, 1, 1}, dx[LEN], w[8 * INPUTS], g[8 * INPUTS];
    double worst = 0, by_weight;

    if (ddp_pullback_backward(p, dy, dx) < 0 ||
        ddp_pullback_get_gradient(p, "0.weight", g, 8 * INPUTS) < 0 ||
        ddp_chain_get(net, "0.weight", w, 8 * INPUTS) < 0)
        return false;
    for (int i = 0; i < LEN; i++)
        worst = fmax(worst, fabs(slope(ddp, net, x, &x[i], NULL) - dx[i]));
    by_weight = slope(ddp, net, x, &w[7], w);
    printf("inputs: %.1e off finite differences at most\n"
           "a weight: %.4f, by finite differences %.4f\n",
           worst, g[7], by_weight);
    return isfinite(worst) && isfinite(by_weight);
}

int main(void)
{
    ddp_t *ddp = ddp_init(NULL);
    ddp_chain_t *net =
        ddp_chain_new(ddp_dense_new(INPUTS, 8, NULL), ddp_tanh_new(),
                      ddp_dense_new(8, 1, NULL), DDP_END);
    ddp_pullback_t *p = NULL;
    float x[LEN], y[SAMPLES];
    bool good;

    for (int i = 0; i < LEN; i++)
        x[i] = (float)sin(i);
    good = ddp_chain_init(net, 1) == 0 &&
           (p = ddp_pullback_new(ddp, net, x, shape, SAMPLES, 0, y)) &&
           compare(ddp, net, p, x);
    if (!good)
        fprintf(stderr, "pullback: %s\n", ddp_errmsg());
    ddp_pullback_free(p);
    ddp_chain_free(net);
    ddp_finish(ddp);
    return !good;
}
