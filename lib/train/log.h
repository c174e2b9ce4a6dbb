/* log.h - sinks that write values of a run in the formats of other programs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_LOG_H
#define DDP_LOG_H

#include "base/proto.h"
#include "ddp.h"
#include "train/histogram.h"

struct ddp__log_value {
    const char *tag;
    double v;
};

/* What a format does; functions return 0 or a code after a message, and the
 * log is closed then. */
struct ddp__log_format {
    const char *name;
    size_t size; /* of what it keeps in ddp_log.own, all zeros at first */
    /* Create files, or continue those of a run that has made so many steps. */
    int (*open)(struct ddp_log *l, int64_t steps);
    /* Steps never go down after open(). */
    int (*put)(struct ddp_log *l, int64_t step, const struct ddp__log_value *v,
               int n);
    /* NULL: its program shows none. */
    int (*histogram)(struct ddp_log *l, int64_t step, const char *tag,
                     const struct ddp__histogram *h);
    /* Pixels of 1 or 3 bytes. */
    int (*image)(struct ddp_log *l, int64_t step, const char *tag,
                 struct ddp_shape shape, const uint8_t *pixels);
    /* What ddp__graph_def() made, empty afterwards; NULL: likewise. */
    int (*graph)(struct ddp_log *l, int64_t step, struct ddp__proto *def);
    /* The checkpoint of a step is on the disk; NULL: that changes nothing. */
    int (*saved)(struct ddp_log *l, int64_t step);
    /* Training has returned rc. */
    int (*end)(struct ddp_log *l, int rc);
    /* Give up what open() took, also if it failed. */
    void (*close)(struct ddp_log *l);
};

struct ddp_log {
    const struct ddp__log_format *format;
    char *dir; /* owned, as are the settings and facts */
    char **setting;
    int settings;              /* name, value, name, value, ... */
    char *fact[DDP_LOG_FACTS]; /* NULL: not given */
    void *own;                 /* what the format keeps */
    bool open; /* there are files, or there were until something failed */
    int rc;    /* what failed */
    char why[1024];
};

/* Whether all of a setting is a number, and which. */
bool ddp__log_number(const char *text, double *v);

#endif
