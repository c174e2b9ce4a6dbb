/* options.c - structs of options, which grow from version to version
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "base/options.h"

void ddp__options_init(void *out, size_t size, const void *defaults,
                       size_t known)
{
    memset(out, 0, size);
    memcpy(out, defaults, size < known ? size : known);
    if (size >= sizeof(size))
        memcpy(out, &size, sizeof(size));
}

int ddp__options_copy(void *own, size_t known, const void *given,
                      const char *name)
{
    size_t size;

    if (!given)
        return 0;
    memcpy(&size, given, sizeof(size));
    if (size < sizeof(size))
        return ddp__fail(DDP_EINVAL,
                         "struct %s: struct_size is %zu; call %s_init() before "
                         "setting its fields",
                         name, size, name);
    if (size > known)
        return ddp__fail(
            DDP_EINVAL,
            "struct %s: struct_size is %zu, and this libddp knows %zu "
            "bytes of it; the program needs a newer libddp",
            name, size, known);
    memcpy(own, given, size);
    memcpy(own, &known, sizeof(known));
    return 0;
}
