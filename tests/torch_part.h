/* torch_part.h - a network of an oracle's file: parameters, samples, gradients
 *
 * A script writes them as PART/p/NAME, PART/x and label, PART/g/NAME; and as
 * PART/e/NAME what f32 makes of a gradient, as its distance from the true one.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef TORCH_PART_H
#define TORCH_PART_H

#include "oracle.h"
#include "runtime/context.h"

/* How far gradients are off, all together and the worst tensor, in units of
 * what PyTorch is off by itself. */
struct torch_off {
    double ours, theirs; /* of all gradients as one vector, relative */
    double worst;
    char worst_name[160];
};

/* Give a chain the parameters of a part; false after a diagnosis. */
bool torch_set(const struct oracle *o, const char *part, ddp_chain_t *c);

/* The samples of a part, whose name and oracle must outlive them. */
struct torch_samples {
    const struct oracle *o;
    const char *part;
    int classes;
};
ddp_dataset_t *torch_samples(const struct torch_samples *s);

/* A trainer of them in order, in sub-batches of at most `batch`. */
ddp_trainer_t *torch_trainer(ddp_t *ddp, ddp_chain_t *c, ddp_dataset_t *d,
                             enum ddp_dtype dtype, int batch);

/* Measure a trainer's gradients by a yardstick: "e", or another letter. */
bool torch_measure(const struct oracle *o, ddp_trainer_t *t, ddp_chain_t *c,
                   const char *part, const char *yardstick,
                   struct torch_off *off);

#endif
