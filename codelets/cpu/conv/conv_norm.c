/* conv_norm.c - convolutions with the batch norm of evaluation, by CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * With a = scale / sqrt(var + eps), both are one convolution:
 *
 *     a (w * x + b - mean) + shift = (a w) * x + a (b - mean) + shift
 *
 * whose weights are made once for each version of the parameters.
 *
 * One Zen 5 core (AVX-512), oneDNN 2.6, inference on 96 images of 224x224 in
 * sub-batches of 16, milliseconds an image of processor time, median of three,
 * with norms apart and in this way:
 *
 *     ResNet-50 33.4 31.6, bf16 20.6 20.3; ResNet-18 9.6 8.4;
 *     MobileNetV2 6.7 4.6
 *
 * Factors are rounded to f32, and with bf16 the weights times a factor to bf16:
 * against sums in f64 results are as close as those of a convolution alone
 * (tolerance() in tests/judge.c).
 */
#include "config.h"

#include <math.h>

#include "conv.h"
#include "conv_norm.h"
#include "cpu/backend.h"
#include "packed.h"

enum { SHARE = 1 << 16 }; /* weights of a part: some 20 us */

/* How weights get the factors of a norm. */
struct fold_source {
    const struct ddp__call *call;
    const float *w, *norm;
    size_t weights, o;
};

static int count_parts(const struct fold_source *f)
{
    size_t parts = f->weights / SHARE + 1;

    return (int)(parts < f->o ? parts : f->o);
}

/* What channel i is multiplied by, and then the bias that it gets. */
static float factor_of(const struct fold_source *f, size_t i, float *bias)
{
    const struct ddp__conv *k = &f->call->conv;
    const float *scale = f->norm, *shift = scale + f->o;
    const float *mean = shift + f->o, *var = mean + f->o;
    float a = scale[i] / sqrtf(var[i] + k->eps);
    float b = k->bias ? f->w[f->weights + i] : 0;

    *bias = a * (b - mean[i]) + shift[i];
    return a;
}

/* Some of the output's channels. */
static int fold_weights(const void *arg, void *to, int part)
{
    const struct fold_source *f = arg;
    size_t len = f->weights / f->o, parts = (size_t)count_parts(f);
    size_t end = ((size_t)part + 1) * f->o / parts;
    float *w = to, *bias = w + f->weights;

    for (size_t i = (size_t)part * f->o / parts; i < end; i++) {
        float a = factor_of(f, i, bias + i);

        for (size_t j = 0; j < len; j++)
            w[i * len + j] = a * f->w[i * len + j];
    }
    return 0;
}

/* For kernels that multiply weights while they pack them. */
static int list_factors(const void *arg, void *to, int part)
{
    const struct fold_source *f = arg;
    float *by = to, *bias = by + f->o;

    (void)part; /* there is one */
    for (size_t i = 0; i < f->o; i++)
        by[i] = factor_of(f, i, bias + i);
    return 0;
}

/* The pair that says which contents weights and norm together have; versions
 * only grow, so that neither changes without their sum.  Ids are numbers of
 * buffers, counted from 1: two too large for one word are folded every time. */
static void identify_fold(const struct ddp__task *t, uint64_t *id,
                          uint64_t *version)
{
    uint64_t a = t->id[DDP__CONV_NORM_W], b = t->id[DDP__CONV_NORM_BN];

    *id = a && b && (a | b) <= UINT32_MAX ? a << 32 | b : 0;
    *version = t->version[DDP__CONV_NORM_W] + t->version[DDP__CONV_NORM_BN];
}

size_t ddp__conv_norm_folds(const struct ddp__plan *p)
{
    size_t o = (size_t)p->shape.o;

    return (ddp__packed_has(p) ? o : p->weights) + o;
}

/* The copy of what f says. */
static int get_folds(const struct ddp__task *t, struct ddp__plan *p,
                     const struct fold_source *f, struct ddp__pack **k)
{
    bool listed = ddp__packed_has(p);

    return ddp__pack_get(
        &p->folds, k, NULL, t->id[DDP__CONV_NORM_W],
        t->version[DDP__CONV_NORM_W],
        &(struct ddp__packing){listed ? list_factors : fold_weights, f,
                               listed ? 1 : count_parts(f),
                               ddp__conv_norm_folds(p) * sizeof(float), 0});
}

int ddp__cpu_conv_norm(const struct ddp__task *t)
{
    struct ddp__plan *p = t->plan;
    size_t o = (size_t)p->shape.o;
    struct fold_source from = {t->call, t->data[DDP__CONV_NORM_W],
                               t->data[DDP__CONV_NORM_BN], p->weights, o};
    struct ddp__task folded = *t;
    struct ddp__pack *k;
    int rc;

    identify_fold(t, &folded.id[DDP__CONV_NORM_W],
                  &folded.version[DDP__CONV_NORM_W]);
    folded.common[DDP__CONV_NORM_W] = 0;
    if ((rc = get_folds(&folded, p, &from, &k)) < 0)
        return rc;
    if (ddp__packed_has(p)) {
        rc = ddp__packed_run(&folded, p, k->data, (float *)k->data + o);
    } else {
        folded.data[DDP__CONV_NORM_W] = k->data;
        rc = ddp__cpu_conv_run(&folded);
    }
    ddp__pack_put(&p->folds, k);
    return rc;
}
