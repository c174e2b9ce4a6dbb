/* checkpoint_run.c - a small run with checkpoints, and its folder
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/philox.h"
#include "checkpoint_run.h"
#include "ddp_layer.h"
#include "defaults.h"
#include "runtime/context.h"
#include "runtime/lost.h"
#include "tap.h"

ddp_t *ddp;
char top[64], dir[96], copies[96];

void begin_program(void)
{
    setenv("STARPU_NCPU", "1", 1); /* two that wait for work take its time */
    snprintf(top, sizeof(top), "%s/ckpt-XXXXXX",
             getenv("TMPDIR") && strlen(getenv("TMPDIR")) < 40
                 ? getenv("TMPDIR")
                 : "/tmp");
    if (!mkdtemp(top) || !(ddp = ddp_init(NULL)))
        bail_out("%s", ddp_errmsg());
    snprintf(dir, sizeof(dir), "%s/run", top);
    snprintf(copies, sizeof(copies), "%s/copies", top);
}

void end_program(void)
{
    shell("rm -rf '%s'", top);
    ddp_finish(ddp);
}

/* ---- a small run -------------------------------------------------------- */

int fail_input;

static int image(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    if (fail_input > 0 && --fail_input == 0)
        return DDP_EIO;
    s->label = (int32_t)(index % CLASSES);
    for (int i = 0; i < SIZE * SIZE; i++) {
        struct ddp__philox r = ddp__philox(key, (uint64_t)index, (uint64_t)i);

        x[i] = ddp__uniform(r.v[0]) + (i % CLASSES == s->label);
    }
    return 0;
}

static ddp_dataset_t *images(int64_t count)
{
    return ddp_dataset_callback(&(struct ddp_source){
        .count = count,
        .shape = {SIZE, SIZE, 1},
        .type = DDP_F32,
        .classes = CLASSES,
        .get = image,
    });
}

/* A custom layer that returns its input, under an option. */
struct custom {
    ddp_layer_t layer;
    double degree;
};

static int custom_shape(const ddp_layer_t *l, struct ddp_shape x,
                        struct ddp_shape *y)
{
    (void)l;
    *y = x;
    return 0;
}

int until_death, until_loss, dead = -1;

static int copy(const struct ddp_kernel_args *a)
{
    struct ddp_shape s = a->buf[0].shape;

    if (until_loss > 0 && --until_loss == 0)
        ddp__lost_note("a_copy", 214, false);
    if (until_death > 0 && --until_death == 0)
        dead = starpu_worker_get_id();
    if (starpu_worker_get_id() == dead)
        return 1;
    memcpy(a->buf[1].data, a->buf[0].data,
           sizeof(float) * (size_t)(a->n * s.h * s.w * s.c));
    return 0;
}

static ddp_value_t *custom_forward(ddp_layer_t *l, ddp_graph_t *g,
                                   ddp_value_t *x)
{
    static const struct ddp_kernel kernel = {"copy", {[DDP_CPU] = copy}};
    struct ddp_record r = {.layer = l, .x = x, .y = x};

    if (((struct custom *)l)->degree != COPIES)
        return x;
    r.y = ddp_graph_value(g, ddp_value_shape(x), ddp_value_type(x));
    ddp_graph_call(g, &kernel, NULL, 2, (ddp_value_t *[]){x, r.y},
                   (enum ddp_access[]){DDP_READ, DDP_WRITE});
    return ddp_graph_record(g, &r);
}

static ddp_value_t *custom_backward(ddp_layer_t *l, ddp_graph_t *g,
                                    const struct ddp_record *r, ddp_value_t *dy)
{
    (void)l;
    (void)g;
    (void)r;
    return dy;
}

static int custom_options(const ddp_layer_t *l,
                          struct ddp_option o[DDP_MAX_OPTIONS])
{
    o[0] =
        (struct ddp_option){"degree", ((const struct custom *)l)->degree, NULL};
    return 1;
}

static ddp_layer_t *custom_new(double degree)
{
    static const struct ddp_layer_ops ops = {
        .kind = "custom",
        .shape = custom_shape,
        .forward = custom_forward,
        .backward = custom_backward,
        .options = custom_options,
    };
    ddp_layer_t *l = ddp_layer_new(sizeof(struct custom), &ops);

    if (l)
        ((struct custom *)l)->degree = degree;
    return l;
}

static ddp_chain_t *network(const struct variant *v)
{
    ddp_chain_t *c =
        ddp_chain_new(ddp_conv_new(1, v->width, 3, NULL),
                      ddp_batch_norm_new(v->width,
                                         &(struct ddp_batch_norm_options){
                                             NORM_DEFAULTS, .eps = v->eps}),
                      ddp_act_new(v->act), custom_new(v->degree),
                      ddp_global_mean_pool_new(), ddp_dropout_new(v->dropout),
                      ddp_dense_new(v->width, CLASSES, NULL), DDP_END);

    if (v->extra)
        ddp_chain_add(c, ddp_tanh_new());
    return c;
}

static int on_step(const struct ddp_progress *p, void *arg)
{
    struct run *r = arg;

    if (p->step == r->ask_at && ddp_trainer_checkpoint(r->trainer) < 0)
        return 1;
    return r->stop_at && p->step >= r->stop_at;
}

static int on_epoch(const struct ddp_progress *p, void *arg)
{
    struct run *r = arg;
    struct ddp_metrics m;

    r->epochs_reported++;
    r->epoch_loss = p->epoch_mean.loss;
    return r->evaluates && ddp_trainer_evaluate(r->trainer, r->data, &m) < 0;
}

struct run usual(void)
{
    return (struct run){
        .count = COUNT,
        .network = {.width = 4,
                    .eps = 1e-5f,
                    .dropout = 0.2f,
                    .act = DDP_RELU,
                    .degree = 1},
        .cfg =
            {
                TRAIN_DEFAULTS,
                .optimizer = ddp_momentum(0.1f, 0.9f),
                .schedule = {.kind = DDP_COSINE},
                .batch = BATCH,
                .sub_batch = 2,
                .lanes = 2,
                .epochs = EPOCHS,
                .seed = 5,
                .on_step = on_step,
                .on_epoch = on_epoch,
            },
    };
}

bool begin(struct run *r)
{
    r->data = images(r->count);
    r->chain = network(&r->network);
    r->eval_data = r->eval_count ? images(r->eval_count) : NULL;
    r->cfg.eval_data = r->eval_data;
    r->cfg.arg = r;
    r->trainer = ddp_trainer_new(ddp, r->chain, r->data, &r->cfg);
    return r->trainer;
}

uint32_t checksum(const struct run *r)
{
    uint32_t crc = 0;

    if (ddp_chain_checksum(r->chain, &crc) < 0)
        diag("%s", ddp_errmsg());
    return crc;
}

void end(struct run *r)
{
    ddp_trainer_free(r->trainer);
    ddp_dataset_free(r->data);
    ddp_dataset_free(r->eval_data);
    ddp_chain_free(r->chain);
}

uint32_t finish(struct run *r)
{
    int rc = ddp_trainer_train(r->trainer);
    uint32_t crc = rc < 0 ? 0 : checksum(r);

    if (rc < 0)
        diag("%s", ddp_errmsg());
    end(r);
    return crc;
}

uint32_t undisturbed(struct run r)
{
    r.cfg.checkpoint.dir = NULL;
    r.stop_at = r.ask_at = 0;
    return begin(&r) ? finish(&r) : 0;
}

uint32_t resume(struct run r, struct ddp_checkpoint *c)
{
    r.stop_at = r.ask_at = 0;
    if (!begin(&r) || ddp_trainer_resume(r.trainer, NULL, c) < 0) {
        diag("%s", ddp_errmsg());
        end(&r);
        return 0;
    }
    return finish(&r);
}

/* ---- files -------------------------------------------------------------- */

void shell(const char *fmt, ...)
{
    char cmd[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(cmd, sizeof(cmd), fmt, ap);
    va_end(ap);
    if (system(cmd) != 0)
        diag("%s: failed", cmd);
}

void clean(void)
{
    shell("rm -rf '%s' '%s'", dir, copies);
}

bool there(const char *name)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

const char *step_path(int64_t step, const char *file)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/step-%012lld/%s", dir, (long long)step,
             file);
    return path;
}

bool has_leftovers(void)
{
    char command[256];

    snprintf(command, sizeof(command), "ls -A '%s' | grep -q '^[.]tmp'", dir);
    return system(command) == 0;
}

void spoil(const char *path)
{
    int fd = open(path, O_RDWR);
    struct stat st;
    char byte;

    if (fd < 0 || fstat(fd, &st) < 0 ||
        pread(fd, &byte, 1, st.st_size - 1) != 1)
        diag("%s: cannot be spoilt", path);
    byte = (char)(byte ^ 1);
    if (pwrite(fd, &byte, 1, st.st_size - 1) != 1)
        diag("%s: cannot be spoilt", path);
    close(fd);
}
