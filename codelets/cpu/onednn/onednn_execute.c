/* onednn_execute.c - primitives of oneDNN, with operands that are kept
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "onednn_execute.h"
#include "onednn_library.h"
#include "onednn_room.h"

enum { MOST_ARGS = 5 };

struct ddp__operands {
    int n;
    dnnl_exec_arg_t e[MOST_ARGS];
    void *data[MOST_ARGS]; /* of e */
};

void ddp__operands_free(struct ddp__operands *o)
{
    while (o && o->n > 0)
        dnnl_memory_destroy(o->e[--o->n].memory);
    free(o);
}

static dnnl_status_t operands_new(struct ddp__operands **out,
                                  const struct ddp__dnn_arg *a, int count)
{
    struct ddp__operands *o = calloc(1, sizeof(*o));
    dnnl_engine_t engine;
    dnnl_status_t st = o ? ddp__dnn_engine(&engine) : dnnl_out_of_memory;

    for (int i = 0; i < count && !st; i++) {
        if (!ddp__md_bytes(a[i].md))
            continue;
        st = dnnl_memory_create(&o->e[o->n].memory, a[i].md, engine, a[i].data);
        o->e[o->n].arg = a[i].arg;
        o->data[o->n] = a[i].data;
        o->n += !st;
    }
    if (st)
        ddp__operands_free(o);
    else
        *out = o;
    return st;
}

/* The same ones, of another call. */
static dnnl_status_t operands_set(struct ddp__operands *o,
                                  const struct ddp__dnn_arg *a)
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

int ddp__dnn_execute(dnnl_primitive_t prim,
                     _Atomic(struct ddp__operands *) *kept,
                     const struct ddp__dnn_arg *a, int count)
{
    struct ddp__operands *o;
    dnnl_stream_t stream;
    dnnl_status_t st = dnnl_success;
    int threads, rc = ddp__dnn_room();

    if (rc < 0)
        return rc;
    threads = ddp__dnn_enter();
    o = atomic_exchange(kept, NULL);
    if (!(rc = ddp__dnn_stream(&stream)))
        st = o ? operands_set(o, a) : operands_new(&o, a, count);
    if (!rc && !st && !(st = dnnl_primitive_execute(prim, stream, o->n, o->e)))
        st = dnnl_stream_wait(stream);
    if (!st)
        o = atomic_exchange(kept, o);
    ddp__operands_free(o); /* of another thread, or after a failure */
    ddp__dnn_leave(threads);
    return rc < 0 ? rc : ddp__dnn_check(st, "primitive");
}
