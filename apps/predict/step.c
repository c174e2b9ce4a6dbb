/* step.c - training on one simulated machine: one line of JSON
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Run by ddp-predict, which describes the machine to StarPU by its environment.
 * Its library is libddp in a build against StarPU's SimGrid flavour.
 */
#include "config.h"
#include <stdlib.h>
#include <string.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "common/app_times.h"
#include "predict.h"

struct step {
    const struct predict_settings *s;
    ddp_t *ddp;
    ddp_chain_t *chain;
    ddp_dataset_t *data;
    ddp_trainer_t *trainer;
    struct ddp_simulation before, after; /* around the measured steps */
};

/* No image is computed with, so only its label is set. */
static int get_sample(void *arg, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    const struct predict_settings *p = arg;

    (void)key;
    s->label = (int32_t)(index % p->classes);
    return 0;
}

/* The measured steps begin. */
static int begin(struct step *b)
{
    int rc = ddp_simulation_stall(0, 1e-3 * b->s->stall);

    return rc < 0 ? rc : ddp_simulation_read(&b->before);
}

static int on_step(const struct ddp_progress *p, void *arg)
{
    struct step *b = arg;

    if (p->step == b->s->skip)
        return begin(b);
    if (p->step == b->s->skip + b->s->steps)
        return ddp_simulation_read(&b->after);
    return 0;
}

static int set_speed(const struct predict_settings *s)
{
    int rc = s->times ? app_times_read(s->times, predict_counts(s)[0]) : 0;

    if (rc)
        return rc;
    for (int i = 0; rc == 0 && s->slow[i]; i++)
        rc = ddp_simulation_set_slowness(i, s->slow[i]);
    if (rc == 0)
        rc = ddp_simulation_set_numa(
            s->numa[0], s->far > 1 ? 1e12 * s->tbs / (s->far - 1) : 0);
    if (rc == 0 && s->nodes[0])
        rc = ddp_simulation_set_nodes(
            s->nodes[0], &(struct ddp_network_speed){
                             .bytes_per_s = 0.85 * s->net * 1e9 / 8,
                             .latency_s = s->net_latency * 1e-6,
                             .message_s = s->net_message * 1e-6,
                             .copy_bytes_per_s = s->pcie * 1e9,
                             .copy_latency_s = s->pcie_latency * 1e-6});
    if (rc < 0)
        return app_fail(rc);
    rc = ddp_simulation_set_speed(
        s->cpus[0] ? DDP_CPU : DDP_CUDA,
        &(struct ddp_device_speed){.launch_s = s->launch * 1e-6,
                                   .flops = s->tflops * 1e12,
                                   .bytes_per_s = s->tbs * 1e12});
    return rc < 0 ? app_fail(rc) : 0;
}

/* Mostly the configuration of the run. */
static int open_run(struct step *b)
{
    const struct predict_settings *s = b->s;
    int size = (int)s->img_size, sizes[] = {size * size * 3, 512, 512, 0};
    struct ddp_model_options m;
    struct ddp_train_config cfg;
    struct ddp_config start;

    ddp_train_config_init(&cfg);
    cfg.optimizer = ddp_momentum(0.01f, 0.9f);
    cfg.dtype = s->dtype == 0 ? DDP_F32 : s->dtype == 1 ? DDP_BF16 : DDP_F16;
    cfg.sub_batch = (int)s->sub_batch;
    cfg.lanes = (int)s->lanes;
    cfg.batch = (int)(s->sub_batches * s->sub_batch);
    cfg.steps = s->skip + s->steps + 1; /* the last step is not measured */
    cfg.keep_weights = true;
    cfg.trace = s->trace;
    cfg.trace_first = s->skip;
    cfg.trace_steps = 2;
    cfg.on_step = on_step;
    cfg.arg = b;
    ddp_model_options_init(&m);
    m.classes = (int)s->classes;
    m.small_stem = s->small_stem;
    if (!strcmp(s->model, "mlp"))
        m.sizes = sizes;
    ddp_config_init(&start);
    start.gpus = s->cpus[0] ? 0 : s->gpus[0];
    b->ddp = ddp_init(&start);
    b->chain = ddp_model_new(s->model, &m);
    b->data = ddp_dataset_callback(
        &(struct ddp_source){.count = cfg.batch * cfg.steps,
                             .shape = {size, size, 3},
                             .type = DDP_U8,
                             .classes = (int)s->classes,
                             .get = get_sample,
                             .arg = (void *)s});
    b->trainer = ddp_trainer_new(b->ddp, b->chain, b->data, &cfg);
    return b->trainer ? 0 : app_fail(ddp_errcode());
}

/* GiB that the CPU workers read in a step. */
static void print_reads(const struct step *b)
{
    const struct ddp_simulation *from = &b->before, *to = &b->after;
    double unit = (double)b->s->steps * (1 << 30);

    printf(
        "\"numa\":%d,\"read_gib\":%.4f,\"remote_gib\":%.4f,\"once_gib\":%.4f,",
        b->s->numa[0], (to->read_bytes - from->read_bytes) / unit,
        (to->remote_bytes - from->remote_bytes) / unit,
        (to->once_bytes - from->once_bytes) / unit);
}

static void print_line(const struct step *b, const struct ddp_stats *st,
                       const struct ddp_simulation *all)
{
    const struct predict_settings *s = b->s;
    double seconds = b->after.now_s - b->before.now_s;
    double step = seconds / (double)s->steps;
    double busy = b->after.busy_s - b->before.busy_s;
    int devices = ddp_worker_count(b->ddp);
    int nodes = s->nodes[0] ? s->nodes[0] : 1;
    struct ddp_memory_plan m = {0};
    struct ddp_time_plan plan = {0};

    ddp_trainer_memory(b->trainer, &m);
    ddp_trainer_time(b->trainer, &plan);
    printf("{\"bench\":\"predict\",\"model\":");
    app_json_text(stdout, s->model);
    printf(",\"img_size\":%lld,\"dtype\":\"%s\",\"sub_batch\":%lld,"
           "\"lanes\":%lld,\"sub_batches\":%lld,\"nodes\":%d,\"%s\":%d,",
           (long long)s->img_size, predict_dtypes[s->dtype],
           (long long)s->sub_batch, (long long)s->lanes,
           (long long)s->sub_batches, nodes, s->cpus[0] ? "cpus" : "gpus",
           devices);
    printf("\"step_ms\":%.4f,\"planned_step_ms\":%.4f,\"img_per_s\":%.2f,"
           "\"idle_share\":%.4f,",
           step * 1e3, 1e3 * plan.seconds,
           nodes * (double)(s->sub_batches * s->sub_batch) / step,
           1 - busy / (devices * seconds));
    if (s->numa[0] > 1)
        print_reads(b);
    printf("\"lanes_run\":%lld,\"lanes_split\":%lld,\"tasks\":%.1f,"
           "\"peak_gpu_mib\":%.1f,\"planned_gpu_mib\":%.1f,"
           "\"copies_gpu_mib\":%.1f,\"evicted_gpu_mib\":%.1f,\"unknown\":%d,"
           "\"version\":",
           (long long)all->lanes, (long long)all->split_lanes,
           (double)st->tasks / (double)st->steps,
           (double)all->peak_bytes / (1 << 20),
           (m.weights + m.gradients + m.state + m.activations + m.input +
            m.scratch) /
               (1 << 20),
           m.copies / (1 << 20), m.evicted / (1 << 20), all->unknown);
    app_json_text(stdout, ddp_version());
    printf("}\n");
}

static int predict(struct step *b)
{
    struct ddp_simulation all;
    struct ddp_stats stats;
    int rc;

    if ((rc = set_speed(b->s)) != 0 || (rc = open_run(b)) != 0)
        return rc;
    if ((rc = ddp_trainer_train(b->trainer)) < 0 ||
        (rc = ddp_trainer_stats(b->trainer, &stats)) < 0 ||
        (rc = ddp_simulation_read(&all)) < 0)
        return app_fail(rc);
    print_line(b, &stats, &all);
    return 0;
}

int main(int argc, char **argv); /* compiled as starpu_main(): local.mk */

int main(int argc, char **argv)
{
    struct predict_settings s = {0};
    struct step b = {.s = &s};
    struct opts o;
    int rc;

    app_start("ddp-predict");
    rc = opts_parse(&o, &predict_command, &s, argc, argv);
    predict_resolve(&s);
    if (rc == OPTS_GO)
        rc = predict(&b);
    ddp_trainer_free(b.trainer);
    ddp_dataset_free(b.data);
    ddp_chain_free(b.chain);
    ddp_finish(b.ddp);
    opts_free(&o);
    return rc;
}
