/* test_gpu_train.c - training on a GPU: gradients, and the same bits always
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Gradients are compared with those of the plain C kernels.  Two summation
 * orders give different roundings, which a deep network amplifies; how much is
 * measured on CPU workers, where oneDNN's kernels differ from plain C in the
 * same way, and a GPU may be off by ten times that.
 */
#include "config.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/context.h"
#include "defaults.h"
#include "tap.h"

enum { CLASSES = 10, SAMPLES = 64, STEPS = 20 };

/* ---- data --------------------------------------------------------------- */

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    const struct ddp_source *src = arg;
    size_t len =
        (size_t)src->shape.h * (size_t)src->shape.w * (size_t)src->shape.c;
    uint32_t r = (uint32_t)index * 2654435761u + 12345;

    (void)key;
    for (size_t i = 0; i < len; i++) {
        r = r * 1664525u + 1013904223u;
        ((unsigned char *)s->x)[i] = (unsigned char)(r >> 24);
    }
    s->label = (int32_t)(index % CLASSES);
    return 0;
}

/* ---- runs --------------------------------------------------------------- */

struct setup {
    const char *model;
    int size; /* of images */
    enum ddp_dtype dtype;
    int gpus; /* 0: CPU workers */
    const char *backend;
    struct ddp_model_options model_options;
};

/* What a setup is made of while it runs. */
struct run {
    ddp_t *ddp;
    ddp_chain_t *chain;
    struct ddp_source source;
    ddp_dataset_t *data;
    ddp_trainer_t *trainer;
};

static void stop(struct run *r)
{
    ddp_trainer_free(r->trainer);
    ddp_dataset_free(r->data);
    ddp_chain_free(r->chain);
    ddp_finish(r->ddp);
}

static bool start(struct run *r, const struct setup *s,
                  struct ddp_train_config c)
{
    *r = (struct run){.source = {.count = SAMPLES,
                                 .shape = {s->size, s->size, 3},
                                 .type = DDP_U8,
                                 .classes = CLASSES,
                                 .get = get,
                                 .arg = &r->source}};
    c.loss = DDP_LOGIT_CROSS_ENTROPY;
    c.optimizer = ddp_momentum(0.05f, 0.9f);
    c.sub_batch = 8;
    c.batch = 32;
    c.lanes = 4;
    c.dtype = s->dtype;
    c.seed = 1;
    c.order = DDP_IN_ORDER;
    r->ddp = ddp_init(&(struct ddp_config){
        START_DEFAULTS, .cpus = 2, .gpus = s->gpus, .backend = s->backend});
    r->chain = ddp_model_new(s->model, &s->model_options);
    r->data = ddp_dataset_callback(&r->source);
    if (r->ddp && (r->trainer = ddp_trainer_new(r->ddp, r->chain, r->data, &c)))
        return true;
    diag("%s", ddp_errmsg());
    stop(r);
    return false;
}

/* ---- gradients ---------------------------------------------------------- */

/* All gradients of the first step, one after another; NULL: failed. */
static float *gradients(const struct setup *s, size_t *len)
{
    struct ddp_param_info info;
    float *g = NULL, *more;
    struct run r;

    *len = 0;
    if (!start(&r, s, (struct ddp_train_config){TRAIN_DEFAULTS, .steps = 1}))
        return NULL;
    if (ddp_trainer_gradients(r.trainer, NULL) < 0) {
        diag("%s", ddp_errmsg());
        stop(&r);
        return NULL;
    }
    for (int i = 0; ddp_chain_param(r.chain, i, &info) == 0; i++) {
        if (info.role == DDP_RUNNING)
            continue;
        if (!(more = realloc(g, (*len + info.len) * sizeof(*g))))
            bail_out("out of memory");
        g = more;
        if (ddp_trainer_get_gradient(r.trainer, info.name, g + *len, info.len) <
            0)
            bail_out("%s", ddp_errmsg());
        *len += info.len;
    }
    stop(&r);
    return g;
}

/* |a - b| / |b| */
static double distance(const float *a, const float *b, size_t len)
{
    double d = 0, n = 0;

    for (size_t i = 0; i < len; i++) {
        d += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        n += (double)b[i] * b[i];
    }
    return sqrt(d / n);
}

/* width: of a ResNet's first stage. */
static void test_gradients(const char *model, int width)
{
    struct setup s = {.model = model, .size = 32, .gpus = 0, .backend = "ref"};
    float *ref, *cpu, *gpu;
    double usual, off;
    size_t len;

    s.model_options = (struct ddp_model_options){
        MODEL_DEFAULTS, .classes = CLASSES, .width = width};
    ref = gradients(&s, &len);
    s.backend = NULL;
    cpu = gradients(&s, &len);
    s.gpus = 1;
    gpu = gradients(&s, &len);
    if (ref && cpu && gpu) {
        usual = distance(cpu, ref, len);
        off = distance(gpu, ref, len);
        ok(off <= 10 * usual + 1e-6,
           "%s, f32: gradients off by %.2g, on CPU workers by %.2g", model, off,
           usual);
    } else {
        fail("%s: no gradients", model);
    }
    free(ref);
    free(cpu);
    free(gpu);
}

/* ---- the same bits ------------------------------------------------------ */

static uint64_t hash(ddp_chain_t *chain)
{
    uint64_t h = 14695981039346656037u;
    struct ddp_param_info info;

    for (int i = 0; ddp_chain_param(chain, i, &info) == 0; i++) {
        float *w = malloc(info.len * sizeof(*w));

        if (!w || ddp_chain_get(chain, info.name, w, info.len) < 0)
            bail_out("%s", ddp_errmsg());
        for (size_t k = 0; k < info.len * sizeof(*w); k++)
            h = (h ^ ((unsigned char *)w)[k]) * 1099511628211u;
        free(w);
    }
    return h;
}

/* Of a run: what was allocated after its second step, and where it went. */
static int (*allocations)(void);
static struct {
    int early, late;
    double first, last; /* losses */
} seen;

static int on_step(const struct ddp_progress *p, void *arg)
{
    (void)arg;
    if (p->step == 1)
        seen.first = p->now.loss;
    seen.last = p->now.loss;
    if (allocations && p->step == 4) /* two more are under way by then */
        seen.early = allocations();
    if (allocations && p->step == STEPS)
        seen.late = allocations();
    return 0;
}

/* The weights after STEPS steps; 0: failed. */
static uint64_t train(enum ddp_dtype dtype)
{
    struct setup s = {
        .model = "resnet18", .size = 32, .dtype = dtype, .gpus = 1};
    struct ddp_train_config c = {TRAIN_DEFAULTS, .steps = STEPS,
                                 .epochs = STEPS, .on_step = on_step,
                                 .ema_decay = 0.9};
    uint64_t h = 0;
    struct run r;

    s.model_options = (struct ddp_model_options){
        MODEL_DEFAULTS, .classes = CLASSES, .width = 16, .small_stem = true};
    if (!start(&r, &s, c))
        return 0;
    if (ddp_trainer_train(r.trainer) < 0)
        diag("%s", ddp_errmsg());
    else
        h = hash(r.chain);
    stop(&r);
    return h;
}

/* With a variable of the environment set. */
static void again(enum ddp_dtype dtype, uint64_t want, const char *name,
                  const char *value)
{
    uint64_t h;

    setenv(name, value, 1);
    h = train(dtype);
    ok(h && h == want, "%s=%s: the same bits", name, value);
    unsetenv(name);
}

/* StarPU's own policies, all that need no training of their own. */
static const char *const all[] = {"eager", "prio",   "random", "ws",
                                  "lws",   "dm",     "dmda",   "dmdar",
                                  "dmdas", "dmdasd", NULL},
                         *const some[] = {"eager", "lws", "dmdas", NULL};

static void test_bits(enum ddp_dtype dtype, const char *type,
                      const char *const *policies)
{
    uint64_t want = train(dtype);

    ok(want && isfinite(seen.last) && seen.last < seen.first,
       "%s: the loss falls, from %.4f to %.4f", type, seen.first, seen.last);
    if (allocations)
        is_int(seen.late, seen.early, "%s: nothing is allocated in later steps",
               type);
    else
        skip(1, "allocations: needs count_cuda.so in LD_PRELOAD");
    ok(want == train(dtype), "%s: the same bits again", type);
    for (const char *const *p = policies; *p; p++)
        again(dtype, want, "STARPU_SCHED", *p);
    again(dtype, want, "STARPU_NWORKER_PER_CUDA", "2");
    again(dtype, want, "DDP_INFLIGHT", "1");
    again(dtype, want, "DDP_INFLIGHT", "4");
    again(dtype, want, "DDP_SEGMENT_US", "0");
    again(dtype, want, "DDP_SEGMENT_US", "10000");
    again(dtype, want, "STARPU_CUDA_PIPELINE", "0");
}

/* ---- what cannot be ----------------------------------------------------- */

static void test_memory(void)
{
    setenv("STARPU_LIMIT_CUDA_MEM", "64", 1); /* MiB */
    ok(train(DDP_F32) == 0 && ddp_errcode() == DDP_ENOMEM,
       "too little memory is reported before the first step: %s", ddp_errmsg());
    unsetenv("STARPU_LIMIT_CUDA_MEM");
}

/* --probe: only whether there is a GPU.  --gradients: these alone, of narrow
 * networks, which an emulated GPU computes in seconds. */
int main(int argc, char **argv)
{
    ddp_t *ddp;

    unsetenv("STARPU_NCUDA");
    if (!(ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .gpus = 1})))
        skip_all("%s", ddp_errmsg());
    diag("%s", ddp_describe(ddp));
    ddp_finish(ddp);
    if (argc > 1 && strcmp(argv[1], "--probe") == 0)
        return 0;
    *(void **)&allocations = dlsym(RTLD_DEFAULT, "count_cuda_calls");
    if (argc > 1 && strcmp(argv[1], "--gradients") == 0) {
        test_gradients("resnet18", 16);
        test_gradients("resnet50", 16);
        return done_testing();
    }
    test_gradients("resnet18", 64);
    test_gradients("resnet50", 64);
    test_bits(DDP_F32, "f32", some);
    test_bits(DDP_BF16, "bf16", all);
    test_memory();
    return done_testing();
}
