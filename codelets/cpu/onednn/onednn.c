/* onednn.c - convolutions and dense layers by oneDNN, 2.6 or 3.x
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "cpu/elementwise/act_units.h"
#include "cpu/vector/unit_v16.h"
#include "onednn_library.h"
#include "onednn_blocks.h"
#include "onednn_execute.h"
#include "onednn_pd.h"
#include "onednn_room.h"

enum { SIDE = 48 /* of a matrix for which oneDNN generates code */ };

struct ddp__dnn {
    enum ddp__conv_pass pass;
    dnnl_primitive_desc_t pd, reorder_pd;  /* owned, as what follows */
    dnnl_primitive_t prim, reorder;        /* NULL: not by oneDNN */
    struct ddp__blocks blocks;             /* instead of a reorder */
    _Atomic(struct ddp__operands *) *kept; /* owned: prim's and reorder's */
    size_t scratch, packed_size;
    enum ddp_act act; /* of outputs, after prim */
    size_t outputs;
};

/* ---- activations -------------------------------------------------------- */

/* Our loops compute SiLU: oneDNN 2.6's takes longer than some layers.  Two
 * cores of an Intel Xeon (AVX-512), microseconds of the first layer of
 * EfficientNet-B0, one image, by oneDNN and so: 342, 156. */
static bool has_own_act(const struct ddp__conv_shape *s,
                        enum ddp__conv_pass pass)
{
    return pass == DDP__FWD && s->type == DDP_F32 && s->conv.act == DDP_SILU &&
           ddp__unit_v16(false);
}

/* The layer as oneDNN computes it. */
static struct ddp__conv_shape without_own_act(const struct ddp__conv_shape *s,
                                              enum ddp__conv_pass pass)
{
    struct ddp__conv_shape bare = *s;

    if (has_own_act(s, pass))
        bare.conv.act = DDP_IDENTITY;
    return bare;
}

static void add_own_act(const struct ddp__dnn *d, float *y)
{
#ifdef DDP__X86
    if (d->act != DDP_IDENTITY)
        ddp__act_units(d->act, y, NULL, y, d->outputs, false);
#else
    (void)d;
    (void)y;
#endif
}

/* ---- primitives --------------------------------------------------------- */

static bool same_layout(cmd_t a, cmd_t b)
{
    return dnnl_memory_desc_equal(a, b);
}

static cmd_t query_md(const_dnnl_primitive_desc_t pd, dnnl_query_t q)
{
    return dnnl_primitive_desc_query_md(pd, q, 0);
}

static cmd_t packed_md(const struct ddp__dnn *d)
{
    return query_md(d->pd, d->pass == DDP__BWD_W ? dnnl_query_diff_weights_md
                                                 : dnnl_query_weights_md);
}

static dnnl_status_t reorder_new(struct ddp__dnn *d, cmd_t plain,
                                 dnnl_engine_t engine)
{
    cmd_t packed = packed_md(d);
    cmd_t from = d->pass == DDP__BWD_W ? packed : plain;
    cmd_t to = d->pass == DDP__BWD_W ? plain : packed;
    dnnl_primitive_attr_t attr;
    dnnl_status_t st;
    size_t need;

    if (same_layout(packed, plain) || d->blocks.block)
        return dnnl_success;
    if ((st = ddp__dnn_attr(&attr, false, DDP_IDENTITY)))
        return st;
    st = dnnl_reorder_primitive_desc_create(&d->reorder_pd, from, engine, to,
                                            engine, attr);
    dnnl_primitive_attr_destroy(attr);
    if (st)
        return st;
    need = ddp__md_bytes(query_md(d->reorder_pd, dnnl_query_scratchpad_md));
    if (need > d->scratch)
        d->scratch = need;
    return dnnl_primitive_create(&d->reorder, d->reorder_pd);
}

/* For end_making(), or negative: DDP_ENOMEM. */
static int begin_making(void)
{
    int rc = ddp__dnn_maker_begin();

    return rc < 0 ? rc : ddp__dnn_enter();
}

static void end_making(int threads)
{
    ddp__dnn_leave(threads);
    ddp__dnn_maker_end();
}

/* Primitives multiply matrices, and the first product generates code: now,
 * while there is room, rather than in a task. */
static pthread_once_t first_product = PTHREAD_ONCE_INIT;

static void multiply_once(void)
{
    static const float in[SIDE * SIDE];
    float out[SIDE * SIDE];

    dnnl_sgemm('N', 'N', SIDE, SIDE, SIDE, 1, in, SIDE, in, SIDE, 0, out, SIDE);
}

/* oneDNN's own status is kept until the team size is restored: only then is it
 * turned into a message, once, for whichever call failed. */
int ddp__dnn_new(struct ddp__dnn **out, const struct ddp__conv_shape *s,
                 enum ddp__conv_pass pass, bool transposed)
{
    static const char *const what[] = {"forward", "data gradient",
                                       "weight gradient"};
    struct ddp__conv_shape bare = without_own_act(s, pass);
    struct ddp__dnn *d;
    md_t plain;
    dnnl_engine_t engine;
    dnnl_status_t st;
    int threads, rc;

    if (!(d = calloc(1, sizeof(*d))) ||
        !(d->kept = calloc(2, sizeof(*d->kept)))) {
        free(d);
        return ddp__fail(DDP_ENOMEM, "out of memory for a primitive of oneDNN");
    }
    if ((rc = threads = begin_making()) < 0) {
        ddp__dnn_free(d);
        return rc;
    }
    d->pass = pass;
    d->act = has_own_act(s, pass) ? s->conv.act : DDP_IDENTITY;
    d->outputs = (size_t)s->n * (size_t)s->oh * (size_t)s->ow * (size_t)s->o;
    pthread_once(&first_product, multiply_once);
    if (!(st = ddp__dnn_engine(&engine)) &&
        !(st = ddp__dnn_pd(&d->pd, &plain, engine, &bare, pass, transposed))) {
        if (!(st = dnnl_primitive_create(&d->prim, d->pd))) {
            d->scratch =
                ddp__md_bytes(query_md(d->pd, dnnl_query_scratchpad_md));
            d->packed_size = ddp__md_bytes(packed_md(d));
            if (pass == DDP__FWD || (pass == DDP__BWD_X && s->dense))
                d->blocks = ddp__blocks_of(s, packed_md(d), transposed);
            st = reorder_new(d, REF(plain), engine);
        }
        ddp__md_free(&plain);
    }
    end_making(threads);
    if ((rc = ddp__dnn_check(st, what[pass])) < 0)
        ddp__dnn_free(d);
    else
        *out = d;
    return rc;
}

void ddp__dnn_free(struct ddp__dnn *d)
{
    if (!d)
        return;
    for (int i = 0; i < 2; i++)
        ddp__operands_free(d->kept[i]);
    free(d->kept);
    if (d->reorder)
        dnnl_primitive_destroy(d->reorder);
    if (d->reorder_pd)
        dnnl_primitive_desc_destroy(d->reorder_pd);
    if (d->prim)
        dnnl_primitive_destroy(d->prim);
    if (d->pd)
        dnnl_primitive_desc_destroy(d->pd);
    free(d);
}

size_t ddp__dnn_scratch(const struct ddp__dnn *d)
{
    return d->scratch;
}

size_t ddp__dnn_packed_size(const struct ddp__dnn *d)
{
    return d->packed_size;
}

bool ddp__dnn_is_plain(const struct ddp__dnn *d)
{
    return !d->reorder && !d->blocks.block;
}

bool ddp__dnn_same_packed(const struct ddp__dnn *a, const struct ddp__dnn *b)
{
    return a == b || same_layout(packed_md(a), packed_md(b));
}

int ddp__dnn_find(const struct ddp__conv_shape *s, enum ddp__conv_pass pass,
                  bool transposed, char name[DDP__DNN_NAME])
{
    struct ddp__conv_shape bare = without_own_act(s, pass);
    const char *text = "";
    dnnl_primitive_desc_t pd;
    dnnl_engine_t engine;
    dnnl_status_t st;
    md_t plain;
    int threads = begin_making();

    if (threads < 0)
        return threads;
    if (!(st = ddp__dnn_engine(&engine)) &&
        !(st = ddp__dnn_pd(&pd, &plain, engine, &bare, pass, transposed))) {
        dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &text);
        snprintf(name, DDP__DNN_NAME, "%s", text);
        dnnl_primitive_desc_destroy(pd);
        ddp__md_free(&plain);
    }
    end_making(threads);
    return ddp__dnn_check(st, "implementation");
}

/* ---- running ------------------------------------------------------------ */

static int run_reorder(const struct ddp__dnn *d, const void *from, void *to,
                       void *scratch)
{
    struct ddp__dnn_arg a[] = {
        {DNNL_ARG_FROM, query_md(d->reorder_pd, dnnl_query_src_md),
         (void *)from},
        {DNNL_ARG_TO, query_md(d->reorder_pd, dnnl_query_dst_md), to},
        {DNNL_ARG_SCRATCHPAD, query_md(d->reorder_pd, dnnl_query_scratchpad_md),
         scratch},
    };

    return ddp__dnn_execute(d->reorder, &d->kept[1], a, 3);
}

int ddp__dnn_pack(const struct ddp__dnn *d, const void *from, void *to,
                  void *scratch)
{
    if (!d->blocks.block)
        return run_reorder(d, from, to, scratch);
    for (int part = 0; part < ddp__dnn_parts(d); part++)
        for (size_t i = 0; i < d->blocks.taps; i++)
            ddp__blocks_pack(&d->blocks, from, d->blocks.taps, i, to, i, part);
    return 0;
}

bool ddp__dnn_packs_taps(const struct ddp__dnn *d)
{
    return d->blocks.block > 0;
}

int ddp__dnn_parts(const struct ddp__dnn *d)
{
    return d->blocks.block ? ddp__blocks_parts(&d->blocks) : 1;
}

void ddp__dnn_pack_tap(const struct ddp__dnn *d, const float *from, size_t taps,
                       size_t tap, void *to, size_t at, int part)
{
    ddp__blocks_pack(&d->blocks, from, taps, tap, to, at, part);
}

/* Three lists of arguments, since oneDNN has other names for each pass.  The
 * bias comes last, so that a count leaves it out. */
int ddp__dnn_run(const struct ddp__dnn *d, void *x, void *w, void *bias,
                 void *y, void *scratch)
{
    dnnl_primitive_desc_t pd = d->pd;
    struct ddp__dnn_arg pad = {DNNL_ARG_SCRATCHPAD,
                               query_md(pd, dnnl_query_scratchpad_md), scratch};

    if (d->pass == DDP__FWD) {
        int rc = ddp__dnn_execute(
            d->prim, &d->kept[0],
            (struct ddp__dnn_arg[]){
                {DNNL_ARG_SRC, query_md(pd, dnnl_query_src_md), x},
                {DNNL_ARG_WEIGHTS, query_md(pd, dnnl_query_weights_md), w},
                {DNNL_ARG_DST, query_md(pd, dnnl_query_dst_md), y},
                pad,
                {DNNL_ARG_BIAS,
                 dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 1),
                 bias}},
            bias ? 5 : 4);

        if (rc == 0)
            add_own_act(d, y);
        return rc;
    }
    if (d->pass == DDP__BWD_X)
        return ddp__dnn_execute(
            d->prim, &d->kept[0],
            (struct ddp__dnn_arg[]){
                {DNNL_ARG_DIFF_SRC, query_md(pd, dnnl_query_diff_src_md), x},
                {DNNL_ARG_WEIGHTS, query_md(pd, dnnl_query_weights_md), w},
                {DNNL_ARG_DIFF_DST, query_md(pd, dnnl_query_diff_dst_md), y},
                pad},
            4);
    return ddp__dnn_execute(
        d->prim, &d->kept[0],
        (struct ddp__dnn_arg[]){
            {DNNL_ARG_SRC, query_md(pd, dnnl_query_src_md), x},
            {DNNL_ARG_DIFF_WEIGHTS, query_md(pd, dnnl_query_diff_weights_md),
             w},
            {DNNL_ARG_DIFF_DST, query_md(pd, dnnl_query_diff_dst_md), y},
            pad,
            {DNNL_ARG_DIFF_BIAS,
             dnnl_primitive_desc_query_md(pd, dnnl_query_diff_weights_md, 1),
             bias}},
        bias ? 5 : 4);
}
