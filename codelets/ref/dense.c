/* dense.c - fully connected layers, in plain C: y = W x + b
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include "ref.h"

/* y[n, o] = act(b[o] + sum over c of w[o, c] x[n, c]) */
int ddp__ref_dense_fwd(const struct ddp__task *t)
{
    struct ddp__ref_buf x = ddp__ref_buf(t, 0), y = ddp__ref_buf(t, 2);
    size_t in = ddp__ref_sample_len(t, 0), out = ddp__ref_sample_len(t, 2);
    const float *w = t->data[1], *b = w + in * out;

    for (size_t n = 0; n < (size_t)t->n; n++)
        for (size_t o = 0; o < out; o++) {
            double z = t->call->dense.bias ? b[o] : 0;

            for (size_t c = 0; c < in; c++)
                z += (double)w[o * in + c] * ddp__ref_read(&x, n * in + c);
            ddp__ref_write(&y, n * out + o,
                           ddp__ref_act(t->call->dense.act, z));
        }
    return 0;
}

/* dx[n, c] = sum over o of w[o, c] dy[n, o] */
int ddp__ref_dense_bwd_x(const struct ddp__task *t)
{
    struct ddp__ref_buf dy = ddp__ref_buf(t, 0), dx = ddp__ref_buf(t, 2);
    size_t out = ddp__ref_sample_len(t, 0), in = ddp__ref_sample_len(t, 2);
    const float *w = t->data[1];

    for (size_t n = 0; n < (size_t)t->n; n++)
        for (size_t c = 0; c < in; c++) {
            double sum = 0;

            for (size_t o = 0; o < out; o++)
                sum += (double)w[o * in + c] * ddp__ref_read(&dy, n * out + o);
            ddp__ref_write(&dx, n * in + c, sum);
        }
    return 0;
}

/* dw[o, c] = sum over n of dy[n, o] x[n, c];  db[o] = sum over n of dy[n, o] */
int ddp__ref_dense_bwd_w(const struct ddp__task *t)
{
    struct ddp__ref_buf x = ddp__ref_buf(t, 0), dy = ddp__ref_buf(t, 1);
    size_t in = ddp__ref_sample_len(t, 0), out = ddp__ref_sample_len(t, 1);
    float *dw = t->data[2], *db = dw + in * out;

    for (size_t o = 0; o < out; o++) {
        double sum = 0;

        for (size_t n = 0; n < (size_t)t->n; n++)
            sum += ddp__ref_read(&dy, n * out + o);
        if (t->call->dense.bias)
            ddp__ref_sum(t, &db[o], sum);
        for (size_t c = 0; c < in; c++) {
            sum = 0;
            for (size_t n = 0; n < (size_t)t->n; n++)
                sum += (double)ddp__ref_read(&dy, n * out + o) *
                       ddp__ref_read(&x, n * in + c);
            ddp__ref_sum(t, &dw[o * in + c], sum);
        }
    }
    return 0;
}
