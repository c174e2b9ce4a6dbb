/* trace_write.c - a trace as Chrome's JSON, and as a graph for Graphviz
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "runtime/trace_write.h"

static const struct {
    const char *name, *colour, *fill; /* colour: one of Chrome's names */
} parts[DDP__PARTS] = {
    [DDP_PART_INPUT] = {"input", "thread_state_iowait", "#f6d6a8"},
    [DDP_PART_FORWARD] = {"forward", "thread_state_running", "#bfe3c0"},
    [DDP_PART_BACKWARD] = {"backward", "rail_response", "#bcd3f5"},
    [DDP_PART_MERGE] = {"merge", "rail_animation", "#dcc8ef"},
    [DDP_PART_UPDATE] = {"update", "bad", "#f5c0b8"},
    [DDP__PART_END] = {"end", "grey", "#dddddd"},
};

/* ---- files -------------------------------------------------------------- */

static int close_file(FILE *f, const char *path)
{
    bool bad = ferror(f) != 0;

    bad = fclose(f) != 0 || bad;
    return bad ? ddp__fail(DDP_EIO, "cannot write %s", path) : 0;
}

static FILE *open_file(const char *path)
{
    FILE *f = fopen(path, "we");

    if (!f)
        ddp__fail(DDP_EIO, "cannot write %s: %s", path, strerror(errno));
    return f;
}

/* ---- Chrome's JSON ------------------------------------------------------ */

/* Threads of the process: workers, then tracks. */
enum { TRACK = 1000 };

static const char *const track_name[] = {
    [DDP__TRACK_SUBMISSION] = "submission",
    [DDP__TRACK_EXCHANGE] = "exchange with other ranks",
    [DDP__TRACK_WEIGHTS] = "weights from their keepers",
};

static void put_text(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || strchr("\"\\<>&", *text))
            fprintf(f, "\\u%04x", (unsigned char)*text);
        else
            fputc(*text, f);
    fputc('"', f);
}

static double us(const struct ddp__trace *t, double seconds)
{
    return 1e6 * (seconds - t->start);
}

static void put_meta(FILE *f, const char *what, int rank, int thread,
                     const char *name)
{
    fprintf(f,
            "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,"
            "\"args\":{\"name\":",
            what, rank, thread);
    put_text(f, name);
    fprintf(f, "}},\n");
    if (strcmp(what, "thread_name") == 0)
        fprintf(f,
                "{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%d,"
                "\"tid\":%d,\"args\":{\"sort_index\":%d}},\n",
                rank, thread, thread);
}

static void put_names(const struct ddp__trace *t, FILE *f, int rank)
{
    char name[128];

    snprintf(name, sizeof(name), "rank %d", rank);
    put_meta(f, "process_name", rank, 0, name);
    for (unsigned w = 0; w < starpu_worker_get_count(); w++) {
        starpu_worker_get_name((int)w, name, sizeof(name));
        put_meta(f, "thread_name", rank, (int)w, name);
    }
    for (int k = DDP__TRACK_SUBMISSION; k <= DDP__TRACK_WEIGHTS; k++)
        for (int i = 0; i < t->spans; i++)
            if ((int)t->span[i].track == k) {
                put_meta(f, "thread_name", rank, TRACK + k, track_name[k]);
                break;
            }
}

/* after: what it waited for last, until `ready`. */
static void put_task(const struct ddp__trace *t, FILE *f, int rank,
                     const struct ddp__traced *a, const char *after,
                     double ready)
{
    fputs("{\"ph\":\"X\",\"name\":", f);
    put_text(f, a->name);
    fprintf(f,
            ",\"cat\":\"%s\",\"cname\":\"%s\",\"pid\":%d,\"tid\":%d,"
            "\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"step\":%lld",
            parts[a->part].name, parts[a->part].colour, rank, a->worker,
            us(t, a->begin), 1e6 * (a->end - a->begin), (long long)a->step);
    if (a->lane >= 0)
        fprintf(f, ",\"lane\":%d,\"sub_batch\":%d,\"samples\":%d", a->lane,
                a->sub, a->samples);
    if (a->bucket >= 0)
        fprintf(f, ",\"bucket\":%d", a->bucket);
    if (*a->shapes) {
        fputs(",\"shapes\":", f);
        put_text(f, a->shapes);
    }
    fprintf(f,
            ",\"submitted\":%.3f,\"after\":\"%s\",\"ready_for_us\":%.3f}},\n",
            us(t, a->submitted), after, 1e6 * (a->begin - ready));
}

/* A task is ready when the last one that it depends on is done, or when it is
 * submitted. */
static void put_tasks(const struct ddp__trace *t, FILE *f, int rank)
{
    for (int i = 0, e = 0; i < t->tasks; i++) {
        const struct ddp__traced *a = t->task[i], *last = NULL;
        double ready = a->submitted;

        for (; e < t->edges && t->edge[e].to == i; e++)
            if (t->task[t->edge[e].from]->end > ready) {
                last = t->task[t->edge[e].from];
                ready = last->end;
            }
        if (a->worker >= 0)
            put_task(t, f, rank, a,
                     last ? parts[last->part].name : "submission",
                     ready < a->begin ? ready : a->begin);
    }
}

/* The way of a bucket from its first gradient to the next step. */
static void put_flows(const struct ddp__trace *t, FILE *f, int rank, int bucket)
{
    for (int e = 0; e < t->edges; e++) {
        const struct ddp__traced *a = t->task[t->edge[e].from];
        const struct ddp__traced *b = t->task[t->edge[e].to];

        if (t->edge[e].bucket != bucket || !t->edge[e].data || a->worker < 0 ||
            b->worker < 0)
            continue;
        fprintf(f,
                "{\"ph\":\"s\",\"name\":\"bucket %d\",\"cat\":\"bucket\","
                "\"id\":%d,\"pid\":%d,\"tid\":%d,\"ts\":%.3f},\n"
                "{\"ph\":\"f\",\"bp\":\"e\",\"name\":\"bucket %d\","
                "\"cat\":\"bucket\",\"id\":%d,\"pid\":%d,\"tid\":%d,"
                "\"ts\":%.3f},\n",
                bucket, e, rank, a->worker,
                us(t, a->begin + 0.99 * (a->end - a->begin)), bucket, e, rank,
                b->worker, us(t, b->begin));
    }
}

static void put_spans(const struct ddp__trace *t, FILE *f, int rank)
{
    for (int i = 0; i < t->spans; i++) {
        const struct ddp__trace_span *s = &t->span[i];

        fprintf(f,
                "{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%d,"
                "\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"step\":%lld,"
                "\"bucket\":%d}},\n",
                s->track == DDP__TRACK_SUBMISSION ? "submit"
                : s->track == DDP__TRACK_WEIGHTS  ? "weights"
                : s->bucket < 0                   ? "statistics"
                                                  : "sum of gradients",
                s->track == DDP__TRACK_SUBMISSION ? "submission" : "transfer",
                rank, TRACK + (int)s->track, us(t, s->begin),
                1e6 * (s->end - s->begin), (long long)s->step, s->bucket);
    }
}

/* ---- copies ------------------------------------------------------------- */

static unsigned memory_of(const struct ddp__traced *a)
{
    return starpu_worker_get_memory_node((unsigned)a->worker);
}

/* Whether a copy was made for this read, and not for one before it. */
static bool is_copied(const struct ddp__trace *t,
                      const struct ddp__trace_read *r)
{
    const struct ddp__traced *a = t->task[r->from], *b = t->task[r->to];

    if (a->worker < 0 || b->worker < 0 || memory_of(a) == memory_of(b))
        return false;
    for (int i = r->before; i >= 0; i = t->read[i].before) {
        const struct ddp__traced *c = t->task[t->read[i].to];

        if (c->worker >= 0 && memory_of(c) == memory_of(b))
            return false;
    }
    return true;
}

/* StarPU does not say when it copies: between the end of the task that wrote
 * and the begin of the one that reads.  These times overlap, so the events are
 * asynchronous. */
static void put_copy(const struct ddp__trace *t, FILE *f, int rank, int i)
{
    const struct ddp__trace_read *r = &t->read[i];
    const struct ddp__traced *a = t->task[r->from], *b = t->task[r->to];
    double at[] = {a->end, b->begin > a->end ? b->begin : a->end};
    char from[64], to[64];

    starpu_memory_node_get_name(memory_of(a), from, sizeof(from));
    starpu_memory_node_get_name(memory_of(b), to, sizeof(to));
    for (int k = 0; k < 2; k++)
        fprintf(f,
                "{\"ph\":\"%c\",\"cat\":\"copy\",\"id\":%d,\"name\":"
                "\"%s to %s\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"args\":{"
                "\"step\":%lld,\"bytes\":%zu}},\n",
                "be"[k], i, from, to, rank, b -> worker, us(t, at[k]),
                (long long)b -> step, r -> size);
}

static void put_copies(const struct ddp__trace *t, FILE *f, int rank)
{
    for (int i = 0; i < t->reads; i++)
        if (is_copied(t, &t->read[i]))
            put_copy(t, f, rank, i);
}

int ddp__trace_json(const struct ddp__trace *t, const char *path, int rank)
{
    FILE *f = open_file(path);

    if (!f)
        return DDP_EIO;
    fprintf(f, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    put_names(t, f, rank);
    put_tasks(t, f, rank);
    put_flows(t, f, rank, 0);
    put_spans(t, f, rank);
    put_copies(t, f, rank);
    fprintf(f,
            "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%d,"
            "\"args\":{\"sort_index\":%d}}\n],\"otherData\":{\"clock_s\":%.7f}}"
            "\n",
            rank, rank, t->clock);
    return close_file(f, path);
}

/* ---- Graphviz ----------------------------------------------------------- */

static void put_node(FILE *f, int i, const struct ddp__traced *a)
{
    fprintf(f, "  t%d [fillcolor=\"%s\", label=\"", i, parts[a->part].fill);
    for (const char *s = a->name; *s; s++)
        fputc(strchr("\"\\<>", *s) || (unsigned char)*s < 0x20 ? '?' : *s, f);
    if (a->lane >= 0)
        fprintf(f, "\\nlane %d, sub-batch %d", a->lane, a->sub);
    else if (a->bucket >= 0)
        fprintf(f, "\\nbucket %d", a->bucket);
    fprintf(f, "\"];\n");
}

int ddp__trace_dot(const struct ddp__trace *t, const char *path)
{
    FILE *f = open_file(path);

    if (!f)
        return DDP_EIO;
    fprintf(f, "digraph step {\n  rankdir=TB;\n  node [shape=box, "
               "style=\"rounded,filled\", fontname=\"sans-serif\", "
               "fontsize=10];\n  edge [color=\"#666666\"];\n");
    for (int i = 0; i < t->tasks; i++)
        if (t->task[i]->step == t->first)
            put_node(f, i, t->task[i]);
    for (int e = 0; e < t->edges; e++)
        if (t->task[t->edge[e].from]->step == t->first &&
            t->task[t->edge[e].to]->step == t->first)
            fprintf(f, "  t%d -> t%d%s;\n", t->edge[e].from, t->edge[e].to,
                    t->edge[e].data ? "" : " [style=dashed]");
    fprintf(f, "}\n");
    return close_file(f, path);
}
