/* test_slice.c - large batches of a compiled chain run in slices
 *
 * Values are whole numbers, whose sums are worked out here exactly.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/isa.h"
#include "small_net.h"
#include "watch_layer.h"

enum { WIDE = 64 * 64 * 8, OUTPUTS = 3, MANY = 19 };

/* A layer that notes what goes through it. */
struct tally {
    ddp_layer_t layer; /* first */
    atomic_int calls, most;
};

static int note_samples(const struct ddp_kernel_args *a)
{
    struct tally *l = (struct tally *)a->arg;

    atomic_fetch_add(&l->calls, 1);
    if (a->n > atomic_load(&l->most))
        atomic_store(&l->most, a->n);
    memcpy(a->buf[1].data, a->buf[0].data, (size_t)a->n * WIDE * sizeof(float));
    return 0;
}

static ddp_value_t *tally_forward(ddp_layer_t *l, ddp_graph_t *g,
                                  ddp_value_t *x)
{
    static const struct ddp_kernel noting = {.name = "note",
                                             .on = {[DDP_CPU] = note_samples}};
    ddp_value_t *y = ddp_graph_value(g, ddp_value_shape(x), DDP_F32);

    ddp_graph_call(g, &noting, l, 2, (ddp_value_t *[]){x, y},
                   (enum ddp_access[]){DDP_READ, DDP_WRITE});
    return ddp_graph_record(g,
                            &(struct ddp_record){.layer = l, .x = x, .y = y});
}

/* Whole numbers, so that sums are exact: numbers below 2^24. */
static float whole(int i)
{
    return (float)(i % 7 - 3);
}

static bool exact(const float *x, const float *y)
{
    for (int n = 0; n < MANY; n++)
        for (int k = 0; k < OUTPUTS; k++) {
            int64_t sum = 0;

            for (int i = 0; i < WIDE; i++)
                sum += (int64_t)whole(k * WIDE + i) * (int64_t)x[n * WIDE + i];
            if ((double)y[n * OUTPUTS + k] != (double)sum)
                return false;
        }
    return true;
}

/* Whether CPU workers slice large batches (backend.c). */
static bool has_slices(void)
{
#ifdef HAVE_ONEDNN
    return ddp__avx512_here();
#else
    return false;
#endif
}

/* Three times as many weights as a sample has numbers: slices of 8 would write
 * enough, and 19 samples make three of up to 7, where batches are sliced. */
static void test_slices(bool may)
{
    static const struct ddp_layer_ops noting = {.kind = "tally",
                                                .shape = watch_shape,
                                                .forward = tally_forward,
                                                .backward = watch_backward};
    struct tally *t = (struct tally *)ddp_layer_new(sizeof(*t), &noting);
    ddp_chain_t *c = ddp_chain_new(&t->layer, ddp_flatten_new(),
                                   ddp_dense_new(WIDE, OUTPUTS, NULL), DDP_END);
    float *x = malloc(MANY * WIDE * sizeof(*x)), y[MANY * OUTPUTS] = {0};
    float *w = malloc(OUTPUTS * WIDE * sizeof(*w)), b[OUTPUTS] = {0};
    ddp_compiled_t *p =
        ddp_compiled_new(ddp, c, (struct ddp_shape){64, 64, 8}, MANY, NULL);

    for (int i = 0; i < MANY * WIDE; i++)
        x[i] = (float)(i % 5 - i / WIDE % 3);
    for (int i = 0; i < OUTPUTS * WIDE; i++)
        w[i] = whole(i);
    ok(p && ddp_chain_set(c, "2.weight", w, OUTPUTS * WIDE) == 0 &&
           ddp_chain_set(c, "2.bias", b, OUTPUTS) == 0 &&
           ddp_compiled_run(p, x, MANY, y) == 0 && exact(x, y),
       "a large batch as worked out by hand");
    if (may && has_slices())
        ok(t->most == 7 && t->calls == 3, "in slices: %d of up to %d samples",
           t->calls, t->most);
    else
        ok(t->most == MANY && t->calls == 1, "at once: %d of up to %d samples",
           t->calls, t->most);
    ddp_compiled_free(p);
    ddp_chain_free(c);
    free(x);
    free(w);
}

int main(void)
{
    start("0");
    test_slices(false);
    ddp_finish(ddp);
    start("");
    diag("%s", ddp_describe(ddp));
    test_slices(true);
    ddp_finish(ddp);
    return done_testing();
}
