/* runs.c - short runs of training that other benchmarks are made of
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/app.h"
#include "common/app_fail.h"
#include "bench.h"
#include "measure.h"
#include "profile.h"
#include "runs.h"

static int train_profiled(struct bench *b, struct bench_settings *s,
                          struct ddp_gpu_info *gpu)
{
    int rc;

    if (!(b->step_s = calloc((size_t)s->steps, sizeof(*b->step_s))))
        return app_exit_code(DDP_ENOMEM);
    if ((rc = bench_open(b, s)) != OPTS_GO)
        return rc;
    if (gpu && ddp_gpu_count(b->ddp, gpu) < 1)
        return OPTS_GO;
    if ((rc = bench_make_trainer(b, s)) != OPTS_GO)
        return rc;
    rc = ddp_trainer_train(b->trainer);
    return rc < 0 ? app_fail(rc) : OPTS_GO;
}

static void read_steps(struct bench *b, struct bench_steps *all)
{
    if (!all || !b->done)
        return;
    ddp_trainer_stats(b->trainer, &all->sums);
    all->step_s = bench_median(b->step_s, b->want);
}

/* The table is complete when the context has ended. */
static int profile_into(const char *path, struct bench_settings s,
                        struct profile *p, struct ddp_gpu_info *gpu,
                        struct bench_steps *all)
{
    struct bench b = {.skip = s.skip, .want = s.steps};
    int64_t steps;
    int rc;

    setenv("DDP_PROFILE", path, 1);
    rc = train_profiled(&b, &s, gpu);
    read_steps(&b, all);
    steps = b.done;
    bench_close(&b);
    unsetenv("DDP_PROFILE");
    if (rc != OPTS_GO || steps == 0)
        return rc;
    rc = profile_read(p, path, (double)steps);
    return rc ? rc : OPTS_GO;
}

int bench_profile(const struct bench_settings *s, struct profile *p,
                  struct ddp_gpu_info *gpu, struct bench_steps *all)
{
    const char *dir = getenv("TMPDIR");
    char path[4096];
    int fd, rc;

    *p = (struct profile){.row = NULL};
    snprintf(path, sizeof(path), "%s/ddp-profile-XXXXXX", dir ? dir : "/tmp");
    if ((fd = mkstemp(path)) < 0) {
        app_say("cannot write %s", path);
        return EXIT_FAILURE;
    }
    close(fd);
    rc = profile_into(path, *s, p, gpu, all);
    unlink(path);
    return rc;
}

static int run_for(struct bench *b, struct bench_settings *s, double seconds)
{
    int rc;

    if (!(b->step_s = calloc((size_t)s->steps, sizeof(*b->step_s))))
        return app_exit_code(DDP_ENOMEM);
    if ((rc = bench_open(b, s)) != OPTS_GO ||
        (rc = bench_count_work(b, s)) != OPTS_GO ||
        (rc = bench_make_trainer(b, s)) != OPTS_GO)
        return rc;
    b->until = app_now() + seconds;
    rc = ddp_trainer_train(b->trainer);
    return rc < 0 && rc != DDP_ESTOPPED ? app_fail(rc) : OPTS_GO;
}

int bench_speed(const struct bench_settings *settings, double seconds,
                struct bench_speed *out)
{
    struct bench_settings s = *settings;
    struct bench b = {.first = true, .skip = s.skip, .want = s.steps};
    int rc = run_for(&b, &s, seconds);
    double step = bench_median(b.step_s, b.done - b.skip - b.drained);

    *out = (struct bench_speed){step > 0 ? (double)s.batch / step : 0, b.flops,
                                s.batch};
    bench_close(&b);
    if (rc == OPTS_GO)
        return 0;
    return ddp_errcode() < 0 ? ddp_errcode() : DDP_ENOMEM;
}
