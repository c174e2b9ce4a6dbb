/* judge.c - whether a backend's results are those of ref
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "judge.h"

/* The largest difference from ref that is fine, as a share of the norm.
 *
 * f32: a sum of k products has an error of about sqrt(k) 2^-24, and k remains
 * below 5000 here; 2e-5 leaves room for one more rounding on the way.
 * bf16: rounding to 8 bits is off by 2^-9 at most.  Weights, a scratch value
 * and the output of a kernel may be rounded, 3 * 2^-9 = 0.6 % if all were at
 * their worst; 1.5 % leaves room for two more.  Gradients of parameters are
 * f32 sums of products of values that are bf16 already, the same on both
 * sides, with at most a scratch value rounded: 4e-3.
 * f16: three bits more, an eighth of that. */
static double tolerance(const struct check *k, enum check_role role)
{
    if (k->tensor[role].view.type == DDP_BF16)
        return 1.5e-2;
    if (k->tensor[role].view.type == DDP_F16)
        return 2e-3;
    if (role != ROLE_G || k->dtype == DDP_F32)
        return 2e-5;
    return k->dtype == DDP_BF16 ? 4e-3 : 5e-4;
}

/* Copies and choices have no rounding: the same bits are asked for. */
static bool is_exact(const struct check *k, enum ddp__op op)
{
    return op == DDP__OP_CONCAT || (op == DDP__OP_SPLIT && !k->row.call.sum) ||
           op == DDP__OP_INPUT_F32 || op == DDP__OP_MAX_POOL_FWD ||
           op == DDP__OP_MERGE || op == DDP__OP_MERGE_STATS ||
           op == DDP__OP_KEEP ||
           ((op == DDP__OP_OPTIM || op == DDP__OP_EMA) && k->row.no_divisor);
}

/* A buffer falls into parts that must each be right by themselves, else a
 * large one would hide a small one.  Part i ends before the returned element;
 * the last part ends with the buffer. */
static size_t part_end(const struct check *k, enum check_role role, int i,
                       size_t len)
{
    const struct check_row *r = &k->row;
    size_t end = len;

    if (((r->family == CHECK_BN || r->family == CHECK_BN_GATED ||
          r->family == CHECK_BN_STAT || r->family == CHECK_BN_SYNC) &&
         (role == ROLE_STAT || role == ROLE_G)) ||
        role == ROLE_SUM || role == ROLE_DSUM || role == ROLE_BN_G)
        end = (size_t)(i + 1) * (size_t)r->x.c;
    else if (role == ROLE_G && i == 0 &&
             ((r->family == CHECK_CONV && r->call.conv.bias) ||
              (r->family == CHECK_DENSE && r->call.dense.bias)))
        end = len - (size_t)r->y.c;
    else if (role == ROLE_STATS || role == ROLE_NORM)
        end = (size_t)(i + 1);
    else if (role == ROLE_STATE && i == 0 &&
             (r->call.optim.o.kind == DDP_ADAM ||
              r->call.optim.o.kind == DDP_ADAMW))
        end = len / 2;
    return end < len ? end : len;
}

/* What rounding errors are compared with where terms may cancel: their size.
 * Batch norm of one or two values per channel: the terms of dx and of scale's
 * gradient.  A weight of one value: what is added to its gradient, a product of
 * x and dy that a kernel may round. */
static double floor_norm(const struct check *k, enum check_role role, int n)
{
    const struct check_row *r = &k->row;
    const struct check_tensor *w = &k->tensor[ROLE_W];
    double scale = 0;

    if (r->family == CHECK_CONV && role == ROLE_G && r->x.c * r->y.c == 1 &&
        r->call.conv.kh * r->call.conv.kw == 1)
        return check_norm(&k->tensor[ROLE_X], n) *
               check_norm(&k->tensor[ROLE_DY], n);
    if (r->family != CHECK_BN || n * r->x.h * r->x.w > 2)
        return 0;
    for (size_t c = 0; c < (size_t)r->x.c; c++)
        scale = fmax(scale, fabs(check_get(w, c)));
    if (role == ROLE_DX)
        return scale / sqrt(r->call.bn.eps) *
               check_norm(&k->tensor[ROLE_DY], n);
    return check_norm(&k->tensor[ROLE_X], n);
}

static bool judge_part(const struct check *got, const struct check *want,
                       enum ddp__op op, enum check_role role, size_t begin,
                       size_t end, int n, struct verdict *v)
{
    const struct check_tensor *a = &got->tensor[role];
    const struct check_tensor *b = &want->tensor[role];
    double tol =
        is_exact(want, op) || role == ROLE_INDEX ? 0 : tolerance(want, role);
    struct check_difference d =
        check_compare(a, b, begin, end, floor_norm(want, role, n));

    if (d.norm <= tol)
        return true;
    v->failed = true;
    snprintf(v->why, sizeof(v->why),
             "n %d, buffer %s, elements %zu..%zu: off by %.3g of the norm, "
             "at most %.3g allowed; worst at %zu: %.9g, want %.9g",
             n, check_role_names[role], begin, end - 1, d.norm, tol, d.worst_at,
             check_get(a, d.worst_at), check_get(b, d.worst_at));
    return false;
}

/* A mask is right if it agrees with y of the same backend: where two differ
 * by a rounding, so may their signs. */
static bool judge_mask(const struct check *got, int n, struct verdict *v)
{
    const struct check_tensor *y = &got->tensor[ROLE_Y];
    const uint8_t *mask = got->tensor[ROLE_MASK].data;
    size_t len = check_len(y, n);

    for (size_t i = 0; i < len; i++) {
        bool bit = mask[i / 8] >> i % 8 & 1;

        if (bit == (check_get(y, i) > 0))
            continue;
        v->failed = true;
        snprintf(v->why, sizeof(v->why),
                 "n %d: bit %zu of the mask is %d, y %g", n, i, bit,
                 check_get(y, i));
        return false;
    }
    return true;
}

void judge(const struct check *got, const struct check *want,
           const struct ddp__call *c, int n, struct verdict *v)
{
    for (int b = 0; b < c->buffers; b++) {
        enum check_role role = check_role(want, c->op, b);
        const struct check_tensor *t;
        size_t len, begin = 0;

        if (role == ROLE_NONE || !check_writes(c->op, b))
            continue;
        t = &want->tensor[role];
        len = check_len(t, n);
        if (role == ROLE_MASK) {
            if (!judge_mask(got, n, v))
                return;
            begin = len;
        }
        for (int i = 0; begin < len; i++) {
            size_t end = part_end(want, role, i, len);

            if (!judge_part(got, want, c->op, role, begin, end, n, v))
                return;
            begin = end;
        }
        len *= ddp__dtype_size(t->view.type);
        if (memcmp((char *)got->tensor[role].data + len, (char *)t->data + len,
                   t->size - len) != 0) {
            v->failed = true;
            snprintf(v->why, sizeof(v->why),
                     "n %d, buffer %s: written beyond its samples", n,
                     check_role_names[role]);
        }
    }
}
