/* gradient.c - kernels for gradients of convolutions' weights
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "cpu/product/patch.h"
#include "gradient.h"

const struct ddp__gradient *ddp__gradient_of(const struct ddp__conv_shape *s)
{
    const struct ddp__gradient *const all[] = {
#define X(name) &ddp__##name,
#ifdef DDP__X86
        DDP__GRADIENTS(X)
#endif
#ifdef DDP__AMX
            DDP__AMX_GRADIENTS(X)
#endif
#undef X
                NULL,
    };
    bool pays = ddp__patch_pays(s);

    for (int i = 0; all[i]; i++)
        if (!(pays && all[i]->yields) && all[i]->fits(s))
            return all[i];
    return NULL;
}
