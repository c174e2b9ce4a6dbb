/* module.c - parts of libddp that are opened when they are needed
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A module needs libraries that not every machine has, such as those of CUDA or
 * of MPI; libddp.so starts without them.
 */
#include "config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/module.h"

static void *open_in(const char *dir, const char *below, const char *name)
{
    char path[4096];

    if (snprintf(path, sizeof(path), "%s%s/%s", dir, below, name) >=
        (int)sizeof(path))
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

void *ddp__module_open(const char *name)
{
    const char *dir = getenv("DDP_MODULE_DIR");
    char self[4096] = ".", *slash;
    Dl_info info;
    void *m;

    if (dir)
        return open_in(dir, "", name);
    if (dladdr((void *)ddp__module_open, &info) && info.dli_fname)
        snprintf(self, sizeof(self), "%s", info.dli_fname);
    if ((slash = strrchr(self, '/')))
        *slash = '\0';
    else
        strcpy(self, ".");
    m = open_in(self, "", name);
    return m ? m : open_in(self, "/libddp", name);
}
