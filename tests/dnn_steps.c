/* dnn_steps.c - primitives of oneDNN and the memory that they work on
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * oneDNN 2.6 or 3.x.
 */
#include "config.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "dnn_steps.h"
#include "tap.h"

dnnl_engine_t dnn_engine;
static dnnl_stream_t stream;

void dnn_must(dnnl_status_t st, const char *what)
{
    if (st)
        bail_out("oneDNN: %s: status %d", what, (int)st);
}

void dnn_start(void)
{
    void (*omp_threads)(int) =
        (void (*)(int))dlsym(RTLD_DEFAULT, "omp_set_num_threads");

    if (dnn_engine)
        return;
    if (omp_threads)
        omp_threads(1);
    dnn_must(dnnl_engine_create(&dnn_engine, dnnl_cpu, 0), "engine");
    dnn_must(dnnl_stream_create(&stream, dnn_engine, dnnl_stream_default_flags),
             "stream");
}

void *dnn_own(struct dnn_steps *p, size_t bytes)
{
    void *m = aligned_alloc(64, (bytes + 127) / 64 * 64);

    if (!m || p->owns == DNN_OWN)
        bail_out("out of memory");
    memset(m, 0, bytes);
    return p->own[p->owns++] = m;
}

/* ---- memory ------------------------------------------------------------- */

static md_t describe(int ndims, const dnnl_dims_t dims, dnnl_data_type_t type,
                     dnnl_format_tag_t tag, const char *what)
{
    md_t md;

#if V3
    dnn_must(dnnl_memory_desc_create_with_tag(&md, ndims, dims, type, tag),
             what);
#else
    dnn_must(dnnl_memory_desc_init_by_tag(&md, ndims, dims, type, tag), what);
#endif
    return md;
}

md_t dnn_image(const struct check_tensor *t, int n)
{
    struct ddp_shape s = t->view.shape;
    dnnl_dims_t dims = {n, s.c, s.h, s.w};

    return describe(4, dims, t->view.type == DDP_BF16 ? dnnl_bf16 : dnnl_f32,
                    dnnl_nhwc, "image");
}

md_t dnn_vector(int len)
{
    dnnl_dims_t dims = {len};

    return describe(1, dims, dnnl_f32, dnnl_a, "vector");
}

size_t dnn_size(cmd_t md)
{
    return dnnl_memory_desc_get_size(md);
}

void dnn_arg(struct dnn_step *s, int id, cmd_t md, void *data)
{
    dnnl_memory_t m;

    dnn_must(dnnl_memory_create(&m, md, dnn_engine, data), "memory");
    s->arg[s->args++] = (dnnl_exec_arg_t){id, m};
}

cmd_t dnn_workspace(const struct dnn_step *s)
{
    return dnnl_primitive_desc_query_md(s->pd, dnnl_query_workspace_md, 0);
}

/* ---- primitives --------------------------------------------------------- */

void dnn_step_begin(struct dnn_step *s)
{
    s->args = 0;
    dnn_must(dnnl_primitive_create(&s->prim, s->pd), "primitive");
}

void dnn_step_run(const struct dnn_step *s)
{
    dnn_must(dnnl_primitive_execute(s->prim, stream, s->args, s->arg), "run");
}

void dnn_step_end(struct dnn_step *s)
{
    while (s->args > 0)
        dnnl_memory_destroy(s->arg[--s->args].memory);
    if (s->prim)
        dnnl_primitive_destroy(s->prim);
    if (s->pd)
        dnnl_primitive_desc_destroy(s->pd);
    memset(s, 0, sizeof(*s));
}

void dnn_steps_free(struct dnn_steps *p)
{
    while (p->steps > 0)
        dnn_step_end(&p->step[--p->steps]);
    while (p->owns > 0)
        free(p->own[--p->owns]);
}
