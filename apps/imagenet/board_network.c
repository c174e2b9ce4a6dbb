/* board_network.c - what the network of a run looks like, for its logs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/app.h"
#include "common/app_fail.h"
#include "board_network.h"

/* A failure is reported by the next board_report(). */
static void put_histogram(struct board *b, const char *kind,
                          const struct ddp_param_info *p, int64_t step,
                          const float *v)
{
    char tag[sizeof(p->name) + 16];

    snprintf(tag, sizeof(tag), "%s/%s", kind, p->name);
    for (int i = 0; i < DDP_LOG_KINDS; i++)
        if (b->log[i])
            ddp_log_histogram(b->log[i], tag, step, v, p->len);
}

/* Frozen parameters have no gradients. */
static int put_param(struct board *b, ddp_chain_t *chain,
                     ddp_trainer_t *trainer, const struct ddp_param_info *p,
                     int64_t step, float *v)
{
    int rc = ddp_chain_get(chain, p->name, v, p->len);

    if (rc < 0)
        return app_fail(rc);
    put_histogram(b, "weights", p, step, v);
    if (p->role == DDP_RUNNING)
        return 0;
    rc = ddp_trainer_get_gradient(trainer, p->name, v, p->len);
    if (rc == 0)
        put_histogram(b, "gradients", p, step, v);
    return rc == 0 || rc == DDP_EINVAL ? 0 : app_fail(rc);
}

int board_histograms(struct board *b, ddp_chain_t *chain,
                     ddp_trainer_t *trainer, int64_t step)
{
    struct ddp_param_info p;
    int rc = 0;

    for (int i = 0; rc == 0 && ddp_chain_param(chain, i, &p) == 0; i++) {
        float *v = malloc(p.len * sizeof(*v));

        rc = v ? put_param(b, chain, trainer, &p, step, v)
               : app_exit_code(DDP_ENOMEM);
        free(v);
    }
    return rc;
}

void board_graph(struct board *b, ddp_chain_t *chain, int64_t img_size)
{
    const struct ddp_shape in = {(int)img_size, (int)img_size, 3};

    for (int i = 0; i < DDP_LOG_KINDS; i++)
        if (b->log[i])
            ddp_log_graph(b->log[i], 0, chain, in);
}

/* Sample i of a sub-batch. */
static void put_image(struct board *b, const ddp_dataset_t *data, int i,
                      int32_t label, const uint8_t *pixels)
{
    const char *class = label < 0 ? "?" : ddp_dataset_class_name(data, label);
    char tag[256];

    if (class)
        snprintf(tag, sizeof(tag), "first_batch/%03d %s", i, class);
    else
        snprintf(tag, sizeof(tag), "first_batch/%03d %d", i, (int)label);
    ddp_printable(tag);
    for (int k = 0; k < DDP_LOG_KINDS; k++)
        if (b->log[k])
            ddp_log_image(b->log[k], tag, 0, ddp_dataset_shape(data), pixels);
}

int board_images(struct board *b, ddp_trainer_t *trainer,
                 const ddp_dataset_t *data, int64_t n)
{
    const struct ddp_shape s = ddp_dataset_shape(data);
    size_t size = (size_t)s.h * (size_t)s.w * (size_t)s.c;
    size_t cap = (size_t)ddp_trainer_config(trainer)->sub_batch;
    uint8_t *x = malloc(cap * size);
    int32_t *label = malloc(cap * sizeof(*label));
    int count = x && label ? ddp_trainer_batch(trainer, 0, x, label) : 0;
    int rc = !x || !label ? app_exit_code(DDP_ENOMEM)
             : count < 0  ? app_fail(count)
                          : 0;

    for (int i = 0; i < count && i < n; i++)
        put_image(b, data, i, label[i], x + (size_t)i * size);
    free(x);
    free(label);
    return rc;
}
