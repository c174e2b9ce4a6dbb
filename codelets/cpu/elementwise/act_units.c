/* act_units.c - elementwise activations and sums by AVX-512, in registers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * act.c has oneDNN's figures.
 */
#include "config.h"

#include "act.h"
#include "act_units.h"
#include "act_v16.h"
#include "cpu/store.h"
#include "cpu/vector/unit_v16.h"

#ifdef DDP__X86

/* y = act(x), act(x + z), or z act'(x) */
enum kind { FORWARD, SUM, BACKWARD };

struct line {
    enum kind kind;
    const void *x, *z;
    void *y;
    size_t len;
    bool b, stream;
};

DDP__UNIT_INLINE v16 result(v16 x, v16 z, enum kind kind, enum ddp_act act)
{
    return kind == BACKWARD ? ddp__act_grad_v16(x, z, act)
           : kind == SUM    ? ddp__act_v16(ADD(x, z), act)
                            : ddp__act_v16(x, act);
}

DDP__UNIT_INLINE void put_unit(const struct line *l, size_t i, enum kind kind,
                               enum ddp_act act, struct ddp__unit k)
{
    v16 v[2], z[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};

    ddp__unit_load(v, l->x, i, k);
    if (kind != FORWARD)
        ddp__unit_load(z, l->z, i, k);
    v[0] = result(v[0], z[0], kind, act);
    v[1] = result(v[1], z[1], kind, act);
    ddp__unit_put(l->y, i, v, k, false);
}

/* `kind`, `act` and `b` are constants. */
DDP__UNIT_INLINE void put_line(const struct line *l, enum kind kind,
                               enum ddp_act act, bool b)
{
    size_t i = 0;

    for (; i + DDP__UNIT <= l->len; i += DDP__UNIT)
        put_unit(l, i, kind, act, (struct ddp__unit){b, true, l->stream, 0});
    if (i < l->len)
        put_unit(l, i, kind, act,
                 (struct ddp__unit){b, false, false,
                                    ((__mmask32)1 << (l->len - i)) - 1});
}

DDP__UNIT_INLINE void put_kind(const struct line *l, enum kind kind,
                               enum ddp_act act)
{
    if (l->b)
        put_line(l, kind, act, true);
    else
        put_line(l, kind, act, false);
}

#define X(act)                                                                 \
    DDP__UNIT_TARGET static void run_##act(const struct line *l)               \
    {                                                                          \
        if (l->kind == FORWARD)                                                \
            put_kind(l, FORWARD, act);                                         \
        else if (l->kind == SUM)                                               \
            put_kind(l, SUM, act);                                             \
        else                                                                   \
            put_kind(l, BACKWARD, act);                                        \
    }
DDP__CPU_ACTS(X)
#undef X

#define X(act) [act] = run_##act,
static void (*const run_of[DDP_ACT_COUNT])(const struct line *l) = {
    DDP__CPU_ACTS(X)};
#undef X

static void run(enum kind kind, enum ddp_act act, const void *x, const void *z,
                void *y, size_t len, bool b)
{
    bool stream =
        ddp__streams(len, b) && x != y && z != y && (uintptr_t)y % 64 == 0;

    run_of[act](&(struct line){kind, x, z, y, len, b, stream});
    ddp__store_end();
}

void ddp__act_units(enum ddp_act act, const void *x, const void *z, void *y,
                    size_t len, bool b)
{
    run(z ? SUM : FORWARD, act, x, z, y, len, b);
}

void ddp__act_grad_units(enum ddp_act act, const void *s, const void *dy,
                         void *dx, size_t len, bool b)
{
    run(BACKWARD, act, s, dy, dx, len, b);
}

#endif
