/* gpu_places.c - folders that have CUDA's libraries and cuDNN, all of one place
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Libraries of two places need not fit together: cuDNN's parts must be of one
 * version, and so must NVRTC and its builtins.  So a place is taken as a whole.
 */
#include "config.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/gpu_places.h"

/* What holds NVIDIA's wheels; each match is a place, whose libraries are in
 * nvidia/<package>/lib.  $X is a variable of the environment, which may be a
 * list.  Environments that are active come first, then those of a user, then
 * those of the system, where an administrator or an image put them. */
static const char *const pythons[] = {
    "$VIRTUAL_ENV/lib/python3*/site-packages",
    "$CONDA_PREFIX/lib/python3*/site-packages",
    "$PYTHONPATH",
    "$PATH/../lib/python3*/*-packages",
    "$PWD/.venv/lib/python3*/site-packages",
    "$HOME/.venv/lib/python3*/site-packages",
    "$HOME/.local/lib/python3*/site-packages",
    "/usr/local/lib/python3*/*-packages",
    "/usr/lib/python3*/*-packages",
    "/opt/lib/python3*/site-packages",
    "/opt/*/lib/python3*/site-packages",
    "/opt/.venv/lib/python3*/site-packages",
    "/opt/*/.venv/lib/python3*/site-packages",
    "/opt/*/*/lib/python3*/site-packages",
    NULL,
};

/* Toolkits: a row is a place, whose folders NULL ends.  An environment module
 * of CUDA and one of cuDNN are a place together, with what the system has. */
enum { TOOLKIT_FOLDERS = 16 };
static const char *const toolkits[][TOOLKIT_FOLDERS] = {
    {"$CONDA_PREFIX/lib", "$CONDA_PREFIX/targets/x86_64-linux/lib"},
    {"$CUDA_HOME/lib64", "$CUDA_PATH/lib64", "$CUDA_ROOT/lib64",
     "$EBROOTCUDA/lib64", "$CUDNN_HOME/lib", "$CUDNN_HOME/lib64",
     "$CUDNN_PATH/lib", "$CUDNN_ROOT/lib", "$CUDNN_ROOT/lib64",
     "$EBROOTCUDNN/lib", "$LD_LIBRARY_PATH", "/usr/lib/x86_64-linux-gnu",
     "/usr/lib64"},
    {"/usr/local/cuda/lib64", "$LD_LIBRARY_PATH", "/usr/lib/x86_64-linux-gnu",
     "/usr/lib64"},
    {"/usr/local/cuda-" DDP_CUDA_MAJOR_TEXT "*/lib64", "$LD_LIBRARY_PATH",
     "/usr/lib/x86_64-linux-gnu", "/usr/lib64"},
};
enum { TOOLKITS = sizeof(toolkits) / sizeof(toolkits[0]) };

void ddp__folders_free(struct ddp__folders *f)
{
    for (int i = 0; i < f->count; i++)
        free(f->path[i]);
    f->count = 0;
}

/* Add the folders that match, if any. */
static void add_matches(struct ddp__folders *f, const char *pattern)
{
    glob_t found;

    if (glob(pattern, GLOB_ONLYDIR, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc && f->count < DDP__MAX_FOLDERS; i++)
        if ((f->path[f->count] = strdup(found.gl_pathv[i])))
            f->count++;
    globfree(&found);
}

/* The same, after replacing the variable, for each entry of its list. */
static void add_folders(struct ddp__folders *f, const char *pattern)
{
    const char *rest = pattern + strcspn(pattern, "/");
    char name[64], path[4096], *list, *save = NULL, *value;

    if (pattern[0] != '$') {
        add_matches(f, pattern);
        return;
    }
    snprintf(name, sizeof(name), "%.*s", (int)(rest - pattern - 1),
             pattern + 1);
    if (!getenv(name) || !(list = strdup(getenv(name))))
        return;
    for (value = strtok_r(list, ":", &save); value;
         value = strtok_r(NULL, ":", &save))
        if (snprintf(path, sizeof(path), "%s%s", value, rest) <
            (int)sizeof(path))
            add_matches(f, path);
    free(list);
}

bool ddp__folders_have(const struct ddp__folders *f, const char *library,
                       char *path, size_t size)
{
    for (int i = 0; i < f->count; i++)
        if (snprintf(path, size, "%s/%s", f->path[i], library) < (int)size &&
            access(path, R_OK) == 0)
            return true;
    return false;
}

bool ddp__places_given(struct ddp__folders *f)
{
    f->count = 0;
    add_folders(f, "$DDP_CUDA_LIBS");
    return getenv("DDP_CUDA_LIBS") != NULL;
}

/* The best incomplete place. */
struct best {
    int found;
    char why[512];
};

/* Whether the place is complete; if not, remember it as the best one so far. */
static bool is_complete(const struct ddp__folders *f,
                        const char *const *libraries, struct best *b)
{
    const char *missing = NULL;
    char path[4096], where[4096] = "";
    int found = 0;

    for (; *libraries; libraries++) {
        if (!ddp__folders_have(f, *libraries, path, sizeof(path))) {
            missing = missing ? missing : *libraries;
        } else if (++found == 1) {
            strcpy(where, path);
            *strrchr(where, '/') = '\0';
        }
    }
    if (missing && found > b->found) {
        b->found = found;
        snprintf(b->why, sizeof(b->why), "%.400s has no %s", where, missing);
    }
    return !missing;
}

/* A Python environment as a place. */
static bool take_wheels(const char *packages, const char *const *libraries,
                        struct ddp__folders *f, struct best *b)
{
    char pattern[4096];

    if (snprintf(pattern, sizeof(pattern), "%s/nvidia/*/lib", packages) >=
        (int)sizeof(pattern))
        return false;
    f->count = 0;
    add_matches(f, pattern);
    if (is_complete(f, libraries, b))
        return true;
    ddp__folders_free(f);
    return false;
}

static bool find_wheels(const char *const *libraries, struct ddp__folders *f,
                        struct best *b)
{
    struct ddp__folders packages = {.count = 0};
    bool found = false;

    for (int p = 0; pythons[p] && !found; p++) {
        add_folders(&packages, pythons[p]);
        for (int i = 0; i < packages.count && !found; i++)
            found = take_wheels(packages.path[i], libraries, f, b);
        ddp__folders_free(&packages);
    }
    return found;
}

static bool take_toolkit(const char *const *row, const char *const *libraries,
                         struct ddp__folders *f, struct best *b)
{
    f->count = 0;
    for (int i = 0; i < TOOLKIT_FOLDERS && row[i]; i++)
        add_folders(f, row[i]);
    if (is_complete(f, libraries, b))
        return true;
    ddp__folders_free(f);
    return false;
}

bool ddp__places_find(const char *const *libraries, struct ddp__folders *f,
                      char *why, size_t size)
{
    struct best b = {.found = 0};
    bool found = find_wheels(libraries, f, &b);

    for (int i = 0; i < TOOLKITS && !found; i++)
        found = take_toolkit(toolkits[i], libraries, f, &b);
    snprintf(why, size, "%s", found ? "" : b.why);
    return found;
}
