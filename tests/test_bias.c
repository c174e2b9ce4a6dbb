/* test_bias.c - gradients of biases against sums in f64
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A block's sum is of 32 terms of f32 in a row, whose independent roundings of
 * 2^-24 come to 2^-24 sqrt(32 / 3) = 2e-7 of its norm; twice that are allowed
 * for all of them.  One sum in f32 of 150,000 terms would be off by 1e-5.
 */
#include "config.h"

#include <math.h>

#include "tap.h"

#ifndef HAVE_ONEDNN
int main(void)
{
    skip_all("built without oneDNN");
}
#else
#include "base/half.h"
#include "cpu/conv/bias.h"
#include "random.h"

static const double MOST = 4e-7;

static const struct {
    int n, h, w, o;
} rows[] = {
    {3, 224, 224, 8}, /* many blocks */
    {2, 9, 17, 530},  /* more channels than are summed together; pixels left */
    {1, 3, 1, 37},    /* less than are added up at a time */
    {1, 1, 1, 1},
};

/* dy, all above 0 so that the sums grow with each pixel, and its sums over
 * pixels. */
static void *new_gradient(const struct ddp__conv_shape *s, double *want)
{
    size_t o = (size_t)s->o, len = (size_t)(s->n * s->oh * s->ow) * o;
    float *f = new_array(len, sizeof(*f));
    uint16_t *b = (uint16_t *)f;

    for (size_t i = 0; i < len; i++) {
        float v = fabsf(random_float());

        if (s->type == DDP_BF16)
            v = ddp__from_bf16(b[i] = ddp__to_bf16(v));
        else
            f[i] = v;
        want[i % o] += (double)v;
    }
    return f;
}

static double error_of(const float *db, const double *want, int o, double times)
{
    double error = 0, norm = 0;

    for (int i = 0; i < o; i++) {
        error += pow((double)db[i] - times * want[i], 2);
        norm += pow(times * want[i], 2);
    }
    return sqrt(error / norm);
}

/* Written, then added; what follows them is left alone. */
static void test_bias(struct ddp__conv_shape s)
{
    size_t o = (size_t)s.o;
    double *want = new_array(o, sizeof(*want)), first, both;
    float *db = new_array(o + 1, sizeof(*db));
    void *dy;

    memset(want, 0, o * sizeof(*want));
    dy = new_gradient(&s, want);
    for (size_t i = 0; i <= o; i++)
        db[i] = 5;
    ddp__bias_gradient(&s, dy, false, db);
    first = error_of(db, want, s.o, 1);
    ddp__bias_gradient(&s, dy, true, db);
    both = error_of(db, want, s.o, 2);
    ok(first <= MOST && both <= MOST && db[o] == 5,
       "%s, %d pixels, %d channels: %.1e of the norm, added %.1e",
       s.type == DDP_BF16 ? "bf16" : "f32", s.n * s.oh * s.ow, s.o, first,
       both);
    free(dy);
    free(db);
    free(want);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (enum ddp_dtype type = DDP_F32; type <= DDP_BF16; type++)
            test_bias((struct ddp__conv_shape){.type = type,
                                               .n = rows[i].n,
                                               .oh = rows[i].h,
                                               .ow = rows[i].w,
                                               .o = rows[i].o});
    return done_testing();
}
#endif
