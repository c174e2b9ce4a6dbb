/* predict.h - what the programs ddp-predict and ddp-predict-step share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef PREDICT_H
#define PREDICT_H

#include "common/opt.h"

struct predict_settings {
    char *model;
    int64_t img_size, classes, sub_batch, lanes, steps, skip;
    int dtype; /* as in predict_dtypes */
    int gpus[OPT_WIDTHS_MAX + 1];
    double tflops, tbs, launch, memory;       /* of a GPU */
    double link, latency, pcie, pcie_latency; /* between memories */
    bool json;
};

extern const struct opt_command predict_command;
extern const char *const predict_dtypes[];

/* Write what StarPU reads of a machine with so many GPUs into DIR/bus, under
 * the host name PREDICT_HOST.  0, or an exit code after a message. */
#define PREDICT_HOST "predicted"
int predict_machine(const char *dir, const struct predict_settings *s,
                    int gpus);

#endif
