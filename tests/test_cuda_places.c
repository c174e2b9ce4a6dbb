/* test_cuda_places.c - CUDA's libraries are taken from one place
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The libraries are empty files with names that no system has.
 */
#include "config.h"

#include "tap.h"

#ifndef HAVE_CUDA
int main(void)
{
    skip_all("built without CUDA");
}
#else
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuda/gpu_places.h"
#include "remove_tree.h"

static const char *const libraries[] = {"libmade-up-a.so.1",
                                        "libmade-up-b.so.1", NULL};
static char root[] = "/tmp/ddp-places-XXXXXX";

/* A file below the root, with its folders. */
static void put(const char *path)
{
    char whole[4096];
    FILE *f;

    snprintf(whole, sizeof(whole), "%s/%s", root, path);
    for (char *s = whole + strlen(root) + 1; (s = strchr(s, '/')); *s++ = '/') {
        *s = '\0';
        mkdir(whole, 0777);
    }
    if (!(f = fopen(whole, "w")))
        bail_out("cannot write %s", whole);
    fclose(f);
}

/* A variable of the environment, with the root in front of each path. */
static void set(const char *name, const char *a, const char *b)
{
    char value[4096];

    snprintf(value, sizeof(value), "%s/%s:%s/%s", root, a, root, b ? b : a);
    if (!b)
        *strchr(value, ':') = '\0';
    setenv(name, value, 1);
}

static void forget(void)
{
    static const char *const names[] = {
        "VIRTUAL_ENV",  "CONDA_PREFIX", "PYTHONPATH",
        "PATH",         "PWD",          "HOME",
        "CUDA_HOME",    "CUDNN_HOME",   "LD_LIBRARY_PATH",
        "DDP_CUDA_LIBS"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
}

/* Both libraries are found, below these folders of the root. */
static bool found(const char *a, const char *b)
{
    const char *below[] = {a, b};
    struct ddp__folders f;
    char why[512], path[4096], expected[4096];
    bool good = ddp__places_find(libraries, &f, why, sizeof(why));

    for (int i = 0; good && i < 2; i++) {
        snprintf(expected, sizeof(expected), "%s/%s/%s", root, below[i],
                 libraries[i]);
        good = ddp__folders_have(&f, libraries[i], path, sizeof(path)) &&
               strcmp(path, expected) == 0;
        if (!good)
            diag("%s, expected %s", path, expected);
    }
    ddp__folders_free(&f);
    return good;
}

#define WHEELS(env, python)                                                    \
    env "/lib/" python "/site-packages/nvidia/a/lib",                          \
        env "/lib/" python "/site-packages/nvidia/b/lib"

static void put_wheels(const char *a, const char *b)
{
    char path[2048];

    snprintf(path, sizeof(path), "%s/%s", a, libraries[0]);
    put(path);
    snprintf(path, sizeof(path), "%s/%s", b, libraries[1]);
    put(path);
}

static void test_wheels(void)
{
    struct ddp__folders f;
    char why[512];

    forget();
    ok(!ddp__places_find(libraries, &f, why, sizeof(why)) && why[0] == '\0',
       "nothing is found where nothing is");
    put_wheels(WHEELS("active", "python3.12"));
    set("VIRTUAL_ENV", "active", NULL);
    ok(found(WHEELS("active", "python3.12")), "the active environment");
    forget();
    put("active/bin/python3");
    set("PATH", "nowhere", "active/bin");
    ok(found("active/bin/../lib/python3.12/site-packages/nvidia/a/lib",
             "active/bin/../lib/python3.12/site-packages/nvidia/b/lib"),
       "one whose programs are in PATH");
    forget();
    put_wheels(WHEELS("home/.venv", "python3.11"));
    set("HOME", "home", NULL);
    ok(found(WHEELS("home/.venv", "python3.11")), "a hidden .venv at home");
    forget();
    put_wheels(WHEELS("conda", "python3.10"));
    set("CONDA_PREFIX", "conda", NULL);
    ok(found(WHEELS("conda", "python3.10")), "wheels in conda");
}

/* Two Pythons in one environment, each with one of the libraries. */
static void test_one_place(void)
{
    struct ddp__folders f;
    char why[512];

    forget();
    put("two/lib/python3.8/site-packages/nvidia/a/lib/libmade-up-a.so.1");
    put("two/lib/python3.9/site-packages/nvidia/b/lib/libmade-up-b.so.1");
    set("VIRTUAL_ENV", "two", NULL);
    ok(!ddp__places_find(libraries, &f, why, sizeof(why)) &&
           strstr(why, "two/lib/python3.8/site-packages/nvidia/a/lib has no "
                       "libmade-up-b.so.1"),
       "libraries are not taken from two places: %s", why);
    set("HOME", "home", NULL);
    ok(found(WHEELS("home/.venv", "python3.11")),
       "but from the next one that has all");
    put_wheels(WHEELS("two", "python3.9"));
    ok(found(WHEELS("two", "python3.9")), "or that of the second Python");
}

static void test_toolkits(void)
{
    struct ddp__folders f;
    char path[4096];

    forget();
    put("cuda/lib64/libmade-up-a.so.1");
    put("cudnn/lib/libmade-up-b.so.1");
    set("CUDA_HOME", "cuda", NULL);
    set("CUDNN_HOME", "cudnn", NULL);
    ok(found("cuda/lib64", "cudnn/lib"),
       "environment modules of CUDA and cuDNN are one place");
    unsetenv("CUDNN_HOME");
    set("LD_LIBRARY_PATH", "nowhere", "cudnn/lib");
    ok(found("cuda/lib64", "cudnn/lib"), "so are CUDA and the loader's path");
    forget();
    put("all/lib/libmade-up-a.so.1");
    put("all/lib/libmade-up-b.so.1");
    set("CONDA_PREFIX", "all", NULL);
    ok(found("all/lib", "all/lib"), "conda's packages");
    ok(!ddp__places_given(&f), "DDP_CUDA_LIBS need not be set");
    set("DDP_CUDA_LIBS", "all/lib", "cuda/lib64");
    ok(ddp__places_given(&f) && f.count == 2 &&
           ddp__folders_have(&f, libraries[0], path, sizeof(path)) &&
           strstr(path, "/all/lib/"),
       "if it is, its first folder comes first");
    ddp__folders_free(&f);
}

int main(void)
{
    if (!mkdtemp(root))
        bail_out("no folder");
    test_wheels();
    test_one_place();
    test_toolkits();
    remove_tree(root);
    return done_testing();
}
#endif
