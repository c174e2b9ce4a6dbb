/* onednn.c - convolutions and dense layers by oneDNN, 2.6 or 3.x
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "onednn_pairs.h"
#include "onednn_pd.h"
#include "onednn_room.h"

enum {
    MOST_ARGS = 5,
    SIDE = 48 /* of a matrix for which oneDNN generates code */
};

/* oneDNN's objects for the operands of a call.  To make them takes longer than
 * many a small layer, so a primitive keeps those of its last call; a call that
 * finds them in use makes its own. */
struct operands {
    int n;
    dnnl_exec_arg_t e[MOST_ARGS];
    void *data[MOST_ARGS]; /* of e */
};

struct ddp__dnn {
    enum ddp__dnn_pass pass;
    dnnl_primitive_desc_t pd, reorder_pd; /* owned, as what follows */
    dnnl_primitive_t prim, reorder;       /* NULL: not by oneDNN */
    struct ddp__pairs pairs;              /* instead of a reorder */
    _Atomic(struct operands *) *kept;     /* owned: prim's and reorder's */
    size_t scratch, packed_size;
};

/* ---- library state ------------------------------------------------------ */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine; /* kept to the end of the process */
static dnnl_status_t engine_rc;
static int (*omp_max_threads)(void);
static void (*omp_threads)(int);
static char version[32];

/* oneDNN may be built on OpenMP, whose symbols are then there: every worker
 * would have a team of its own. */
static void start_onednn(void)
{
    const dnnl_version_t *v = dnnl_version();

    snprintf(version, sizeof(version), "oneDNN %d.%d.%d", v->major, v->minor,
             v->patch);
    omp_max_threads = (int (*)(void))dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    omp_threads = (void (*)(int))dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    engine_rc = ddp__dnn_room() < 0 ? dnnl_out_of_memory
                                    : dnnl_engine_create(&engine, dnnl_cpu, 0);
}

/* Primitives are made and run with one thread; what the caller's own OpenMP
 * code uses is put back by leave_onednn(). */
static int enter_onednn(void)
{
    int threads;

    pthread_once(&once, start_onednn);
    if (!omp_max_threads || !omp_threads)
        return 1;
    threads = omp_max_threads();
    if (threads != 1)
        omp_threads(1);
    return threads;
}

static void leave_onednn(int threads)
{
    if (threads != 1)
        omp_threads(threads);
}

static int check_onednn(dnnl_status_t st, const char *what)
{
    if (st == dnnl_success)
        return 0;
    if (st == dnnl_unimplemented)
        return ddp__fail(DDP_ENODEV, "%s has no %s of this kind for this CPU",
                         version, what);
    if (st == dnnl_out_of_memory)
        return ddp__fail(DDP_ENOMEM, "%s: out of memory for its %s", version,
                         what);
    return ddp__fail(DDP_EDEVICE, "%s: %s failed with status %d", version, what,
                     (int)st);
}

/* A stream per thread: cheap, and freed with the thread. */
static pthread_once_t stream_once = PTHREAD_ONCE_INIT;
static pthread_key_t stream_key;
static int stream_key_rc;
static __thread dnnl_stream_t my_stream;

static void stream_free(void *s)
{
    dnnl_stream_destroy(s);
}

static void stream_key_new(void)
{
    stream_key_rc = pthread_key_create(&stream_key, stream_free);
}

static int stream_new(dnnl_stream_t *out)
{
    dnnl_stream_t s;
    int rc;

    pthread_once(&stream_once, stream_key_new);
    rc = check_onednn(dnnl_stream_create(&s, engine, dnnl_stream_default_flags),
                      "stream");
    if (rc < 0)
        return rc;
    if (stream_key_rc || pthread_setspecific(stream_key, s)) {
        dnnl_stream_destroy(s);
        return ddp__fail(DDP_ENOMEM, "out of memory for a stream of oneDNN");
    }
    *out = my_stream = s;
    return 0;
}

const char *ddp__dnn_version(void)
{
    leave_onednn(enter_onednn());
    return version;
}

/* The instruction sets are sets of bits; oneDNN's limit (DNNL_MAX_CPU_ISA)
 * counts. */
static bool may_use(dnnl_cpu_isa_t set)
{
    ddp__dnn_room(); /* without it there may still be enough */
    return ((int)dnnl_get_effective_cpu_isa() & (int)set) == (int)set;
}

bool ddp__dnn_bf16(void)
{
    return may_use(dnnl_cpu_isa_avx512_core_bf16);
}

const char *ddp__dnn_isa(void)
{
    static const struct {
        dnnl_cpu_isa_t set;
        const char *name;
    } best_first[] = {
        {dnnl_cpu_isa_avx512_core_amx, "AMX"},
        {dnnl_cpu_isa_avx512_core_bf16, "AVX-512 BF16"},
        {dnnl_cpu_isa_avx512_core_vnni, "AVX-512 VNNI"},
        {dnnl_cpu_isa_avx512_core, "AVX-512"},
        {dnnl_cpu_isa_avx2_vnni, "AVX2 VNNI"},
        {dnnl_cpu_isa_avx2, "AVX2"},
        {dnnl_cpu_isa_avx, "AVX"},
        {dnnl_cpu_isa_sse41, "SSE4.1"},
    };

    for (size_t i = 0; i < sizeof(best_first) / sizeof(*best_first); i++)
        if (may_use(best_first[i].set))
            return best_first[i].name;
    return "no vectors";
}

/* ---- operands ----------------------------------------------------------- */

struct arg {
    int arg;
    cmd_t md;
    void *data;
};

static void operands_free(struct operands *o)
{
    while (o && o->n > 0)
        dnnl_memory_destroy(o->e[--o->n].memory);
    free(o);
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

static size_t md_bytes(cmd_t md)
{
    return md ? dnnl_memory_desc_get_size(md) : 0;
}

static cmd_t packed_md(const struct ddp__dnn *d)
{
    return query_md(d->pd, d->pass == DDP__BWD_W ? dnnl_query_diff_weights_md
                                                 : dnnl_query_weights_md);
}

static dnnl_status_t reorder_new(struct ddp__dnn *d, cmd_t plain)
{
    cmd_t packed = packed_md(d);
    cmd_t from = d->pass == DDP__BWD_W ? packed : plain;
    cmd_t to = d->pass == DDP__BWD_W ? plain : packed;
    dnnl_primitive_attr_t attr;
    dnnl_status_t st;
    size_t need;

    if (same_layout(packed, plain) || d->pairs.block)
        return dnnl_success;
    if ((st = ddp__dnn_attr(&attr, false, DDP_IDENTITY)))
        return st;
    st = dnnl_reorder_primitive_desc_create(&d->reorder_pd, from, engine, to,
                                            engine, attr);
    dnnl_primitive_attr_destroy(attr);
    if (st)
        return st;
    need = md_bytes(query_md(d->reorder_pd, dnnl_query_scratchpad_md));
    if (need > d->scratch)
        d->scratch = need;
    return dnnl_primitive_create(&d->reorder, d->reorder_pd);
}

/* For end_making(), or negative: DDP_ENOMEM. */
static int begin_making(void)
{
    int rc = ddp__dnn_maker_begin();

    return rc < 0 ? rc : enter_onednn();
}

static void end_making(int threads)
{
    leave_onednn(threads);
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
int ddp__dnn_new(struct ddp__dnn **out, const struct ddp__dnn_shape *s,
                 enum ddp__dnn_pass pass, bool transposed)
{
    static const char *const what[] = {"forward", "data gradient",
                                       "weight gradient"};
    struct ddp__dnn *d;
    md_t plain;
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
    pthread_once(&first_product, multiply_once);
    if (!(st = engine_rc) &&
        !(st = ddp__dnn_pd(&d->pd, &plain, engine, s, pass, transposed))) {
        if (!(st = dnnl_primitive_create(&d->prim, d->pd))) {
            d->scratch = md_bytes(query_md(d->pd, dnnl_query_scratchpad_md));
            d->packed_size = md_bytes(packed_md(d));
            if (pass == DDP__FWD || (pass == DDP__BWD_X && s->dense))
                d->pairs = ddp__pairs_of(s, packed_md(d), transposed);
            st = reorder_new(d, REF(plain));
        }
        ddp__md_free(&plain);
    }
    end_making(threads);
    if ((rc = check_onednn(st, what[pass])) < 0)
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
        operands_free(d->kept[i]);
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
    return !d->reorder && !d->pairs.block;
}

bool ddp__dnn_same_packed(const struct ddp__dnn *a, const struct ddp__dnn *b)
{
    return a == b || same_layout(packed_md(a), packed_md(b));
}

int ddp__dnn_find(const struct ddp__dnn_shape *s, enum ddp__dnn_pass pass,
                  bool transposed, char name[DDP__DNN_NAME])
{
    const char *text = "";
    dnnl_primitive_desc_t pd;
    dnnl_status_t st;
    md_t plain;
    int threads = begin_making();

    if (threads < 0)
        return threads;
    if (!(st = engine_rc) &&
        !(st = ddp__dnn_pd(&pd, &plain, engine, s, pass, transposed))) {
        dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &text);
        snprintf(name, DDP__DNN_NAME, "%s", text);
        dnnl_primitive_desc_destroy(pd);
        ddp__md_free(&plain);
    }
    end_making(threads);
    return check_onednn(st, "implementation");
}

/* ---- running ------------------------------------------------------------ */

static dnnl_status_t operands_new(struct operands **out, const struct arg *a,
                                  int count)
{
    struct operands *o = calloc(1, sizeof(*o));
    dnnl_status_t st = o ? dnnl_success : dnnl_out_of_memory;

    for (int i = 0; i < count && !st; i++) {
        if (!md_bytes(a[i].md))
            continue;
        st = dnnl_memory_create(&o->e[o->n].memory, a[i].md, engine, a[i].data);
        o->e[o->n].arg = a[i].arg;
        o->data[o->n] = a[i].data;
        o->n += !st;
    }
    if (st)
        operands_free(o);
    else
        *out = o;
    return st;
}

/* The same ones, of another call. */
static dnnl_status_t operands_set(struct operands *o, const struct arg *a)
{
    dnnl_status_t st = dnnl_success;

    for (int i = 0; i < o->n && !st; i++) {
        while (a->arg != o->e[i].arg)
            a++;
        if (a->data == o->data[i])
            continue;
        st = dnnl_memory_set_data_handle(o->e[i].memory, a->data);
        o->data[i] = a->data;
    }
    return st;
}

/* kept: of the primitive's last call, or NULL. */
static int execute_primitive(dnnl_primitive_t prim,
                             _Atomic(struct operands *) *kept,
                             const struct arg *a, int count)
{
    struct operands *o;
    dnnl_stream_t stream = my_stream;
    dnnl_status_t st = dnnl_success;
    int threads, rc = ddp__dnn_room();

    if (rc < 0)
        return rc;
    threads = enter_onednn();
    o = atomic_exchange(kept, NULL);
    if (!stream)
        rc = stream_new(&stream);
    if (!rc)
        st = o ? operands_set(o, a) : operands_new(&o, a, count);
    if (!rc && !st && !(st = dnnl_primitive_execute(prim, stream, o->n, o->e)))
        st = dnnl_stream_wait(stream);
    if (!st)
        o = atomic_exchange(kept, o);
    operands_free(o); /* of another thread, or after a failure */
    leave_onednn(threads);
    return rc < 0 ? rc : check_onednn(st, "primitive");
}

static int run_reorder(const struct ddp__dnn *d, const void *from, void *to,
                       void *scratch)
{
    struct arg a[] = {
        {DNNL_ARG_FROM, query_md(d->reorder_pd, dnnl_query_src_md),
         (void *)from},
        {DNNL_ARG_TO, query_md(d->reorder_pd, dnnl_query_dst_md), to},
        {DNNL_ARG_SCRATCHPAD, query_md(d->reorder_pd, dnnl_query_scratchpad_md),
         scratch},
    };

    return execute_primitive(d->reorder, &d->kept[1], a, 3);
}

int ddp__dnn_pack(const struct ddp__dnn *d, const void *from, void *to,
                  void *scratch)
{
    if (!d->pairs.block)
        return run_reorder(d, from, to, scratch);
    for (size_t i = 0; i < d->pairs.taps; i++)
        ddp__pairs_pack(&d->pairs, from, d->pairs.taps, i, to, i);
    return 0;
}

bool ddp__dnn_packs_taps(const struct ddp__dnn *d)
{
    return d->pairs.block > 0;
}

void ddp__dnn_pack_tap(const struct ddp__dnn *d, const float *from, size_t taps,
                       size_t tap, void *to, size_t at)
{
    ddp__pairs_pack(&d->pairs, from, taps, tap, to, at);
}

/* Three lists of arguments, since oneDNN has other names for each pass.  The
 * bias comes last, so that a count leaves it out. */
int ddp__dnn_run(const struct ddp__dnn *d, void *x, void *w, void *bias,
                 void *y, void *scratch)
{
    dnnl_primitive_desc_t pd = d->pd;
    struct arg pad = {DNNL_ARG_SCRATCHPAD,
                      query_md(pd, dnnl_query_scratchpad_md), scratch};

    if (d->pass == DDP__FWD)
        return execute_primitive(
            d->prim, &d->kept[0],
            (struct arg[]){
                {DNNL_ARG_SRC, query_md(pd, dnnl_query_src_md), x},
                {DNNL_ARG_WEIGHTS, query_md(pd, dnnl_query_weights_md), w},
                {DNNL_ARG_DST, query_md(pd, dnnl_query_dst_md), y},
                pad,
                {DNNL_ARG_BIAS,
                 dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 1),
                 bias}},
            bias ? 5 : 4);
    if (d->pass == DDP__BWD_X)
        return execute_primitive(
            d->prim, &d->kept[0],
            (struct arg[]){
                {DNNL_ARG_DIFF_SRC, query_md(pd, dnnl_query_diff_src_md), x},
                {DNNL_ARG_WEIGHTS, query_md(pd, dnnl_query_weights_md), w},
                {DNNL_ARG_DIFF_DST, query_md(pd, dnnl_query_diff_dst_md), y},
                pad},
            4);
    return execute_primitive(
        d->prim, &d->kept[0],
        (struct arg[]){
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
