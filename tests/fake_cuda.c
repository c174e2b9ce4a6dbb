/* fake_cuda.c - a libcuda.so.1 that reports the GPUs of FAKE_CUDA
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * FAKE_CUDA  is "init version gpu gpu ...": what cuInit() returns, the version
 * of the driver, and for each GPU "mode/major/retain/minor/left": its compute
 * mode, its generation, what cuDevicePrimaryCtxRetain() returns, and, if they
 * are given, the second number of the generation [0] and the MiB left [1024].
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpu {
    int mode, major, retain, minor, left;
};

static struct {
    int init, version, gpus;
    struct gpu gpu[8];
} fake;

static void read_fake(void)
{
    char *text = strdup(getenv("FAKE_CUDA")), *save = NULL, *word;

    fake.gpus = 0;
    fake.init = atoi(strtok_r(text, " ", &save));
    fake.version = atoi(strtok_r(NULL, " ", &save));
    while ((word = strtok_r(NULL, " ", &save)) && fake.gpus < 8) {
        struct gpu *g = &fake.gpu[fake.gpus++];

        g->minor = 0;
        g->left = 1024;
        sscanf(word, "%d/%d/%d/%d/%d", &g->mode, &g->major, &g->retain,
               &g->minor, &g->left);
    }
    free(text);
}

int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    read_fake();
    return flags ? 1 : fake.init;
}

int cuDriverGetVersion(int *v);
int cuDriverGetVersion(int *v)
{
    read_fake();
    *v = fake.version;
    return 0;
}

int cuDeviceGetCount(int *n);
int cuDeviceGetCount(int *n)
{
    *n = fake.gpus;
    return 0;
}

int cuDeviceGet(int *dev, int i);
int cuDeviceGet(int *dev, int i)
{
    *dev = i;
    return i < fake.gpus ? 0 : 101;
}

/* That of a model, as the driver's: the number of the first such GPU. */
int cuDeviceGetName(char *s, int len, int dev);
int cuDeviceGetName(char *s, int len, int dev)
{
    int first = 0;

    while (fake.gpu[first].major != fake.gpu[dev].major ||
           fake.gpu[first].minor != fake.gpu[dev].minor)
        first++;
    snprintf(s, (size_t)len, "Fake %d", first);
    return 0;
}

int cuDeviceGetAttribute(int *v, int what, int dev);
int cuDeviceGetAttribute(int *v, int what, int dev)
{
    switch (what) {
    case 13: /* clock, kHz */
        *v = 1980000;
        break;
    case 16: /* multiprocessors */
        *v = 132;
        break;
    case 20: /* compute mode */
        *v = fake.gpu[dev].mode;
        break;
    case 36: /* memory clock, kHz */
        *v = 3201000;
        break;
    case 37: /* its bus, bits */
        *v = 6144;
        break;
    case 75: /* compute capability */
        *v = fake.gpu[dev].major;
        break;
    case 76:
        *v = fake.gpu[dev].minor;
        break;
    default:
        *v = 0;
    }
    return 0;
}

int cuDevicePrimaryCtxRetain(void **ctx, int dev);
int cuDevicePrimaryCtxRetain(void **ctx, int dev)
{
    *ctx = &fake.gpu[dev];
    return fake.gpu[dev].retain;
}

int cuDevicePrimaryCtxRelease_v2(int dev);
int cuDevicePrimaryCtxRelease_v2(int dev)
{
    return dev < 0;
}

static struct gpu *current;

int cuCtxPushCurrent_v2(void *ctx);
int cuCtxPushCurrent_v2(void *ctx)
{
    current = ctx;
    return 0;
}

int cuCtxPopCurrent_v2(void **ctx);
int cuCtxPopCurrent_v2(void **ctx)
{
    *ctx = current;
    current = NULL;
    return 0;
}

int cuMemGetInfo_v2(size_t *left, size_t *all);
int cuMemGetInfo_v2(size_t *left, size_t *all)
{
    if (!current)
        return 201; /* no context */
    *left = (size_t)current->left << 20;
    *all = (size_t)80 << 30;
    return 0;
}

int cuGetErrorString(int e, const char **s);
int cuGetErrorString(int e, const char **s)
{
    *s = e == 46 ? "devices unavailable" : "made up";
    return 0;
}
