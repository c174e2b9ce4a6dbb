/* test_checkpoint_files.c - damaged checkpoints, strange files, other writers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/writer.h"
#include "checkpoint_run.h"
#include "crash.h"
#include "tap.h"

/* ---- damage ------------------------------------------------------------- */

static void test_damaged(void)
{
    static const char *const file[] = {"model.safetensors", "optim.safetensors",
                                       "trainer.json", "MANIFEST.json"};
    struct run r = usual();
    uint32_t want = undisturbed(r);
    struct ddp_checkpoint c;
    char kept[512], before[2048];

    clean();
    r.cfg.checkpoint.dir = dir;
    r.cfg.checkpoint.steps = 2;
    r.stop_at = 8;
    begin(&r);
    ddp_trainer_train(r.trainer);
    ddp_trainer_checkpoint(r.trainer);
    end(&r);
    ddp_model_new("none such", NULL);
    snprintf(before, sizeof(before), "%s", ddp_errmsg());
    snprintf(kept, sizeof(kept), "%s/kept", top);
    shell("rm -rf '%s'; cp -a '%s' '%s'", kept, dir, kept);
    for (int i = 0; i < 16; i += getenv("DDP_LONG") ? 1 : 5) {
        const char *path = step_path(8, file[i % 4]);

        shell("rm -rf '%s'; cp -a '%s' '%s'", dir, kept, dir);
        if (i < 4)
            spoil(path);
        else if (i < 8)
            shell("truncate -s -1 '%s'", path);
        else if (i < 12)
            unlink(path);
        else
            shell("rm '%s'; mkfifo '%s'", path, path);
        is_int(resume(r, &c), want, "%s damaged: the one before does it",
               file[i % 4]);
        ok(c.step == 6 && c.skipped == 1 && strstr(c.why, dir),
           "and the reason is reported: %s", c.why);
        ok(!strcmp(ddp_errmsg(), before),
           "what succeeded leaves the message as it was: %s", ddp_errmsg());
    }
    shell("rm -rf '%s'; mv '%s' '%s'", dir, kept, dir);
    for (int s = 4; s <= 8; s += 2)
        spoil(step_path(s, "model.safetensors"));
    begin(&r);
    is_int(ddp_trainer_resume(r.trainer, NULL, NULL), DDP_EDATA,
           "none is whole: nothing is thrown away");
    end(&r);
}

/* What somebody copied or put there is replaced if it is a checkpoint, and not
 * in the way. */
static void test_strange_folders(void)
{
    struct run r = usual();
    uint32_t want = undisturbed(r);
    struct ddp_checkpoint c;
    struct stat st;
    char link[256];

    r.cfg.checkpoint.dir = dir;
    r.cfg.checkpoint.steps = 1;
    for (int i = 0; i < 2; i++) {
        stop_after(r, 4);
        snprintf(link, sizeof(link), "%s/latest", dir);
        shell("rm '%s'", link);
        if (i)
            mkdir(link, 0777);
        else
            shell("cp -a '%s' '%s'", step_path(4, ""), link);
        is_int(resume(r, &c), want, "a folder named latest is not in the way");
        is_int(lstat(link, &st), 0, "it is there");
        is_int(S_ISLNK(st.st_mode), i == 0, i ? "as it was" : "replaced");
    }
    stop_after(r, 4);
    shell("mkdir -p '%s/.tmp-step-000000000005/a/b'; "
          "touch '%s/.tmp-step-000000000005/a/b/c'",
          dir, dir);
    is_int(resume(r, &c), want, "a folder in one that was being written");
    ok(!there(".tmp-step-000000000005"), "it is removed");
}

static void test_one_writer(void)
{
    struct run a = usual(), b = usual();

    clean();
    a.cfg.checkpoint.dir = b.cfg.checkpoint.dir = dir;
    begin(&a);
    is_int(ddp_trainer_resume(a.trainer, NULL, NULL), 0, "an empty folder");
    begin(&b);
    is_int(ddp_trainer_train(b.trainer), DDP_EINVAL,
           "a second writer is refused");
    ok(strstr(ddp_errmsg(), "another trainer of this process, since 20"),
       "the message names the first, and since when: %s", ddp_errmsg());
    shell("echo 77 elsewhere 2026-01-02T03:04:05Z >'%s/.writer'", dir);
    crash.no_locks = true;
    is_int(ddp_trainer_train(b.trainer), DDP_EINVAL, "a lock of elsewhere");
    ok(strstr(ddp_errmsg(), "process 77 on the machine elsewhere, since "
                            "2026-01-02T03:04:05Z, last renewed 20") &&
           strstr(ddp_errmsg(), "Z, is writing"),
       "the message names the machine, and when it was last seen: %s",
       ddp_errmsg());
    shell("echo none >'%s/.writer'", dir);
    is_int(ddp_trainer_train(b.trainer), DDP_EINVAL, "a lock of nobody");
    ok(strstr(ddp_errmsg(), "another process, perhaps on another machine, is"),
       "the message guesses: %s", ddp_errmsg());
    crash.no_locks = false;
    end(&b);
    end(&a);
}

/* ---- a writer on another machine ---------------------------------------- */

static void put_writer(void)
{
    shell("echo 77 elsewhere 2026-01-02T03:04:05Z another-boot >'%s/.writer'",
          dir);
}

static char writer_path[128];

static struct timespec writer_time(void)
{
    struct stat st = {0};

    snprintf(writer_path, sizeof(writer_path), "%s/.writer", dir);
    stat(writer_path, &st);
    return st.st_mtim;
}

static bool later(struct timespec a, struct timespec b)
{
    return a.tv_sec > b.tv_sec ||
           (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

static atomic_bool renewing;

/* As that process would. */
static void *renew_writer(void *arg)
{
    const struct timespec t = {0, 30000000};

    while (renewing) {
        utimensat(AT_FDCWD, arg, NULL, 0);
        nanosleep(&t, NULL);
    }
    return NULL;
}

/* Where the file system's lock does not reach, as here, who writes is seen by
 * the file that it renews. */
static void test_elsewhere(void)
{
    struct run r = usual();
    const struct timespec t = {0, 300000000};
    struct timespec before;
    pthread_t thread;
    int rc;

    clean();
    ddp__writer_renew_ms = 100;
    shell("mkdir '%s'", dir);
    put_writer();
    before = writer_time();
    r.cfg.checkpoint.dir = dir;
    begin(&r);
    renewing = true;
    pthread_create(&thread, NULL, renew_writer, writer_path);
    rc = ddp_trainer_resume(r.trainer, NULL, NULL);
    renewing = false;
    pthread_join(thread, NULL);
    ok(rc == DDP_EINVAL &&
           strstr(ddp_errmsg(), "process 77 on the machine elsewhere, since "
                                "2026-01-02T03:04:05Z, last renewed 20"),
       "a writer on another machine that lives: %s", ddp_errmsg());
    is_int(ddp_trainer_resume(r.trainer, NULL, NULL), 0,
           "one that does not is succeeded");
    before = writer_time();
    for (int i = 0; i < 100 && !later(writer_time(), before); i++)
        nanosleep(&t, NULL); /* at once, but on a busy machine */
    ok(later(writer_time(), before), "who succeeds renews its own file");
    put_writer();
    ddp_trainer_step(r.trainer, NULL);
    ok(ddp_trainer_checkpoint(r.trainer) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "process 77 on the machine elsewhere"),
       "who has been succeeded writes no checkpoint: %s", ddp_errmsg());
    before = writer_time();
    nanosleep(&t, NULL);
    ok(!later(writer_time(), before), "nor renews another's file");
    end(&r);
    ok(there(".writer"), "nor removes it");
    ddp__writer_renew_ms = 1000000;
    shell("touch -d '3 hours ago' '%s'", writer_path);
    begin(&r);
    is_int(ddp_trainer_resume(r.trainer, NULL, NULL), 0,
           "one that has been silent for hours is succeeded at once");
    end(&r);
    ok(!there(".writer"), "a run that ends leaves no file");
    ddp__writer_renew_ms = 10000;
}

int main(void)
{
    begin_program();
    test_damaged();
    test_strange_folders();
    test_one_writer();
    test_elsewhere();
    end_program();
    return done_testing();
}
