/* join.c - where branches meet and part, in plain C
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include "act.h"
#include "backend.h"
#include "ref.h"

/* y = act(a + b) */
int ddp__ref_add(const struct ddp__task *t)
{
    struct ddp__ref_buf a = ddp__ref_buf(t, DDP__ADD_A);
    struct ddp__ref_buf b = ddp__ref_buf(t, DDP__ADD_B);
    struct ddp__ref_buf y = ddp__ref_buf(t, DDP__ADD_Y);

    for (size_t i = 0; i < ddp__len(t, DDP__ADD_Y); i++)
        ddp__ref_write(&y, i,
                       ddp__ref_act(t->call->act, (double)ddp__ref_read(&a, i) +
                                                      ddp__ref_read(&b, i)));
    return 0;
}

/* dst += src */
int ddp__ref_acc(const struct ddp__task *t)
{
    struct ddp__ref_buf dst = ddp__ref_buf(t, DDP__ACC_DST);
    struct ddp__ref_buf src = ddp__ref_buf(t, DDP__ACC_SRC);

    for (size_t i = 0; i < ddp__len(t, DDP__ACC_DST); i++)
        ddp__ref_write(&dst, i,
                       (double)ddp__ref_read(&dst, i) + ddp__ref_read(&src, i));
    return 0;
}

/* Copy the channels of narrow to channels at, at + 1, ... of wide, or those to
 * narrow, or add them to it. */
static void copy_channels(const struct ddp__task *t, struct ddp__ref_buf wide,
                          struct ddp__ref_buf narrow, bool to_wide)
{
    size_t pixels = (size_t)t->n * (size_t)wide.h * (size_t)wide.w;
    size_t c = (size_t)narrow.c;

    for (size_t p = 0; p < pixels; p++)
        for (size_t i = 0; i < c; i++) {
            size_t few = p * c + i;
            size_t all = p * (size_t)wide.c + (size_t)t->call->at + i;
            double v =
                ddp__ref_read(to_wide ? &narrow : &wide, to_wide ? few : all);

            if (t->call->sum)
                v += ddp__ref_read(&narrow, few);
            ddp__ref_write(to_wide ? &wide : &narrow, to_wide ? all : few, v);
        }
}

/* y[..., at + i] = x[..., i]; other channels of y are unchanged. */
int ddp__ref_concat(const struct ddp__task *t)
{
    copy_channels(t, ddp__ref_buf(t, DDP__CONCAT_Y),
                  ddp__ref_buf(t, DDP__CONCAT_X), true);
    return 0;
}

/* dx[..., i] = dy[..., at + i], or that is added */
int ddp__ref_split(const struct ddp__task *t)
{
    copy_channels(t, ddp__ref_buf(t, DDP__SPLIT_DY),
                  ddp__ref_buf(t, DDP__SPLIT_DX), false);
    return 0;
}

/* y[n, h, w, c] = x[n, h, w, c] s[n, c] */
int ddp__ref_scale_fwd(const struct ddp__task *t)
{
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__SCALE_FWD_X);
    struct ddp__ref_buf s = ddp__ref_buf(t, DDP__SCALE_FWD_S);
    struct ddp__ref_buf y = ddp__ref_buf(t, DDP__SCALE_FWD_Y);
    size_t sample = ddp__ref_sample_len(t, DDP__SCALE_FWD_X), c = (size_t)x.c;

    for (size_t i = 0; i < ddp__len(t, DDP__SCALE_FWD_X); i++)
        ddp__ref_write(&y, i,
                       (double)ddp__ref_read(&x, i) *
                           ddp__ref_read(&s, i / sample * c + i % c));
    return 0;
}

/* dx = dy s, if it is an operand;  ds[n, c] = sum over h, w of dy x, where x
 * may be times s */
int ddp__ref_scale_bwd(const struct ddp__task *t)
{
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__SCALE_BWD_X);
    struct ddp__ref_buf s = ddp__ref_buf(t, DDP__SCALE_BWD_S);
    struct ddp__ref_buf dy = ddp__ref_buf(t, DDP__SCALE_BWD_DY);
    struct ddp__ref_buf dx = ddp__ref_buf(t, DDP__SCALE_BWD_DX);
    struct ddp__ref_buf ds = ddp__ref_buf(t, DDP__SCALE_BWD_DS);
    size_t sample = ddp__ref_sample_len(t, DDP__SCALE_BWD_X), c = (size_t)x.c;

    for (size_t j = 0; j < (size_t)t->n * c; j++) {
        size_t begin = j / c * sample;
        double factor = ddp__ref_read(&s, j), sum = 0;

        for (size_t i = begin + j % c; i < begin + sample; i += c) {
            double d = ddp__ref_read(&dy, i);

            sum += d * ddp__ref_read(&x, i);
            if (dx.data)
                ddp__ref_write(&dx, i, d * factor);
        }
        if (t->call->scaled)
            sum = factor == 0 ? 0 : sum / factor;
        ddp__ref_write(&ds, j, sum);
    }
    return 0;
}
