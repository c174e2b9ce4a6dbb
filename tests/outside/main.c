/* main.c - a stranger's program: learns exclusive or from samples of its own
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <stdio.h>
#include <string.h>
#include <ddp.h>

static int exclusive_or(void *arg, int64_t index, uint64_t key,
                        struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    (void)key;
    x[0] = (float)(index & 1);
    x[1] = (float)(index >> 1 & 1);
    s->label = x[0] != x[1];
    return 0;
}

/* The installed library runs on real devices: it reports that, and measures
 * nothing.
 */
static int simulates(void)
{
    struct ddp_device_speed speed = {.flops = 1, .bytes_per_s = 1};
    struct ddp_simulation p;

    return ddp_simulation_set_speed(DDP_CUDA, &speed) != DDP_ENODEV ||
           ddp_simulation_read(&p) != DDP_ENODEV || !*ddp_errmsg();
}

/* Header and library are of one version, the one that pkg-config has. */
static int version_differs(const char *pkg_config)
{
    char number[32];

    snprintf(number, sizeof(number), "%d.%d.%d", DDP_VERSION_MAJOR,
             DDP_VERSION_MINOR, DDP_VERSION_PATCH);
    return ddp_version_number() != DDP_VERSION_NUMBER ||
           strcmp(number, pkg_config);
}

int main(int argc, char **argv)
{
    const struct ddp_source source = {.count = 64,
                                      .shape = {1, 1, 2},
                                      .type = DDP_F32,
                                      .classes = 2,
                                      .get = exclusive_or};
    struct ddp_train_config config;
    struct ddp_metrics m = {.top1 = 0};
    ddp_t *ddp = ddp_init(NULL);
    ddp_chain_t *chain =
        ddp_chain_new(ddp_dense_new(2, 16, NULL), ddp_tanh_new(),
                      ddp_dense_new(16, 2, NULL), DDP_END);
    ddp_dataset_t *data = ddp_dataset_callback(&source);
    ddp_trainer_t *trainer;
    int rc = 1;

    ddp_train_config_init(&config);
    config.optimizer = ddp_adam(0.02f);
    config.sub_batch = 16;
    config.batch = 64;
    config.epochs = 200;
    config.seed = 1;
    trainer = ddp_trainer_new(ddp, chain, data, &config);
    if (!trainer || ddp_trainer_train(trainer) < 0 ||
        ddp_trainer_evaluate(trainer, data, &m) < 0)
        printf("%s\n", ddp_errmsg());
    else
        rc = !(m.samples == 64 && m.top1 > 0.99);
    printf("%lld samples, loss %g, top1 %g\n", (long long)m.samples, m.loss,
           m.top1);
    ddp_trainer_free(trainer);
    ddp_dataset_free(data);
    ddp_chain_free(chain);
    ddp_finish(ddp);
    if (argc != 2 || version_differs(argv[1])) {
        printf("the version of ddp.h, %d, differs from the library's, %d, or "
               "from ddp.pc's\n",
               DDP_VERSION_NUMBER, ddp_version_number());
        rc = 1;
    }
    if (simulates()) {
        printf("a library without SimGrid simulates\n");
        rc = 1;
    }
    return rc;
}
