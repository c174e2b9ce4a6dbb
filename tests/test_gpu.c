/* test_gpu.c - which GPUs are used, and the message where none can be
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The driver is a made-up one (fake_cuda.c); no GPU is needed.
 */
#include "config.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda/gpu.h"
#include "defaults.h"
#include "tap.h"

#ifdef HAVE_CUDA

/* Which GPUs are found with this driver. */
static struct ddp__gpus find_of(const char *fake, struct ddp__gpus g)
{
    setenv("FAKE_CUDA", fake, 1);
    ddp__cuda_find(&g, 0);
    return g;
}

static struct ddp__gpus find(const char *fake)
{
    return find_of(fake, (struct ddp__gpus){0});
}

static void none(const char *fake, const char *part, const char *what)
{
    struct ddp__gpus g = find(fake);

    ok(g.count == 0 && strstr(g.why, part), "%s: %s", what, g.why);
}

static void refusals(void)
{
    char part[64];

    none("100 13000", "no GPU is visible", "a driver without a GPU");
    none("999 13000", "does not start: made up", "a driver that is broken");
    none("0 13000", "the machine has no GPU", "no GPU");
    snprintf(part, sizeof(part), "this build is of CUDA %d", DDP_CUDA_MAJOR);
    none("0 9020 0/9/0", part, "an old driver");
    none("0 99000 2/9/0", "nvidia-smi -i 0 -c DEFAULT", "a closed GPU");
    none("0 99000 3/9/46", "devices unavailable", "a busy GPU");
    none("0 99000 0/9/2", "has less than 64 MiB of memory left",
         "a GPU that others have filled");
    none("0 99000 0/9/0/0/63", "has less than 64 MiB of memory left",
         "a GPU that others have filled but for 63 MiB");
    ok(find("0 99000 0/9/0/0/64").count == 1, "64 MiB are enough to begin");
    none("0 99000 0/9/999", "does not start (made up)", "a GPU that is broken");
    none("0 99000 0/6/0/1", "compute capability 6.1, expected 7.",
         "a GPU of old");
    if (DDP_CUDA_OLDEST > 70)
        none("0 99000 0/7/0", "expected 7.5 or later; a build with CUDA 12",
             "a V100");
    setenv("DDP_LIBCUDA", "/nowhere/libcuda.so.1", 1);
    none("0 99000 0/9/0", "no NVIDIA driver", "no driver");
}

static void choices(void)
{
    struct ddp__gpus g = find("0 99000 0/9/0 3/9/46 3/9/0");

    ok(g.count == 2 && g.seen == 3 && g.id[0] == 0 && g.id[1] == 2 &&
           strstr(g.why, "GPU 1"),
       "of three GPUs the busy one is left out: %s", g.why);
    /* 6144 bits, twice in each of 3.2e9 cycles a second: 4.9 TB. */
    ok(strcmp(g.info[0].name, "Fake 0") == 0 && g.info[0].architecture == 90 &&
           g.info[0].units == 132 && g.info[0].clock_hz == 1.98e9 &&
           g.info[0].bytes_per_s > 4.9e12 && g.info[0].bytes_per_s < 4.95e12,
       "the first of them is described");
    setenv("FAKE_CUDA", "0 99000 0/9/2 0/9/0 0/9/0", 1);
    g = (struct ddp__gpus){0};
    ddp__cuda_find(&g, 1);
    ok(g.count == 1 && g.id[0] == 1 && strstr(g.why, "GPU 0"),
       "one that is asked for is the first that is free: %s", g.why);
    g = find("0 99000 0/9/0 0/10/0");
    ok(g.count == 1 && g.id[0] == 0 && strstr(g.why, "not like GPU 0"),
       "those of another model are left out: %s", g.why);
    g = find_of("0 99000 0/9/0 3/9/46 0/10/0",
                (struct ddp__gpus){.unlike = true});
    ok(g.count == 2 && g.id[1] == 2 && g.info[0].architecture == 90 &&
           g.info[1].architecture == 100,
       "unless they are asked for");
    g = find_of("0 99000 0/9/0 0/9/0 0/9/0", (struct ddp__gpus){.chosen = 6});
    ok(g.count == 2 && g.seen == 3 && g.id[0] == 1 && g.id[1] == 2,
       "of three that are equal, the two that were chosen");
    g = find("0 99000 0/7/0/5");
    ok(g.count == 1 && g.info[0].architecture == 75, "a T4 can be used: %s",
       g.why);
    ok(ddp__cuda_backends[0] &&
           strcmp(ddp__cuda_backends[0]->name, "cuda") == 0,
       "the module of kernels opens without a GPU");
}

static void module_lost(void)
{
    struct ddp__gpus g;
    char *dir = strdup(getenv("DDP_MODULE_DIR"));

    setenv("DDP_MODULE_DIR", "/nowhere", 1);
    g = find("0 99000 0/9/0");
    ok(g.count == 0 && strstr(g.why, "DDP_CUDA_LIBS"),
       "no kernels, no GPUs: %s", g.why);
    setenv("DDP_MODULE_DIR", dir, 1);
    free(dir);
}

/* As in a build with CUDA 12, which compiles for it. */
static void volta(void)
{
    int rc = ddp__cuda_load(70);

    ok(rc == 0 || strstr(ddp_errmsg(),
                         "does not support GPUs of compute capability 7.0"),
       "cuDNN 9.11 and later have nothing for a V100: %s",
       rc < 0 ? ddp_errmsg() : "an older one has");
}

static void starting(void)
{
    ddp_t *ddp;

    unsetenv("STARPU_NCUDA");
    setenv("FAKE_CUDA", "100 99000", 1);
    ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .cpus = 1});
    ok(ddp && strstr(ddp_describe(ddp), "GPUs not used: no GPU is visible"),
       "CPU workers do: %s", ddp ? ddp_describe(ddp) : ddp_errmsg());
    ddp_finish(ddp);
    ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .cpus = 1, .gpus = 1});
    ok(!ddp && ddp_errcode() == DDP_ENODEV &&
           strstr(ddp_errmsg(), "1 GPUs were asked for, 0 can be used: no GPU"),
       "unless GPUs are asked for: %s", ddp_errmsg());
    ddp_finish(ddp);
    ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .cpus = 1, .gpus = 0});
    ok(ddp && !strstr(ddp_describe(ddp), "GPU"), "or refused: %s",
       ddp ? ddp_describe(ddp) : ddp_errmsg());
    ddp_finish(ddp);
    setenv("DDP_UNLIKE_GPUS", "yes", 1);
    ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .cpus = 1});
    ok(!ddp && ddp_errcode() == DDP_EINVAL &&
           strstr(ddp_errmsg(), "DDP_UNLIKE_GPUS=yes, expected a number"),
       "a switch is 0 or 1: %s", ddp_errmsg());
    ddp_finish(ddp);
    unsetenv("DDP_UNLIKE_GPUS");
    setenv("STARPU_NCUDA", "2", 1);
    ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .cpus = 1, .gpus = 0});
    ok(!ddp && strstr(ddp_errmsg(), "2 GPUs were asked for"),
       "STARPU_NCUDA wins: %s", ddp_errmsg());
    ddp_finish(ddp);
}

static void refuses_gpus(const char *list, const char *part)
{
    ddp_t *ddp;

    setenv("STARPU_WORKERS_CUDAID", list, 1);
    ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .cpus = 1});
    ok(!ddp && ddp_errcode() == DDP_EINVAL && strstr(ddp_errmsg(), list) &&
           strstr(ddp_errmsg(), part),
       "STARPU_WORKERS_CUDAID=%s: %s", list, ddp ? "it started" : ddp_errmsg());
    ddp_finish(ddp);
    unsetenv("STARPU_WORKERS_CUDAID");
}

/* GPUs that are not there, on which StarPU crashes. */
static void chosen(void)
{
    unsetenv("STARPU_NCUDA");
    setenv("FAKE_CUDA", "0 99000 0/9/0 0/9/0", 1);
    refuses_gpus("999", "expected numbers from 0 to 1");
    refuses_gpus("0 2", "expected numbers from 0 to 1");
    refuses_gpus("0-2", "expected numbers from 0 to 1");
    refuses_gpus("one", "expected a list of numbers");
    setenv("STARPU_NCUDA", "2", 1);
    setenv("STARPU_WORKERS_CUDAID", "1", 1);
    ok(!ddp_init(&(struct ddp_config){START_DEFAULTS, .cpus = 1}) &&
           strstr(ddp_errmsg(), "2 GPUs were asked for, 1 can be used: STARPU_"
                                "WORKERS_CUDAID has no more"),
       "more than it has: %s", ddp_errmsg());
    unsetenv("STARPU_WORKERS_CUDAID");
    unsetenv("STARPU_NCUDA");
}

int main(void)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/tests/.libs/fake_cuda.so",
             getenv("builddir"));
    setenv("DDP_LIBCUDA", path, 1);
    module_lost();
    volta();
    choices();
    starting();
    chosen();
    refusals();
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA");
}

#endif
