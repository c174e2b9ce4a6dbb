/* segment.h - which nodes are one task, and where its activations lie
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SEGMENT_H
#define DDP_SEGMENT_H

#include "graph/value.h"

/* The nodes begin..end-1 that one task runs. */
struct ddp__segment {
    int begin, end;
};

/* Memory for activations, in the order of the segments that are the first to
 * write them: one or two of a segment, or none. */
struct ddp__arena {
    size_t size; /* for cap samples */
    int segment;
    int last_use; /* the last segment that uses it */
};

/* Divide the nodes into segments and place what they write; the last step of
 * building a graph (segment.c). */
int ddp__graph_segment(ddp_graph_t *g);

/* Bytes of a value for cap samples. */
size_t ddp__value_size(const ddp_graph_t *g, const ddp_value_t *v);

#endif
