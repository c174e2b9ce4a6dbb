/* torch_part.c - a network of an oracle's file: parameters, samples, gradients
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "defaults.h"
#include "torch_part.h"
#include "train/trainer.h"

bool torch_set(const struct oracle *o, const char *part, ddp_chain_t *c)
{
    struct ddp_param_info p;

    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++) {
        const struct oracle_tensor *t = oracle_find(o, "%s/p/%s", part, p.name);

        if (t && ddp_chain_set(c, p.name, t->data, t->len) == 0)
            continue;
        printf("# %s/p/%s: %s\n", part, p.name,
               t ? ddp_errmsg() : "the script has no such tensor");
        return false;
    }
    return c != NULL;
}

/* ---- samples ------------------------------------------------------------ */

static int get(void *arg, int64_t i, uint64_t key, struct ddp_sample *s)
{
    const struct torch_samples *of = arg;
    const struct oracle_tensor *x = oracle_find(of->o, "%s/x", of->part);
    size_t len = x->len / (size_t)x->dim[0];

    (void)key;
    memcpy(s->x, x->data + (size_t)i * len, len * sizeof(float));
    s->label = (int32_t)oracle_find(of->o, "%s/label", of->part)->data[i];
    return 0;
}

ddp_dataset_t *torch_samples(const struct torch_samples *s)
{
    const struct oracle_tensor *x = oracle_find(s->o, "%s/x", s->part);

    return ddp_dataset_callback(&(struct ddp_source){
        .count = x->dim[0],
        .shape = {x->dim[1], x->dim[2], x->dim[3]},
        .type = DDP_F32,
        .classes = s->classes,
        .get = get,
        .arg = (void *)s,
    });
}

ddp_trainer_t *torch_trainer(ddp_t *ddp, ddp_chain_t *c, ddp_dataset_t *d,
                             enum ddp_dtype dtype, int batch)
{
    struct ddp_optimizer momentum = ddp_momentum(0.05f, 0.9f);
    int64_t n = ddp_dataset_count(d);

    momentum.weight_decay = 1e-4f;
    momentum.decay_all = true;
    return ddp_trainer_new(ddp, c, d,
                           &(struct ddp_train_config){
                               TRAIN_DEFAULTS, .loss = DDP_LOGIT_CROSS_ENTROPY,
                               .label_smoothing = 0.1f, .optimizer = momentum,
                               .sub_batch = n < batch ? (int)n : batch,
                               .batch = n < batch ? (int)n : batch,
                               .dtype = dtype, .order = DDP_IN_ORDER,
                               .keep_weights = true});
}

/* ---- gradients ---------------------------------------------------------- */

/* What a part has of a gradient, and of its yardstick. */
struct truth {
    const struct oracle *o;
    const char *part, *yardstick;
};

/* Add a tensor to the sums of squares of |off| and |gradient|. */
static bool add(ddp_trainer_t *t, const struct truth *by,
                const struct ddp_param_info *p, struct torch_off *off,
                double *norm)
{
    const struct oracle_tensor *want =
        oracle_find(by->o, "%s/g/%s", by->part, p->name);
    const struct oracle_tensor *e =
        oracle_find(by->o, "%s/%s/%s", by->part, by->yardstick, p->name);
    float *got = calloc(p->len, sizeof(*got));
    double size = oracle_distance(want->data, got, p->len), d, theirs;
    int rc = ddp_trainer_get_gradient(t, p->name, got, p->len);

    d = oracle_distance(got, want->data, p->len);
    theirs = fmax((double)e->data[0], 0x1p-24); /* closer is luck */
    free(got);
    *norm += size * size;
    off->ours += size * size * d * d;
    off->theirs += size * size * theirs * theirs;
    if (!(d / theirs <= off->worst)) {
        off->worst = d / theirs;
        snprintf(off->worst_name, sizeof(off->worst_name), "%s", p->name);
    }
    return rc == 0;
}

bool torch_measure(const struct oracle *o, ddp_trainer_t *t, ddp_chain_t *c,
                   const char *part, const char *yardstick,
                   struct torch_off *off)
{
    const struct truth by = {o, part, yardstick};
    struct ddp_param_info p;
    double norm = 0;

    memset(off, 0, sizeof(*off));
    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++)
        if (p.role != DDP_RUNNING && !add(t, &by, &p, off, &norm)) {
            printf("# %s: %s\n", part, ddp_errmsg());
            return false;
        }
    off->ours = sqrt(off->ours / norm);
    off->theirs = sqrt(off->theirs / norm);
    printf("# %s: off by %.3g, PyTorch by %.3g; %s by %.3g times PyTorch's\n",
           part, off->ours, off->theirs, off->worst_name, off->worst);
    return true;
}
