/* train_make.c - the data, network and trainer of "imagenet train"
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "common/opt_file.h"
#include "common/start_clock.h"
#include "checkpoint.h"
#include "class_subset.h"
#include "class_weights.h"
#include "find_lr.h"
#include "recipe.h"
#include "setup_data.h"
#include "setup_network.h"
#include "step_graph.h"
#include "teacher.h"
#include "train_events.h"
#include "train_folder.h"
#include "train_make.h"
#include "weights.h"
#include "weights_settings.h"

/* Jordan's, of --whiten. */
#define WHITEN_EPS 5e-4

int train_open_data(struct run *r)
{
    struct settings *s = r->set;
    int classes, rc;

    rc = s->val_split > 0 ? setup_part(r->opts, s, DDP_TRAIN, &r->data)
                          : setup_data(r->opts, s, DDP_TRAIN, &r->data);
    if (rc != OPTS_GO ||
        (rc = class_subset_choose(r->opts, s, &r->data)) != OPTS_GO)
        return rc;
    classes = ddp_dataset_classes(r->data);
    if (ddp_dataset_target_len(r->data) && s->loss == LOSS_CE) {
        app_say("%s: use --loss bce, which takes each class for itself",
                ddp_dataset_describe(r->data));
        return EXIT_USAGE;
    }
    if (!s->classes)
        s->classes = classes;
    if (s->classes < classes) {
        app_say("--num-classes %lld is less than the %d classes of the data",
                (long long)s->classes, classes);
        return EXIT_USAGE;
    }
    s->resize = ddp_dataset_resize(r->data);
    return s->no_val ? OPTS_GO : setup_val(r->opts, s, r->data, &r->val);
}

/* The first steps make plans and touch memory. */
enum { TRACE_FIRST = 3 };

static int configure_trace(struct run *r, struct ddp_train_config *cfg)
{
    const struct settings *s = r->set;
    int rank = ddp_rank(r->ddp);

    if (s->trace) {
        r->trace = rank ? app_path(s->output, "trace-rank-%d.json", rank)
                        : app_path(s->output, "trace.json");
        if (!r->trace)
            return app_exit_code(DDP_ENOMEM);
    }
    if (s->graph && train_is_writer(r) &&
        !(r->graph = step_graph_dot(s->graph)))
        return app_exit_code(DDP_ENOMEM);
    cfg->trace = r->trace;
    cfg->graph = r->graph;
    cfg->trace_first = TRACE_FIRST;
    cfg->trace_steps = s->trace;
    return OPTS_GO;
}

static int configure_groups(struct run *r, struct ddp_train_config *cfg)
{
    int rc = groups_make(r->opts, r->set, r->chain, &r->groups);

    recipe_config(r->opts, r->set, cfg);
    cfg->groups = r->groups.group;
    cfg->group_count = r->groups.count;
    return rc;
}

static int configure_weights(struct run *r, struct ddp_train_config *cfg)
{
    const struct settings *s = r->set;
    int classes = ddp_dataset_classes(r->data), rc = OPTS_GO;

    if (s->class_weights)
        rc = class_weights_make(s->class_weights, r->data, &r->class_weights);
    if (rc == OPTS_GO && s->pos_weight)
        rc = pos_weight_make(s->pos_weight, r->data, &r->pos_weight);
    cfg->class_weights = r->class_weights;
    cfg->class_weight_count = r->class_weights ? classes : 0;
    cfg->pos_weight = r->pos_weight;
    cfg->pos_weight_count = r->pos_weight ? classes : 0;
    return rc;
}

/* With the weights that it begins with, and how it is trained. */
static int make_network(struct run *r, struct ddp_train_config *cfg)
{
    int rc = setup_network(r->set, &r->chain);

    if (rc == OPTS_GO && r->set->weights)
        rc = weights_load(r->set, r->chain, true);
    if (rc != OPTS_GO)
        return rc;
    if (r->set->whiten > 0 &&
        (rc = ddp_chain_whiten(r->chain, r->data, r->set->whiten, WHITEN_EPS)) <
            0)
        return app_fail(rc);
    if ((rc = weights_settings_add(r->opts, r->chain, r->data)) < 0)
        return app_fail(rc);
    rc = configure_groups(r, cfg);
    if (rc == OPTS_GO)
        rc = configure_weights(r, cfg);
    if (rc == OPTS_GO && r->set->teacher)
        rc = teacher_make(r->opts, r->set, &r->teacher);
    cfg->teacher = r->teacher;
    return rc;
}

int train_find_rate(struct run *r)
{
    struct ddp_train_config cfg;
    int rc = make_network(r, &cfg);

    return rc == OPTS_GO ? find_lr(r->set, r->ddp, r->chain, r->data, &cfg,
                                   train_is_writer(r))
                         : rc;
}

int train_make_trainer(struct run *r)
{
    struct ddp_sink sinks[1 + DDP_LOG_KINDS] = {record_sink(&r->record)};
    struct ddp_train_config cfg;
    int rc = make_network(r, &cfg);

    if (rc != OPTS_GO)
        return rc;
    start_mark("network");
    cfg.eval_data = r->val;
    train_callbacks(r, &cfg);
    cfg.keep_gradients = r->set->log_histograms > 0;
    cfg.sinks = sinks;
    cfg.sink_count =
        train_is_writer(r) ? 1 + board_sinks(&r->board, sinks + 1) : 0;
    checkpoint_config(r->set, r->ckpt, &cfg);
    if ((rc = configure_trace(r, &cfg)) != OPTS_GO)
        return rc;
    if (!(r->trainer = ddp_trainer_new(r->ddp, r->chain, r->data, &cfg)))
        return app_fail(ddp_errcode());
    return OPTS_GO;
}

int train_print_options(struct run *r)
{
    struct ddp_train_config cfg;
    int rc = setup_network(r->set, &r->chain);

    if (rc != OPTS_GO)
        return rc;
    if ((rc = configure_groups(r, &cfg)) != OPTS_GO)
        return rc;
    if ((rc = ddp_train_config_resolve(&cfg, r->ddp, r->data)) < 0)
        return app_fail(rc);
    opts_save(r->opts, stdout);
    return 0;
}
