/* test_operations.c - what a step's operations compute, read and write
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Bytes and FLOPs are worked out by hand from the shapes.
 */
#include "config.h"

#include <string.h>

#include "defaults.h"
#include "tap.h"

enum { SIDE = 4, IN = 8, OUT = 16, CLASSES = 8, N = 2, FLOAT = 4 };

/* Bytes of a sub-batch before and behind the first convolution, and of its
 * filters and those of the 3x3 one. */
enum {
    X = N * SIDE * SIDE * IN * FLOAT,
    Y = N * SIDE * SIDE * OUT * FLOAT,
    W = IN * OUT * FLOAT,
    V = 9 * OUT * OUT * FLOAT,
    DENSE = SIDE * SIDE * OUT * CLASSES, /* weights */
    UPDATED = W + V + V / 9 + DENSE * FLOAT
};

/* FLOPs of a pass. */
enum {
    W_FLOPS = 2 * N * SIDE * SIDE * IN * OUT,
    V_FLOPS = 2 * N * SIDE * SIDE * 9 * OUT * OUT,
    DENSE_FLOPS = 2 * N * DENSE
};

/* The 3x3 convolution adds its data gradient to that of the 1x1 one next to it,
 * which it reads for that. */
static const struct expected {
    const char *name, *shapes; /* NULL: any */
    double flops, bytes, read;
} expected[] = {
    {"conv_fwd", "4x4x8 4x4x16 by 1x1/1", W_FLOPS, X + W + Y, X + W},
    {"conv_bwd_w", "4x4x8 4x4x16 by 1x1/1", W_FLOPS, X + W + Y, X + Y},
    {"conv_bwd_x", "4x4x16 4x4x16 by 3x3/1, added", V_FLOPS, Y + V + 2 * Y,
     Y + V + Y},
    {"dense_bwd_x", NULL, DENSE_FLOPS, Y + (N * CLASSES + DENSE) * FLOAT,
     (N * CLASSES + DENSE) * FLOAT},
    {"optim", NULL, 0, 5 * UPDATED, 3 * UPDATED},
};

enum { ROWS = (int)(sizeof(expected) / sizeof(expected[0])) };

static int seen[ROWS], wrong[ROWS];

static int compare(const struct ddp_operation *o, void *arg)
{
    (void)arg;
    for (int i = 0; i < ROWS; i++) {
        const struct expected *e = &expected[i];

        if (strcmp(o->name, e->name) ||
            (e->shapes && strcmp(o->shapes, e->shapes)))
            continue;
        seen[i]++;
        wrong[i] +=
            o->flops != e->flops || o->bytes != e->bytes || o->read != e->read;
        diag("%s of %s: %.0f FLOPs, %.0f bytes, %.0f of them read", o->name,
             o->shapes, o->flops, o->bytes, o->read);
    }
    return 0;
}

int main(void)
{
    struct ddp_conv_options plain = {CONV_DEFAULTS, .no_bias = true};
    struct ddp_conv_options padded = {CONV_DEFAULTS, .pad = 1, .no_bias = true};
    struct ddp_dense_options flat = {DENSE_DEFAULTS, .no_bias = true};
    struct ddp_shape in = {SIDE, SIDE, IN};
    struct ddp_optimizer o = ddp_momentum(0.1f, 0.9f);
    ddp_chain_t *c = ddp_chain_new(
        ddp_conv_new(IN, OUT, 1, &plain),
        ddp_skip_new(ddp_conv_new(OUT, OUT, 1, &plain),
                     ddp_conv_new(OUT, OUT, 3, &padded)),
        ddp_flatten_new(), ddp_dense_new(SIDE * SIDE * OUT, CLASSES, &flat),
        DDP_END);

    is_int(ddp_chain_operations(c, in, DDP_F32, N, &o, compare, NULL), 0,
           "the operations of a step are told");
    for (int i = 0; i < ROWS; i++)
        ok(seen[i] == 1 && !wrong[i], "%s once, as worked out by hand",
           expected[i].name);
    ddp_chain_free(c);
    return done_testing();
}
