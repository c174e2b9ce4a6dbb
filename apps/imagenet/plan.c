/* plan.c - how a step is divided and what memory it needs, in lines
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/app.h"
#include "common/app_log.h"
#include "common/app_times.h"
#include "plan.h"
#include "setup_network.h"

/* Lanes are the user's, since they determine the weights; but that they leave
 * devices idle is said, with what would not. */
static void advise_lanes(const struct settings *s)
{
    int workers = s->devices;
    long long sub_batch = (s->batch + workers - 1) / workers;

    if (s->lanes >= workers)
        return;
    app_say("--lanes %lld keeps %lld of %d devices busy; --sub-batch %lld "
            "--lanes %lld has the same batch and uses more, but changes the "
            "weights",
            (long long)s->lanes, (long long)s->lanes, workers, sub_batch,
            (long long)((s->batch + sub_batch - 1) / sub_batch));
}

/* On more devices than the usual lanes the choice is the machine's, not the
 * user's. */
static void explain_split(const struct opts *o, const struct settings *s)
{
    if (s->devices > 8 &&
        !(opts_given(o, "batch-size") && opts_given(o, "sub-batch") &&
          opts_given(o, "lanes")))
        app_print(
            "  elsewhere, --batch-size %lld --sub-batch %lld --lanes %lld "
            "gives the same weights\n",
            (long long)s->batch, (long long)s->sub_batch, (long long)s->lanes);
}

static long long least(long long a, long long b)
{
    return a < b ? a : b;
}

/* The most that memory has room for: a GPU has one more than it computes, which
 * waits until that is done. */
static long long room(ddp_t *ddp, const struct ddp_memory_plan *m)
{
    int gpus = ddp_gpu_worker_count(ddp) ? ddp_gpu_count(ddp, NULL) : 1;

    return (long long)m->in_flight * gpus * ddp_rank_count(ddp);
}

static void print_limit(const struct settings *s, ddp_t *ddp, long long subs,
                        const struct ddp_memory_plan *m)
{
    long long lanes = least(s->lanes, subs), now = least(lanes, s->devices);
    bool turns = m->in_flight < m->wanted && room(ddp, m) < now;

    if (turns)
        now = room(ddp, m);
    if (now == subs)
        app_print("plan: all %lld sub-batches at a time\n", subs);
    else
        app_print("plan: %lld of %lld sub-batches at a time, limited by the "
                  "%s\n",
                  now, subs,
                  turns                ? "memory"
                  : lanes < s->devices ? "lanes"
                                       : "devices");
    if (s->sync_bn)
        app_print("  all in memory: with --sync-bn they go through the network "
                  "together\n");
}

/* Where it is: a GPU of several, or the machine. */
static void print_memory(ddp_t *ddp, const struct ddp_memory_plan *m)
{
    const double mib = 1 << 20;

    app_print("memory: %.0f of %.0f MiB%s: weights %.0f, gradients %.0f, "
              "optimizer %.0f, activations %.0f, input %.0f, scratch %.0f\n",
              (m->weights + m->copies + m->gradients + m->state +
               m->activations + m->input + m->scratch) /
                  mib,
              m->have / mib, ddp_gpu_worker_count(ddp) ? " of a GPU" : "",
              (m->weights + m->copies) / mib, m->gradients / mib,
              m->state / mib, m->activations / mib, m->input / mib,
              m->scratch / mib);
    if (m->in_flight < m->wanted)
        app_print("  only %d of %d sub-batches at a time: more memory, or a "
                  "smaller --sub-batch, would be faster\n",
                  m->in_flight, m->wanted);
    if (m->evicted > 0)
        app_print(
            "  %.0f MiB of gradients and optimizer state go to main memory "
            "and back in each step, which takes time\n",
            m->evicted / mib);
}

/* From what the GPUs reach, of which none need have run anything. */
static void print_gpu_time(const struct settings *s, ddp_t *ddp,
                           const ddp_trainer_t *t)
{
    struct ddp_gpu_info gpu = {.units = 0};
    struct ddp_device_speed speed = {.flops = 0};
    struct ddp_time_plan p;

    ddp_gpu_count(ddp, &gpu);
    ddp_gpu_speed(&gpu, setup_dtype(s), &speed);
    if (!(speed.flops > 0 && speed.bytes_per_s > 0)) {
        app_print("time: not known: the driver does not say how fast a GPU "
                  "is\n");
        return;
    }
    if (ddp_trainer_time(t, &p) == 0)
        app_print("time: about %.1f ms a step, %.0f images/s, estimated for "
                  "%s with %.0f TFLOP/s and %.1f TB/s\n",
                  1e3 * p.seconds, (double)s->batch / p.seconds, gpu.name,
                  1e-12 * speed.flops, 1e-12 * speed.bytes_per_s);
}

/* The command that measures what is missing. */
static void print_calibrate(const struct settings *s)
{
    app_print(": ddp-bench calibrate --model %s --img-size %lld --sub-batch "
              "%lld --dtype %s measures that\n",
              s->model, (long long)s->img_size, (long long)s->sub_batch,
              setup_dtype(s) == DDP_BF16 ? "bf16" : "f32");
}

/* From times that somebody has measured on this machine. */
static void print_measured(const struct settings *s, ddp_t *ddp,
                           const ddp_trainer_t *t, const char *path)
{
    struct ddp_time_plan p;

    if (app_times_read(path, ddp_worker_count(ddp)) ||
        ddp_trainer_time(t, &p) < 0)
        return;
    app_print("time: about %.0f ms a step, %.1f images/s, by %s\n",
              1e3 * p.seconds, (double)s->batch / p.seconds, path);
    if (!p.unknown)
        return;
    app_print("  %d of %d operations are not there", p.unknown, p.operations);
    print_calibrate(s);
}

static void print_cpu_time(const struct settings *s, ddp_t *ddp,
                           const ddp_trainer_t *t)
{
    char *place = s->times ? NULL : app_times_place();

    if (s->times || (place && access(place, R_OK) == 0)) {
        print_measured(s, ddp, t, place ? place : s->times);
    } else {
        app_print("time: not known");
        print_calibrate(s);
    }
    free(place);
}

void plan_print(const struct opts *o, const struct settings *s, ddp_t *ddp,
                const ddp_trainer_t *t)
{
    long long subs = (s->batch + s->sub_batch - 1) / s->sub_batch;
    struct ddp_memory_plan m = {0};
    int rc = ddp_trainer_memory(t, &m);

    app_print("batch: %lld images a step, on all %d devices together: %lld "
              "sub-batches of up to %lld in %lld lanes\n",
              (long long)s->batch, s->devices, subs, (long long)s->sub_batch,
              (long long)s->lanes);
    explain_split(o, s);
    advise_lanes(s);
    print_limit(s, ddp, subs, &m);
    if (rc == 0 && m.have > 0)
        print_memory(ddp, &m);
    if (ddp_gpu_worker_count(ddp))
        print_gpu_time(s, ddp, t);
    else
        print_cpu_time(s, ddp, t);
}
