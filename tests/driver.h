/* driver.h - the library of NVIDIA's driver, for tests without one
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DRIVER_H
#define DRIVER_H

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

/* cuDNN compiles with the driver's library, of which the toolkit has a stub
 * that is found by its name once it is loaded.  NULL: neither is there. */
static inline void *have_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    char path[4096], *slash;
    Dl_info from;

    if (driver || !dladdr((void *)cudaGetDeviceCount, &from) ||
        !(slash = strrchr(from.dli_fname, '/')))
        return driver;
    snprintf(path, sizeof(path), "%.*s/stubs/libcuda.so",
             (int)(slash - from.dli_fname), from.dli_fname);
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

#endif
