/* bus_file.h - whether StarPU can read its files of measured copies
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BUS_FILE_H
#define DDP_BUS_FILE_H

#include <stdbool.h>

/* What .config has, for .affinity; numas < 1: it is not known. */
struct ddp__bus_counts {
    int numas, kinds, devices[14]; /* kinds of accelerators */
};

enum { DDP__BUS_CONFIG, DDP__BUS_AFFINITY };

/* A file of this kind, or of another one that is text.  Fills in *c from
 * .config, which comes first. */
bool ddp__bus_file_good(const char *path, int kind, struct ddp__bus_counts *c);

#endif
