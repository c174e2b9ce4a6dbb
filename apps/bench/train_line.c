/* train_line.c - the line of JSON that "ddp-bench train" prints
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdio.h>

#include "common/app.h"
#include "measure.h"
#include "train_line.h"

/* The part of a step in which a GPU runs no kernel. */
static void print_idle(const struct bench *b, double img)
{
    double kernels =
        b->kernel_s * img / (double)b->batch / ddp_gpu_count(b->ddp, NULL);

    if (b->kernel_s < 0)
        printf("\"gpu_idle_share\":null,");
    else
        printf("\"gpu_idle_share\":%.4f,", fmax(0, 1 - kernels));
}

/* Fields for GPUs only. */
static void print_gpus(const struct bench *b, double img,
                       const struct ddp_stats *st)
{
    double steps = (double)(st->steps - b->before.steps);
    double submit_s = st->submit_s - b->before.submit_s;

    if (!ddp_gpu_worker_count(b->ddp))
        return;
    print_idle(b, img);
    printf("\"gpu_workers\":%d,\"tflops\":%.2f,\"submit_us\":%.1f,",
           ddp_gpu_worker_count(b->ddp), img * b->flops * 1e-12,
           steps > 0 ? 1e6 * submit_s / steps : 0);
    if (b->roof.flops > 0)
        printf("\"roof_img_per_s\":%.1f,\"roof_share\":%.4f,"
               "\"mib_per_img\":%.2f,",
               1 / b->at_least.seconds, img * b->at_least.seconds,
               b->at_least.bytes / (1024 * 1024));
}

/* What was computed: a number that JSON does not have is null. */
static void print_result(const struct bench *b)
{
    uint32_t crc = 0;

    if (isfinite(b->loss))
        printf("\"loss\":%.9g,", b->loss);
    else
        printf("\"loss\":null,");
    if (ddp_chain_checksum(b->chain, &crc) == 0)
        printf("\"weights\":\"%08x\",", crc);
}

static void print_settings(const struct bench *b,
                           const struct bench_settings *s)
{
    printf("\"bench\":\"train\",\"model\":");
    app_json_text(stdout, s->model);
    printf(",\"img_size\":%lld,\"dtype\":\"%s\",\"input\":\"%s\","
           "\"sub_batch\":%lld,\"lanes\":%lld,\"batch\":%lld,\"steps\":%lld,",
           (long long)s->img_size, dtypes[s->dtype], inputs[s->input],
           (long long)s->sub_batch, (long long)s->lanes, (long long)s->batch,
           (long long)b->want);
}

static void print_speed(const struct bench *b, double step, double img)
{
    printf("\"start_s\":%.3f,\"img_per_s\":%.3f,\"step_ms\":%.3f,"
           "\"peak_share\":%.4f,\"peak_base\":",
           b->start_s, img, step * 1e3, img * b->flops / b->peak.flops);
    app_json_text(stdout, b->peak_base);
    printf(",\"peak_gflops\":%.1f,\"gflop_per_img\":%.4f,",
           b->peak.flops * 1e-9, b->flops * 1e-9);
}

static void print_tasks(const struct bench *b, const struct ddp_stats *st)
{
    double worker_s = st->wall_s * ddp_worker_count(b->ddp);

    printf("\"tasks\":%.1f,\"sched_share\":%.5f,\"exec_share\":%.4f,"
           "\"data_share\":%.5f,",
           st->steps ? (double)st->tasks / (double)st->steps : 0,
           worker_s > 0 ? st->sched_s / worker_s : 0,
           worker_s > 0 ? st->exec_s / worker_s : 0, b->data_share);
}

static void print_machine(const struct bench *b, const struct ddp_stats *st)
{
    printf("\"buffers_mib\":%.1f,\"peak_rss_mib\":%.1f,\"devices\":",
           (double)st->peak_bytes / (1024 * 1024), bench_peak_rss_mib());
    app_json_text(stdout, ddp_describe(b->ddp));
    printf(",\"version\":");
    app_json_text(stdout, ddp_version());
}

void train_line_print(const struct bench *b, const struct bench_settings *s,
                      const struct ddp_stats *st)
{
    double step = bench_median(b->step_s, b->want);
    double img = step > 0 ? (double)s->batch / step : 0;

    printf("{");
    print_settings(b, s);
    print_speed(b, step, img);
    print_gpus(b, img, st);
    print_tasks(b, st);
    print_result(b);
    print_machine(b, st);
    printf("}\n");
}
