/* train.c - "ddp-bench train": training steps without the cost of input
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/app.h"
#include "common/app_fail.h"
#include "common/cores.h"
#include "bench.h"
#include "measure.h"
#include "parts.h"
#include "peak.h"
#include "profile.h"
#include "rows.h"
#include "runs.h"
#include "train.h"
#include "train_line.h"

static const char *const backends[] = {"cpu", "ref", NULL};

static const struct opt_group options = {
    "Options",
    (const struct opt[]){
        NETWORK_ROWS("resnet18"),
        SHAPE_ROWS,
        DTYPE_ROW("f32", dtypes),
        CHOICE("input", input, "TYPE", "u8", inputs,
               "type of the input images"),
        SUB_BATCH_ROW("16"),
        INT("lanes", lanes, NULL, 1, 65536,
            "gradient accumulators [one per worker]"),
        INT("batch-size", batch, NULL, 1, 1 << 24,
            "images per step [--lanes sub-batches]", .letter = 'b'),
        INT("steps", steps, "20", 1, 1e6, "steps to measure"),
        INT("skip", skip, "3", 1, 1e6, "warm-up steps before them"),
        FLAG("model-ema", ema,
             "keep averages of the weights, as imagenet does"),
        FLAG("shard-optimizer", shard,
             "with several ranks: each keeps a part of the optimizer's state"),
        INT("workers", workers, NULL, 1, 4096,
            "CPU workers; STARPU_NCPU overrides it [one per core]",
            .letter = 'j'),
        CHOICE("backend", backend, "NAME", "cpu", backends,
               "kernels of CPU workers: oneDNN (cpu) or plain C (ref)"),
        INT("peak", peak, NULL, 1, 1e6,
            "peak of all devices in TFLOP/s, which peak_share is relative to "
            "[measured]"),
        TEXT("trace", trace, "FILE", NULL,
             "write the tasks of the measured steps to FILE, of other ranks to "
             "FILE.R: for ui.perfetto.dev"),
        FLAG("table", table,
             "print a table of where a step's time goes, in place of the line"),
        FLAG("inspect", inspect,
             "first print FLOPs and memory of each layer on stderr"),
        END,
    },
};

const struct opt_command bench_train_command = {
    .name = "ddp-bench train",
    .about =
        "Train on images generated in advance; print one line of JSON, or with "
        "--table where a step's time goes.\n"
        "\n"
        "start_s is the time from the making of the network to the end of the "
        "first step, step_ms the median time between the ends of consecutive "
        "steps, and "
        "img_per_s the batch size over it. peak_share is the FLOP/s of "
        "convolutions and dense layers (forward, and backward without the "
        "gradient of the images) relative to the peak of the workers' cores, "
        "which is measured just before, times the ranks, or to --peak. On GPUs "
        "the peak is known from their model; roof_share is the speed relative "
        "to the limit set by their arithmetic and memory, layer by layer; "
        "gpu_idle_share is the fraction of time without a running kernel, "
        "whose durations are measured in a short run before, submit_us the "
        "host's time to submit a step. sched_share and data_share are "
        "fractions of "
        "wall time times workers. loss is the last step's, weights the CRC32C "
        "of the parameters after it.",
    .group = (const struct opt_group *const[]){&options, NULL},
};

/* The peak of the workers' cores, before their threads keep them busy, or
 * --peak. */
static int measure_peak(struct bench *b, const struct bench_settings *s)
{
    int cores = app_cores(), n = bench_workers(s->workers);

    if (s->peak) {
        b->peak.flops = 1e12 * (double)s->peak;
        strcpy(b->peak_base, "--peak");
        return OPTS_GO;
    }
    if (n > cores)
        n = cores;
    if (peak_measure(&b->peak, bench_dtype(s), n, 0.3) < 0) {
        app_say("cannot start threads");
        return EXIT_FAILURE;
    }
    snprintf(b->peak_base, sizeof(b->peak_base), "%s, %d cores", b->peak.base,
             b->peak.cores);
    return OPTS_GO;
}

enum { FEW = 2 }; /* steps, after one to warm up and those of on_step() */

/* Only with GPUs, and not if the user wants a profile of the whole run.  There
 * is one context at a time: this one starts again. */
static int measure_kernels(struct bench *b, struct bench_settings *s)
{
    struct bench_settings few = *s;
    struct ddp_gpu_info gpu;
    struct profile p;
    int rc;

    b->kernel_s = -1;
    if (!ddp_gpu_worker_count(b->ddp) || getenv("DDP_PROFILE"))
        return OPTS_GO;
    bench_close_model(b);
    few.steps = FEW;
    few.skip = 1;
    rc = bench_profile(&few, &p, &gpu, NULL);
    if (p.rows)
        b->kernel_s = profile_seconds(&p);
    profile_free(&p);
    return rc == OPTS_GO ? bench_open(b, s) : rc;
}

static int run_bench(struct bench *b, struct bench_settings *s)
{
    struct ddp_stats stats = {0};
    int rc;

    b->step_s = calloc((size_t)s->steps, sizeof(*b->step_s));
    if (!b->step_s)
        return app_exit_code(DDP_ENOMEM);
    if ((rc = measure_peak(b, s)) != OPTS_GO ||
        (rc = bench_open(b, s)) != OPTS_GO ||
        (rc = measure_kernels(b, s)) != OPTS_GO ||
        (rc = bench_count_work(b, s)) != OPTS_GO ||
        (rc = bench_make_trainer(b, s)) != OPTS_GO)
        return rc;
    b->batch = s->batch;
    if ((rc = ddp_trainer_train(b->trainer)) < 0 ||
        (rc = ddp_trainer_stats(b->trainer, &stats)) < 0)
        return app_fail(rc);
    if (s->table)
        parts_print(&b->parts, &stats, ddp_worker_count(b->ddp));
    else
        train_line_print(b, s, &stats);
    return 0;
}

int bench_train_run(struct opts *o, struct bench_settings *s)
{
    struct bench b = {.first = true,
                      .skip = s->skip,
                      .want = s->steps,
                      .inspect = s->inspect};
    int rc = run_bench(&b, s);

    (void)o;
    bench_close(&b);
    return rc;
}
