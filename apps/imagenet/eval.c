/* eval.c - "imagenet eval": loss and top-k of weights on a data set
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "common/app_log.h"
#include "prediction.h"
#include "class_subset.h"
#include "classes.h"
#include "eval.h"
#include "names.h"
#include "options.h"
#include "progress.h"
#include "setup.h"
#include "setup_data.h"
#include "setup_network.h"
#include "weights.h"

enum { TOP = 5 };

struct evaluation {
    ddp_t *ddp;
    ddp_dataset_t *data;
    ddp_chain_t *chain;
    struct classes classes;
    struct names names; /* of the network's classes */
    FILE *predictions;  /* owned, but stdout; NULL: not wanted */
    struct work work;
};

/* Classes have the numbers of the network's, by name. */
static int match_classes(struct evaluation *e, const struct opts *o,
                         const struct settings *s)
{
    int rc;

    if (s->class_numbers || !e->names.count)
        return class_subset_choose(o, s, &e->data);
    rc = class_subset_match(s, e->names.count,
                            (const char *const *)e->names.name, &e->data);
    if (rc != OPTS_GO)
        return rc;
    rc = ddp_dataset_set_classes(e->data, (int)e->names.count,
                                 (const char *const *)e->names.name);
    if (rc == 0)
        return OPTS_GO;
    app_fail(rc);
    app_say("these are the classes that %s was trained on; if the data have "
            "other names for them in the same order, use --class-numbers",
            s->weights);
    return app_exit_code(rc);
}

static bool has_validation(const char *data)
{
    return ddp_dataset_splits(data) & 1U << DDP_VAL;
}

/* Whether to evaluate images that training held back: of data that have no
 * validation images, unless that is asked for. */
static bool held_back(const struct opts *o, const struct settings *s)
{
    return s->val_split > 0 && s->split == 1 &&
           (opts_given(o, "val-split") ||
            (s->data && !has_validation(s->data)));
}

static int open_data(struct evaluation *e, struct opts *o, struct settings *s)
{
    static const enum ddp_split split[] = {DDP_TRAIN, DDP_VAL, DDP_TEST};
    int rc = held_back(o, s) ? setup_part(o, s, DDP_VAL, &e->data)
                             : setup_data(o, s, split[s->split], &e->data);

    if (rc == OPTS_GO)
        return match_classes(e, o, s);
    if (s->data && access(s->data, F_OK) == 0 && !has_validation(s->data))
        app_say("to evaluate on all images of %s, use --split train", s->data);
    return rc;
}

static int open_predictions(struct evaluation *e, const char *path)
{
    if (!path)
        return OPTS_GO;
    e->predictions = strcmp(path, "-") != 0 ? fopen(path, "w") : stdout;
    if (e->predictions)
        return OPTS_GO;
    app_say("cannot write %s: %s", path, strerror(errno));
    return EXIT_WRITE;
}

static int open_inputs(struct evaluation *e, struct opts *o, struct settings *s)
{
    int rc;

    if ((rc = weights_setup(o, s, s->quiet ? NULL : stdout, &e->names)) !=
            OPTS_GO ||
        (rc = open_data(e, o, s)) != OPTS_GO)
        return rc;
    if (ddp_dataset_target_len(e->data) && (s->per_class || s->predictions)) {
        app_say("%s: --per-class and --predictions need one class for each "
                "image",
                ddp_dataset_describe(e->data));
        return EXIT_USAGE;
    }
    if (!s->classes)
        s->classes = ddp_dataset_classes(e->data);
    if ((rc = setup_devices(s, &e->ddp)) != OPTS_GO)
        return rc;
    if ((rc = setup_network(s, &e->chain)) != OPTS_GO ||
        (rc = weights_load(s, e->chain, false)) != OPTS_GO)
        return rc;
    if (s->per_class && !classes_new(&e->classes, ddp_dataset_classes(e->data)))
        return app_exit_code(DDP_ENOMEM);
    return open_predictions(e, s->predictions);
}

static void print_judged(const struct evaluation *e,
                         const struct ddp_prediction *a, const struct top *top)
{
    const char *path = ddp_dataset_path(e->data, a->index);
    const struct judged j = {
        .path = path ? path : "",
        .class = a->label,
        .name = ddp_dataset_class_name(e->data, a->label),
        .taken_name = ddp_dataset_class_name(e->data, top->class),
        .share = prediction_share(a->output, a->len, a->label),
        .taken = *top,
    };

    prediction_print_judged(&j, e->predictions);
}

static int on_sample(const struct ddp_prediction *a, void *arg)
{
    struct evaluation *e = arg;
    int k = a->len < TOP ? a->len : TOP;
    struct top top[TOP];

    if (a->bad)
        return 0; /* the class is unknown */
    prediction_top(a->output, a->len, k, top);
    if (e->predictions && a->label >= 0 && a->label < a->len)
        print_judged(e, a, top);
    return e->classes.row && !classes_add(&e->classes, a->label, top, k);
}

/* 0, or the exit code after a message. */
static int close_predictions(struct evaluation *e, const char *path)
{
    FILE *f = e->predictions;
    bool bad = f && (fflush(f) != 0 || ferror(f));

    e->predictions = NULL;
    if (f && f != stdout)
        bad = fclose(f) != 0 || bad;
    if (!bad)
        return 0;
    app_say("cannot write %s: %s", path, strerror(errno));
    return EXIT_WRITE;
}

static void on_count(int64_t done, int64_t count, void *arg)
{
    work_count(done, count, &((struct evaluation *)arg)->work);
}

static int evaluate(struct evaluation *e, const struct settings *s)
{
    struct ddp_evaluate_config cfg;
    struct ddp_metrics m;
    double t;
    int rc;

    app_print("%s\ndevices: %s\ndata: %s\nmodel: %s, %zu parameters\n",
              ddp_version(), ddp_describe(e->ddp),
              ddp_dataset_describe(e->data), s->model, setup_params(e->chain));
    setup_evaluation(s, &cfg);
    if (ddp_dataset_target_len(e->data))
        cfg.loss = DDP_BINARY_CROSS_ENTROPY;
    cfg.on_sample = s->per_class || s->predictions ? on_sample : NULL;
    cfg.on_count = on_count;
    cfg.arg = e;
    fflush(stdout);
    work_begin(&e->work, "eval", e->predictions == stdout);
    t = app_now();
    rc = ddp_chain_evaluate(e->ddp, e->chain, e->data, &cfg, &m);
    t = app_now() - t;
    work_clear(&e->work);
    setup_report_bad(e->data, 0, "unreadable image, not evaluated");
    setup_report_retries(e->data);
    setup_report_storage();
    if (rc == DDP_ESTOPPED)
        rc = DDP_ENOMEM; /* the only reason on_sample() stops */
    if (rc < 0)
        return app_fail(rc);
    rc = close_predictions(e, s->predictions);
    if (rc == 0 && s->per_class)
        rc = classes_print(&e->classes, e->data, s->per_class);
    printf("eval samples=%lld loss=%.4f top1=%.2f top5=%.2f top10=%.2f "
           "img/s=%.1f\n",
           (long long)m.samples, m.loss, 100 * m.top1, 100 * m.top5,
           100 * m.top10, (double)m.samples / t);
    return rc;
}

int eval_run(struct opts *o, struct settings *s)
{
    struct evaluation e = {0};
    int rc = open_inputs(&e, o, s);

    if (rc == OPTS_GO)
        rc = evaluate(&e, s);
    close_predictions(&e, s->predictions);
    classes_free(&e.classes);
    names_free(&e.names);
    ddp_dataset_free(e.data);
    ddp_chain_free(e.chain);
    ddp_finish(e.ddp);
    return rc;
}
