/* mnist.c - handwritten digits from the files of MNIST
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     mnist train-images-idx3-ubyte train-labels-idx1-ubyte [EPOCHS]
 */
#include <ddp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file of MNIST: big-endian numbers, then bytes. */
struct idx {
    uint32_t magic, size[3]; /* images, rows and columns; or labels */
    unsigned char *byte;     /* owned */
    size_t len;
};
struct digits {
    struct idx image, label;
};

static bool read_number(FILE *f, uint32_t *number)
{
    unsigned char b[4];

    if (fread(b, 1, 4, f) != 4)
        return false;
    *number = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 |
              (uint32_t)b[2] << 8 | b[3];
    return true;
}

/* magic 2051: images, 2049: labels.  The sizes are those of the file, so a
 * damaged one cannot have more than 64 MB read. */
static bool idx_read(struct idx *x, const char *path, uint32_t magic)
{
    FILE *f = fopen(path, "rb");
    int sizes = (int)(magic & 0xff);
    bool good = f && read_number(f, &x->magic) && x->magic == magic;

    x->len = 1;
    for (int i = 0; good && i < sizes; i++) {
        good = read_number(f, &x->size[i]) && x->size[i] > 0 &&
               x->size[i] <= (64u << 20) / x->len;
        x->len *= good ? x->size[i] : 1;
    }
    good = good && (x->byte = malloc(x->len)) &&
           fread(x->byte, 1, x->len, f) == x->len;
    if (f)
        fclose(f);
    if (!good)
        fprintf(stderr, "mnist: %s is not such a file of MNIST\n", path);
    return good;
}

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    const struct digits *d = arg;
    size_t pixels = d->image.len / d->image.size[0];
    const unsigned char *p = d->image.byte + (size_t)index * pixels;

    (void)key;
    for (size_t i = 0; i < pixels; i++)
        ((float *)s->x)[i] = (float)p[i] / 255;
    s->label = d->label.byte[index];
    return 0;
}

static bool train(const struct digits *d, int64_t epochs)
{
    struct ddp_shape shape = {(int)d->image.size[1], (int)d->image.size[2], 1};
    struct ddp_source source = {.count = d->image.size[0],
                                .shape = shape,
                                .classes = 10,
                                .get = get,
                                .arg = (void *)d};
    ddp_t *ddp = ddp_init(NULL);
    ddp_dataset_t *data = ddp_dataset_callback(&source);
    ddp_chain_t *net = ddp_chain_new(
        ddp_conv_new(1, 16, 3, NULL), ddp_relu_new(), ddp_max_pool_new(2, NULL),
        ddp_conv_new(16, 32, 3, NULL), ddp_relu_new(),
        ddp_adaptive_mean_pool_new(4, 4), ddp_flatten_new(),
        ddp_dense_new(32 * 4 * 4, 10, NULL), DDP_END);
    struct ddp_train_config config;
    struct ddp_metrics m;
    ddp_trainer_t *trainer;
    bool good;

    ddp_train_config_init(&config);
    config.optimizer = ddp_adam(1e-2f);
    config.sub_batch = 16;
    config.epochs = epochs;
    trainer = ddp_trainer_new(ddp, net, data, &config);
    good = ddp_trainer_train(trainer) == 0 &&
           ddp_trainer_evaluate(trainer, data, &m) == 0;
    if (good)
        printf("%d digits: loss %.4f, %.2f %% right\n", (int)m.samples, m.loss,
               100 * m.top1);
    else
        fprintf(stderr, "mnist: %s\n", ddp_errmsg());
    ddp_trainer_free(trainer);
    ddp_chain_free(net);
    ddp_dataset_free(data);
    ddp_finish(ddp);
    return good;
}

int main(int argc, char **argv)
{
    struct digits d;
    bool good;

    memset(&d, 0, sizeof(d));
    good = argc > 2 && idx_read(&d.image, argv[1], 2051) &&
           idx_read(&d.label, argv[2], 2049) &&
           d.image.size[0] == d.label.size[0] &&
           train(&d, argc > 3 ? atoll(argv[3]) : 2);
    free(d.image.byte);
    free(d.label.byte);
    return !good;
}
