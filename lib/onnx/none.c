/* none.c - ONNX export in a build without protobuf-c
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"

int ddp_chain_export_onnx(ddp_chain_t *c, struct ddp_shape in, const char *path,
                          ddp_count_f on_count, void *arg)
{
    (void)c;
    (void)in;
    (void)on_count;
    (void)arg;
    return ddp__fail(DDP_EINVAL,
                     "%s: this libddp was built without ONNX: install "
                     "libprotobuf-c-dev, protobuf-c-compiler and libonnx-dev, "
                     "and build it again",
                     path);
}
