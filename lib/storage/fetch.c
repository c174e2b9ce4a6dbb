/* fetch.c - files on their way from servers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "base/thread.h"
#include "storage/fetch.h"
#include "storage/settings.h"

enum {
    THREADS_MAX = 1024,
    BUCKETS = 4096,
    STALE_S = 60, /* unread for so long, a file was announced in vain */
};
static const size_t memory_max = (size_t)256 << 20;

enum state { WAITS, RUNS, DONE };

/* A file on its way. */
struct job {
    struct ddp__object o;
    enum state state;
    int readers; /* that wait for it; each takes a part in its life */
    bool ahead;  /* in the table, and in the count of bytes */
    bool taken;  /* a reader has it */
    time_t done;
    struct ddp__bytes bytes; /* owned */
    int rc, tries;
    char message[512];
    struct job *next_job;        /* to be fetched */
    struct job *next, *previous; /* of the table's bucket */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, change;
    struct job *first, *last; /* to be fetched */
    struct job *bucket[BUCKETS];
    size_t bytes; /* of what is ahead, fetched or not */
    int threads, idle;
    pthread_t thread[THREADS_MAX];
    atomic_bool stop;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .change = PTHREAD_COND_INITIALIZER};

static pthread_once_t pool_once = PTHREAD_ONCE_INIT;

/* ---- the table ---------------------------------------------------------- */

static struct job **bucket_of(const struct ddp__object *o)
{
    uint64_t h = ((uintptr_t)o->server >> 4) + o->leaf + (uint64_t)o->at;

    return &pool.bucket[(h * 0x9E3779B97F4A7C15u >> 32) % BUCKETS];
}

static struct job *find_job(const struct ddp__object *o)
{
    struct job *j = *bucket_of(o);

    while (j && (j->o.server != o->server || j->o.leaf != o->leaf ||
                 j->o.at != o->at || j->o.size != o->size))
        j = j->next;
    return j;
}

static void put_job(struct job *j)
{
    struct job **b = bucket_of(&j->o);

    j->ahead = true;
    pool.bytes += (size_t)j->o.size;
    if ((j->next = *b))
        j->next->previous = j;
    *b = j;
}

static void remove_job(struct job *j)
{
    if (!j->ahead)
        return;
    j->ahead = false;
    pool.bytes -= (size_t)j->o.size;
    if (j->next)
        j->next->previous = j->previous;
    if (j->previous)
        j->previous->next = j->next;
    else
        *bucket_of(&j->o) = j->next;
}

static void free_job(struct job *j)
{
    free(j->bytes.data);
    free(j);
}

/* Free those that nobody came for. */
static void drop_stale(void)
{
    static time_t last;
    time_t now = time(NULL), before = now - STALE_S;

    if (now == last)
        return;
    last = now;
    for (int i = 0; i < BUCKETS; i++)
        for (struct job *j = pool.bucket[i], *next; j; j = next) {
            next = j->next;
            if (j->state == DONE && !j->readers && j->done < before) {
                remove_job(j);
                free_job(j);
            }
        }
}

/* ---- threads ------------------------------------------------------------ */

static struct job *pop_job(void)
{
    struct job *j = pool.first;

    if (!(pool.first = j->next_job))
        pool.last = NULL;
    return j;
}

/* With the lock, which is released while the server is asked. */
static void run_job(struct job *j, struct ddp__line *line)
{
    j->state = RUNS;
    line->stop[1] = &j->o.server->closing;
    pthread_mutex_unlock(&pool.lock);
    j->rc = line->curl ? ddp__object_get(line, &j->o, &j->bytes, &j->tries)
                       : ddp__fail(DDP_ENOMEM, "out of memory for libcurl");
    if (j->rc < 0)
        snprintf(j->message, sizeof(j->message), "%s", ddp_errmsg());
    pthread_mutex_lock(&pool.lock);
    j->state = DONE;
    j->done = time(NULL);
    pthread_cond_broadcast(&pool.change);
}

static void *fetch_files(void *arg)
{
    struct ddp__line line = {0};

    (void)arg;
    ddp__line_open(&line, &pool.stop);
    pthread_mutex_lock(&pool.lock);
    while (!atomic_load(&pool.stop)) {
        if (pool.first) {
            run_job(pop_job(), &line);
            continue;
        }
        pool.idle++;
        pthread_cond_wait(&pool.work, &pool.lock);
        pool.idle--;
    }
    pthread_mutex_unlock(&pool.lock);
    ddp__line_close(&line);
    return NULL;
}

/* Before the libraries that the threads use clean up. */
static void stop_threads(void)
{
    atomic_store(&pool.stop, true);
    pthread_mutex_lock(&pool.lock);
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < pool.threads; i++)
        pthread_join(pool.thread[i], NULL);
}

static void init_pool(void)
{
    struct ddp__line l = {0};

    ddp__line_open(&l, NULL); /* its handlers are registered before ours */
    ddp__line_close(&l);
    atexit(stop_threads);
}

/* With the lock. */
static int start_thread(void)
{
    if (pool.idle || pool.threads >= ddp__storage_at_once() ||
        pool.threads == THREADS_MAX)
        return 0;
    if (ddp__thread_start(&pool.thread[pool.threads], fetch_files, NULL) != 0)
        return pool.threads
                   ? 0
                   : ddp__fail(DDP_ENOMEM, "no thread to fetch files with");
    pool.threads++;
    return 0;
}

/* ---- jobs --------------------------------------------------------------- */

static struct job *new_job(const struct ddp__object *o)
{
    struct job *j = calloc(1, sizeof(*j));

    if (j)
        j->o = *o;
    else
        ddp__fail(DDP_ENOMEM, "out of memory for a request");
    return j;
}

/* With the lock; first: before those that are only announced. */
static int push_job(struct job *j, bool first)
{
    int rc = start_thread();

    if (rc < 0)
        return rc;
    if (first) {
        if (!(j->next_job = pool.first))
            pool.last = j;
        pool.first = j;
    } else {
        if (pool.last)
            pool.last->next_job = j;
        else
            pool.first = j;
        pool.last = j;
    }
    pthread_cond_signal(&pool.work);
    return 0;
}

void ddp__fetch_ahead(const struct ddp__object *o)
{
    struct job *j;

    pthread_once(&pool_once, init_pool);
    pthread_mutex_lock(&pool.lock);
    if (!find_job(o)) {
        if (pool.bytes + (size_t)o->size > memory_max)
            drop_stale();
        if (pool.bytes + (size_t)o->size <= memory_max && (j = new_job(o))) {
            if (push_job(j, false) == 0)
                put_job(j);
            else
                free_job(j);
        }
    }
    pthread_mutex_unlock(&pool.lock);
}

/* With the lock: give its file, or its failure, to the reader. */
static int take_job(struct job *j, struct ddp__bytes *b)
{
    j->taken = true;
    remove_job(j);
    if (j->tries > 1)
        ddp__file_retried(j->tries - 1);
    if (j->rc < 0)
        return ddp__fail(j->rc, "%s", j->message);
    free(b->data);
    *b = j->bytes;
    j->bytes = (struct ddp__bytes){0};
    return 0;
}

/* With the lock: a reader has to wait.  If files wait for a thread as well, the
 * server takes longer than so many requests at a time can hide. */
static void allow_another(void)
{
    if (pool.first && pool.threads == ddp__storage_at_once() &&
        ddp__storage_allow_another())
        start_thread();
}

/* With the lock: wait until it is done.  True: another reader was faster. */
static bool wait_job(struct job *j, struct ddp__bytes *b, int *rc)
{
    bool late;

    j->readers++;
    if (j->state != DONE)
        allow_another();
    while (j->state != DONE)
        pthread_cond_wait(&pool.change, &pool.lock);
    late = j->taken;
    if (!late)
        *rc = take_job(j, b);
    if (--j->readers == 0)
        free_job(j);
    return late;
}

int ddp__fetch(const struct ddp__object *o, struct ddp__bytes *b)
{
    struct job *j;
    bool late = true;
    int rc = 0;

    pthread_once(&pool_once, init_pool);
    pthread_mutex_lock(&pool.lock);
    while (rc == 0 && late) {
        if (!(j = find_job(o))) {
            if (!(j = new_job(o)))
                rc = DDP_ENOMEM;
            else if ((rc = push_job(j, true)) < 0)
                free_job(j);
        }
        if (rc == 0)
            late = wait_job(j, b, &rc);
    }
    pthread_mutex_unlock(&pool.lock);
    return rc;
}

/* With the lock: those that no thread has begun. */
static void unqueue(const struct ddp__server *s)
{
    struct job **at = &pool.first;

    pool.last = NULL;
    while (*at)
        if ((*at)->o.server == s) {
            (*at)->state = DONE;
            *at = (*at)->next_job;
        } else {
            pool.last = *at;
            at = &(*at)->next_job;
        }
}

/* With the lock: free those that are done; whether others run. */
static bool drop_jobs(const struct ddp__server *s)
{
    bool running = false;

    for (int i = 0; i < BUCKETS; i++)
        for (struct job *j = pool.bucket[i], *next; j; j = next) {
            next = j->next;
            if (j->o.server != s)
                continue;
            running |= j->state == RUNS;
            if (j->state == DONE) {
                remove_job(j);
                free_job(j);
            }
        }
    return running;
}

void ddp__fetch_forget(const struct ddp__server *s)
{
    pthread_mutex_lock(&pool.lock);
    unqueue(s);
    while (drop_jobs(s))
        pthread_cond_wait(&pool.change, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}
