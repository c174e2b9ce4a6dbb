/* step.c - training on one simulated machine: one line of JSON
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Run by ddp-predict, which describes the machine to StarPU by its environment.
 * The one program that sees more than ddp.h: starpu.h renames main(), so that
 * SimGrid starts the program, and sim.h says what was seen.
 */
#include "config.h"
#include <starpu.h>
#include <stdlib.h>

#include "common/app.h"
#include "common/app_fail.h"
#include "predict.h"
#include "runtime/cost.h"
#include "runtime/flow.h"
#include "sim/sim.h"

struct prediction {
    const struct predict_settings *s;
    ddp_t *ddp;
    ddp_chain_t *chain;
    ddp_dataset_t *data;
    ddp_trainer_t *trainer;
    double begin, end; /* of the steps that count */
    struct ddp__sim_report before, after;
};

/* An image that nobody looks at. */
static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    const struct predict_settings *p = arg;

    (void)key;
    s->label = (int32_t)(index % p->classes);
    return 0;
}

static int on_step(const struct ddp_progress *p, void *arg)
{
    struct prediction *b = arg;

    if (p->step == b->s->skip) {
        b->begin = ddp__now();
        b->before = ddp__sim_report();
    }
    if (p->step == b->s->skip + b->s->steps) {
        b->end = ddp__now();
        b->after = ddp__sim_report();
    }
    return 0;
}

static void set_speed(const struct predict_settings *s)
{
    ddp__speed[DDP__CUDA] = (struct ddp__speed){.begin_us = s->launch,
                                                .flops = s->tflops * 1e12,
                                                .bytes = s->tbs * 1e12};
}

static int open_all(struct prediction *b)
{
    const struct predict_settings *s = b->s;
    int size = (int)s->img_size, sizes[] = {size * size * 3, 512, 512, 0};
    struct ddp_model_options m = {.classes = (int)s->classes};
    struct ddp_train_config cfg = {
        .optimizer = ddp_momentum(0.01f, 0.9f),
        .dtype = s->dtype == 0   ? DDP_F32
                 : s->dtype == 1 ? DDP_BF16
                                 : DDP_F16,
        .sub_batch = (int)s->sub_batch,
        .lanes = (int)s->lanes,
        .batch = (int)(s->lanes * s->sub_batch),
        .steps = s->skip + s->steps + 1, /* none that counts is the last */
        .keep_weights = true,
        .on_step = on_step,
        .arg = b};

    if (!strcmp(s->model, "mlp"))
        m.sizes = sizes;
    b->ddp = ddp_init(&(struct ddp_config){.gpus = s->gpus[0]});
    b->chain = ddp_model_new(s->model, &m);
    b->data = ddp_dataset_callback(
        &(struct ddp_source){.count = cfg.batch * cfg.steps,
                             .shape = {size, size, 3},
                             .type = DDP_U8,
                             .classes = (int)s->classes,
                             .get = get,
                             .arg = (void *)s});
    b->trainer = ddp_trainer_new(b->ddp, b->chain, b->data, &cfg);
    return b->trainer ? 0 : app_fail(ddp_errcode());
}

static void print(const struct prediction *b, const struct ddp_stats *st)
{
    const struct predict_settings *s = b->s;
    double step = (b->end - b->begin) / (double)s->steps;
    double busy = b->after.gpu_busy - b->before.gpu_busy;
    struct ddp__sim_report all = ddp__sim_report();
    int gpus = ddp_gpu_worker_count(b->ddp);

    printf("{\"bench\":\"predict\",\"model\":");
    app_json_text(stdout, s->model);
    printf(",\"img_size\":%lld,\"dtype\":\"%s\",\"sub_batch\":%lld,"
           "\"lanes\":%lld,\"gpus\":%d,",
           (long long)s->img_size, predict_dtypes[s->dtype],
           (long long)s->sub_batch, (long long)s->lanes, gpus);
    printf("\"step_ms\":%.4f,\"img_per_s\":%.2f,\"gpu_idle_share\":%.4f,",
           step * 1e3, (double)(s->lanes * s->sub_batch) / step,
           1 - busy / (gpus * (b->end - b->begin)));
    printf("\"lanes_run\":%lld,\"lanes_split\":%lld,\"tasks\":%.1f,"
           "\"peak_gpu_mib\":%.1f,\"version\":",
           (long long)all.lanes, (long long)all.split,
           (double)st->tasks / (double)st->steps, (double)all.peak / (1 << 20));
    app_json_text(stdout, ddp_version());
    printf("}\n");
}

static int predict(struct prediction *b)
{
    struct ddp_stats stats;
    int rc;

    set_speed(b->s);
    if ((rc = open_all(b)) != 0)
        return rc;
    if ((rc = ddp_train(b->trainer)) < 0 ||
        (rc = ddp_trainer_stats(b->trainer, &stats)) < 0)
        return app_fail(rc);
    print(b, &stats);
    return 0;
}

int main(int argc, char **argv)
{
    struct predict_settings s = {0};
    struct prediction b = {.s = &s};
    struct opts o;
    int rc;

    app_start("ddp-predict");
    if ((rc = opts_parse(&o, &predict_command, &s, argc, argv)) == OPTS_GO)
        rc = predict(&b);
    ddp_trainer_free(b.trainer);
    ddp_dataset_free(b.data);
    ddp_chain_free(b.chain);
    ddp_finish(b.ddp);
    opts_free(&o);
    return rc;
}
