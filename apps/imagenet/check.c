/* check.c - "imagenet data check": find unreadable images before a run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <pthread.h>
#include <stdlib.h>

#include "ddp.h"

#include "common/app.h"
#include "common/cores.h"
#include "common/app_fail.h"
#include "common/app_log.h"
#include "check.h"
#include "options.h"
#include "progress.h"
#include "setup_data.h"

/* Shared by the threads. */
struct check {
    ddp_dataset_t *data;
    pthread_mutex_t lock; /* of what follows, and of stdout */
    int64_t next, bad, done, *per_class;
    struct work work;
    int rc; /* a failure that is not a bad image's */
};

/* The library's message begins with the path. */
static void count_result(struct check *c, int rc, int32_t label)
{
    pthread_mutex_lock(&c->lock);
    work_count(++c->done, ddp_dataset_count(c->data), &c->work);
    if (rc == DDP_EDATA) {
        c->bad++;
        work_clear(&c->work);
        printf("bad %s\n", ddp_errmsg());
    } else if (rc < 0) {
        work_clear(&c->work);
        c->rc = app_fail(rc);
        c->next = ddp_dataset_count(c->data);
    } else if (label >= 0 && label < ddp_dataset_classes(c->data)) {
        c->per_class[label]++;
    }
    pthread_mutex_unlock(&c->lock);
}

static void *check_some(void *arg)
{
    struct check *c = arg;
    struct ddp_shape s = ddp_dataset_shape(c->data);
    int64_t count = ddp_dataset_count(c->data), i;
    void *x = malloc((size_t)s.h * (size_t)s.w * (size_t)s.c);

    for (;;) {
        int32_t label = -1;
        int rc;

        pthread_mutex_lock(&c->lock);
        if (!x)
            c->rc = EXIT_MEMORY;
        i = c->rc ? count : c->next++;
        pthread_mutex_unlock(&c->lock);
        if (i >= count)
            break;
        rc = ddp_dataset_get(c->data, i, 0, x, &label);
        count_result(c, rc, label);
    }
    free(x);
    return NULL;
}

static int run_threads(struct check *c, int n)
{
    pthread_t *thread = calloc((size_t)n, sizeof(*thread));
    int started = 0;

    if (!thread)
        return EXIT_MEMORY;
    while (started < n &&
           pthread_create(&thread[started], NULL, check_some, c) == 0)
        started++;
    if (!started)
        check_some(c);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    free(thread);
    return c->rc;
}

static void print_classes(const struct check *c)
{
    int classes = ddp_dataset_classes(c->data);

    for (int i = 0; i < classes; i++) {
        const char *name = ddp_dataset_class_name(c->data, i);

        app_print("class %d %s: %lld\n", i, name ? name : "",
                  (long long)c->per_class[i]);
    }
}

static int check_split(struct check *c, const struct settings *s,
                       const char *name)
{
    int64_t count = ddp_dataset_count(c->data);
    int classes = ddp_dataset_classes(c->data), rc;
    double share;

    app_print("%s: %s\n", name, ddp_dataset_describe(c->data));
    if (!(c->per_class = calloc((size_t)classes + 1, sizeof(int64_t))))
        return app_exit_code(DDP_ENOMEM);
    fflush(stdout);
    work_begin(&c->work, name, false);
    rc = run_threads(c, s->workers ? (int)s->workers : app_cores());
    work_clear(&c->work);
    if (rc == 0)
        print_classes(c);
    free(c->per_class);
    if (rc)
        return rc;
    share = count ? (double)c->bad / (double)count : 0;
    printf("checked split=%s images=%lld bad=%lld (%.3f%%)\n", name,
           (long long)count, (long long)c->bad, 100 * share);
    return c->bad > ddp_dataset_bad_limit(c->data, s->max_bad) ? EXIT_DATA : 0;
}

int check_run(struct opts *o, struct settings *s)
{
    static const char *const name[] = {"train", "val"};
    unsigned splits = setup_splits(s->data);
    int worst = 0;

    for (int i = DDP_TRAIN; i <= DDP_VAL; i++) {
        struct check c = {.lock = PTHREAD_MUTEX_INITIALIZER};
        struct settings lenient = *s;
        int rc;

        if (!(splits & 1U << i))
            continue;
        lenient.max_bad = 1; /* the exit code depends on all of them */
        lenient.augment = 0;
        for (int k = 0; k < 3; k++)
            lenient.std[k] = 1;
        rc = setup_data(o, &lenient, (enum ddp_split)i, &c.data);
        if (rc == OPTS_GO)
            rc = check_split(&c, s, name[i]);
        ddp_dataset_free(c.data);
        if (rc)
            worst = rc;
    }
    return worst;
}
