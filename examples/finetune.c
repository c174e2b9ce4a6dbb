/* finetune.c - continue from trained weights, with a new head
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     finetune WEIGHTS DATA [SIZE]
 *
 * The new data have other classes than the file, so the last layer starts at
 * random.  In the first epoch only that layer learns: the others are frozen.
 * In the second one all do.
 */
#include <ddp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How far the first layer has moved from w. */
static float distance(ddp_chain_t *net, const char *name, size_t len,
                      const float *w)
{
    float *now = malloc(len * sizeof(*now)), most = 0;

    if (!now || ddp_chain_get(net, name, now, len) < 0)
        most = NAN;
    for (size_t i = 0; now && i < len; i++)
        most = fmaxf(most, fabsf(now[i] - w[i]));
    free(now);
    return most;
}

/* The name of the layer of the last parameter. */
static const char *head_of(ddp_chain_t *net, struct ddp_param_info *p)
{
    char *dot;

    for (int i = 0; ddp_chain_param(net, i, p) == 0; i++)
        ;
    if ((dot = strrchr(p->name, '.')))
        *dot = 0;
    return p->name;
}

static int train_once(ddp_t *ddp, ddp_chain_t *net, ddp_dataset_t *data,
                      const struct ddp_train_config *config)
{
    ddp_trainer_t *trainer = ddp_trainer_new(ddp, net, data, config);
    int rc = trainer ? ddp_trainer_train(trainer) : ddp_errcode();

    ddp_trainer_free(trainer);
    return rc;
}

static int train(ddp_t *ddp, ddp_chain_t *net, ddp_dataset_t *data,
                 struct ddp_train_config *config)
{
    struct ddp_param_info p, last = {.name = ""};
    struct ddp_param_group groups[] = {{"*", 0, -1}, {NULL, 1, -1}};
    int rc = ddp_chain_param(net, 0, &p);
    float *first = rc == 0 ? malloc(p.len * sizeof(*first)) : NULL;

    if (!first)
        return DDP_ENOMEM;
    groups[1].match = head_of(net, &last);
    config->groups = groups;
    config->group_count = 2;
    rc = ddp_chain_get(net, p.name, first, p.len);
    if (rc == 0)
        rc = train_once(ddp, net, data, config);
    printf("head only: %s moved by %g\n", p.name,
           distance(net, p.name, p.len, first));
    config->group_count = 0;
    config->keep_weights = true;
    if (rc == 0)
        rc = train_once(ddp, net, data, config);
    printf("all layers: %s moved by %g\n", p.name,
           distance(net, p.name, p.len, first));
    free(first);
    return rc;
}

int main(int argc, char **argv)
{
    struct ddp_image_options images;
    struct ddp_model_options options;
    struct ddp_load_options how;
    struct ddp_load_report report;
    struct ddp_train_config config;
    const char *model;
    ddp_t *ddp = ddp_init(NULL);
    ddp_dataset_t *data;
    ddp_chain_t *net;
    bool good;

    if (argc < 3 || ddp_weights_model(argv[1], &model) < 0 || !model) {
        fprintf(stderr, "finetune: needs weights of a known network: %s\n",
                ddp_errmsg());
        return 1;
    }
    ddp_image_options_init(&images);
    ddp_model_image_options(model, &images);
    images.augment = DDP_AUGMENT_RANDOM;
    if (argc > 3)
        images.size = atoi(argv[3]);
    data = ddp_dataset_open(argv[2], DDP_TRAIN, &images);
    ddp_model_options_init(&options);
    options.classes = ddp_dataset_classes(data);
    net = ddp_model_new(model, &options);
    ddp_load_options_init(&how);
    how.new_head = true;

    ddp_train_config_init(&config);
    config.optimizer = ddp_momentum(0.01f, 0.9f);
    config.batch = 16;
    config.sub_batch = 8;
    config.epochs = 1;
    good = ddp_chain_load(net, argv[1], &how, &report) == 0;
    if (good)
        printf("%s: %d tensors loaded%s\n", model, report.loaded,
               report.new_head ? ", new head" : "");
    good = good && train(ddp, net, data, &config) == 0 &&
           ddp_chain_save(net, "finetuned.safetensors", NULL) == 0;
    if (!good)
        fprintf(stderr, "finetune: %s\n", ddp_errmsg());
    ddp_chain_free(net);
    ddp_dataset_free(data);
    ddp_finish(ddp);
    return !good;
}
