/* gpu_load.c - opening the module of kernels, wherever CUDA's libraries are
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cuda/gpu.h"
#include "cuda/module.h"

/* What the module needs, each before those that need it; cuDNN opens parts of
 * itself by name, which are found if they are loaded. */
static const char *const libraries[] = {
    "libcudart.so." DDP_CUDA_MAJOR_TEXT,
    "libnvJitLink.so." DDP_CUDA_MAJOR_TEXT,
    "libcublasLt.so." DDP_CUDA_MAJOR_TEXT,
    "libcublas.so." DDP_CUDA_MAJOR_TEXT,
    "libcudnn_graph.so." DDP_CUDNN_MAJOR_TEXT,
    "libcudnn_heuristic.so." DDP_CUDNN_MAJOR_TEXT,
    "libcudnn_ops.so." DDP_CUDNN_MAJOR_TEXT,
    "libcudnn_cnn.so." DDP_CUDNN_MAJOR_TEXT,
    "libcudnn_adv.so." DDP_CUDNN_MAJOR_TEXT,
    "libcudnn_engines_precompiled.so." DDP_CUDNN_MAJOR_TEXT,
    "libcudnn_engines_runtime_compiled.so." DDP_CUDNN_MAJOR_TEXT,
    "libcudnn.so." DDP_CUDNN_MAJOR_TEXT,
    NULL,
};

/* The libraries that cuDNN loads at run time, and those that they load, by
 * names that are not written anywhere: without it batch norm would be left to
 * libddp's kernels. The pattern is for the minor version. */
static const char *const compiler[] = {
    "libnvrtc-builtins.so." DDP_CUDA_MAJOR_TEXT ".*",
    "libnvrtc.so." DDP_CUDA_MAJOR_TEXT,
    NULL,
};

/* Folders, as patterns; $X is a variable of the environment, which may be a
 * list.  Those that a user names come first. */
static const char *const places[] = {
    "$DDP_CUDA_LIBS",
    "$CUDA_HOME/lib64",
    "$PYTHONPATH/nvidia/*/lib",
    "$VIRTUAL_ENV/lib/python3*/site-packages/nvidia/*/lib",
    "$CONDA_PREFIX/lib",
    "$PATH/../lib/python3*/*-packages/nvidia/*/lib",
    "/usr/local/cuda/lib64",
    "/usr/local/cuda-" DDP_CUDA_MAJOR_TEXT "*/lib64",
    "$HOME/.local/lib/python3*/site-packages/nvidia/*/lib",
    "/opt/*/lib/python3*/site-packages/nvidia/*/lib",
};

/* Load a library for the rest of the process: the module calls it. */
static bool load_library(const char *path)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_GLOBAL);

    /* cppcheck-suppress resourceLeak */
    return handle != NULL;
}

/* Load a library out of the folders that match; false if none has it. */
static bool load_from(const char *pattern, const char *library)
{
    char path[4096];
    glob_t found;
    bool done = false;

    if (snprintf(path, sizeof(path), "%s/%s", pattern, library) >=
            (int)sizeof(path) ||
        glob(path, 0, NULL, &found) != 0)
        return false;
    for (size_t i = 0; !done && i < found.gl_pathc; i++)
        done = load_library(found.gl_pathv[i]);
    globfree(&found);
    return done;
}

/* The same for a place, whose variable may be a list of folders. */
static bool load_at(const char *place, const char *library)
{
    char name[64], pattern[4096], *list, *save = NULL, *value;
    const char *rest = place + strcspn(place, "/");
    bool done = false;

    if (place[0] != '$')
        return load_from(place, library);
    snprintf(name, sizeof(name), "%.*s", (int)(rest - place - 1), place + 1);
    if (!getenv(name) || !(list = strdup(getenv(name))))
        return false;
    for (value = strtok_r(list, ":", &save); value && !done;
         value = strtok_r(NULL, ":", &save))
        done = snprintf(pattern, sizeof(pattern), "%s%s", value, rest) <
                   (int)sizeof(pattern) &&
               load_from(pattern, library);
    free(list);
    return done;
}

/* What the loader finds by itself is left alone. */
static void load_all(const char *const *library)
{
    size_t count = sizeof(places) / sizeof(places[0]);

    for (; *library; library++) {
        if (load_library(*library))
            continue;
        for (size_t p = 0; p < count && !load_at(places[p], *library); p++)
            ;
    }
}

/* The module in a folder, or NULL. */
static void *open_in(const char *dir, const char *below)
{
    char path[4096];

    if (snprintf(path, sizeof(path), "%s%s/ddp_cuda.so", dir, below) >=
        (int)sizeof(path))
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *open_module(void)
{
    const char *dir = getenv("DDP_MODULE_DIR");
    char self[4096] = ".", *slash;
    Dl_info info;
    void *m;

    if (dir)
        return open_in(dir, "");
    if (dladdr((void *)ddp__cuda_load, &info) && info.dli_fname)
        snprintf(self, sizeof(self), "%s", info.dli_fname);
    if ((slash = strrchr(self, '/')))
        *slash = '\0';
    else
        strcpy(self, ".");
    if ((m = open_in(self, "")) || (m = open_in(self, "/libddp")))
        return m;
    return NULL;
}

const struct ddp__backend *ddp__cuda_backends[2];

/* Opens the module once.  cuDNN's compiler comes first, as it is found by name
 * later; CUDA's libraries only if the module's own search paths do not have
 * them. */
int ddp__cuda_load(void)
{
    static const struct ddp__module_host host = {
        .version = DDP__MODULE_VERSION,
        .call_size = sizeof(struct ddp__call),
        .task_size = sizeof(struct ddp__task),
        .backend_size = sizeof(struct ddp__backend),
        .fail = ddp__fail,
        .failures = ddp__failures,
        .errmsg = ddp_errmsg,
    };
    ddp__module_f *door;
    void *m, *symbol;

    if (ddp__cuda_backends[0])
        return 0;
    load_all(compiler);
    if (!(m = open_module())) {
        load_all(libraries);
        m = open_module();
    }
    if (!m || !(symbol = dlsym(m, "ddp_cuda_open"))) {
        const char *why = dlerror();

        return ddp__fail(
            DDP_ENODEV,
            "the kernels for GPUs cannot be loaded: %s; LD_LIBRARY_PATH or "
            "DDP_CUDA_LIBS can say where CUDA %s and cuDNN %s are",
            why ? why : "no reason given", DDP_CUDA_MAJOR_TEXT,
            DDP_CUDNN_MAJOR_TEXT);
    }
    memcpy(&door, &symbol, sizeof(door));
    if (!(ddp__cuda_backends[0] = door(&host)))
        return ddp__fail(DDP_ENODEV,
                         "ddp_cuda.so is of another build of libddp");
    return 0;
}
