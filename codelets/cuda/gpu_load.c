/* gpu_load.c - opening the module of kernels, wherever CUDA's libraries are
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/module.h"
#include "cuda/gpu.h"
#include "cuda/gpu_places.h"
#include "cuda/module.h"

/* What the module needs, each before those that need it; cuDNN opens parts of
 * itself by name, which are found if they are loaded. */
static const char *const libraries[] = {
    "libcudart.so." DDP_CUDA_MAJOR_TEXT,
    "libcublasLt.so." DDP_CUDA_MAJOR_TEXT,
    "libcudnn_graph.so." DDP_CUDNN_MAJOR_TEXT,
    "libcudnn_heuristic.so." DDP_CUDNN_MAJOR_TEXT,
    "libcudnn_ops.so." DDP_CUDNN_MAJOR_TEXT,
    "libcudnn_cnn.so." DDP_CUDNN_MAJOR_TEXT,
    "libcudnn_engines_precompiled.so." DDP_CUDNN_MAJOR_TEXT,
    "libcudnn.so." DDP_CUDNN_MAJOR_TEXT,
    NULL,
};
enum { CUDNN_PARTS = 2 }; /* the first that is a part of cuDNN */

/* What these need in some versions, or what some operations need. */
static const char *const more_libraries[] = {
    "libnvJitLink.so." DDP_CUDA_MAJOR_TEXT,
    "libcublas.so." DDP_CUDA_MAJOR_TEXT,
    "libcudnn_adv.so." DDP_CUDNN_MAJOR_TEXT,
    "libcudnn_engines_runtime_compiled.so." DDP_CUDNN_MAJOR_TEXT,
    NULL,
};

#define NVRTC "libnvrtc.so." DDP_CUDA_MAJOR_TEXT

/* Load a library for the rest of the process: the module calls it. */
static void *open_library(const char *path)
{
    return dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
}

static bool load_library(const char *path)
{
    void *handle = open_library(path);

    /* cppcheck-suppress resourceLeak */
    return handle != NULL;
}

/* Those of a list that a place has. */
static void load_all(const struct ddp__folders *f, const char *const *list)
{
    char path[4096];

    for (; *list; list++)
        if (ddp__folders_have(f, *list, path, sizeof(path)))
            load_library(path);
}

static void load_place(const struct ddp__folders *f)
{
    load_all(f, more_libraries);
    load_all(f, libraries);
    load_all(f, more_libraries); /* those that need the others */
}

/* The folder of the library that has this symbol. */
static bool folder_of(void *symbol, char *path, size_t size)
{
    Dl_info info;
    char *slash;

    if (!symbol || !dladdr(symbol, &info) || !info.dli_fname ||
        snprintf(path, size, "%s", info.dli_fname) >= (int)size ||
        !(slash = strrchr(path, '/')))
        return false;
    *slash = '\0';
    return true;
}

/* ---- cuDNN's parts ------------------------------------------------------- */

/* cuDNN ends the process where a part of it is missing, so look first: next to
 * libcudnn.so, then where the loader searches. */
static int check_parts(void *module)
{
    char folder[4096];
    struct ddp__folders f = {.count = 1, .path = {folder}};
    char path[4096 + 64];

    if (!folder_of(dlsym(module, "cudnnGetVersion"), folder, sizeof(folder)))
        return 0;
    for (int i = CUDNN_PARTS; libraries[i]; i++)
        if (!ddp__folders_have(&f, libraries[i], path, sizeof(path)) &&
            !load_library(libraries[i]))
            return ddp__fail(DDP_ENODEV,
                             "cuDNN in %s is incomplete: %s is missing; "
                             "install all of cuDNN, or name another one in "
                             "DDP_CUDA_LIBS",
                             folder, libraries[i]);
    return 0;
}

/* ---- NVRTC -------------------------------------------------------------- */

static char no_compiler[512]; /* why cuDNN cannot compile; "": it can */

/* Its own folder has the builtins of exactly its version. */
static void load_builtins(void *nvrtc)
{
    int (*version)(int *, int *), major = 0, minor = 0;
    char folder[4096] = "", name[64], path[4096 + 72];
    void *symbol = dlsym(nvrtc, "nvrtcVersion");

    memcpy(&version, &symbol, sizeof(version));
    if (!symbol || version(&major, &minor) != 0 ||
        !folder_of(symbol, folder, sizeof(folder))) {
        snprintf(no_compiler, sizeof(no_compiler),
                 NVRTC " does not report its version");
        return;
    }
    snprintf(name, sizeof(name), "libnvrtc-builtins.so.%d.%d", major, minor);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (!load_library(path) && !load_library(name))
        snprintf(no_compiler, sizeof(no_compiler),
                 "NVRTC %d.%d in %.300s has no %s", major, minor, folder, name);
}

/* cuDNN loads NVRTC by name, and NVRTC its builtins, both when they are first
 * needed: what is loaded now is what they get.  It has to be that of the CUDA
 * that is used: of the place, else from next to CUDA's run time. */
static void load_compiler(void *module, const struct ddp__folders *place)
{
    char folder[4096] = "the loader's folders", path[4096];
    struct ddp__folders f = {.count = 1, .path = {folder}};
    void *nvrtc = NULL;

    no_compiler[0] = '\0';
    if (ddp__folders_have(place, NVRTC, path, sizeof(path)))
        nvrtc = open_library(path);
    if (!nvrtc &&
        folder_of(dlsym(module, "cudaRuntimeGetVersion"), folder,
                  sizeof(folder)) &&
        ddp__folders_have(&f, NVRTC, path, sizeof(path)))
        nvrtc = open_library(path);
    if (!nvrtc)
        nvrtc = open_library(NVRTC);
    if (nvrtc)
        load_builtins(nvrtc);
    else
        snprintf(no_compiler, sizeof(no_compiler), "no " NVRTC " in %.400s",
                 place->count ? place->path[0] : folder);
}

/* ---- the module --------------------------------------------------------- */

const struct ddp__backend *ddp__cuda_backends[2];

static struct ddp__module_host host = {
    .version = DDP__MODULE_VERSION,
    .call_size = sizeof(struct ddp__call),
    .task_size = sizeof(struct ddp__task),
    .backend_size = sizeof(struct ddp__backend),
    .fail = ddp__fail,
    .failures = ddp__failures,
    .errmsg = ddp_errmsg,
    .errcode = ddp_errcode,
    .no_compiler = no_compiler,
};

/* What the user names comes first, then what the loader finds (of this build,
 * or of LD_LIBRARY_PATH), then one of the usual places. */
static void *open_somewhere(struct ddp__folders *place, char *why, size_t size)
{
    void *m;

    why[0] = '\0';
    if (ddp__places_given(place))
        load_place(place);
    if ((m = ddp__module_open("ddp_cuda.so")))
        return m;
    ddp__folders_free(place);
    if (ddp__places_find(libraries, place, why, size))
        load_place(place);
    return ddp__module_open("ddp_cuda.so");
}

static int not_loaded(const char *why)
{
    const char *reason = dlerror();

    return ddp__fail(DDP_ENODEV,
                     "the kernels for GPUs cannot be loaded: %s%s%s; "
                     "DDP_CUDA_LIBS can say where CUDA %s and cuDNN %s are",
                     reason ? reason : "no reason given", why[0] ? "; " : "",
                     why, DDP_CUDA_MAJOR_TEXT, DDP_CUDNN_MAJOR_TEXT);
}

static int bind_module(void *m, const struct ddp__folders *place)
{
    void *symbol = dlsym(m, "ddp_cuda_open");
    unsigned failures = ddp__failures();
    ddp__module_f *door;
    int rc;

    if (!symbol)
        return not_loaded("");
    if ((rc = check_parts(m)) < 0)
        return rc;
    load_compiler(m, place);
    memcpy(&door, &symbol, sizeof(door));
    if ((ddp__cuda_backends[0] = door(&host)))
        return 0;
    return ddp__failures() != failures
               ? DDP_ENODEV
               : ddp__fail(DDP_ENODEV,
                           "ddp_cuda.so is of another build of libddp");
}

/* Opens the module once. */
int ddp__cuda_load(int architecture)
{
    struct ddp__folders place = {.count = 0};
    char why[512];
    void *m;
    int rc;

    if (ddp__cuda_backends[0])
        return 0;
    host.architecture = architecture;
    m = open_somewhere(&place, why, sizeof(why));
    rc = m ? bind_module(m, &place) : not_loaded(why);
    ddp__folders_free(&place);
    return rc;
}
