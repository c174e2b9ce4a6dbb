/* gpu.c - asking the driver which GPUs can be used
 * SPDX-License-Identifier: LGPL-2.1-or-later
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

#include "cuda/gpu.h"

enum {
    ATTRIBUTE_CLOCK = 13,
    ATTRIBUTE_SMS = 16,
    ATTRIBUTE_COMPUTE_MODE = 20,
    ATTRIBUTE_PCI_BUS = 33,
    ATTRIBUTE_PCI_DEVICE = 34,
    ATTRIBUTE_MEMORY_CLOCK = 36,
    ATTRIBUTE_BUS_WIDTH = 37,
    ATTRIBUTE_PCI_DOMAIN = 50,
    ATTRIBUTE_MAJOR = 75,
    ATTRIBUTE_MINOR = 76,
    MODE_SHARED = 0,
    MODE_PROHIBITED = 2,
    OUT_OF_MEMORY = 2, /* CUDA_ERROR_OUT_OF_MEMORY */
    LEAST = 64,        /* MiB; StarPU measures copies of 32 */
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
    int (*push)(void *);
    int (*pop)(void **);
    int (*memory)(size_t *, size_t *);
    int (*text)(int, const char **);
} cu;

static void add_reason(struct ddp__gpus *g, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Add to why. */
static void add_reason(struct ddp__gpus *g, const char *fmt, ...)
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

static const char *driver_error(int e)
{
    const char *s = NULL;

    if (cu.text(e, &s) != 0 || !s)
        s = "unknown error";
    return s;
}

/* The driver's library is opened at run time: a program must start where there
 * is none. */
static bool bind_driver(struct ddp__gpus *g)
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
        {"cuCtxPushCurrent_v2", &cu.push},
        {"cuCtxPopCurrent_v2", &cu.pop},
        {"cuMemGetInfo_v2", &cu.memory},
        {"cuGetErrorString", &cu.text},
    };
    void *lib = dlopen(path ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!lib) {
        add_reason(g, "no NVIDIA driver: %s", dlerror());
        return false;
    }
    for (size_t i = 0; i < sizeof(symbol) / sizeof(symbol[0]); i++) {
        void *fn = dlsym(lib, symbol[i].name);

        if (!fn) {
            add_reason(
                g, "the NVIDIA driver has no %s(): it is too old or not real",
                symbol[i].name);
            return false;
        }
        memcpy(symbol[i].fn, &fn, sizeof(fn));
    }
    return true;
}

/* A driver runs programs of its own generation of CUDA and of older ones. */
static bool driver_is_new_enough(struct ddp__gpus *g)
{
    int have = 0;

    if (cu.version(&have) == 0 && have / 1000 >= DDP_CUDA_MAJOR)
        return true;
    add_reason(
        g,
        "the NVIDIA driver knows CUDA up to %d.%d, and this build is of CUDA "
        "%d: install a newer driver, or configure with an older CUDA",
        have / 1000, have % 1000 / 10, DDP_CUDA_MAJOR);
    return false;
}

static double device_attribute(int what, int dev)
{
    int v = 0;

    cu.attribute(&v, what, dev);
    return v;
}

/* Memory moves data twice in a cycle; the driver has kHz and bits. */
static void describe_gpu(struct ddp_gpu_info *info, int dev, const char *name)
{
    memset(info, 0, sizeof(*info));
    snprintf(info->name, sizeof(info->name), "%s", name);
    info->architecture = 10 * (int)device_attribute(ATTRIBUTE_MAJOR, dev) +
                         (int)device_attribute(ATTRIBUTE_MINOR, dev);
    info->units = (int)device_attribute(ATTRIBUTE_SMS, dev);
    info->clock_hz = 1e3 * device_attribute(ATTRIBUTE_CLOCK, dev);
    info->bytes_per_s = 2 * 1e3 *
                        device_attribute(ATTRIBUTE_MEMORY_CLOCK, dev) *
                        device_attribute(ATTRIBUTE_BUS_WIDTH, dev) / 8;
}

/* Equal bits come from equal GPUs alone. */
static bool may_join(struct ddp__gpus *g, int i,
                     const struct ddp_gpu_info *info)
{
    if (g->unlike || g->count == 0 || ddp__gpus_alike(info, &g->info[0]))
        return true;
    add_reason(g,
               "GPU %d (%s) is not like GPU %d (%s): choose by "
               "CUDA_VISIBLE_DEVICES, or have both train by DDP_UNLIKE_GPUS=1, "
               "with weights that no run repeats",
               i, info->name, g->id[0], g->info[0].name);
    return false;
}

/* Whether a context finds enough memory. */
static int check_memory(void *context)
{
    size_t left = 0, all;
    int rc = cu.push(context);

    if (rc)
        return rc;
    rc = cu.memory(&left, &all);
    cu.pop(&context);
    return rc ? rc : left >> 20 < LEAST ? OUT_OF_MEMORY : 0;
}

/* What StarPU does first with a GPU, and would end the process for. */
static bool gpu_opens(struct ddp__gpus *g, int i, int dev, const char *name,
                      bool shared)
{
    void *context;
    int rc = cu.retain(&context, dev);

    if (rc == 0) {
        rc = check_memory(context);
        cu.release(dev);
    }
    if (rc == OUT_OF_MEMORY)
        add_reason(
            g,
            "GPU %d (%s) has less than %d MiB of memory left: nvidia-smi lists "
            "its processes; wait for them, or choose GPUs by "
            "CUDA_VISIBLE_DEVICES",
            i, name, LEAST);
    else if (rc && shared)
        add_reason(g,
                   "GPU %d (%s) does not start (%s): see nvidia-smi; choose "
                   "others by CUDA_VISIBLE_DEVICES",
                   i, name, driver_error(rc));
    else if (rc)
        add_reason(
            g,
            "GPU %d (%s) is busy (%s): it takes one program at a time; wait "
            "for the other, or choose GPUs by CUDA_VISIBLE_DEVICES",
            i, name, driver_error(rc));
    return rc == 0;
}

/* Volta's are the last that CUDA 12 compiles for and CUDA 13 does not. */
static bool is_compiled_for(struct ddp__gpus *g, int i, const char *name,
                            int major, int minor)
{
    bool volta = major == 7 && minor < 5 && DDP_CUDA_MAJOR > 12;

    if (10 * major + minor >= DDP_CUDA_OLDEST)
        return true;
    add_reason(
        g,
        "GPU %d (%s) has compute capability %d.%d, expected %d.%d or "
        "later%s",
        i, name, major, minor, DDP_CUDA_OLDEST / 10, DDP_CUDA_OLDEST % 10,
        volta ? "; a build with CUDA 12 and cuDNN 9.8 to 9.10 can use it" : "");
    return false;
}

/* Whether GPU i will have us. */
static bool gpu_is_usable(struct ddp__gpus *g, int i)
{
    struct ddp_gpu_info *info = &g->info[g->count];
    char name[96] = "?";
    int dev, mode = MODE_SHARED, major = 0, minor = 0, rc;

    if ((rc = cu.get(&dev, i)) != 0) {
        add_reason(g, "GPU %d: %s", i, driver_error(rc));
        return false;
    }
    cu.name(name, sizeof(name), dev);
    cu.attribute(&mode, ATTRIBUTE_COMPUTE_MODE, dev);
    cu.attribute(&major, ATTRIBUTE_MAJOR, dev);
    cu.attribute(&minor, ATTRIBUTE_MINOR, dev);
    if (!is_compiled_for(g, i, name, major, minor))
        return false;
    if (mode == MODE_PROHIBITED) {
        add_reason(
            g,
            "GPU %d (%s) is closed to programs: nvidia-smi -i %d -c DEFAULT "
            "opens it",
            i, name, i);
        return false;
    }
    describe_gpu(info, dev, name);
    g->pci[g->count] = (struct ddp__pci){
        .domain = (unsigned)device_attribute(ATTRIBUTE_PCI_DOMAIN, dev),
        .bus = (unsigned)device_attribute(ATTRIBUTE_PCI_BUS, dev),
        .device = (unsigned)device_attribute(ATTRIBUTE_PCI_DEVICE, dev)};
    return gpu_opens(g, i, dev, name, mode == MODE_SHARED) &&
           may_join(g, i, info);
}

static bool is_chosen(const struct ddp__gpus *g, int i)
{
    return !g->chosen || (i < 32 && g->chosen >> i & 1);
}

static void find_usable(struct ddp__gpus *g, int most)
{
    int rc;

    if (most < 1 || most > DDP__MAX_GPUS)
        most = DDP__MAX_GPUS;
    if ((rc = cu.init(0)) != 0 || (rc = cu.count(&g->seen)) != 0) {
        g->seen = 0;
        if (rc == 100) /* CUDA_ERROR_NO_DEVICE */
            add_reason(g, "no GPU is visible; CUDA_VISIBLE_DEVICES is %s",
                       getenv("CUDA_VISIBLE_DEVICES")
                           ? getenv("CUDA_VISIBLE_DEVICES")
                           : "not set");
        else
            add_reason(g, "the NVIDIA driver does not start: %s",
                       driver_error(rc));
        return;
    }
    if (g->seen == 0)
        add_reason(g, "the machine has no GPU");
    for (int i = 0; i < g->seen && g->count < most; i++)
        if (is_chosen(g, i) && gpu_is_usable(g, i))
            g->id[g->count++] = i;
}

static int oldest_architecture(const struct ddp__gpus *g)
{
    int oldest = g->info[0].architecture;

    for (int i = 1; i < g->count; i++)
        if (g->info[i].architecture < oldest)
            oldest = g->info[i].architecture;
    return oldest;
}

void ddp__cuda_find(struct ddp__gpus *g, int most)
{
    if (!bind_driver(g) || !driver_is_new_enough(g))
        return;
    find_usable(g, most);
    if (g->count && ddp__cuda_load(oldest_architecture(g)) < 0) {
        g->count = 0;
        add_reason(g, "%s", ddp_errmsg());
    }
}
