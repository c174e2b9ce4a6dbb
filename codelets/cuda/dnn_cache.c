/* dnn_cache.c - plans by their graphs: in memory, and on disk
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A file holds the key, a line, then cuDNN's text of the plan.  It is named
 * after a hash of the key, and believed only if the key is the same.
 */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "dnn_plan.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
enum { BUCKETS = 1024 };
static struct ddp__cudnn_plan *plans[BUCKETS]; /* owned; by hash */

/* ---- files -------------------------------------------------------------- */

enum { FORMAT = 2, MAX_FILE = 64 << 20 };

/* Make the folder and those above it; `path` is as before. */
static bool make_folder(char *path)
{
    for (char *s = path + 1; *s; s++)
        if (*s == '/') {
            *s = '\0';
            if (mkdir(path, 0777) < 0 && errno != EEXIST)
                return false;
            *s = '/';
        }
    return true;
}

static uint64_t hash_of(const char *key)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 0x100000001b3u;
    return hash;
}

/* Where a plan is stored; false: nowhere. */
static bool file_name(const struct ddp__cudnn_plan *p, char *path, size_t size)
{
    const char *base = getenv("XDG_CACHE_HOME"), *below = "";
    int len;

    if (!base || *base != '/') {
        base = getenv("HOME");
        below = "/.cache";
    }
    if (!base || *base != '/')
        return false;
    len = snprintf(path, size, "%s%s/libddp/cudnn-%zu/%016llx.plan", base,
                   below, cudnnGetVersion(), (unsigned long long)p->hash);
    return len > 0 && (size_t)len < size;
}

/* The whole file with a 0 behind it, or NULL. */
static char *read_file(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    struct stat s;
    char *text = NULL;

    if (!f)
        return NULL;
    if (fstat(fileno(f), &s) == 0 && s.st_size > 0 && s.st_size < MAX_FILE)
        text = calloc(1, (size_t)s.st_size + 1);
    *len = text ? fread(text, 1, (size_t)s.st_size, f) : 0;
    fclose(f);
    return text;
}

static bool load_plan(struct ddp__cudnn_plan *p)
{
    size_t len, key = strlen(p->key);
    char path[4096], *text;
    bool loaded = false;

    if (!file_name(p, path, sizeof(path)) || !(text = read_file(path, &len)))
        return false;
    if (len > key + 1 && memcmp(text, p->key, key) == 0 && text[key] == '\n')
        loaded = ddp__cudnn_load(p, text + key + 1, len - key - 1) == 0;
    free(text);
    return loaded;
}

/* Whole or not at all.  That it cannot be stored costs time, no more. */
static void store_plan(const struct ddp__cudnn_plan *p)
{
    char path[4096], temp[4096 + 8], *text;
    size_t len = 0;
    bool written;
    FILE *f;
    int fd;

    if (!file_name(p, path, sizeof(path)) || !(text = ddp__cudnn_save(p, &len)))
        return;
    snprintf(temp, sizeof(temp), "%s.XXXXXX", path);
    if (!make_folder(temp) || (fd = mkstemp(temp)) < 0)
        goto free_text;
    if (!(f = fdopen(fd, "wb"))) {
        close(fd);
        goto remove_temp;
    }
    written = fprintf(f, "%s\n", p->key) > 0 && fwrite(text, 1, len, f) == len;
    if ((fclose(f) == 0 && written) && rename(temp, path) == 0)
        goto free_text;

remove_temp:
    unlink(temp);
free_text:
    free(text);
}

/* ---- memory ------------------------------------------------------------- */

static void plan_free(struct ddp__cudnn_plan *p)
{
    for (int i = 0; i < DDP__CUDA_WORKERS; i++)
        if (p->copy[i])
            cudnnBackendDestroyDescriptor(p->copy[i]);
    if (p->desc)
        cudnnBackendDestroyDescriptor(p->desc);
    if (p->config)
        cudnnBackendDestroyDescriptor(p->config);
    ddp__cudnn_graph_free(p->graph);
    pthread_mutex_destroy(&p->lock);
    free(p->key);
    free(p);
}

/* All that a choice depends on. */
static char *make_key(const struct ddp__cudnn_target *t,
                      const struct ddp__cudnn_graph *g, size_t limit)
{
    char *key;

    if (asprintf(&key, "plan %d, %s%s%s, at most %zu bytes: %s", FORMAT,
                 t->name, t->tf32 ? ", TF32" : "", t->fast ? ", fast" : "",
                 limit, g->key) < 0)
        return NULL;
    return key;
}

static struct ddp__cudnn_plan *find_plan(const char *key)
{
    uint64_t hash = hash_of(key);
    struct ddp__cudnn_plan *p = plans[hash % BUCKETS];

    while (p && (p->hash != hash || strcmp(p->key, key) != 0))
        p = p->next;
    return p;
}

/* An empty plan in the list, for its maker to fill; takes key and graph. */
static struct ddp__cudnn_plan *
insert_plan(char *key, struct ddp__cudnn_target *t, struct ddp__cudnn_graph *g)
{
    struct ddp__cudnn_plan *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->key = key;
    p->hash = hash_of(key);
    p->target = t;
    p->graph = g;
    pthread_mutex_init(&p->lock, NULL);
    p->next = plans[p->hash % BUCKETS];
    plans[p->hash % BUCKETS] = p;
    return p;
}

static void fill_plan(struct ddp__cudnn_plan *p, size_t limit, bool tune)
{
    int before = ddp__cudnn_target_enter(p->target), rc = 0;

    if (!load_plan(p) && (rc = ddp__cudnn_build(p, limit, tune)) == 0)
        store_plan(p);
    if (rc < 0)
        snprintf(p->why, sizeof(p->why), "%s", ddp_errmsg());
    ddp__cudnn_target_leave(p->target, before);
    pthread_mutex_lock(&lock);
    p->rc = rc;
    p->ready = true;
    pthread_cond_broadcast(&done);
    pthread_mutex_unlock(&lock);
}

/* A plan is in the list before it is built, so that of several threads that ask
 * for one at a time only the first builds it; the others wait for `ready`.  The
 * lock is not held while building: that may take a second. */
int ddp__cudnn_plan_get(struct ddp__cudnn_target *t, struct ddp__cudnn_graph *g,
                        size_t limit, bool tune, struct ddp__cudnn_plan **out)
{
    int rc = g ? g->rc : DDP_ENOMEM;
    char *key = NULL;
    struct ddp__cudnn_plan *p;

    if (rc == 0 && !(key = make_key(t, g, limit)))
        rc = ddp__fail(DDP_ENOMEM, "out of memory for a plan");
    if (rc < 0) {
        ddp__cudnn_graph_free(g);
        return rc;
    }
    pthread_mutex_lock(&lock);
    if ((p = find_plan(key))) {
        while (!p->ready)
            pthread_cond_wait(&done, &lock);
        pthread_mutex_unlock(&lock);
        free(key);
        ddp__cudnn_graph_free(g);
    } else {
        p = insert_plan(key, t, g);
        pthread_mutex_unlock(&lock);
        if (!p) {
            free(key);
            ddp__cudnn_graph_free(g);
            return ddp__fail(DDP_ENOMEM, "out of memory for a plan");
        }
        fill_plan(p, limit, tune);
    }
    *out = p;
    return p->rc < 0 ? ddp__fail(p->rc, "%s", p->why) : 0;
}

void ddp__cudnn_plans_free(void)
{
    struct ddp__cudnn_plan *p;

    for (int i = 0; i < BUCKETS; i++)
        while ((p = plans[i])) {
            plans[i] = p->next;
            plan_free(p);
        }
}

/* The first plan of a list that is built, or NULL. */
static struct ddp__cudnn_plan *first_built(struct ddp__cudnn_plan *const *list)
{
    struct ddp__cudnn_plan *p;

    pthread_mutex_lock(&lock);
    for (p = *list; p && !p->ready; p = p->next)
        ;
    pthread_mutex_unlock(&lock);
    return p;
}

/* Plans are only ever added, at the head of their list. */
void ddp__cudnn_plans_for(const struct ddp__cuda_worker *w)
{
    const struct ddp__cudnn_target *t = ddp__cudnn_target_of(w->device);

    for (int i = 0; i < BUCKETS; i++)
        for (struct ddp__cudnn_plan *p = first_built(&plans[i]); p;
             p = first_built(&p->next))
            if (p->target == t)
                ddp__cudnn_plan_for(p, w);
}

struct ddp__cudnn_count ddp__cudnn_plans_count(void)
{
    struct ddp__cudnn_count n = {0, 0, 0, 0, 0};

    pthread_mutex_lock(&lock);
    for (int i = 0; i < BUCKETS; i++)
        for (struct ddp__cudnn_plan *p = plans[i]; p; p = p->next) {
            n.plans++;
            n.failed += p->rc < 0;
            n.from_disk += p->loaded;
            n.runtime += p->runtime;
            n.believed += p->believed;
        }
    pthread_mutex_unlock(&lock);
    return n;
}
