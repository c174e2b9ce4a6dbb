/* imagenet_eval.c - "imagenet eval": loss and top-k of weights on a data set
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "imagenet.h"

struct evaluation {
    ddp_t *ddp;
    ddp_dataset_t *data;
    ddp_chain_t *chain;
    ddp_trainer_t *trainer;
};

/* Take over what the run that wrote the weights says of its network. */
static int load_config(struct opts *o, const char *weights)
{
    const char *slash = strrchr(weights, '/');
    char *dir =
        slash ? strndup(weights, (size_t)(slash - weights)) : strdup(".");
    char *path = dir ? app_path(dir, "config.txt") : NULL;
    const struct opt *row;
    int rc = path ? opts_load(o, path) : EXIT_MEMORY, n = 0;

    for (int i = 0; rc == OPTS_GO && (row = opt_at(o->cmd, i)); i++)
        if (o->loaded[i]) {
            printf("%s %s=", n++ ? "" : path, row->name);
            opt_print_value(row, o->values, stdout);
        }
    if (n)
        printf("\n");
    free(path);
    free(dir);
    return rc;
}

static int prepare(struct evaluation *e, struct opts *o, struct settings *s)
{
    static const enum ddp_split split[] = {DDP_TRAIN, DDP_VAL, DDP_TEST};
    int rc;

    if (!s->weights) {
        app_say("--weights FILE is missing");
        return EXIT_USAGE;
    }
    if ((rc = setup_weights_there(o, s)) != OPTS_GO ||
        (rc = load_config(o, s->weights)) != OPTS_GO ||
        (rc = setup_model_known(o, s)) != OPTS_GO)
        return rc;
    s->augment = 0;
    if ((rc = setup_data(o, s, s->data, split[s->split], &e->data)) != OPTS_GO)
        return rc;
    if (!s->classes)
        s->classes = ddp_dataset_classes(e->data);
    if ((rc = setup_devices(s, &e->ddp)) != OPTS_GO)
        return rc;
    if (!(e->chain = setup_model(s)))
        return app_fail(ddp_errcode());
    if ((rc = ddp_chain_load(e->chain, s->weights)) < 0)
        return app_fail(rc);
    e->trainer = ddp_trainer_new(
        e->ddp, e->chain, e->data,
        &(struct ddp_train_config){.sub_batch = (int)s->sub_batch,
                                   .dtype = setup_dtype(s),
                                   .keep_weights = true});
    return e->trainer ? OPTS_GO : app_fail(ddp_errcode());
}

static int evaluate(struct evaluation *e, const struct settings *s)
{
    struct ddp_metrics m;
    double t;
    int rc;

    printf("%s\ndevices: %s\ndata: %s\nmodel: %s, %zu parameters\n",
           ddp_version(), ddp_describe(e->ddp), ddp_dataset_describe(e->data),
           s->model, setup_params(e->chain));
    t = app_now();
    if ((rc = ddp_evaluate(e->trainer, e->data, &m)) < 0)
        return app_fail(rc);
    t = app_now() - t;
    printf("eval samples=%lld loss=%.4f top1=%.2f top5=%.2f img/s=%.1f\n",
           (long long)m.samples, m.loss, 100 * m.top1, 100 * m.top5,
           (double)m.samples / t);
    return 0;
}

int eval_run(struct opts *o, struct settings *s)
{
    struct evaluation e = {0};
    int rc = prepare(&e, o, s);

    if (rc == OPTS_GO)
        rc = evaluate(&e, s);
    ddp_trainer_free(e.trainer);
    ddp_dataset_free(e.data);
    ddp_chain_free(e.chain);
    ddp_finish(e.ddp);
    return rc;
}
