/* list.c - list a server's folders, several at a time
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "storage/list.h"

enum { THREADS = 16, MAX_DEPTH = 64 };

struct ddp__list {
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct ddp__tree *tree;
    char **folder; /* to be listed; owned, each one too */
    size_t count, room;
    int busy; /* threads that are listing one */
    ddp__list_f fn;
    void *arg;
    int rc; /* of the first failure, whose message this is: */
    char message[1024];
};

/* With the lock. */
static void note_failure(struct ddp__list *l, int rc)
{
    if (l->rc == 0) {
        l->rc = rc;
        snprintf(l->message, sizeof(l->message), "%s", ddp_errmsg());
    }
    pthread_cond_broadcast(&l->change);
}

static int push_folder(struct ddp__list *l, const char *folder)
{
    int depth = 0;

    for (const char *p = folder; (p = strchr(p, '/')); p++)
        depth++;
    if (depth > MAX_DEPTH)
        return ddp__fail(DDP_EDATA, "%.200s: folders more than %d deep", folder,
                         MAX_DEPTH);
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        char **more = realloc(l->folder, room * sizeof(*more));

        if (!more)
            return ddp__fail(DDP_ENOMEM, "out of memory for folder names");
        l->folder = more;
        l->room = room;
    }
    if (!(l->folder[l->count] = strdup(folder)))
        return ddp__fail(DDP_ENOMEM, "out of memory for folder names");
    l->count++;
    return 0;
}

int ddp__list_folder(struct ddp__list *l, const char *folder)
{
    int rc;

    pthread_mutex_lock(&l->lock);
    rc = push_folder(l, folder);
    pthread_cond_signal(&l->change);
    pthread_mutex_unlock(&l->lock);
    return rc;
}

int ddp__list_file(struct ddp__list *l, const char *path, const char *etag,
                   int64_t size)
{
    int rc;

    pthread_mutex_lock(&l->lock);
    rc = ddp__tree_add(l->tree, path, etag, size);
    pthread_mutex_unlock(&l->lock);
    return rc;
}

/* List folders until there are none, and none that is listed can bring more. */
static void list_folders(struct ddp__list *l, struct ddp__line *line)
{
    pthread_mutex_lock(&l->lock);
    while (l->rc == 0 && (l->count || l->busy)) {
        char *folder;
        int rc;

        if (!l->count) {
            pthread_cond_wait(&l->change, &l->lock);
            continue;
        }
        folder = l->folder[--l->count];
        l->busy++;
        pthread_mutex_unlock(&l->lock);
        rc = l->fn(line, l, folder, l->arg);
        free(folder);
        pthread_mutex_lock(&l->lock);
        l->busy--;
        if (rc < 0)
            note_failure(l, rc);
        if (!l->count && !l->busy)
            pthread_cond_broadcast(&l->change);
    }
    pthread_mutex_unlock(&l->lock);
}

static void *run(void *arg)
{
    struct ddp__list *l = arg;
    struct ddp__line line = {0};

    if (ddp__line_open(&line, NULL) == 0)
        list_folders(l, &line);
    ddp__line_close(&line);
    return NULL;
}

/* The caller lists too, so that it is done even if no thread starts. */
static void run_threads(struct ddp__list *l)
{
    pthread_t thread[THREADS];
    struct ddp__line line = {0};
    int n = 0, rc;

    while (n < THREADS - 1 && ddp__thread_start(&thread[n], run, l) == 0)
        n++;
    if ((rc = ddp__line_open(&line, NULL)) == 0) {
        list_folders(l, &line);
    } else {
        pthread_mutex_lock(&l->lock);
        note_failure(l, rc);
        pthread_mutex_unlock(&l->lock);
    }
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    ddp__line_close(&line);
}

int ddp__list_run(struct ddp__tree *t, const char *folder, ddp__list_f fn,
                  void *arg)
{
    struct ddp__list l = {.tree = t, .fn = fn, .arg = arg};

    pthread_mutex_init(&l.lock, NULL);
    pthread_cond_init(&l.change, NULL);
    if ((l.rc = push_folder(&l, folder)) == 0)
        run_threads(&l);
    else
        note_failure(&l, l.rc);
    for (size_t i = 0; i < l.count; i++)
        free(l.folder[i]);
    free(l.folder);
    pthread_cond_destroy(&l.change);
    pthread_mutex_destroy(&l.lock);
    if (l.rc < 0 && *l.message)
        return ddp__fail(l.rc, "%s", l.message);
    return l.rc;
}
