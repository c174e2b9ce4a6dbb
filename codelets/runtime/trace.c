/* trace.c - what tasks of some steps do, when, where, and what they wait for
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "runtime/status.h"
#include "runtime/trace.h"

/* ---- lists -------------------------------------------------------------- */

/* Room for one more; false: there is no memory. */
static bool grow(void *list, int count, int *room, size_t size)
{
    int more = *room ? 2 * *room : 64;
    void **at = list, *p;

    if (count < *room)
        return true;
    if (!(p = realloc(*at, (size_t)more * size)))
        return false;
    *at = p;
    *room = more;
    return true;
}

struct ddp__trace *ddp__trace_new(int64_t first, int64_t steps)
{
    struct ddp__trace *t = calloc(1, sizeof(*t));

    if (!t) {
        ddp__fail(DDP_ENOMEM, "out of memory for a trace");
        return NULL;
    }
    t->first = first;
    t->steps = steps;
    t->start = ddp__now();
    t->clock = ddp__clock();
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void ddp__trace_free(struct ddp__trace *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->tasks; i++)
        free(t->task[i]);
    for (size_t i = 0; i < t->slots; i++)
        free(t->user[i].reader);
    pthread_mutex_destroy(&t->lock);
    free(t->task);
    free(t->edge);
    free(t->read);
    free(t->user);
    free(t->span);
    free(t);
}

int64_t ddp__trace_end(const struct ddp__trace *t)
{
    return t->first + t->steps;
}

/* ---- who uses what ------------------------------------------------------ */

static struct ddp__trace_user *slot_of(struct ddp__trace_user *table,
                                       size_t slots, uint64_t id)
{
    size_t i = id * 0x9e3779b97f4a7c15u % slots;

    while (table[i].id && table[i].id != id)
        i = (i + 1) % slots;
    return &table[i];
}

static bool more_slots(struct ddp__trace *t)
{
    size_t slots = t->slots ? 2 * t->slots : 1024;
    struct ddp__trace_user *table = calloc(slots, sizeof(*table));

    if (!table)
        return false;
    for (size_t i = 0; i < t->slots; i++)
        if (t->user[i].id)
            *slot_of(table, slots, t->user[i].id) = t->user[i];
    free(t->user);
    t->user = table;
    t->slots = slots;
    return true;
}

static struct ddp__trace_user *user_of(struct ddp__trace *t, uint64_t id)
{
    struct ddp__trace_user *u;

    if (2 * t->users >= t->slots && !more_slots(t))
        return NULL;
    u = slot_of(t->user, t->slots, id);
    if (u->id)
        return u;
    t->users++;
    *u = (struct ddp__trace_user){
        .id = id, .writer = -1, .bucket = -1, .read = -1};
    return u;
}

void ddp__trace_label(struct ddp__trace *t, const struct ddp__handle *h,
                      int bucket)
{
    struct ddp__trace_user *u = h->h ? user_of(t, h->id) : NULL;

    if (u)
        u->bucket = bucket;
}

/* The edges to the last task are the last ones. */
static void add_edge(struct ddp__trace *t, int from, int bucket, bool data)
{
    int to = t->tasks - 1;

    if (from < 0 || from == to)
        return;
    for (int i = t->edges - 1; i >= 0 && t->edge[i].to == to; i--)
        if (t->edge[i].from == from) {
            t->edge[i].data = t->edge[i].data || data;
            if (t->edge[i].bucket < 0)
                t->edge[i].bucket = bucket;
            return;
        }
    if (grow(&t->edge, t->edges, &t->edge_room, sizeof(*t->edge)))
        t->edge[t->edges++] = (struct ddp__trace_edge){from, to, bucket, data};
}

/* The last task reads a buffer. */
static void add_read(struct ddp__trace *t, struct ddp__trace_user *u,
                     size_t size)
{
    int to = t->tasks - 1;

    if (u->writer < 0 || u->writer == to ||
        !grow(&t->read, t->reads, &t->read_room, sizeof(*t->read)))
        return;
    t->read[t->reads] = (struct ddp__trace_read){u->writer, to, u->read, size};
    u->read = t->reads++;
}

/* The last task uses a buffer. */
static void use(struct ddp__trace *t, const struct ddp__handle *h,
                enum ddp_access access)
{
    struct ddp__trace_user *u = user_of(t, h->id);
    int task = t->tasks - 1;

    if (!u)
        return;
    add_edge(t, u->writer, u->bucket, access != DDP_WRITE);
    if (access != DDP_WRITE)
        add_read(t, u, h->size);
    if (access == DDP_READ) {
        if (grow(&u->reader, u->readers, &u->room, sizeof(*u->reader)))
            u->reader[u->readers++] = task;
        return;
    }
    for (int i = 0; i < u->readers; i++)
        add_edge(t, u->reader[i], u->bucket, false);
    u->readers = 0;
    u->read = -1;
    u->writer = task;
    if (u->bucket >= 0)
        t->task[task]->bucket = u->bucket;
}

/* ---- recording ---------------------------------------------------------- */

static const char *call_name(const struct ddp__call *c, const char *other)
{
    return ddp__op_is(c->op, DDP__IS_USER)   ? c->user.kernel->name
           : ddp__op_is(c->op, DDP__IS_HOST) ? other
                                             : ddp__signature[c->op].name;
}

/* "conv_fwd", or "conv_fwd .. act_fwd, 3". */
static void name_task(const struct ddp__submit *s, struct ddp__traced *out)
{
    const struct ddp__call *c = s->call[0].task.call;
    const char *other = out->part == DDP_PART_INPUT    ? "read"
                        : out->part == DDP_PART_UPDATE ? "decide"
                        : out->part != DDP__PART_END   ? "host"
                        : c->host.fn                   ? "end"
                                                       : "fence";
    const char *first = call_name(c, other);

    if (s->calls == 1)
        snprintf(out->name, sizeof(out->name), "%s", first);
    else
        snprintf(out->name, sizeof(out->name), "%.24s .. %.24s, %d", first,
                 call_name(s->call[s->calls - 1].task.call, other), s->calls);
    if (!ddp__op_is(c->op, DDP__IS_USER | DDP__IS_HOST))
        ddp__call_describe(c, out->shapes, sizeof(out->shapes));
}

struct ddp__traced *ddp__trace_task(struct ddp__trace *t,
                                    const struct ddp__submit *s)
{
    bool lane =
        s->tag.kind == DDP__SCHED_LANE || s->tag.kind == DDP__SCHED_INPUT;
    struct ddp__traced *one;

    if (s->step < t->first || s->step >= ddp__trace_end(t) ||
        !grow(&t->task, t->tasks, &t->task_room, sizeof(*t->task)) ||
        !(one = calloc(1, sizeof(*one))))
        return NULL;
    *one = (struct ddp__traced){.part = ddp__submit_part(s),
                                .step = s->step,
                                .lane = lane ? s->tag.lane : -1,
                                .sub = lane ? s->tag.sub : -1,
                                .samples = s->call[0].task.n,
                                .bucket = -1,
                                .submitted = ddp__now(),
                                .worker = -1};
    name_task(s, one);
    t->task[t->tasks++] = one;
    for (int c = 0; c < s->calls; c++)
        for (int i = 0; i < s->call[c].task.call->buffers; i++)
            if (s->call[c].buf[i])
                use(t, s->call[c].buf[i], s->call[c].access[i]);
    return one;
}

void ddp__trace_ran(struct ddp__traced *task, int worker, double begin,
                    double end)
{
    task->begin = begin;
    task->end = end;
    task->worker = worker;
}

void ddp__trace_span(struct ddp__trace *t, enum ddp__trace_track track,
                     int64_t step, int bucket, double begin, double end)
{
    if (step < t->first || step >= ddp__trace_end(t))
        return;
    pthread_mutex_lock(&t->lock);
    if (grow(&t->span, t->spans, &t->span_room, sizeof(*t->span)))
        t->span[t->spans++] =
            (struct ddp__trace_span){track, step, bucket, begin, end};
    pthread_mutex_unlock(&t->lock);
}
