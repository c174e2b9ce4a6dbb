/* test_pause.c - what steps wait for when the first checkpoint is taken
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Steps wait for a copy of the state, and the first would wait for the kernel
 * to clear its pages, had another thread not touched them.  The kernel counts
 * the pages that each thread is the first to touch, and the bytes that it
 * writes.
 */
#include "config.h"

#include <dirent.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "defaults.h"
#include "tap.h"

/* Weights and momentum. */
enum { WIDTH = 1024, SETS = 2, BYTES = SETS * WIDTH * WIDTH * 4, STEPS = 6 };

static long faults, pages;
static long long written;

/* ---- what the kernel has counted ----------------------------------------- */

static long own_faults(void)
{
    struct rusage r;

    getrusage(RUSAGE_THREAD, &r);
    return r.ru_minflt;
}

/* -1: not known. */
static long long own_bytes_written(void)
{
    FILE *f = fopen("/proc/thread-self/io", "r");
    long long n = -1;
    char line[99];

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "wchar: %lld", &n) == 1)
            break;
    if (f)
        fclose(f);
    return n;
}

/* Whether a thread runs only when no other wants to. */
static bool is_touching(void)
{
    DIR *d = opendir("/proc/self/task");
    bool found = false;
    struct dirent *e;

    while (d && (e = readdir(d)))
        if (atoi(e->d_name) > 0)
            found |= sched_getscheduler(atoi(e->d_name)) == SCHED_IDLE;
    if (d)
        closedir(d);
    return found;
}

/* A busy machine leaves it little time; it may be over before it is seen. */
static void wait_for_memory(void)
{
    bool seen = false, now = false;

    for (int ms = 0; now || (!seen && ms < 3000); ms++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        now = is_touching();
        seen |= now;
    }
}

/* ---- a run --------------------------------------------------------------- */

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    (void)arg;
    (void)key;
    for (int i = 0; i < WIDTH; i++)
        ((float *)s->x)[i] = (float)(i % 7);
    s->label = (int32_t)index;
    return 0;
}

static int on_step(const struct ddp_progress *p, void *arg)
{
    (void)arg;
    if (p->step == 1) {
        wait_for_memory();
        faults = own_faults();
        written = own_bytes_written();
    }
    return 0;
}

/* The checkpoint is taken after step 3, and its folder is removed. */
static bool train(ddp_t *ddp, const char *dir)
{
    struct ddp_train_config cfg = {TRAIN_DEFAULTS};
    ddp_chain_t *c = ddp_chain_new(ddp_dense_new(WIDTH, WIDTH, NULL), DDP_END);
    ddp_dataset_t *d = ddp_dataset_callback(&(struct ddp_source){
        .count = STEPS, .shape = {1, 1, WIDTH}, .classes = WIDTH, .get = get});
    ddp_trainer_t *t;
    bool good;

    cfg.optimizer = ddp_momentum(0.1f, 0.9f);
    cfg.batch = cfg.sub_batch = cfg.lanes = 1;
    cfg.epochs = 1;
    cfg.checkpoint.dir = dir;
    cfg.checkpoint.steps = 3;
    cfg.on_step = on_step;
    t = ddp_trainer_new(ddp, c, d, &cfg);
    good = t && ddp_trainer_train(t) == 0;
    pages = own_faults() - faults;
    if (written >= 0)
        written = own_bytes_written() - written;
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
    return good;
}

int main(void)
{
    char dir[] = "/tmp/pause-XXXXXX", command[64];
    ddp_t *ddp;

    /* Each large block is of fresh pages, and of small ones. */
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    if (!(ddp = ddp_init(NULL)) || !mkdtemp(dir))
        bail_out("%s", ddp_errmsg());
    ok(train(ddp, dir), "a run with checkpoints: %s", ddp_errmsg());
    ok(pages < BYTES / 4096 / 4,
       "the copy has %d pages, of which steps wait "
       "for %ld",
       BYTES / 4096, pages);
    if (written < 0)
        skip(1, "written bytes are not counted here");
    else
        ok(written < BYTES / 4, "they wait for %lld of %d bytes of files",
           written, BYTES);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    ok(system(command) == 0, "the folder is removed");
    ddp_finish(ddp);
    return done_testing();
}
