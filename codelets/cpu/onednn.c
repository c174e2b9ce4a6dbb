/* onednn.c - convolutions and dense layers by oneDNN, 2.6 or 3.x */
#include "config.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onednn.h"

#define V3 (DNNL_VERSION_MAJOR >= 3)

/* A descriptor we own, and one we look at. */
#if V3
typedef dnnl_memory_desc_t md_t;
typedef const_dnnl_memory_desc_t cmd_t;
#define REF(md) (md)
#else
typedef dnnl_memory_desc_t md_t;
typedef const dnnl_memory_desc_t *cmd_t;
#define REF(md) (&(md))
#endif

/* Descriptors of a problem, while its primitive is made. */
struct mds {
    md_t x, y, w, bias, plain;
    bool has[5];
};

struct ddp__dnn {
    enum ddp__dnn_pass pass;
    dnnl_primitive_desc_t pd, reorder_pd; /* owned, as what follows */
    dnnl_primitive_t prim, reorder;       /* reorder NULL: plain is packed */
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
static void start(void)
{
    const dnnl_version_t *v = dnnl_version();

    snprintf(version, sizeof(version), "oneDNN %d.%d.%d", v->major, v->minor,
             v->patch);
    omp_max_threads = (int (*)(void))dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    omp_threads = (void (*)(int))dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    engine_rc = dnnl_engine_create(&engine, dnnl_cpu, 0);
}

/* Primitives are made and run with one thread; what the caller's own OpenMP
 * code uses is put back by leave(). */
static int enter(void)
{
    int threads;

    pthread_once(&once, start);
    if (!omp_max_threads || !omp_threads)
        return 1;
    threads = omp_max_threads();
    if (threads != 1)
        omp_threads(1);
    return threads;
}

static void leave(int threads)
{
    if (threads != 1)
        omp_threads(threads);
}

static int check(dnnl_status_t st, const char *what)
{
    if (st == dnnl_success)
        return 0;
    if (st == dnnl_unimplemented)
        return ddp__fail(DDP_ENODEV, "%s has no %s of this kind for this CPU",
                         version, what);
    if (st == dnnl_out_of_memory)
        return ddp__fail(DDP_ENOMEM, "%s: %s", version, what);
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
    rc = check(dnnl_stream_create(&s, engine, dnnl_stream_default_flags),
               "stream");
    if (rc < 0)
        return rc;
    if (stream_key_rc || pthread_setspecific(stream_key, s)) {
        dnnl_stream_destroy(s);
        return ddp__fail(DDP_ENOMEM, "thread-specific data for oneDNN");
    }
    *out = my_stream = s;
    return 0;
}

const char *ddp__dnn_version(void)
{
    leave(enter());
    return version;
}

/* The instruction sets are sets of bits; oneDNN's limit (DNNL_MAX_CPU_ISA)
 * counts. */
bool ddp__dnn_bf16(void)
{
    int isa = (int)dnnl_get_effective_cpu_isa();
    int want = (int)dnnl_cpu_isa_avx512_core_bf16;

    return (isa & want) == want;
}

/* ---- descriptors -------------------------------------------------------- */

static dnnl_status_t md_tag(md_t *md, int ndims, const dnnl_dims_t dims,
                            dnnl_data_type_t type, dnnl_format_tag_t tag)
{
#if V3
    return dnnl_memory_desc_create_with_tag(md, ndims, dims, type, tag);
#else
    return dnnl_memory_desc_init_by_tag(md, ndims, dims, type, tag);
#endif
}

static dnnl_status_t md_strides(md_t *md, int ndims, const dnnl_dims_t dims,
                                dnnl_data_type_t type,
                                const dnnl_dims_t strides)
{
#if V3
    return dnnl_memory_desc_create_with_strides(md, ndims, dims, type, strides);
#else
    return dnnl_memory_desc_init_by_strides(md, ndims, dims, type, strides);
#endif
}

static void mds_free(struct mds *m)
{
#if V3
    md_t *all[] = {&m->x, &m->y, &m->w, &m->bias, &m->plain};

    for (int i = 0; i < 5; i++)
        if (m->has[i])
            dnnl_memory_desc_destroy(*all[i]);
#endif
    memset(m, 0, sizeof(*m));
}

static bool same(cmd_t a, cmd_t b)
{
    return dnnl_memory_desc_equal(a, b);
}

static cmd_t query(const_dnnl_primitive_desc_t pd, dnnl_query_t q)
{
    return dnnl_primitive_desc_query_md(pd, q, 0);
}

static size_t bytes(cmd_t md)
{
    return md ? dnnl_memory_desc_get_size(md) : 0;
}

/* Dimensions and plain strides of the weights: (o, c, kh, kw) or
 * (g, o / g, c / g, kh, kw), in oneDNN's order of dimensions. */
static int weight_dims(const struct ddp__dnn_shape *s, bool transposed,
                       dnnl_dims_t dims, dnnl_dims_t strides)
{
    const struct ddp__conv *k = &s->conv;
    int g = s->dense ? 1 : k->groups, at = 0;
    int64_t c = s->c / g, o = s->o / g, kh = s->dense ? 1 : k->kh,
            kw = s->dense ? 1 : k->kw;
    int64_t step_o = kh * kw * c, step_c = 1, pixel = c;

    if (transposed) {
        step_o = 1;
        step_c = kh * kw * o;
        pixel = o;
    }
    if (g > 1) {
        dims[at] = g;
        strides[at++] = o * kh * kw * c;
    }
    dims[at] = o;
    strides[at++] = step_o;
    dims[at] = c;
    strides[at++] = step_c;
    if (s->dense)
        return at;
    dims[at] = kh;
    strides[at++] = kw * pixel;
    dims[at] = kw;
    strides[at++] = pixel;
    return at;
}

static dnnl_status_t mds_new(struct mds *m, const struct ddp__dnn_shape *s,
                             enum ddp__dnn_pass pass, bool transposed)
{
    dnnl_data_type_t type = s->type == DDP_BF16 ? dnnl_bf16 : dnnl_f32;
    dnnl_dims_t x = {s->n, s->c, s->h, s->w}, y = {s->n, s->o, s->oh, s->ow};
    dnnl_dims_t o = {s->o}, dims = {0}, strides = {0};
    int ndims = s->dense ? 2 : 4;
    int wdims = weight_dims(s, transposed, dims, strides);
    dnnl_format_tag_t tag = s->dense ? dnnl_nc : dnnl_nhwc;
    dnnl_status_t st;

    memset(m, 0, sizeof(*m));
    if ((st = md_tag(&m->x, ndims, x, type, tag)))
        return st;
    m->has[0] = true;
    if ((st = md_tag(&m->y, ndims, y, type, tag)))
        return st;
    m->has[1] = true;
    if ((st = md_tag(&m->w, wdims, dims, pass == DDP__BWD_W ? dnnl_f32 : type,
                     dnnl_format_tag_any)))
        return st;
    m->has[2] = true;
    if ((st = md_tag(&m->bias, 1, o, dnnl_f32, dnnl_x)))
        return st;
    m->has[3] = true;
    if ((st = md_strides(&m->plain, wdims, dims, dnnl_f32, strides)))
        return st;
    m->has[4] = true;
    return dnnl_success;
}

/* ---- primitive descriptors ---------------------------------------------- */

static dnnl_status_t append_act(dnnl_post_ops_t ops, enum ddp_act act)
{
    static const struct {
        dnnl_alg_kind_t alg;
        float alpha, beta;
    } kind[DDP_ACT_COUNT] = {
        [DDP_RELU] = {dnnl_eltwise_relu, 0, 0},
        [DDP_RELU6] = {dnnl_eltwise_clip, 0, 6},
        [DDP_SIGMOID] = {dnnl_eltwise_logistic, 0, 0},
        [DDP_TANH] = {dnnl_eltwise_tanh, 0, 0},
    };

    if (kind[act].alg == dnnl_alg_kind_undef)
        return dnnl_unimplemented;
#if V3
    return dnnl_post_ops_append_eltwise(ops, kind[act].alg, kind[act].alpha,
                                        kind[act].beta);
#else
    return dnnl_post_ops_append_eltwise(ops, 1, kind[act].alg, kind[act].alpha,
                                        kind[act].beta);
#endif
}

static dnnl_status_t attr_new(dnnl_primitive_attr_t *out, enum ddp_act act)
{
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t st;

    if ((st = dnnl_primitive_attr_create(&attr)))
        return st;
    st = dnnl_primitive_attr_set_scratchpad_mode(attr,
                                                 dnnl_scratchpad_mode_user);
    if (!st && act != DDP_IDENTITY && !(st = dnnl_post_ops_create(&ops)) &&
        !(st = append_act(ops, act)))
        st = dnnl_primitive_attr_set_post_ops(attr, ops);
    if (ops)
        dnnl_post_ops_destroy(ops);
    if (st)
        dnnl_primitive_attr_destroy(attr);
    else
        *out = attr;
    return st;
}

static dnnl_status_t dense_pd(dnnl_primitive_desc_t *pd,
                              enum ddp__dnn_pass pass, const struct mds *m,
                              bool bias, dnnl_primitive_desc_t hint,
                              dnnl_primitive_attr_t attr)
{
    cmd_t x = REF(m->x), y = REF(m->y), w = REF(m->w),
          b = bias ? REF(m->bias) : NULL;
#if V3
    if (pass == DDP__FWD)
        return dnnl_inner_product_forward_primitive_desc_create(
            pd, engine, dnnl_forward_training, x, w, b, y, attr);
    if (pass == DDP__BWD_X)
        return dnnl_inner_product_backward_data_primitive_desc_create(
            pd, engine, x, w, y, hint, attr);
    return dnnl_inner_product_backward_weights_primitive_desc_create(
        pd, engine, x, w, b, y, hint, attr);
#else
    dnnl_inner_product_desc_t op;
    dnnl_status_t st;

    if (pass == DDP__FWD)
        st = dnnl_inner_product_forward_desc_init(&op, dnnl_forward_training, x,
                                                  w, b, y);
    else if (pass == DDP__BWD_X)
        st = dnnl_inner_product_backward_data_desc_init(&op, x, w, y);
    else
        st = dnnl_inner_product_backward_weights_desc_init(&op, x, w, b, y);
    if (st)
        return st;
    return dnnl_primitive_desc_create(pd, &op, attr, engine, hint);
#endif
}

static dnnl_status_t conv_pd(dnnl_primitive_desc_t *pd, enum ddp__dnn_pass pass,
                             const struct mds *m, const struct ddp__conv *k,
                             bool bias, dnnl_primitive_desc_t hint,
                             dnnl_primitive_attr_t attr)
{
    dnnl_dims_t stride = {k->sh, k->sw}, dil = {k->dh - 1, k->dw - 1};
    dnnl_dims_t l = {k->top, k->left}, r = {k->bottom, k->right};
    cmd_t x = REF(m->x), y = REF(m->y), w = REF(m->w),
          b = bias ? REF(m->bias) : NULL;
#if V3
    if (pass == DDP__FWD)
        return dnnl_convolution_forward_primitive_desc_create(
            pd, engine, dnnl_forward_training, dnnl_convolution_direct, x, w, b,
            y, stride, dil, l, r, attr);
    if (pass == DDP__BWD_X)
        return dnnl_convolution_backward_data_primitive_desc_create(
            pd, engine, dnnl_convolution_direct, x, w, y, stride, dil, l, r,
            hint, attr);
    return dnnl_convolution_backward_weights_primitive_desc_create(
        pd, engine, dnnl_convolution_direct, x, w, b, y, stride, dil, l, r,
        hint, attr);
#else
    dnnl_convolution_desc_t op;
    dnnl_status_t st;

    if (pass == DDP__FWD)
        st = dnnl_dilated_convolution_forward_desc_init(
            &op, dnnl_forward_training, dnnl_convolution_direct, x, w, b, y,
            stride, dil, l, r);
    else if (pass == DDP__BWD_X)
        st = dnnl_dilated_convolution_backward_data_desc_init(
            &op, dnnl_convolution_direct, x, w, y, stride, dil, l, r);
    else
        st = dnnl_dilated_convolution_backward_weights_desc_init(
            &op, dnnl_convolution_direct, x, w, b, y, stride, dil, l, r);
    if (st)
        return st;
    return dnnl_primitive_desc_create(pd, &op, attr, engine, hint);
#endif
}

/* oneDNN 3.7's strided kernel is 400 times too slow for depthwise bf16. */
static dnnl_status_t skip_slow(dnnl_primitive_desc_t pd,
                               const struct ddp__dnn_shape *s,
                               enum ddp__dnn_pass pass)
{
#if V3
    const char *name = "";

    if (s->dense || pass != DDP__BWD_X || s->type != DDP_BF16 ||
        s->conv.groups != s->c || (s->conv.sh == 1 && s->conv.sw == 1))
        return dnnl_success;
    while (!dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) &&
           strstr(name, "brgconv_strided"))
        if (dnnl_primitive_desc_next_impl(pd))
            return dnnl_unimplemented;
#endif
    (void)pd, (void)s, (void)pass;
    return dnnl_success;
}

static dnnl_status_t pass_pd(dnnl_primitive_desc_t *pd,
                             const struct ddp__dnn_shape *s,
                             enum ddp__dnn_pass pass, const struct mds *m,
                             dnnl_primitive_desc_t hint,
                             dnnl_primitive_attr_t attr)
{
    bool bias = s->conv.bias && pass != DDP__BWD_X;

    if (s->dense)
        return dense_pd(pd, pass, m, bias, hint, attr);
    return conv_pd(pd, pass, m, &s->conv, bias, hint, attr);
}

static dnnl_status_t pd_new(dnnl_primitive_desc_t *pd,
                            const struct ddp__dnn_shape *s,
                            enum ddp__dnn_pass pass, const struct mds *m)
{
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t hint = NULL;
    struct mds f = {.has = {false}};
    dnnl_status_t st;

    if ((st = attr_new(&attr, pass == DDP__FWD ? s->conv.act : DDP_IDENTITY)))
        return st;
    if (pass != DDP__FWD) {
        if (!(st = mds_new(&f, s, DDP__FWD, false)))
            st = pass_pd(&hint, s, DDP__FWD, &f, NULL, NULL);
        mds_free(&f);
    }
    if (!st && !(st = pass_pd(pd, s, pass, m, hint, attr)) &&
        (st = skip_slow(*pd, s, pass)))
        dnnl_primitive_desc_destroy(*pd);
    if (hint)
        dnnl_primitive_desc_destroy(hint);
    dnnl_primitive_attr_destroy(attr);
    return st;
}

/* ---- primitives --------------------------------------------------------- */

static cmd_t packed_md(const struct ddp__dnn *d)
{
    return query(d->pd, d->pass == DDP__BWD_W ? dnnl_query_diff_weights_md
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

    if (same(packed, plain))
        return dnnl_success;
    if ((st = attr_new(&attr, DDP_IDENTITY)))
        return st;
    st = dnnl_reorder_primitive_desc_create(&d->reorder_pd, from, engine, to,
                                            engine, attr);
    dnnl_primitive_attr_destroy(attr);
    if (st)
        return st;
    need = bytes(query(d->reorder_pd, dnnl_query_scratchpad_md));
    if (need > d->scratch)
        d->scratch = need;
    return dnnl_primitive_create(&d->reorder, d->reorder_pd);
}

int ddp__dnn_new(struct ddp__dnn **out, const struct ddp__dnn_shape *s,
                 enum ddp__dnn_pass pass, bool transposed)
{
    static const char *const what[] = {"forward", "data gradient",
                                       "weight gradient"};
    struct ddp__dnn *d;
    struct mds m = {.has = {false}};
    dnnl_status_t st;
    int threads, rc;

    if (!(d = calloc(1, sizeof(*d))))
        return ddp__fail(DDP_ENOMEM, "a oneDNN primitive");
    d->pass = pass;
    threads = enter();
    if (!(st = engine_rc) && !(st = mds_new(&m, s, pass, transposed)) &&
        !(st = pd_new(&d->pd, s, pass, &m)) &&
        !(st = dnnl_primitive_create(&d->prim, d->pd))) {
        d->scratch = bytes(query(d->pd, dnnl_query_scratchpad_md));
        d->packed_size = bytes(packed_md(d));
        st = reorder_new(d, REF(m.plain));
    }
    mds_free(&m);
    leave(threads);
    if ((rc = check(st, what[pass])) < 0)
        ddp__dnn_free(d);
    else
        *out = d;
    return rc;
}

void ddp__dnn_free(struct ddp__dnn *d)
{
    if (!d)
        return;
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
    return !d->reorder;
}

bool ddp__dnn_same_packed(const struct ddp__dnn *a, const struct ddp__dnn *b)
{
    return a == b || same(packed_md(a), packed_md(b));
}

const char *ddp__dnn_name(const struct ddp__dnn *d)
{
    const char *name = "";

    dnnl_primitive_desc_query(d->pd, dnnl_query_impl_info_str, 0, &name);
    return name;
}

/* ---- running ------------------------------------------------------------ */

struct arg {
    int arg;
    cmd_t md;
    void *data;
};

/* Memory objects are cheap and made anew: those of one thread only. */
static int run(dnnl_primitive_t prim, const struct arg *a, int count)
{
    dnnl_exec_arg_t e[8];
    dnnl_stream_t stream = my_stream;
    dnnl_status_t st = dnnl_success;
    int threads = enter(), n = 0, rc = 0;

    if (!stream)
        rc = stream_new(&stream);
    for (int i = 0; i < count && !rc && !st; i++) {
        if (!bytes(a[i].md))
            continue;
        st = dnnl_memory_create(&e[n].memory, a[i].md, engine, a[i].data);
        e[n].arg = a[i].arg;
        n += !st;
    }
    if (!rc && !st && !(st = dnnl_primitive_execute(prim, stream, n, e)))
        st = dnnl_stream_wait(stream);
    while (n-- > 0)
        dnnl_memory_destroy(e[n].memory);
    leave(threads);
    return rc < 0 ? rc : check(st, "primitive");
}

int ddp__dnn_pack(const struct ddp__dnn *d, const void *from, void *to,
                  void *scratch)
{
    struct arg a[] = {
        {DNNL_ARG_FROM, query(d->reorder_pd, dnnl_query_src_md), (void *)from},
        {DNNL_ARG_TO, query(d->reorder_pd, dnnl_query_dst_md), to},
        {DNNL_ARG_SCRATCHPAD, query(d->reorder_pd, dnnl_query_scratchpad_md),
         scratch},
    };

    return run(d->reorder, a, 3);
}

int ddp__dnn_run(const struct ddp__dnn *d, void *x, void *w, void *bias,
                 void *y, void *scratch)
{
    dnnl_primitive_desc_t pd = d->pd;
    struct arg pad = {DNNL_ARG_SCRATCHPAD, query(pd, dnnl_query_scratchpad_md),
                      scratch};

    if (d->pass == DDP__FWD)
        return run(d->prim,
                   (struct arg[]){
                       {DNNL_ARG_SRC, query(pd, dnnl_query_src_md), x},
                       {DNNL_ARG_WEIGHTS, query(pd, dnnl_query_weights_md), w},
                       {DNNL_ARG_DST, query(pd, dnnl_query_dst_md), y},
                       pad,
                       {DNNL_ARG_BIAS,
                        dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md,
                                                     1),
                        bias}},
                   bias ? 5 : 4);
    if (d->pass == DDP__BWD_X)
        return run(
            d->prim,
            (struct arg[]){
                {DNNL_ARG_DIFF_SRC, query(pd, dnnl_query_diff_src_md), x},
                {DNNL_ARG_WEIGHTS, query(pd, dnnl_query_weights_md), w},
                {DNNL_ARG_DIFF_DST, query(pd, dnnl_query_diff_dst_md), y},
                pad},
            4);
    return run(
        d->prim,
        (struct arg[]){
            {DNNL_ARG_SRC, query(pd, dnnl_query_src_md), x},
            {DNNL_ARG_DIFF_WEIGHTS, query(pd, dnnl_query_diff_weights_md), w},
            {DNNL_ARG_DIFF_DST, query(pd, dnnl_query_diff_dst_md), y},
            pad,
            {DNNL_ARG_DIFF_BIAS,
             dnnl_primitive_desc_query_md(pd, dnnl_query_diff_weights_md, 1),
             bias}},
        bias ? 5 : 4);
}
