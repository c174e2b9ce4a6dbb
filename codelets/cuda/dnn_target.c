/* dnn_target.c - the models of GPUs that plans are for, there or described
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dnn_plan.h"
#include "worker.h"

struct ddp__cudnn_target ddp__cudnn_targets[DDP__CUDNN_TARGETS];
static int targets;
static int target_of[DDP__CUDA_DEVICES]; /* by GPU */

int ddp__cudnn_target_count(void)
{
    return targets;
}

struct ddp__cudnn_target *ddp__cudnn_target_of(int device)
{
    return &ddp__cudnn_targets[target_of[device]];
}

static void device_free(ddp__cudnn_desc *d)
{
    if (*d)
        cudnnBackendDestroyDescriptor(*d);
    *d = NULL;
}

/* A GPU of which one attribute tells all; NULL and a message if it fails. */
static int device_new(ddp__cudnn_desc *d, const char *name,
                      cudnnBackendAttributeName_t attribute,
                      cudnnBackendAttributeType_t type, int64_t count,
                      const void *value)
{
    int rc = ddp__cudnn_status(
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, d),
        "a device");

    if (rc == 0)
        rc = ddp__cudnn_status(
            cudnnBackendSetAttribute(*d, attribute, type, count, value), name);
    if (rc == 0)
        rc = ddp__cudnn_status(cudnnBackendFinalize(*d), name);
    if (rc < 0)
        device_free(d);
    return rc;
}

/* The next one. */
static int add_target(const char *name, cudnnBackendAttributeName_t attribute,
                      cudnnBackendAttributeType_t type, int64_t count,
                      const void *value)
{
    struct ddp__cudnn_target *t = &ddp__cudnn_targets[targets];
    int rc;

    if (targets == DDP__CUDNN_TARGETS)
        return ddp__fail(DDP_ENODEV, "%d models of GPUs are the most",
                         DDP__CUDNN_TARGETS);
    *t = (struct ddp__cudnn_target){.prop = NULL};
    if ((rc = device_new(&t->prop, name, attribute, type, count, value)) < 0)
        return rc;
    snprintf(t->name, sizeof(t->name), "%s, cuDNN %zu", name,
             cudnnGetVersion());
    targets++;
    return 0;
}

/* All of a GPU that a choice of engines depends on. */
static int describe_gpu(int id, struct cudaDeviceProp *p, char *name,
                        size_t size)
{
    int driver = 0, rc;

    if ((rc = ddp__cuda_check(cudaSetDevice(id), "a device")) < 0 ||
        (rc = ddp__cuda_check(cudaGetDeviceProperties(p, id),
                              "properties of a device")) < 0 ||
        (rc = ddp__cuda_check(cudaDriverGetVersion(&driver),
                              "version of the driver")) < 0)
        return rc;
    snprintf(name, size, "%.200s, sm_%d%d, %d SMs, driver %d", p->name,
             p->major, p->minor, p->multiProcessorCount, driver);
    return 0;
}

/* The one of these properties; `targets` if there is none.  GPUs that are of
 * one model here are so when they are chosen (gpu.c). */
static int find_target(const struct cudaDeviceProp *p)
{
    int i = 0;

    while (i < targets &&
           (ddp__cudnn_targets[i].architecture != 10 * p->major + p->minor ||
            ddp__cudnn_targets[i].units != p->multiProcessorCount))
        i++;
    return i;
}

/* The target of a GPU: the one of its model, or a new one. */
static int add_device(int id, bool tf32, bool fast)
{
    struct cudaDeviceProp p;
    char name[280];
    int rc = describe_gpu(id, &p, name, sizeof(name));

    if (rc < 0)
        return rc;
    target_of[id] = find_target(&p);
    if (target_of[id] < targets)
        return 0;
    rc = add_target(name, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1,
                    &(int32_t){id});
    if (rc == 0) {
        struct ddp__cudnn_target *t = ddp__cudnn_target_of(id);

        t->device = id;
        t->architecture = 10 * p.major + p.minor;
        t->units = p.multiProcessorCount;
        t->tf32 = tf32;
        t->fast = fast;
    }
    return rc;
}

int ddp__cudnn_target_device(int device, bool tf32, bool fast)
{
    ddp__cudnn_targets_free();
    return add_device(device, tf32, fast);
}

/* Whether the program's user has switched this on. */
static bool switched_on(const char *variable)
{
    const char *text = getenv(variable);

    return text && *text && strcmp(text, "0") != 0;
}

const char *ddp__cudnn_switches(void)
{
    bool tf32 = switched_on("DDP_TF32"), tune = switched_on("DDP_TUNE");

    return tf32 && tune ? ", TF32, tuned"
           : tf32       ? ", TF32"
           : tune       ? ", tuned"
                        : "";
}

static int add_devices(void)
{
    int device[DDP__CUDA_DEVICES], count = ddp__cuda_devices(device), rc = 0;

    if (count == 0)
        return ddp__fail(DDP_ENODEV, "no GPU worker to make plans for");
    for (int i = 0; i < count && rc == 0; i++)
        rc = add_device(device[i], switched_on("DDP_TF32"),
                        switched_on("DDP_TUNE"));
    return rc;
}

/* The calling thread keeps its GPU. */
int ddp__cudnn_targets_ready(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int before = -1, rc = 0;

    pthread_mutex_lock(&lock);
    if (!targets) {
        cudaGetDevice(&before);
        if ((rc = add_devices()) < 0)
            ddp__cudnn_targets_free();
        if (before >= 0)
            cudaSetDevice(before);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int ddp__cudnn_target_json(const char *name, const char *json, bool tf32,
                           bool fast)
{
    struct ddp__cudnn_target *t = ddp__cudnn_targets;
    int rc;

    ddp__cudnn_targets_free();
    rc = add_target(name, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                    CUDNN_TYPE_CHAR, (int64_t)strlen(json), json);
    t->tf32 = tf32;
    t->fast = fast;
    t->described = true;
    return rc;
}

/* ---- several GPUs ------------------------------------------------------- */

int ddp__cudnn_target_enter(const struct ddp__cudnn_target *t)
{
    int before = -1;

    if (t->described || cudaGetDevice(&before) != cudaSuccess)
        return -1;
    if (before != t->device)
        cudaSetDevice(t->device);
    return before;
}

void ddp__cudnn_target_leave(const struct ddp__cudnn_target *t, int before)
{
    if (before >= 0 && before != t->device)
        cudaSetDevice(before);
}

static ddp__cudnn_desc others[DDP__CUDA_DEVICES]; /* owned */
static pthread_mutex_t others_lock = PTHREAD_MUTEX_INITIALIZER;

/* All that may exist are described equally. */
ddp__cudnn_desc ddp__cudnn_target_other(const struct ddp__cudnn_target *t,
                                        int device)
{
    ddp__cudnn_desc d;
    int rc = 0;

    if (t->described)
        return t->prop;
    pthread_mutex_lock(&others_lock);
    if (!others[device])
        rc = device_new(&others[device], "another GPU",
                        CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1,
                        &(int32_t){device});
    d = rc < 0 ? NULL : others[device];
    pthread_mutex_unlock(&others_lock);
    return d;
}

void ddp__cudnn_targets_free(void)
{
    for (int i = 0; i < DDP__CUDA_DEVICES; i++)
        device_free(&others[i]);
    memset(target_of, 0, sizeof(target_of));
    while (targets > 0)
        device_free(&ddp__cudnn_targets[--targets].prop);
}
