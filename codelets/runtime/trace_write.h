/* trace_write.h - a trace as Chrome's JSON, and as a graph for Graphviz
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TRACE_WRITE_H
#define DDP_TRACE_WRITE_H

#include "runtime/trace.h"

/* Trace events, which Perfetto reads too.  DDP_EIO. */
int ddp__trace_json(const struct ddp__trace *t, const char *path, int rank);

/* The graph of the first step.  DDP_EIO. */
int ddp__trace_dot(const struct ddp__trace *t, const char *path);

#endif
