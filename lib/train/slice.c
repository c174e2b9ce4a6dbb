/* slice.c - how many samples of inference go through a chain at a time
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A CPU worker reads all weights once for each slice of a batch.  A large slice
 * has activations that no cache holds, and whose pages the kernel clears when
 * they are first written; a small one reads weights often.  So weights should
 * be some part of what a slice writes: networks with few weights have small
 * slices, and with many the batch is one.
 *
 * Two cores of a Xeon with AMX, f32, requests of 16 images of 224 pixels, under
 * load, milliseconds of processor time an image as one slice, and in slices of
 * two: MobileNetV2 9.9, 7.6; EfficientNet-B0 13.5, 10.9.  Images per second on
 * a Zen 4: 171, 240; 155, 175.  CPUs without AVX-512 have one slice until they
 * are measured.
 */
#include "config.h"

#include "runtime/context.h"
#include "runtime/devices.h"
#include "train/slice.h"

/* Bytes that a slice writes, for each of the weights; and numbers that a batch
 * has, at least, for slices to be worth a look at the graph. */
enum { WRITTEN = 2, LEAST = 1 << 18 };

/* Bytes that the operations on one sample write. */
static size_t written_by(const ddp_graph_t *g)
{
    size_t sum = 0;

    for (int i = 0; i < g->nodes; i++)
        for (int b = 0; b < g->node[i]->call.buffers; b++) {
            const ddp_value_t *v = g->node[i]->buf[b];

            if (v && v->base->role == DDP__ACTIVATION && v->per_sample &&
                g->node[i]->access[b] != DDP_READ)
                sum += ddp__value_size(g, v);
        }
    return sum;
}

int ddp__slice_of(const ddp_t *ddp, ddp_chain_t *chain,
                  const struct ddp__graph_spec *spec, int batch)
{
    struct ddp__graph_spec one = {.mode = DDP__INFER,
                                  .shape = spec->shape,
                                  .type = spec->type,
                                  .dtype = spec->dtype,
                                  .cap = 1,
                                  .folds = true,
                                  .fill = ddp__graph_no_host,
                                  .output = ddp__graph_no_host};
    struct ddp__params *p = ddp__params_of(chain);
    size_t weights, written;
    ddp_graph_t *g;
    int slice = 1, slices, rc;

    if (!ddp__devices_slice(ddp) || ddp->segment_us >= 0 || batch == 1 ||
        (double)ddp__shape_len(spec->shape) * batch < LEAST)
        return batch;
    if (!p)
        return ddp_errcode();
    if ((rc = ddp__graph_new(&g, chain, p, &one, true)) < 0)
        return rc;
    weights = p->total * sizeof(float);
    written = written_by(g);
    ddp__graph_free(g);
    while (slice < batch && WRITTEN * weights > (size_t)slice * written)
        slice *= 2;
    slices = slice < batch ? (batch + slice - 1) / slice : 1;
    return (batch + slices - 1) / slices;
}
