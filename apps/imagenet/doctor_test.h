/* doctor_test.h - a small training run on all devices and on the reference
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DOCTOR_TEST_H
#define DOCTOR_TEST_H

#include "ddp.h"

#include "doctor_report.h"

/* The weights that some steps lead to; free() both. */
struct doctor_weights {
    float *before, *after;
    size_t len;
    uint32_t crc;
    double seconds;
};

/* Train a small network for two steps: 0 or the library's code. */
int doctor_train(ddp_t *ddp, struct doctor_weights *w);

void doctor_weights_free(struct doctor_weights *w);

/* Train the same on one CPU worker, and on one with the plain kernels; report
 * how the weights differ from w, which `workers` made, of which `gpus` belong
 * to GPUs; CPU workers used the kernels of `backend`.  No context may be open.
 */
void doctor_compare(struct report *r, const struct doctor_weights *w,
                    const char *backend, int workers, int gpus);

#endif
