/* test_norm.c - the squared norm of gradients, and where one is not finite
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "cpu/backend.h"
#include "hand.h"
#include "ops_norm.h"

enum { WEIGHTS = 6 };

/* Elements 2 and 3 are running statistics. */
static const struct ddp__span spans[] = {
    {.begin = 0, .len = 1, .decay = true},
    {.begin = 1, .len = 1},
    {.begin = 2, .len = 2, .running = true, .momentum = 0.25f},
    {.begin = 4, .len = 2, .decay = true},
};

static void test_squares(void)
{
    float g[WEIGHTS] = {3, 4, 99, 99, 0, 12};
    double norm[DDP__NORMS] = {1, 1, 1};
    double stats[DDP__STATS] = {[DDP__STAT_DIVISOR] = 2};
    struct ddp__call c = {.buf = {vector(WEIGHTS)},
                          .optim = {.spans = LEN(spans), .span = spans}};

    RUN(SQNORM, &c, 1, g, stats, norm);
    is_near(norm[0], 169 / 4.0, 1e-12, "sqnorm: of trained spans, divided");
    ok(norm[DDP__NORM_TRAINED] == 0 && norm[DDP__NORM_RUNNING] == 0,
       "sqnorm: all is finite");
    RUN_ADDING(SQNORM, &c, 1, g, stats, norm);
    is_near(norm[0], 169 / 2.0, 1e-12,
            "sqnorm: added when the task accumulates");
    stats[DDP__STAT_DIVISOR] = 0;
    RUN(SQNORM, &c, 1, g, stats, norm);
    ok(norm[0] == 0, "sqnorm: without a divisor, 0");
}

/* The bucket begins at 100. */
static void test_places(const struct ddp__backend *b)
{
    static const struct {
        float g[WEIGHTS];
        int trained, running;
        const char *what;
    } row[] = {
        {{1, NAN, 1, 1, INFINITY, 1}, 102, 0, "the first of two weights"},
        {{1, 1, INFINITY, NAN, 1, 1}, 0, 104, "the last of two statistics"},
        {{1, 1, 1, -INFINITY, 1, NAN}, 106, 104, "one of each"},
        {{3e38f, -3e38f, 3e38f, 3e38f, 3e38f, 3e38f}, 0, 0, "large values"},
    };
    double stats[DDP__STATS] = {[DDP__STAT_DIVISOR] = 0x1p-20};

    for (size_t i = 0; i < LEN(row); i++) {
        double norm[DDP__NORMS] = {0};
        struct ddp__call c = {.op = DDP__OP_SQNORM,
                              .buf = {vector(WEIGHTS)},
                              .buffers = DDP__SQNORM_BUFFERS,
                              .optim = {{0}, LEN(spans), spans, 100}};
        struct ddp__task t = {.call = &c, .n = 1};
        float g[WEIGHTS];

        memcpy(g, row[i].g, sizeof(g));
        t.data[DDP__SQNORM_G] = g;
        t.data[DDP__SQNORM_STATS] = stats;
        t.data[DDP__SQNORM_NORM] = norm;
        b->kernel[DDP__OP_SQNORM](&t);
        ok(norm[DDP__NORM_TRAINED] == row[i].trained &&
               norm[DDP__NORM_RUNNING] == row[i].running &&
               isfinite(norm[0]) == (i == 3),
           "sqnorm of %s: %s", b->name, row[i].what);
        memcpy(g, row[3].g, sizeof(g));
        t.accumulate = true;
        c.optim.begin = 0;
        b->kernel[DDP__OP_SQNORM](&t);
        ok(norm[DDP__NORM_TRAINED] == row[i].trained &&
               norm[DDP__NORM_RUNNING] == row[i].running &&
               isfinite(norm[0]) == (i == 3),
           "and a finite bucket after it changes nothing");
    }
}

/* The squares of strip i of n, as a task of its own finds them. */
static double strip_squares(const struct ddp__backend *b, float *g, int len,
                            int n, int i)
{
    double stats[DDP__STATS] = {[DDP__STAT_DIVISOR] = 1}, norm[DDP__NORMS];
    struct ddp__span whole = {.len = (size_t)len}, span;
    struct ddp__call c = {.buf = {vector(len)}, .optim = {.span = &span}};
    struct ddp__task t = {.call = &c, .n = 1, .data = {g, stats, norm}};
    size_t from, to;

    ddp__strip_range((size_t)len, n, i, &from, &to);
    c.optim.spans = ddp__strip_span(&whole, from, to, &span);
    b->kernel[DDP__OP_SQNORM](&t);
    return norm[DDP__NORM_SQUARES];
}

/* Pieces of different size round differently in another order. */
static void test_tree(const struct ddp__backend *b)
{
    enum { LENGTH = 33 * DDP__NORM_PIECE + 7 };
    float *g = calloc(LENGTH, sizeof(*g));
    double whole, sum = 0;

    for (int i = 0; g && i < LENGTH; i++) {
        g[i] = (float)(1 + i / 999) / (float)(3 + i % 1000);
        sum += (double)g[i] * g[i];
    }
    if (!g)
        exit(1);
    whole = strip_squares(b, g, LENGTH, 1, 0);
    is_near(whole, sum, 1e-12 * sum, "squares of %s: their sum", b->name);
    for (int n = 2; n <= ddp__norm_pieces(LENGTH); n *= 2) {
        struct ddp__norm_tree tree = {0};

        for (int i = 0; i < n; i++)
            ddp__norm_tree_add(&tree, strip_squares(b, g, LENGTH, n, i));
        ok(tree.branch[0] == whole, "and of %d strips, the same bits", n);
    }
    free(g);
}

int main(void)
{
    test_squares();
    test_places(&ddp__ref);
    test_places(&ddp__cpu);
    test_tree(&ddp__ref);
    test_tree(&ddp__cpu);
    return done_testing();
}
