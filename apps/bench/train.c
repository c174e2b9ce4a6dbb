/* train.c - "bench train": training steps without the cost of input
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ddp.h"
#include "common/app.h"
#include "common/cores.h"
#include "common/app_fail.h"
#include "measure.h"
#include "parts.h"
#include "peak.h"
#include "profile.h"
#include "roof.h"
#include "train.h"

#define OPT_STRUCT struct bench_settings
#include "common/opt_rows.h"

static const char *const dtypes[] = {"f32", "bf16", "f16", NULL};
static const char *const inputs[] = {"u8", "f32", NULL};
static const char *const backends[] = {"cpu", "ref", NULL};

static const struct opt_group options = {
    "Options",
    (const struct opt[]){
        TEXT("model", model, "NAME", "resnet18", "network"),
        INT("img-size", img_size, "224", 1, 4096,
            "side of the square images, in pixels"),
        INT("classes", classes, "1000", 2, 1 << 24, "outputs of the network",
            .alias = "num-classes"),
        FLAG("small-stem", small_stem,
             "begin with a 3x3 convolution and no pooling"),
        INT("width", width, "0", 0, 4096,
            "channels of a ResNet's first stage; 0 means 64"),
        CHOICE("dtype", dtype, "TYPE", "f32", dtypes,
               "type of the activations"),
        CHOICE("input", input, "TYPE", "u8", inputs,
               "type of the input images"),
        INT("sub-batch", sub_batch, "16", 1, 1 << 20,
            "images processed together"),
        INT("lanes", lanes, NULL, 1, 65536,
            "gradient accumulators [one per worker]"),
        INT("batch-size", batch, NULL, 1, 1 << 24,
            "images per step [--lanes sub-batches]", .letter = 'b'),
        INT("steps", steps, "20", 1, 1e6, "steps to measure"),
        INT("skip", skip, "3", 1, 1e6, "warm-up steps before them"),
        INT("workers", workers, NULL, 1, 4096,
            "CPU workers; STARPU_NCPU overrides it [one per core]",
            .letter = 'j'),
        CHOICE("backend", backend, "NAME", "cpu", backends,
               "kernels of CPU workers: oneDNN (cpu) or plain C (ref)"),
        INT("peak", peak, NULL, 1, 1e6,
            "peak of all devices in TFLOP/s, which peak_share is relative to "
            "[measured]"),
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

enum ddp_dtype bench_dtype(const struct bench_settings *s)
{
    static const enum ddp_dtype type[] = {DDP_F32, DDP_BF16, DDP_F16};

    return type[s->dtype];
}

/* ---- input -------------------------------------------------------------- */

enum { POOL = 64, DRAINED = 3 };

/* POOL different images, used in turn. */
struct pool {
    size_t size; /* bytes of an image */
    int classes;
    unsigned char *data; /* owned */
};

static int pool_get(void *arg, int64_t index, uint64_t key,
                    struct ddp_sample *s)
{
    const struct pool *p = arg;

    (void)key;
    memcpy(s->x, p->data + p->size * (size_t)(index % POOL), p->size);
    s->label = (int32_t)(index % POOL % p->classes);
    return 0;
}

static int pool_fill(struct pool *p, const struct bench_settings *s)
{
    size_t len = (size_t)(s->img_size * s->img_size * 3);
    uint32_t x = 12345;

    p->classes = (int)s->classes;
    p->size = len * (s->input ? sizeof(float) : 1);
    if (!(p->data = malloc(p->size * POOL)))
        return app_exit_code(DDP_ENOMEM);
    for (size_t i = 0; i < len * POOL; i++) {
        x = x * 1664525u + 1013904223u; /* Numerical Recipes' generator */
        if (s->input)
            ((float *)(void *)p->data)[i] = (float)(x >> 8) * 0x1p-23f - 1;
        else
            p->data[i] = (unsigned char)(x >> 24);
    }
    return OPTS_GO;
}

/* ---- one run ------------------------------------------------------------ */

struct bench {
    ddp_t *ddp;
    ddp_chain_t *chain;
    ddp_dataset_t *data;
    ddp_trainer_t *trainer;
    struct pool pool;
    struct peak peak;
    struct roof roof; /* flops 0: no GPU, or an unknown one */
    struct roof_time at_least;
    char peak_base[200];
    double flops; /* of training on one image, as peak_share counts */
    bool first;
    double last, *step_s;  /* owned */
    double begin, start_s; /* until the end of the first step */
    int64_t done, skip, want, batch;
    int64_t drained; /* steps between `before` and those that count */
    struct ddp_stats before;
    struct parts parts; /* of the steps that count */
    double data_share, loss;
    double until;    /* of app_now(): stop after the next step that counts; 0:
                        after all */
    double kernel_s; /* of a step, in kernels of all GPUs; below 0: unknown */
    bool inspect;
};

/* The first steps load modules, which must not count as idle time.  Reading the
 * statistics waits for the steps in flight, so a few more steps do not count.
 */
static int on_step(const struct ddp_progress *p, void *arg)
{
    struct bench *b = arg;
    int64_t n = b->done - b->skip - b->drained;
    double t = app_now();

    if (n >= 0 && n < b->want) {
        b->step_s[n] = t - b->last;
        parts_add(&b->parts, p, t - b->last);
    }
    if (b->drained && b->done + 1 == b->skip)
        ddp_trainer_stats(b->trainer, &b->before);
    if (b->done == 0)
        b->start_s = t - b->begin;
    b->last = t;
    b->done++;
    b->data_share = p->data_share;
    b->loss = p->now.loss;
    return b->until > 0 && t > b->until && n >= 0;
}

/* Backward takes twice as long as forward, but the images need no gradient. */
static int count_layer(const struct ddp_layer_info *l, void *arg)
{
    struct bench *b = arg;

    if (b->inspect)
        fprintf(stderr, "%-28s %-14s %10zu %12.3f MFLOP %10zu bytes kept\n",
                l->name, l->kind, l->params, l->flops * 1e-6,
                l->activation_size);
    if (b->roof.flops > 0)
        roof_add(&b->at_least, &b->roof, l);
    if (l->flops == 0)
        return 0;
    b->flops += l->flops * (b->first ? 2 : 3);
    b->first = false;
    return 0;
}

/* By default as many lanes as workers, and a batch of one sub-batch a lane. */
static void choose_batch(const struct bench *b, struct bench_settings *s)
{
    if (!s->lanes)
        s->lanes = s->batch ? (s->batch + s->sub_batch - 1) / s->sub_batch
                            : ddp_worker_count(b->ddp);
    if (!s->batch)
        s->batch = s->lanes * s->sub_batch;
}

ddp_chain_t *bench_model(const struct bench_settings *s)
{
    int size = (int)s->img_size, sizes[] = {size * size * 3, 512, 512, 0};
    struct ddp_model_options m;

    ddp_model_options_init(&m);
    m.classes = (int)s->classes;
    m.small_stem = s->small_stem;
    if (s->width)
        m.width = (int)s->width;
    if (!strcmp(s->model, "mlp"))
        m.sizes = sizes;
    return ddp_model_new(s->model, &m);
}

static int open_model(struct bench *b, struct bench_settings *s)
{
    struct ddp_config cfg;
    int rc;

    b->begin = app_now();
    if (!(b->chain = bench_model(s)))
        return app_fail(ddp_errcode());
    if ((rc = pool_fill(&b->pool, s)) != OPTS_GO)
        return rc;
    ddp_config_init(&cfg);
    if (s->workers)
        cfg.cpus = (int)s->workers;
    cfg.backend = s->backend ? "ref" : "cpu";
    b->ddp = ddp_init(&cfg);
    if (!b->ddp)
        return app_fail(ddp_errcode());
    choose_batch(b, s);
    return OPTS_GO;
}

/* GPUs' figures instead of those of the cores, and how fast the network could
 * be on them; its work.  Other ranks are as fast as this one. */
static int count_work(struct bench *b, const struct bench_settings *s)
{
    struct ddp_shape shape = {(int)s->img_size, (int)s->img_size, 3};
    enum ddp_dtype type = bench_dtype(s);
    struct ddp_gpu_info gpu;
    int ranks = ddp_rank_count(b->ddp), n = ddp_gpu_count(b->ddp, &gpu), rc;

    if (!s->peak)
        b->peak.flops *= ranks;
    if (n)
        roof_of(&b->roof, &gpu, n * ranks, type);
    if (n && !s->peak && b->roof.flops > 0) {
        b->peak.flops = b->roof.flops;
        snprintf(b->peak_base, sizeof(b->peak_base), "%s", b->roof.base);
    }
    b->at_least = (struct roof_time){.element = type == DDP_F32 ? 4 : 2,
                                     .sub_batch = (double)s->sub_batch,
                                     .batch = (double)s->batch};
    rc = ddp_chain_inspect(b->chain, shape, type, count_layer, b);
    return rc < 0 ? app_fail(rc) : OPTS_GO;
}

/* The data set is as long as the run, so that all steps belong to one epoch
 * and no sample is used twice. */
static int make_trainer(struct bench *b, const struct bench_settings *s)
{
    int size = (int)s->img_size;
    struct ddp_train_config cfg;

    ddp_train_config_init(&cfg);
    /* So slow that no network diverges, in batches of any size. */
    cfg.optimizer = ddp_momentum(1e-6f, 0.9f);
    cfg.dtype = bench_dtype(s);
    cfg.seed = 1;
    cfg.on_step = on_step;
    cfg.arg = b;
    cfg.sub_batch = (int)s->sub_batch;
    cfg.batch = (int)s->batch;
    cfg.lanes = (int)s->lanes;
    b->drained = ddp_gpu_worker_count(b->ddp) ? DRAINED : 0;
    cfg.steps = s->skip + b->drained + s->steps;
    b->data = ddp_dataset_callback(
        &(struct ddp_source){.count = s->batch * cfg.steps,
                             .shape = {size, size, 3},
                             .type = s->input ? DDP_F32 : DDP_U8,
                             .classes = (int)s->classes,
                             .get = pool_get,
                             .arg = &b->pool});
    if (!b->data ||
        !(b->trainer = ddp_trainer_new(b->ddp, b->chain, b->data, &cfg)))
        return app_fail(ddp_errcode());
    return OPTS_GO;
}

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
static void print_result(struct bench *b)
{
    uint32_t crc = 0;

    if (isfinite(b->loss))
        printf("\"loss\":%.9g,", b->loss);
    else
        printf("\"loss\":null,");
    if (ddp_chain_checksum(b->chain, &crc) == 0)
        printf("\"weights\":\"%08x\",", crc);
}

/* Long, because the fields follow the order of the line. */
static void print_json(struct bench *b, const struct bench_settings *s,
                       const struct ddp_stats *st)
{
    double step = bench_median(b->step_s, b->want);
    double img = step > 0 ? (double)s->batch / step : 0;
    double worker_s = st->wall_s * ddp_worker_count(b->ddp);

    printf("{\"bench\":\"train\",\"model\":");
    app_json_text(stdout, s->model);
    printf(",\"img_size\":%lld,\"dtype\":\"%s\",\"input\":\"%s\","
           "\"sub_batch\":%lld,\"lanes\":%lld,\"batch\":%lld,\"steps\":%lld,",
           (long long)s->img_size, dtypes[s->dtype], inputs[s->input],
           (long long)s->sub_batch, (long long)s->lanes, (long long)s->batch,
           (long long)b->want);
    printf("\"start_s\":%.3f,\"img_per_s\":%.3f,\"step_ms\":%.3f,"
           "\"peak_share\":%.4f,\"peak_base\":",
           b->start_s, img, step * 1e3, img * b->flops / b->peak.flops);
    app_json_text(stdout, b->peak_base);
    printf(",\"peak_gflops\":%.1f,\"gflop_per_img\":%.4f,",
           b->peak.flops * 1e-9, b->flops * 1e-9);
    print_gpus(b, img, st);
    printf("\"tasks\":%.1f,\"sched_share\":%.5f,\"exec_share\":%.4f,"
           "\"data_share\":%.5f,",
           st->steps ? (double)st->tasks / (double)st->steps : 0,
           worker_s > 0 ? st->sched_s / worker_s : 0,
           worker_s > 0 ? st->exec_s / worker_s : 0, b->data_share);
    print_result(b);
    printf("\"buffers_mib\":%.1f,\"peak_rss_mib\":%.1f,\"devices\":",
           (double)st->peak_bytes / (1024 * 1024), bench_peak_rss_mib());
    app_json_text(stdout, ddp_describe(b->ddp));
    printf(",\"version\":");
    app_json_text(stdout, ddp_version());
    printf("}\n");
}

/* ---- kernels --------------------------------------------------------------
 */

enum { FEW = 2 }; /* steps, after one to warm up and those of on_step() */

static void close_model(struct bench *b)
{
    ddp_chain_free(b->chain);
    ddp_finish(b->ddp);
    free(b->pool.data);
    b->chain = NULL;
    b->ddp = NULL;
    b->pool.data = NULL;
}

static void close_bench(struct bench *b)
{
    ddp_trainer_free(b->trainer);
    ddp_dataset_free(b->data);
    close_model(b);
    free(b->step_s);
}

static int train_profiled(struct bench *b, struct bench_settings *s,
                          struct ddp_gpu_info *gpu)
{
    int rc;

    if (!(b->step_s = calloc((size_t)s->steps, sizeof(*b->step_s))))
        return app_exit_code(DDP_ENOMEM);
    if ((rc = open_model(b, s)) != OPTS_GO)
        return rc;
    if (gpu && ddp_gpu_count(b->ddp, gpu) < 1)
        return OPTS_GO;
    if ((rc = make_trainer(b, s)) != OPTS_GO)
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
    close_bench(&b);
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
    close_model(b);
    few.steps = FEW;
    few.skip = 1;
    rc = bench_profile(&few, &p, &gpu, NULL);
    if (p.rows)
        b->kernel_s = profile_seconds(&p);
    profile_free(&p);
    return rc == OPTS_GO ? open_model(b, s) : rc;
}

/* ---- all of it ------------------------------------------------------------
 */

static int run_for(struct bench *b, struct bench_settings *s, double seconds)
{
    int rc;

    if (!(b->step_s = calloc((size_t)s->steps, sizeof(*b->step_s))))
        return app_exit_code(DDP_ENOMEM);
    if ((rc = open_model(b, s)) != OPTS_GO ||
        (rc = count_work(b, s)) != OPTS_GO ||
        (rc = make_trainer(b, s)) != OPTS_GO)
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
    close_bench(&b);
    if (rc == OPTS_GO)
        return 0;
    return ddp_errcode() < 0 ? ddp_errcode() : DDP_ENOMEM;
}

static int run_bench(struct bench *b, struct bench_settings *s)
{
    struct ddp_stats stats = {0};
    int rc;

    b->step_s = calloc((size_t)s->steps, sizeof(*b->step_s));
    if (!b->step_s)
        return app_exit_code(DDP_ENOMEM);
    if ((rc = measure_peak(b, s)) != OPTS_GO ||
        (rc = open_model(b, s)) != OPTS_GO ||
        (rc = measure_kernels(b, s)) != OPTS_GO ||
        (rc = count_work(b, s)) != OPTS_GO ||
        (rc = make_trainer(b, s)) != OPTS_GO)
        return rc;
    b->batch = s->batch;
    if ((rc = ddp_trainer_train(b->trainer)) < 0 ||
        (rc = ddp_trainer_stats(b->trainer, &stats)) < 0)
        return app_fail(rc);
    if (s->table)
        parts_print(&b->parts, &stats, ddp_worker_count(b->ddp));
    else
        print_json(b, s, &stats);
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
    close_bench(&b);
    return rc;
}
