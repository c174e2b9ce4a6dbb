/* stream.c - streams as threads, events as numbers that they reach
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "emulator.h"

struct item {
    struct item *next;
    void (*fn)(void *arg);
    void *arg;
};

struct stream {
    struct stream *next; /* in the list of all */
    pthread_t thread;
    struct item *first, **last;
    bool busy, end;
    int gpu;
};

/* One lock for all: what matters here is order, not speed. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct stream *streams;
static _Thread_local struct stream *served; /* by this thread; NULL: none */

void emulator_die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fputs("emulated GPU: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    abort();
}

void *emulator_copy(const void *from, size_t size)
{
    void *p = malloc(size ? size : 1);

    if (!p)
        emulator_die("out of memory");
    return memcpy(p, from, size);
}

static cudaError_t outcome(int gpu, const char *call)
{
    return emulator_gone(gpu, call) ? cudaErrorECCUncorrectable : cudaSuccess;
}

/* ---- streams ------------------------------------------------------------ */

static void dawdle(unsigned *seed)
{
    static int most = -1;

    if (most < 0) {
        const char *text = getenv("EMULATED_DELAY_US");

        most = text ? atoi(text) : 0;
    }
    if (most > 0)
        usleep((useconds_t)(rand_r(seed) % (most + 1)));
}

static void *serve(void *arg)
{
    struct stream *s = arg;
    unsigned seed = (unsigned)(size_t)s;

    served = s;
    pthread_mutex_lock(&lock);
    for (;;) {
        struct item *i;

        while (!s->first && !s->end)
            pthread_cond_wait(&changed, &lock);
        if (!(i = s->first))
            break;
        if (!(s->first = i->next))
            s->last = &s->first;
        s->busy = true;
        pthread_mutex_unlock(&lock);
        dawdle(&seed);
        i->fn(i->arg);
        free(i->arg);
        free(i);
        pthread_mutex_lock(&lock);
        s->busy = false;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

void emulator_launch(void)
{
    const char *text = getenv("EMULATED_LAUNCH_US");

    if (text)
        usleep((useconds_t)atoi(text));
}

void emulator_queue(void *stream, void (*fn)(void *arg), void *arg)
{
    struct stream *s = stream;
    struct item *i;

    if (!s) {
        fn(arg);
        free(arg);
        return;
    }
    i = malloc(sizeof(*i));
    if (!i)
        emulator_die("out of memory");
    *i = (struct item){NULL, fn, arg};
    pthread_mutex_lock(&lock);
    *s->last = i;
    s->last = &i->next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static bool idle(const struct stream *s)
{
    return !s->first && !s->busy;
}

void emulator_settle(void)
{
    pthread_mutex_lock(&lock);
    for (struct stream *s = streams; s; s = s->next)
        while (!idle(s))
            pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    struct stream *s = calloc(1, sizeof(*s));

    (void)flags;
    if (!s)
        return cudaErrorMemoryAllocation;
    if (emulator_gone(emulator_current(), "")) {
        free(s);
        return cudaErrorECCUncorrectable;
    }
    s->gpu = emulator_current();
    s->last = &s->first;
    if (pthread_create(&s->thread, NULL, serve, s) != 0)
        emulator_die("no thread for a stream");
    pthread_mutex_lock(&lock);
    s->next = streams;
    streams = s;
    pthread_mutex_unlock(&lock);
    *out = (cudaStream_t)s;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    struct stream *s = (struct stream *)stream, **at = &streams;
    int gpu;

    if (!s)
        return cudaErrorInvalidResourceHandle;
    pthread_mutex_lock(&lock);
    s->end = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(s->thread, NULL);
    pthread_mutex_lock(&lock);
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    pthread_mutex_unlock(&lock);
    gpu = s->gpu;
    free(s);
    return outcome(gpu, "");
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    struct stream *s = (struct stream *)stream;

    if (!s)
        return cudaSuccess;
    if (emulator_gone(s->gpu, "wait"))
        return cudaErrorECCUncorrectable;
    pthread_mutex_lock(&lock);
    while (!idle(s))
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

/* Who asks, asks again at once, and there are fewer processors than threads. */
static cudaError_t answer(bool done)
{
    if (!done)
        usleep(50);
    return done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    bool done;

    pthread_mutex_lock(&lock);
    done = !stream || idle((struct stream *)stream);
    pthread_mutex_unlock(&lock);
    if (stream && emulator_gone(((struct stream *)stream)->gpu, ""))
        return cudaErrorECCUncorrectable;
    return answer(done);
}

cudaError_t cudaDeviceSynchronize(void)
{
    emulator_settle();
    return outcome(emulator_current(), "wait");
}

/* ---- events ------------------------------------------------------------- */

struct event {
    long asked, reached; /* how often it was recorded, and how far that got */
    int users;           /* the program, and what is queued */
    double ms;           /* when it was reached */
    int gpu;
};

/* A point of an event, in a queue. */
struct point {
    struct event *event;
    long at;
};

static void leave(struct event *e)
{
    if (--e->users == 0)
        free(e);
}

/* A stream that has reached its last event has nothing left to do: StarPU
 * expects to see both at the same time. */
static void reach(void *arg)
{
    struct point *p = arg;
    struct timespec now;

    pthread_mutex_lock(&lock);
    if (served)
        served->busy = false;
    if (p->event->reached < p->at)
        p->event->reached = p->at;
    clock_gettime(CLOCK_MONOTONIC, &now);
    p->event->ms = 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
    leave(p->event);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void await(void *arg)
{
    struct point *p = arg;

    pthread_mutex_lock(&lock);
    while (p->event->reached < p->at)
        pthread_cond_wait(&changed, &lock);
    leave(p->event);
    pthread_mutex_unlock(&lock);
}

static void queue_point(cudaStream_t stream, cudaEvent_t event, bool record)
{
    struct point p = {(struct event *)event, 0};

    pthread_mutex_lock(&lock);
    p.event->users++;
    p.at = p.event->asked += record;
    pthread_mutex_unlock(&lock);
    emulator_queue(stream, record ? reach : await,
                   emulator_copy(&p, sizeof(p)));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    struct event *e = calloc(1, sizeof(*e));

    (void)flags;
    if (!e)
        return cudaErrorMemoryAllocation;
    if (emulator_gone(emulator_current(), "")) {
        free(e);
        return cudaErrorECCUncorrectable;
    }
    e->gpu = emulator_current();
    e->users = 1;
    *out = (cudaEvent_t)e;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    int gpu;

    if (!event)
        return cudaErrorInvalidResourceHandle;
    pthread_mutex_lock(&lock);
    gpu = ((struct event *)event)->gpu;
    leave((struct event *)event);
    pthread_mutex_unlock(&lock);
    return outcome(gpu, "");
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    if (!event)
        return cudaErrorInvalidResourceHandle;
    if (emulator_gone(((struct event *)event)->gpu, ""))
        return cudaErrorECCUncorrectable;
    queue_point(stream, event, true);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned flags)
{
    (void)flags;
    queue_point(stream, event, false);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    struct event *e = (struct event *)event;
    bool done;

    if (!e)
        return cudaErrorInvalidResourceHandle;
    if (emulator_gone(e->gpu, "query"))
        return cudaErrorECCUncorrectable;
    pthread_mutex_lock(&lock);
    done = e->reached >= e->asked;
    pthread_mutex_unlock(&lock);
    return answer(done);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    struct event *e = (struct event *)event;

    if (!e)
        return cudaErrorInvalidResourceHandle;
    if (emulator_gone(e->gpu, "wait"))
        return cudaErrorECCUncorrectable;
    pthread_mutex_lock(&lock);
    while (e->reached < e->asked)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b)
{
    pthread_mutex_lock(&lock);
    *ms = (float)(((struct event *)b)->ms - ((struct event *)a)->ms);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

struct host_call {
    cudaHostFn_t fn;
    void *arg;
};

static void call_host(void *arg)
{
    struct host_call *c = arg;

    c->fn(c->arg);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *arg)
{
    struct host_call c = {fn, arg};

    emulator_queue(stream, call_host, emulator_copy(&c, sizeof(c)));
    return cudaSuccess;
}
