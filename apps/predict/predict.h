/* predict.h - what the programs ddp-predict and ddp-predict-step share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef PREDICT_H
#define PREDICT_H

#include "common/opt.h"

struct predict_settings {
    char *model;
    int64_t img_size, classes, sub_batch, lanes, steps, skip;
    int64_t sub_batches; /* of a step; 0: one for each lane */
    int dtype;           /* as in predict_dtypes */
    int gpus[OPT_WIDTHS_MAX + 1];
    int cpus[OPT_WIDTHS_MAX + 1];             /* [0] is 0: GPUs train */
    int numa[OPT_WIDTHS_MAX + 1];             /* nodes of the CPU workers */
    double far;                               /* times as long, to read */
    int slow[OPT_WIDTHS_MAX + 1];             /* times as long, by GPU */
    double stall;                             /* ms, of the first GPU */
    double tflops, tbs, launch, memory;       /* of a device */
    double link, latency, pcie, pcie_latency; /* between memories */
    int nodes[OPT_WIDTHS_MAX + 1];            /* [0] is 0: one */
    double net, net_latency, net_message;     /* between nodes */
    char *times;                              /* a file; NULL: none */
    char *trace;                              /* a file; NULL: none */
    bool small_stem, json;
};

extern const struct opt_command predict_command;
extern const char *const predict_dtypes[];

/* Fill in what follows from the other settings. */
void predict_resolve(struct predict_settings *s);

/* The numbers of devices, and what they are called. */
const int *predict_counts(const struct predict_settings *s);
const char *predict_kind(const struct predict_settings *s);

/* Write what StarPU reads of a machine with so many devices into DIR/bus, under
 * the host name PREDICT_HOST.  0, or an exit code after a message. */
#define PREDICT_HOST "predicted"
int predict_machine(const char *dir, const struct predict_settings *s,
                    int devices);

#endif
