/* dagger.c - a chain as a task graph: submit it, and collect the result
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source: DaggerFlux.jl, README and test/runtests.jl.  Its DaggerChain is a
 * chain, its collect() is ddp_pullback_wait(), its back() is
 * ddp_pullback_submit_backward().
 */
#include <ddp.h>
#include <stdio.h>

enum { SAMPLES = 4 };

int main(void)
{
    ddp_t *ddp = ddp_init(NULL);
    ddp_chain_t *chain = ddp_chain_new(ddp_dense_new(2, 2, NULL),
                                       ddp_dense_new(2, 2, NULL), DDP_END);
    const float w0[] = {1, 2, 3, 4}, w1[] = {0.5f, -1, 1, 2}, b[] = {1, -1};
    const float x[SAMPLES][2] = {{1, 0}, {0, 1}, {1, 1}, {-1, 2}};
    const float ones[SAMPLES][2] = {{1, 1}, {1, 1}, {1, 1}, {1, 1}};
    float y[SAMPLES][2], dx[SAMPLES][2], g[4];
    ddp_pullback_t *p;
    bool good;

    ddp_chain_set(chain, "0.weight", w0, 4);
    ddp_chain_set(chain, "0.bias", b, 2);
    ddp_chain_set(chain, "1.weight", w1, 4);
    ddp_chain_set(chain, "1.bias", b, 2);
    p = ddp_pullback_new(ddp, chain, x[0], (struct ddp_shape){1, 1, 2}, SAMPLES,
                         0, NULL);

    /* Tasks on any devices that are free, while the program continues. */
    good = ddp_pullback_submit_forward(p, x[0], y[0]) == 0 &&
           ddp_pullback_wait(p) == 0 &&
           ddp_pullback_submit_backward(p, ones[0], dx[0]) == 0 &&
           ddp_pullback_wait(p) == 0 &&
           ddp_pullback_get_gradient(p, "0.weight", g, 4) == 0;
    for (int i = 0; good && i < SAMPLES; i++)
        printf("y %g %g, dx %g %g\n", y[i][0], y[i][1], dx[i][0], dx[i][1]);
    if (good)
        printf("gradient of the first weights %g %g %g %g\n", g[0], g[1], g[2],
               g[3]);
    else
        fprintf(stderr, "dagger: %s\n", ddp_errmsg());
    ddp_pullback_free(p);
    ddp_chain_free(chain);
    ddp_finish(ddp);
    return !good;
}
