/* gpu.c - asking the driver which GPUs can be used
 *
 * Through libcuda.so.1 itself, before StarPU does: StarPU ends the process
 * when a GPU is there but busy.  The few functions that are needed have been
 * the same for ten years, so no header of CUDA's is used.
 */
#include "config.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

#ifdef HAVE_CUDA

enum {
    ATTRIBUTE_COMPUTE_MODE = 20,
    ATTRIBUTE_MAJOR = 75,
    ATTRIBUTE_MINOR = 76,
    MODE_PROHIBITED = 2,
    OLDEST_MAJOR = 8, /* what nvcc was told to compile for */
};

static struct driver {
    int (*init)(unsigned);
    int (*version)(int *);
    int (*count)(int *);
    int (*get)(int *, int);
    int (*name)(char *, int, int);
    int (*attribute)(int *, int, int);
    int (*retain)(void **, int);
    int (*release)(int);
    int (*text)(int, const char **);
} cu;

static void say(struct ddp__gpus *g, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Add to why. */
static void say(struct ddp__gpus *g, const char *fmt, ...)
{
    size_t len = strlen(g->why);
    va_list ap;

    if (len && len + 2 < sizeof(g->why)) {
        memcpy(g->why + len, "; ", 3);
        len += 2;
    }
    va_start(ap, fmt);
    vsnprintf(g->why + len, sizeof(g->why) - len, fmt, ap);
    va_end(ap);
}

static const char *text(int e)
{
    const char *s = NULL;

    if (cu.text(e, &s) != 0 || !s)
        s = "unknown error";
    return s;
}

static bool bind(struct ddp__gpus *g)
{
    const char *path = getenv("DDP_LIBCUDA");
    const struct {
        const char *name;
        void *fn;
    } symbol[] = {
        {"cuInit", &cu.init},
        {"cuDriverGetVersion", &cu.version},
        {"cuDeviceGetCount", &cu.count},
        {"cuDeviceGet", &cu.get},
        {"cuDeviceGetName", &cu.name},
        {"cuDeviceGetAttribute", &cu.attribute},
        {"cuDevicePrimaryCtxRetain", &cu.retain},
        {"cuDevicePrimaryCtxRelease_v2", &cu.release},
        {"cuGetErrorString", &cu.text},
    };
    void *lib = dlopen(path ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!lib) {
        say(g, "no NVIDIA driver: %s", dlerror());
        return false;
    }
    for (size_t i = 0; i < sizeof(symbol) / sizeof(symbol[0]); i++) {
        void *fn = dlsym(lib, symbol[i].name);

        if (!fn) {
            say(g, "the NVIDIA driver has no %s(): it is too old or not real",
                symbol[i].name);
            return false;
        }
        memcpy(symbol[i].fn, &fn, sizeof(fn));
    }
    return true;
}

/* A driver runs programs of its own generation of CUDA and of older ones. */
static bool new_enough(struct ddp__gpus *g)
{
    int have = 0;

    if (cu.version(&have) == 0 && have / 1000 >= DDP_CUDA_MAJOR)
        return true;
    say(g,
        "the NVIDIA driver knows CUDA up to %d.%d, and this build is of CUDA "
        "%d: install a newer driver, or configure with an older CUDA",
        have / 1000, have % 1000 / 10, DDP_CUDA_MAJOR);
    return false;
}

/* Whether GPU i will have us. */
static bool usable(struct ddp__gpus *g, int i)
{
    char name[96] = "?";
    int dev, mode = 0, major = 0, minor = 0, rc;
    void *context;

    if ((rc = cu.get(&dev, i)) != 0) {
        say(g, "GPU %d: %s", i, text(rc));
        return false;
    }
    cu.name(name, sizeof(name), dev);
    cu.attribute(&mode, ATTRIBUTE_COMPUTE_MODE, dev);
    cu.attribute(&major, ATTRIBUTE_MAJOR, dev);
    cu.attribute(&minor, ATTRIBUTE_MINOR, dev);
    if (major < OLDEST_MAJOR) {
        say(g, "GPU %d (%s) has compute capability %d.%d, wants %d.0 or later",
            i, name, major, minor, OLDEST_MAJOR);
        return false;
    }
    if (mode == MODE_PROHIBITED) {
        say(g,
            "GPU %d (%s) is closed to programs: nvidia-smi -i %d -c DEFAULT "
            "opens it",
            i, name, i);
        return false;
    }
    if (mode == 0)
        return true;
    /* Exclusive: free if it gives us a context now. */
    if ((rc = cu.retain(&context, dev)) == 0) {
        cu.release(dev);
        return true;
    }
    say(g,
        "GPU %d (%s) is busy (%s): it takes one program at a time; wait for "
        "the other, or choose GPUs by CUDA_VISIBLE_DEVICES",
        i, name, text(rc));
    return false;
}

static void ask(struct ddp__gpus *g)
{
    int rc;

    if ((rc = cu.init(0)) != 0 || (rc = cu.count(&g->seen)) != 0) {
        g->seen = 0;
        if (rc == 100) /* CUDA_ERROR_NO_DEVICE */
            say(g, "no GPU is visible; CUDA_VISIBLE_DEVICES is %s",
                getenv("CUDA_VISIBLE_DEVICES") ? getenv("CUDA_VISIBLE_DEVICES")
                                               : "not set");
        else
            say(g, "the NVIDIA driver does not start: %s", text(rc));
        return;
    }
    if (g->seen == 0)
        say(g, "the machine has no GPU");
    for (int i = 0; i < g->seen && g->count < DDP__MAX_GPUS; i++)
        if (usable(g, i))
            g->id[g->count++] = i;
}

void ddp__gpus_find(struct ddp__gpus *g)
{
    memset(g, 0, sizeof(*g));
    if (!bind(g) || !new_enough(g))
        return;
    ask(g);
    if (g->count && !(g->backend = ddp__gpu_backend())) {
        g->count = 0;
        say(g, "%s", ddp_errmsg());
    }
}

#else

void ddp__gpus_find(struct ddp__gpus *g)
{
    memset(g, 0, sizeof(*g));
}

#endif
