/* infer.c - kernels for convolutions of inference
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "cpu/vector/v16.h"
#include "infer.h"

const struct ddp__infer *ddp__infer_of(const struct ddp__conv_shape *s)
{
    const struct ddp__infer *const all[] = {
#ifdef DDP__X86
#define X(name) &ddp__##name,
        DDP__INFERS(X)
#undef X
#endif
            NULL,
    };

    for (int i = 0; all[i]; i++)
        if (all[i]->fits(s))
            return all[i];
    return NULL;
}
