/* inspect.c - "imagenet inspect": a network as a table
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <string.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "inspect.h"
#include "options.h"
#include "plan.h"
#include "setup.h"
#include "setup_network.h"
#include "split.h"

struct totals {
    int64_t sub_batch;
    size_t params, kept;
    double flops;
    int outputs; /* of the last layer */
};

static const char *shape_text(struct ddp_shape s, char *buf, size_t size)
{
    if (s.h == 1 && s.w == 1)
        snprintf(buf, size, "%d", s.c);
    else
        snprintf(buf, size, "%dx%dx%d", s.h, s.w, s.c);
    return buf;
}

static double mib(double bytes)
{
    return bytes / (1024 * 1024);
}

static int add_layer(const struct ddp_layer_info *l, void *arg)
{
    struct totals *t = arg;

    t->params += l->params;
    t->kept += l->activation_size;
    t->flops += l->training_only ? 0 : l->flops;
    t->outputs = l->training_only ? t->outputs : l->out.c;
    return 0;
}

static int print_layer(const struct ddp_layer_info *l, void *arg)
{
    const struct totals *t = arg;
    double kept = (double)l->activation_size * (double)t->sub_batch;
    char in[40], out[40];

    printf("%-28s %-14s %-13s %-13s %11zu %10.2f %9.2f\n", l->name, l->kind,
           shape_text(l->in, in, sizeof(in)),
           shape_text(l->out, out, sizeof(out)), l->params, l->flops * 1e-6,
           mib(kept));
    return add_layer(l, arg);
}

static void print_totals(const struct settings *s, const struct totals *t)
{
    double weights = 4.0 * (double)t->params;

    printf("\n%zu parameters, %.1f MiB; with gradients of %s and momentum "
           "%.1f MiB\n",
           t->params, mib(weights), "one lane", mib(3 * weights));
    printf("%.3f GFLOP forward an image, about %.3f to train on it "
           "(a multiply-add is 2)\n",
           t->flops * 1e-9, 3 * t->flops * 1e-9);
    printf("%.1f MiB of activations kept for a sub-batch of %lld, in %s\n",
           mib((double)t->kept * (double)s->sub_batch), (long long)s->sub_batch,
           s->dtype ? "bf16" : "f32");
}

/* One line: the network at its usual image size, or at --img-size. */
static int list_model(const char *name, const struct opts *o,
                      const struct settings *s)
{
    struct settings one = *s;
    struct totals t = {.sub_batch = 1};
    struct ddp_shape in = {.c = 3};
    ddp_chain_t *c;
    int rc;

    one.model = (char *)name;
    one.width = 0; /* these only ResNets have */
    one.small_stem = false;
    one.img_size =
        opts_given(o, "img-size") ? s->img_size : ddp_model_size(name);
    in.h = in.w = (int)one.img_size;
    if (!(c = setup_model(&one)))
        return app_fail(ddp_errcode());
    rc = ddp_chain_inspect(c, in, setup_dtype(s), add_layer, &t);
    if (rc == 0)
        printf("%-20s %5d %11zu %9.3f %10.1f\n", name, in.h, t.params,
               t.flops * 1e-9, mib((double)t.kept));
    else
        printf("%-20s %5d %11zu  %s\n", name, in.h, setup_params(c),
               rc == DDP_ESHAPE ? "(not for images as small)" : ddp_errmsg());
    ddp_chain_free(c);
    return 0;
}

static int list_models(const struct opts *o, const struct settings *s)
{
    const char *name;
    int rc = 0;

    printf("%-20s %5s %11s %9s %10s\n", "model", "size", "parameters", "GFLOP",
           "MiB kept");
    for (int i = 0; rc == 0 && (name = ddp_model_name(i)); i++)
        rc = list_model(name, o, s);
    printf("\nForward and kept for backward: of one image of size x size.\n");
    return rc;
}

/* ---- a step ------------------------------------------------------------- */

static int no_sample(void *arg, int64_t index, uint64_t key,
                     struct ddp_sample *s)
{
    (void)arg;
    (void)index;
    (void)key;
    (void)s;
    return DDP_EINVAL; /* no step is run */
}

static void choose_step(struct settings *s, ddp_t *ddp)
{
    struct split split = {s->batch, s->sub_batch, s->lanes};

    s->devices = ddp_worker_count(ddp);
    split_choose(&split, s->devices, INT64_MAX, s->sync_bn);
    s->batch = split.batch;
    s->lanes = split.lanes;
}

static int print_step(struct opts *o, struct settings *s, ddp_t *ddp,
                      ddp_chain_t *c, int classes)
{
    int size = (int)s->img_size;
    struct ddp_train_config cfg;
    ddp_dataset_t *d;
    ddp_trainer_t *t;
    int rc = 0;

    choose_step(s, ddp);
    ddp_train_config_init(&cfg);
    cfg.optimizer = ddp_momentum(0.1f, 0.9f);
    cfg.dtype = setup_dtype(s);
    cfg.batch = (int)s->batch;
    cfg.sub_batch = (int)s->sub_batch;
    cfg.lanes = (int)s->lanes;
    cfg.sync_bn = s->sync_bn;
    d = ddp_dataset_callback(&(struct ddp_source){.count = s->batch,
                                                  .shape = {size, size, 3},
                                                  .type = DDP_U8,
                                                  .classes = classes,
                                                  .get = no_sample});
    t = ddp_trainer_new(ddp, c, d, &cfg);
    printf("\ntraining with momentum on %s\n", ddp_describe(ddp));
    if (t)
        plan_print(o, s, ddp, t);
    else
        rc = app_fail(ddp_errcode());
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    return rc;
}

static int print_plan(struct opts *o, struct settings *s, ddp_chain_t *c,
                      int classes)
{
    ddp_t *ddp;
    int rc = setup_devices(s, &ddp);

    if (rc != OPTS_GO)
        return rc;
    rc = print_step(o, s, ddp, c, classes);
    ddp_finish(ddp);
    return rc;
}

int inspect_run(struct opts *o, struct settings *s)
{
    struct totals t = {.sub_batch = s->sub_batch};
    struct ddp_shape in = {(int)s->img_size, (int)s->img_size, 3};
    ddp_chain_t *c;
    int rc;

    s->drop = s->drop_path = -1; /* the defaults: dropout takes memory */
    if (!s->model)
        return list_models(o, s);
    if ((rc = setup_check_model(o, s)) != OPTS_GO)
        return rc;
    if ((rc = setup_network(s, &c)) != OPTS_GO) {
        ddp_chain_free(c);
        return rc;
    }
    printf("%-28s %-14s %-13s %-13s %11s %10s %9s\n", "layer", "kind", "in",
           "out", "parameters", "MFLOP", "MiB kept");
    rc = ddp_chain_inspect(c, in, setup_dtype(s), print_layer, &t);
    if (rc < 0)
        rc = app_fail(rc);
    else
        print_totals(s, &t);
    if (rc == 0)
        rc = print_plan(o, s, c, t.outputs);
    ddp_chain_free(c);
    return rc;
}
