/* dense.c - fully connected layers, in plain C: y = W x + b
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include "act.h"
#include "backend.h"
#include "ref.h"

/* y[n, o] = act(b[o] + sum over c of w[o, c] x[n, c]) */
int ddp__ref_dense_fwd(const struct ddp__task *t)
{
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__DENSE_FWD_X);
    struct ddp__ref_buf y = ddp__ref_buf(t, DDP__DENSE_FWD_Y);
    size_t in = ddp__ref_sample_len(t, DDP__DENSE_FWD_X);
    size_t out = ddp__ref_sample_len(t, DDP__DENSE_FWD_Y);
    const float *w = t->data[DDP__DENSE_FWD_W], *b = w + in * out;

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
    struct ddp__ref_buf dy = ddp__ref_buf(t, DDP__DENSE_BWD_X_DY);
    struct ddp__ref_buf dx = ddp__ref_buf(t, DDP__DENSE_BWD_X_DX);
    size_t out = ddp__ref_sample_len(t, DDP__DENSE_BWD_X_DY);
    size_t in = ddp__ref_sample_len(t, DDP__DENSE_BWD_X_DX);
    const float *w = t->data[DDP__DENSE_BWD_X_W];

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
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__DENSE_BWD_W_X);
    struct ddp__ref_buf dy = ddp__ref_buf(t, DDP__DENSE_BWD_W_DY);
    size_t in = ddp__ref_sample_len(t, DDP__DENSE_BWD_W_X);
    size_t out = ddp__ref_sample_len(t, DDP__DENSE_BWD_W_DY);
    float *dw = t->data[DDP__DENSE_BWD_W_G], *db = dw + in * out;

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
