/* compiled.c - a chain prepared once: forward passes that cost little more
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Graph, plans and memory are made when a chain is compiled.  Each slot is a
 * lane of the engine with its own memory and its own record of failures, so
 * requests do not disturb each other.  One-shot calls leave what they compiled
 * with the chain for the next one.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "base/team.h"
#include "engine/engine.h"
#include "engine/lane_buffers.h"
#include "engine/step.h"
#include "graph/params_bind.h"
#include "runtime/devices.h"
#include "runtime/task_group.h"
#include "runtime/lock.h"
#include "train/evaluate.h"
#include "train/slice.h"

enum { SUB_BATCH = 32, SHARE = 1 << 17 /* bytes that a worker copies */ };
enum { FREE = -1, WAITED_FOR = -2 }; /* for numbers of requests */

/* What a request runs in: its buffers and its state. */
struct slot {
    struct ddp__task_group group;
    int64_t request; /* its number, FREE or WAITED_FOR */
    const char *x;   /* of the samples to come */
    float *y;
};

struct ddp_compiled {
    struct ddp__kept kept; /* first; of one-shot calls */
    struct ddp__engine *engine;
    struct ddp_shape shape; /* of a sample */
    enum ddp_dtype type;
    int batch;            /* samples of a request, at most */
    int slice;            /* that go through the chain at a time */
    size_t x_size, y_len; /* of one sample: bytes, numbers */
    int slots, ready;     /* ready: those with a group */
    struct slot *slot;
    struct ddp__lock lock; /* of slots and of submission */
    int64_t requests;      /* so far */
};

/* ---- HOST functions of the graph ---------------------------------------- */

/* Samples on their way into the network, in parts. */
struct copy {
    char *to;
    const char *from;
    size_t size, parts;
};

static int copy_part(void *arg, int i)
{
    const struct copy *c = arg;
    size_t begin = c->size * (size_t)i / c->parts;
    size_t end = c->size * ((size_t)i + 1) / c->parts;

    memcpy(c->to + begin, c->from + begin, end - begin);
    return 0;
}

static void copy_samples(void *to, const void *from, size_t size)
{
    int parts = ddp__team_parts(size, SHARE);

    ddp__team_each(parts, copy_part,
                   &(struct copy){to, from, size, (size_t)parts});
}

static int fill_x(const struct ddp__task *t, void *arg)
{
    const struct ddp_compiled *c = arg;
    struct slot *s = &c->slot[t->seed];
    size_t size = (size_t)t->n * c->x_size;
    int64_t *id = t->data[DDP__FILL_IDS];

    copy_samples(t->data[DDP__FILL_X], s->x, size);
    s->x += size;
    for (int i = 0; i < t->n; i++)
        id[i] = i;
    return 0;
}

static int take_y(const struct ddp__task *t, void *arg)
{
    const struct ddp_compiled *c = arg;
    struct slot *s = &c->slot[t->seed];
    size_t len = (size_t)t->n * c->y_len;

    ddp__eval_copy(s->y, t->data[DDP__OUTPUT_Y],
                   t->call->buf[DDP__OUTPUT_Y].type, len);
    s->y += len;
    return 0;
}

/* ---- making -------------------------------------------------------------- */

static int check_arguments(struct ddp_shape s, enum ddp_dtype type, int batch)
{
    if (type != DDP_F32 && type != DDP_U8)
        return ddp__fail(DDP_EINVAL,
                         "samples of type %d, expected DDP_F32 or "
                         "DDP_U8",
                         (int)type);
    if (s.h < 1 || s.w < 1 || s.c < 1 || (type == DDP_U8 && s.c > 4))
        return ddp__fail(DDP_EINVAL,
                         "samples of shape (%d, %d, %d), expected positive "
                         "numbers, and for DDP_U8 at most 4 channels",
                         s.h, s.w, s.c);
    if (batch < 1)
        return ddp__fail(DDP_EINVAL, "%d samples, expected at least 1", batch);
    return 0;
}

static int make_slots(struct ddp_compiled *c, ddp_t *ddp)
{
    int rc;

    if (!(c->slot = calloc((size_t)c->slots, sizeof(*c->slot))))
        return ddp__fail(DDP_ENOMEM, "out of memory for %d requests", c->slots);
    for (; c->ready < c->slots; c->ready++) {
        c->slot[c->ready].request = FREE;
        if ((rc = ddp__task_group_init(&c->slot[c->ready].group, ddp, 1)) < 0)
            return rc;
    }
    return 0;
}

/* The engine's specification: a lane for each request in flight, which keeps
 * its memory between requests. */
static int make_compiled(struct ddp_compiled *c, ddp_t *ddp, ddp_chain_t *chain,
                         enum ddp_dtype dtype)
{
    struct ddp__engine_spec spec = {
        .graph = {.mode = DDP__INFER,
                  .shape = c->shape,
                  .type = c->type,
                  .dtype = dtype,
                  .cap = c->batch, /* a slice, below */
                  .joined = true,
                  .split = c->batch == 1,
                  .std = {1 / 255.f, 1 / 255.f, 1 / 255.f, 1 / 255.f},
                  .fill = fill_x,
                  .output = take_y,
                  .arg = c},
        .lanes = c->slots,
        .run_ahead = 1,
        .ring = 1,
        .keep = true,
    };
    int rc;

    if ((rc = make_slots(c, ddp)) < 0 ||
        (rc = ddp__slice_of(ddp, chain, &spec.graph, c->batch)) < 0)
        return rc;
    c->slice = spec.graph.cap = rc;
    if ((rc = ddp__engine_new(&c->engine, ddp, chain, &spec)) < 0)
        return rc;
    c->x_size = ddp__shape_len(c->shape) * ddp__dtype_size(c->type);
    c->y_len = ddp__shape_len(c->engine->graph->y->shape);
    return 0;
}

/* Arguments have been checked, and the number of requests is known. */
static ddp_compiled_t *compile_chain(ddp_t *ddp, ddp_chain_t *chain,
                                     struct ddp_shape shape, int batch,
                                     const struct ddp_compiled_options *o)
{
    struct ddp_compiled *c = calloc(1, sizeof(*c));

    if (!c) {
        ddp__fail(DDP_ENOMEM, "out of memory to compile a chain");
        return NULL;
    }
    c->shape = shape;
    c->type = o->type;
    c->batch = batch;
    c->slots = o->requests;
    ddp__lock_init(&c->lock);
    if (make_compiled(c, ddp, chain, o->dtype) < 0) {
        ddp_compiled_free(c);
        return NULL;
    }
    return c;
}

/* Enough that workers have a request while the program processes others. */
static int default_slots(const ddp_t *ddp)
{
    return 2 * ddp_worker_count(ddp);
}

static const struct ddp_compiled_options defaults = {
    .struct_size = sizeof(defaults), .type = DDP_F32};

void ddp_compiled_options_init_sized(struct ddp_compiled_options *o,
                                     size_t size)
{
    ddp__options_init(o, size, &defaults, sizeof(defaults));
}

ddp_compiled_t *ddp_compiled_new(ddp_t *ddp, ddp_chain_t *chain,
                                 struct ddp_shape shape, int batch,
                                 const struct ddp_compiled_options *given)
{
    struct ddp_compiled_options o = defaults;

    if (!ddp || !chain) {
        ddp__fail_null(!ddp ? "ddp" : "chain");
        return NULL;
    }
    if (ddp__options_copy(&o, sizeof(o), given, "ddp_compiled_options") < 0 ||
        check_arguments(shape, o.type, batch) < 0 ||
        ddp__devices_check(ddp, o.dtype) < 0)
        return NULL;
    if (o.requests < 0) {
        ddp__fail(DDP_EINVAL, "%d requests, expected 0 or more", o.requests);
        return NULL;
    }
    if (!o.requests)
        o.requests = default_slots(ddp);
    return compile_chain(ddp, chain, shape, batch, &o);
}

void ddp_compiled_free(ddp_compiled_t *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->ready; i++)
        ddp__task_group_wait(&c->slot[i].group);
    ddp__engine_free(c->engine);
    for (int i = 0; i < c->ready; i++)
        ddp__task_group_fini(&c->slot[i].group);
    ddp__lock_fini(&c->lock);
    free(c->slot);
    free(c);
}

static int check_compiled(const struct ddp_compiled *c)
{
    return c ? ddp__engine_check(c->engine) : ddp__fail_null("compiled chain");
}

struct ddp_shape ddp_compiled_shape(const ddp_compiled_t *c)
{
    return check_compiled(c) < 0 ? (struct ddp_shape){0, 0, 0}
                                 : c->engine->graph->y->shape;
}

/* ---- slots ----------------------------------------------------------------
 */

/* Submit the tasks of a request in a free slot, slice by slice: they share the
 * slot's memory, so one is computed after the other.  With the lock. */
static int start_request(struct ddp_compiled *c, int i, const void *x, int n,
                         float *y)
{
    struct slot *s = &c->slot[i];
    int rc = 0;

    s->x = x;
    s->y = y;
    atomic_store(&s->group.rc, 0);
    for (int at = 0; rc == 0 && at < n; at += c->slice)
        rc = ddp__engine_infer(
            c->engine, i, n - at < c->slice ? n - at : c->slice, &s->group);
    if (rc == 0)
        s->request = c->requests++ * c->slots + i;
    else
        ddp__task_group_wait(
            &s->group); /* for the part of it that was submitted */
    return rc;
}

/* Wait for the request in a slot, which is then free. */
static int finish_request(struct ddp_compiled *c, int i)
{
    struct slot *s = &c->slot[i];
    int rc;

    ddp__task_group_wait(&s->group);
    if ((rc = ddp__task_group_error(&s->group)) < 0)
        ddp__engine_retry_memory(c->engine, i);
    ddp__lock_acquire(&c->lock);
    s->request = FREE;
    ddp__lock_notify(&c->lock);
    ddp__lock_release(&c->lock);
    return rc;
}

/* The first slot, whose memory is most likely in the cache. */
static int free_slot(const struct ddp_compiled *c)
{
    int i = 0;

    while (i < c->slots && c->slot[i].request != FREE)
        i++;
    return i;
}

static int check_request(const struct ddp_compiled *c, const void *x, int n,
                         const float *y)
{
    int rc = check_compiled(c);

    if (rc < 0)
        return rc;
    if (!x || !y)
        return ddp__fail(DDP_EINVAL, "a request needs samples, and room for "
                                     "the output");
    if (n < 1 || n > c->batch)
        return ddp__fail(DDP_EINVAL,
                         "a request of %d samples, expected 1 to "
                         "%d",
                         n, c->batch);
    return 0;
}

int ddp_compiled_submit(ddp_compiled_t *c, const void *x, int n, float *y,
                        int64_t *request)
{
    int rc = check_request(c, x, n, y), i;

    if (rc < 0)
        return rc;
    ddp__lock_acquire(&c->lock);
    if ((i = free_slot(c)) < c->slots)
        rc = start_request(c, i, x, n, y);
    else
        rc = ddp__fail(DDP_EBUSY,
                       "%d requests are in flight: wait for one, or "
                       "compile the chain for more",
                       c->slots);
    if (rc == 0)
        *request = c->slot[i].request;
    ddp__lock_release(&c->lock);
    return rc;
}

/* Only one thread can hold it. */
static bool claim_wait(struct ddp_compiled *c, int64_t request)
{
    struct slot *s = &c->slot[request < 0 ? 0 : request % c->slots];
    bool found;

    ddp__lock_acquire(&c->lock);
    if ((found = request >= 0 && s->request == request))
        s->request = WAITED_FOR;
    ddp__lock_release(&c->lock);
    return found;
}

int ddp_compiled_wait(ddp_compiled_t *c, int64_t request)
{
    int rc = check_compiled(c);

    if (rc < 0)
        return rc;
    if (!claim_wait(c, request))
        return ddp__fail(DDP_EINVAL,
                         "request %lld is not in flight: it was waited for, or "
                         "never submitted",
                         (long long)request);
    return finish_request(c, (int)(request % c->slots));
}

int ddp_compiled_run(ddp_compiled_t *c, const void *x, int n, float *y)
{
    int rc = check_request(c, x, n, y), i;

    if (rc < 0)
        return rc;
    ddp__lock_acquire(&c->lock);
    while ((i = free_slot(c)) == c->slots)
        ddp__lock_wait(&c->lock);
    rc = start_request(c, i, x, n, y);
    ddp__lock_release(&c->lock);
    return rc < 0 ? rc : finish_request(c, i);
}

/* ---- one-shot calls -------------------------------------------------------
 */

static void free_kept(struct ddp__kept *k)
{
    ddp_compiled_free((struct ddp_compiled *)k);
}

/* The compiled chain of an earlier call, if it fits, else a new one. */
static ddp_compiled_t *take_cached(ddp_t *ddp, ddp_chain_t *chain,
                                   struct ddp_shape shape, enum ddp_dtype type,
                                   int batch, int slots)
{
    struct ddp__params *p = ddp__params_of(chain);
    struct ddp_compiled *c =
        p && p->ddp == ddp ? (void *)ddp__params_take(p, free_kept) : NULL;
    struct ddp_compiled_options o = defaults;

    if (c && c->shape.h == shape.h && c->shape.w == shape.w &&
        c->shape.c == shape.c && c->type == type && c->batch == batch &&
        c->slots >= slots)
        return c;
    ddp_compiled_free(c);
    o.type = type;
    o.requests = slots;
    if ((c = compile_chain(ddp, chain, shape, batch, &o)))
        c->kept.free = free_kept;
    return c;
}

/* Run n samples as requests of one batch each.  No other thread uses slots:
 * request i is in slot i mod slots.  After a failure, waits for those in
 * flight. */
static int run_all(struct ddp_compiled *c, const char *x, int n, float *y)
{
    int requests = (n - 1) / c->batch + 1, submitted = 0, done = 0, rc = 0;

    while (rc == 0 && done < requests) {
        size_t first = (size_t)submitted * (size_t)c->batch;
        int rest = n - (int)first;

        if (submitted == requests || submitted - done == c->slots) {
            rc = finish_request(c, done++ % c->slots);
            continue;
        }
        ddp__lock_acquire(&c->lock);
        rc = start_request(c, submitted % c->slots, x + first * c->x_size,
                           rest < c->batch ? rest : c->batch,
                           y + first * c->y_len);
        ddp__lock_release(&c->lock);
        submitted += rc == 0;
    }
    for (; done < submitted; done++) {
        ddp__task_group_wait(&c->slot[done % c->slots].group);
        c->slot[done % c->slots].request = FREE;
    }
    return rc;
}

int ddp_chain_forward(ddp_t *ddp, ddp_chain_t *chain, const void *x,
                      enum ddp_dtype type, struct ddp_shape shape, int n,
                      int sub_batch, float *y)
{
    int batch = sub_batch ? sub_batch : SUB_BATCH, requests, slots, rc;
    struct ddp_compiled *c;

    if (!ddp || !chain)
        return ddp__fail_null(!ddp ? "ddp" : "chain");
    if (!x || !y)
        return ddp__fail(DDP_EINVAL, "a forward pass needs samples, and room "
                                     "for the output");
    if ((rc = check_arguments(shape, type, n)) < 0 ||
        (rc = check_arguments(shape, type, batch)) < 0)
        return rc;
    batch = batch < n ? batch : n;
    requests = (n - 1) / batch + 1;
    slots = default_slots(ddp);
    if (!(c = take_cached(ddp, chain, shape, type, batch,
                          requests < slots ? requests : slots)))
        return ddp_errcode();
    rc = run_all(c, x, n, y);
    ddp__engine_rest(c->engine);
    ddp__params_keep(c->engine->params, &c->kept);
    return rc;
}
