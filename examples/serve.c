/* serve.c - a service that classifies images
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     serve WEIGHTS [SIZE] <NAMES
 *
 * It reads the name of an image per line and answers with its class.  The
 * network is prepared once; an answer takes a forward pass.
 */
#include <ddp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = 1000 };

struct service {
    struct ddp_image_options images;
    ddp_compiled_t *net;
    char *names, *name[CLASSES]; /* a line each, of the file of weights */
    int classes;
    unsigned char *pixels;
    float *x, y[CLASSES];
};

/* "imagenet train" writes the names of the classes into the file. */
static int on_metadata(const char *key, const char *value, void *arg)
{
    struct service *s = arg;
    char *next = NULL;

    if (strcmp(key, "imagenet.classes") || !(s->names = strdup(value)))
        return 0;
    for (char *line = strtok_r(s->names, "\n", &next);
         line && s->classes < CLASSES; line = strtok_r(NULL, "\n", &next))
        s->name[s->classes++] = line;
    return 0;
}

/* The class of an image; NULL: it cannot be read. */
static const char *classify(struct service *s, const char *path)
{
    ddp_dataset_t *image = ddp_dataset_images(&path, 1, &s->images);
    int pixels = s->images.size * s->images.size, best = 0;
    int rc = ddp_dataset_get(image, 0, 0, s->pixels, NULL);

    ddp_dataset_free(image);
    for (int i = 0; i < 3 * pixels; i++)
        s->x[i] = ((float)s->pixels[i] / 255 - s->images.mean[i % 3]) /
                  s->images.std[i % 3];
    if (rc < 0 || ddp_compiled_run(s->net, s->x, 1, s->y) < 0)
        return NULL;
    for (int i = 1; i < s->classes; i++)
        if (s->y[i] > s->y[best])
            best = i;
    return s->name[best];
}

static void answer(struct service *s)
{
    char line[4096];

    while (fgets(line, sizeof(line), stdin)) {
        const char *class;

        line[strcspn(line, "\n")] = 0;
        class = classify(s, line);
        printf("%s\t%s\n", line, class ? class : ddp_errmsg());
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    static struct service s;
    struct ddp_model_options options;
    const char *model;
    ddp_t *ddp = ddp_init(NULL);
    ddp_chain_t *net;
    bool good;
    int size;

    if (argc < 2 || ddp_weights_model(argv[1], &model) < 0 || !model ||
        ddp_weights_metadata(argv[1], on_metadata, &s) < 0) {
        fprintf(stderr, "serve: needs weights of a known network: %s\n",
                ddp_errmsg());
        return 1;
    }
    ddp_image_options_init(&s.images);
    ddp_model_image_options(model, &s.images);
    if (argc > 2) {
        s.images.size = atoi(argv[2]);
        s.images.resize = 0; /* 8 / 7 of the size */
    }
    size = s.images.size;
    ddp_model_options_init(&options);
    options.classes = s.classes;
    net = ddp_model_new(model, &options);
    good = ddp_chain_load(net, argv[1], NULL, NULL) == 0 &&
           (s.net = ddp_compiled_new(
                ddp, net, (struct ddp_shape){size, size, 3}, 1, NULL));
    s.pixels = malloc(3 * (size_t)size * (size_t)size);
    s.x = malloc(3 * (size_t)size * (size_t)size * sizeof(*s.x));
    if (good && s.pixels && s.x)
        answer(&s);
    else
        fprintf(stderr, "serve: %s\n", ddp_errmsg());
    ddp_compiled_free(s.net);
    ddp_chain_free(net);
    ddp_finish(ddp);
    free(s.x);
    free(s.pixels);
    free(s.names);
    return !good;
}
