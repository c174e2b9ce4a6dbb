/* test_checkpoint_faults.c - input, workers, devices and disks that fail in a
 * run SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/writer.h"
#include "checkpoint_run.h"
#include "crash.h"
#include "runtime/context.h"
#include "runtime/lost.h"
#include "tap.h"

/* ---- input that fails --------------------------------------------------- */

/* Fail at this sample of the run: the steps before are not lost. */
static int64_t fail_reading(struct run r, int at, uint32_t want, int *wrong)
{
    struct ddp_checkpoint c;
    int64_t steps;
    bool good;
    int rc;

    clean();
    begin(&r);
    fail_input = at;
    rc = ddp_trainer_train(r.trainer);
    steps = ddp_trainer_steps(r.trainer);
    good = rc == DDP_EIO && strstr(ddp_errmsg(), ", reading input: ") &&
           !strstr(ddp_errmsg(), "the checkpoint of step ") == (steps == 0);
    if (!good)
        diag("%d: %s", rc, ddp_errmsg());
    end(&r);
    if (resume(r, &c) != want || c.step != steps || !good) {
        diag("sample %d: %d steps, resumed from step %d", at, (int)steps,
             (int)c.step);
        ++*wrong;
    }
    return steps;
}

static void test_bad_input(void)
{
    struct run r = usual();
    uint32_t want = undisturbed(r);
    int64_t most = 0, steps;
    int wrong = 0;

    r.cfg.checkpoint.dir = dir;
    for (int at = 1; at <= EPOCHS * COUNT; at += getenv("DDP_LONG") ? 1 : 9) {
        steps = fail_reading(r, at, want, &wrong);
        most = steps > most ? steps : most;
    }
    is_int(wrong, 0,
           "input that fails: all steps before are in a checkpoint, "
           "from which the run resumes to the same weights");
    ok(most > STEPS / 2, "of up to %d steps", (int)most);
}

/* A step that failed is not counted, so the next call makes it. */
static void test_failed_step(void)
{
    struct run r = usual();
    uint32_t want = undisturbed(r);
    int failures = 0;

    begin(&r);
    fail_input = 31;
    while (ddp_trainer_steps(r.trainer) < STEPS && failures < 9)
        failures += ddp_trainer_step(r.trainer, NULL) < 0;
    failures += ddp_trainer_wait(r.trainer) < 0;
    is_int(failures, 1, "a step fails");
    is_int(checksum(&r), want, "made again, it leads to the same weights");
    end(&r);
}

/* A worker dies in the middle of a run: the step fails, what was made before is
 * in a checkpoint, and without that worker the run continues from there. */
static void test_dead_worker(void)
{
    struct run r = usual();
    struct ddp_checkpoint c;
    uint32_t want;
    int64_t steps;
    int rc;

    clean();
    r.network.degree = COPIES;
    r.cfg.checkpoint.dir = dir;
    want = undisturbed(r);
    begin(&r);
    until_death = 22; /* of 40 sub-batches */
    rc = ddp_trainer_train(r.trainer);
    steps = ddp_trainer_steps(r.trainer);
    ok(rc == DDP_EDEVICE && steps > 0 && steps < STEPS &&
           strstr(ddp_errmsg(), ", copy on CPU ") &&
           strstr(ddp_errmsg(), "has all steps that were made"),
       "a worker that dies ends the run: %s", ddp_errmsg());
    end(&r);
    dead = -1;
    ok(resume(r, &c) == want && c.step == steps,
       "which resumes without it after step %d, to the same weights",
       (int)steps);
}

static bool nothing_broken(int device, char *words, size_t size)
{
    (void)device;
    (void)words;
    (void)size;
    return false;
}

static bool first_is_nan(ddp_chain_t *c)
{
    struct ddp_param_info info;
    float w[256];

    if (ddp_chain_param(c, 0, &info) < 0 || info.len > 256 ||
        ddp_chain_get(c, info.name, w, info.len) < 0) {
        diag("%s", ddp_errmsg());
        return false;
    }
    for (size_t i = 0; i < info.len; i++)
        if (!isnan(w[i]))
            return false;
    return true;
}

/* A device fails under StarPU: nothing that is in memory is used any more, and
 * the run resumes from a file. */
static void test_lost_device(void)
{
    static const struct ddp__backend backend = {.broken = nothing_broken};
    static const struct ddp__backend *const backends[] = {&backend, NULL};
    const struct ddp__device device = {.memory = STARPU_CUDA_RAM,
                                       .backends = backends};
    struct run r = usual();
    struct ddp_checkpoint c;
    uint32_t want, crc;
    int rc;

    clean();
    r.network.degree = COPIES;
    r.cfg.checkpoint.dir = dir;
    r.cfg.checkpoint.steps = 4;
    want = undisturbed(r);
    begin(&r);
    ddp__lost_watch(&device);
    until_loss = 22; /* of 40 sub-batches: in the seventh step */
    rc = ddp_trainer_train(r.trainer);
    ok(rc == DDP_EDEVICE && strstr(ddp_errmsg(), " was lost: ") &&
           strstr(ddp_errmsg(), " (in a_copy)") &&
           strstr(ddp_errmsg(),
                  "; no checkpoint of the steps so far: weights") &&
           ddp_trainer_steps(r.trainer) == 6,
       "a device that StarPU loses ends the run: %s", ddp_errmsg());
    ok(ddp_chain_checksum(r.chain, &crc) == DDP_EDEVICE &&
           (ddp_trainer_step(r.trainer, NULL) < 0 ||
            ddp_trainer_wait(r.trainer) < 0),
       "the weights cannot be read, nor trained");
    ddp_trainer_free(r.trainer);
    r.trainer = NULL;
    ddp_finish(ddp);
    ok(first_is_nan(r.chain), "those in main memory are NaN in the end");
    end(&r);
    if (!(ddp = ddp_init(NULL)))
        bail_out("%s", ddp_errmsg());
    ok(resume(r, &c) == want && c.step == 4,
       "the run resumes from step 4, to the same weights");
}

/* ---- death and full disks ----------------------------------------------- */

static struct run crash_run(void)
{
    struct run r = usual();

    r.cfg.epochs = 2;
    r.cfg.checkpoint =
        (struct ddp_checkpoint_config){.dir = dir, .steps = 2, .keep = 2};
    r.cfg.checkpoint_failures = 1;
    r.evaluates = true;
    return r;
}

/* Resume, without more than is needed. */
static uint32_t resume_crashed(struct ddp_checkpoint *c)
{
    struct run r = crash_run();

    r.evaluates = false;
    r.cfg.checkpoint.steps = 0;
    return resume(r, c);
}

/* Kill -9 at any call leaves the folder as it was before the call: each such
 * folder is resumed from. */
static void test_death(void)
{
    struct run r = crash_run();
    uint32_t want = undisturbed(r);
    int wrong = 0, fresh = 0, left = 0, points;

    clean();
    mkdir(copies, 0777);
    mkdir(dir, 0777);
    crash.copies = copies;
    crash_begin(CRASH_COPY, dir);
    begin(&r);
    is_int(finish(&r), want, "a run whose every step on disk is kept");
    points = crash.count;
    crash_begin(CRASH_OFF, NULL);
    /* Half a line in the writer's file reads as another machine's process. */
    ddp__writer_renew_ms = 100;
    for (int i = 0; i < points; i++) {
        struct ddp_checkpoint c;

        shell("rm -rf '%s'; mv '%s/%d' '%s'", dir, copies, i, dir);
        if (resume_crashed(&c) != want || c.skipped) {
            diag("killed at call %d: not the same weights", i);
            wrong++;
        }
        left += has_leftovers();
        fresh += c.step == 0;
    }
    ddp__writer_renew_ms = 10000;
    ok(points > 80, "there are %d moments to die at", points);
    is_int(wrong, 0, "at each of them the run resumes to the same weights");
    is_int(left, 0, "and removes what was being written then");
    ok(fresh < points / 2, "from the beginning only before the first is there");
}

/* Whether a failure of a call was reported: it ended the run, or there was time
 * for another checkpoint. */
static bool is_told(const struct run *r, int rc, int error, bool forever)
{
    struct ddp_checkpoint_failures f;

    if (rc == DDP_EIO)
        return strstr(ddp_errmsg(), strerror(error));
    ddp_trainer_checkpoint_failures(r->trainer, &f);
    return rc == 0 && !forever && f.count == 1 && f.in_a_row == 0 &&
           strstr(f.why, strerror(error));
}

static void fail_at(int at, int error, bool forever, uint32_t want, int *wrong)
{
    struct run r = crash_run();
    struct ddp_checkpoint c;
    bool reported, removal;
    int rc;

    clean();
    begin(&r);
    crash.at = at;
    crash.error = error;
    crash.forever = forever;
    crash_begin(CRASH_FAIL, dir);
    rc = ddp_trainer_train(r.trainer);
    crash.mode = CRASH_OFF;
    reported = is_told(&r, rc, error, forever);
    removal = !strcmp(crash.what, "unlink") && !forever;
    end(&r);
    crash.dir = NULL;
    /* What cannot be removed is in nobody's way. */
    if (!(reported || (removal && rc == 0)) || resume_crashed(&c) != want ||
        c.skipped) {
        diag("%s at call %d (%s): %d %s", strerror(error), at, crash.what, rc,
             reported ? "" : ddp_errmsg());
        ++*wrong;
    }
}

static void test_full_disk(void)
{
    int stride = getenv("DDP_LONG") ? 1 : 7, wrong = 0, points;
    struct run r = crash_run();
    uint32_t want = undisturbed(r);

    clean();
    begin(&r);
    crash_begin(CRASH_COUNT, dir);
    finish(&r);
    points = crash.count;
    is_int(crash.unsynced, 0,
           "files and folders are synced before they get "
           "their names, and those before links lead there");
    for (int i = 0; i < points; i += stride)
        fail_at(i, i % 2 ? ENOSPC : EIO, false, want, &wrong);
    is_int(wrong, 0,
           "%d calls that fail: each is reported, and nothing is lost",
           (points + stride - 1) / stride);
    for (int i = 0; i < points; i += 4 * stride)
        fail_at(i, ENOSPC, true, want, &wrong);
    is_int(wrong, 0, "and when all that follow fail as well");
}

/* The disk is full from this call on; how many steps the run makes. */
static int64_t fill_disk(int at, int failures,
                         struct ddp_checkpoint_failures *f)
{
    struct run r = crash_run();
    int64_t steps;

    clean();
    r.cfg.checkpoint_failures = failures;
    r.cfg.checkpoint.steps = 1;
    r.evaluates = false;
    begin(&r);
    crash.at = at;
    crash.error = ENOSPC;
    crash.forever = true;
    crash_begin(CRASH_FAIL, dir);
    is_int(ddp_trainer_train(r.trainer), DDP_EIO, "a full disk: DDP_EIO");
    crash.mode = CRASH_OFF;
    ddp_trainer_checkpoint_failures(r.trainer, f);
    steps = ddp_trainer_steps(r.trainer);
    crash.dir = NULL;
    end(&r);
    return steps;
}

static void test_tolerated(void)
{
    struct run r = crash_run();
    struct ddp_checkpoint_failures f;
    int64_t steps;

    steps = fill_disk(20, 0, &f);
    is_int((long)steps, 6, "a disk that is full does not stop a run");
    ok(f.count > 2 && f.in_a_row == f.count && f.step == 6 &&
           strstr(f.why, "No space left"),
       "every attempt is counted: %lld, the last of step %lld: %s",
       (long long)f.count, (long long)f.step, f.why);
    steps = fill_disk(20, 2, &f);
    ok(steps < 6 && f.count >= 2, "two failures may end it: after %lld steps",
       (long long)steps);
    r.cfg.checkpoint_failures = -1;
    ok(!begin(&r) && strstr(ddp_errmsg(), "checkpoint_failures is -1"),
       "a number below 0 is refused: %s", ddp_errmsg());
    end(&r);
}
int main(void)
{
    begin_program();
    test_bad_input();
    test_failed_step();
    test_dead_worker();
    test_lost_device();
    test_death();
    test_full_disk();
    test_tolerated();
    end_program();
    return done_testing();
}
