/* none.c - ONNX export in a build without protobuf-c
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"

int ddp_chain_export_onnx(ddp_chain_t *c, struct ddp_shape in, const char *path)
{
    (void)c;
    (void)in;
    return ddp__fail(DDP_EINVAL,
                     "%s: this libddp was built without ONNX: install "
                     "libprotobuf-c-dev, protobuf-c-compiler and libonnx-dev, "
                     "and build it again",
                     path);
}
