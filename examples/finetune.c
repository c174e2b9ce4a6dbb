/* finetune.c - continue from trained weights, with a new head
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     finetune WEIGHTS DATA [SIZE]
 *
 * The new data have other classes than the file, so the last layer starts at
 * random.  In the first epoch only that layer learns: the gradients of the
 * others are set to 0.  In the second one all do.
 */
#include <ddp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Set all gradients to 0 but those of the last layer: a weight and a bias. */
static int keep_head(ddp_trainer_t *trainer, ddp_chain_t *net)
{
    struct ddp_param_info p;
    int count = 0, rc = 0;

    while (ddp_chain_param(net, count, &p) == 0)
        count++;
    for (int i = 0; i < count - 2 && rc == 0; i++) {
        float *zeros = ddp_chain_param(net, i, &p) == 0
                           ? calloc(p.len, sizeof(*zeros))
                           : NULL;

        if (!zeros)
            return DDP_ENOMEM;
        if (p.role != DDP_RUNNING)
            rc = ddp_trainer_set_gradient(trainer, p.name, zeros, p.len);
        free(zeros);
    }
    return rc;
}

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

static int train(ddp_trainer_t *trainer, ddp_chain_t *net)
{
    struct ddp_param_info p;
    struct ddp_metrics m;
    int rc = ddp_chain_param(net, 0, &p);
    float *first = rc == 0 ? malloc(p.len * sizeof(*first)) : NULL;

    if (!first)
        return DDP_ENOMEM;
    rc = ddp_chain_get(net, p.name, first, p.len);
    for (int64_t i = ddp_trainer_epoch_steps(trainer); i > 0 && rc == 0; i--)
        if ((rc = ddp_trainer_gradients(trainer, &m)) == 0 &&
            (rc = keep_head(trainer, net)) == 0)
            rc = ddp_trainer_update(trainer);
    printf("head only: %s moved by %g\n", p.name,
           distance(net, p.name, p.len, first));
    if (rc == 0)
        rc = ddp_trainer_train(trainer);
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
    ddp_trainer_t *trainer;
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
    config.epochs = 2;
    good = ddp_chain_load(net, argv[1], &how, &report) == 0;
    trainer = good ? ddp_trainer_new(ddp, net, data, &config) : NULL;
    if (good)
        printf("%s: %d tensors loaded%s\n", model, report.loaded,
               report.new_head ? ", new head" : "");
    good = trainer && train(trainer, net) == 0 &&
           ddp_chain_save(net, "finetuned.safetensors", NULL) == 0;
    if (!good)
        fprintf(stderr, "finetune: %s\n", ddp_errmsg());
    ddp_trainer_free(trainer);
    ddp_chain_free(net);
    ddp_dataset_free(data);
    ddp_finish(ddp);
    return !good;
}
