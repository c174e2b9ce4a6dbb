/* dnn_target.c - the GPU that plans are for, there or described
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dnn_plan.h"
#include "worker.h"

struct ddp__cudnn_target ddp__cudnn_target;

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

static int set_target(const char *name, cudnnBackendAttributeName_t attribute,
                      cudnnBackendAttributeType_t type, int64_t count,
                      const void *value)
{
    struct ddp__cudnn_target *t = &ddp__cudnn_target;
    int rc;

    ddp__cudnn_target_free();
    if ((rc = device_new(&t->prop, name, attribute, type, count, value)) < 0)
        return rc;
    snprintf(t->name, sizeof(t->name), "%s, cuDNN %zu", name,
             cudnnGetVersion());
    return 0;
}

int ddp__cudnn_target_device(int id, bool tf32, bool fast)
{
    struct cudaDeviceProp p;
    int driver = 0, rc;
    char name[280];

    if ((rc = ddp__cuda_check(cudaSetDevice(id), "a device")) < 0 ||
        (rc = ddp__cuda_check(cudaGetDeviceProperties(&p, id),
                              "properties of a device")) < 0 ||
        (rc = ddp__cuda_check(cudaDriverGetVersion(&driver),
                              "version of the driver")) < 0)
        return rc;
    snprintf(name, sizeof(name), "%.200s, sm_%d%d, %d SMs, driver %d", p.name,
             p.major, p.minor, p.multiProcessorCount, driver);
    rc = set_target(name, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1,
                    &(int32_t){id});
    ddp__cudnn_target.device = id;
    ddp__cudnn_target.tf32 = tf32;
    ddp__cudnn_target.fast = fast;
    return rc;
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

int ddp__cudnn_target_ready(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int device = ddp__cuda_first_device(), rc = 0;

    pthread_mutex_lock(&lock);
    if (!ddp__cudnn_target.prop && device < 0)
        rc = ddp__fail(DDP_ENODEV, "no GPU worker to make plans for");
    else if (!ddp__cudnn_target.prop)
        rc = ddp__cudnn_target_device(device, switched_on("DDP_TF32"),
                                      switched_on("DDP_TUNE"));
    pthread_mutex_unlock(&lock);
    return rc;
}

int ddp__cudnn_target_json(const char *name, const char *json, bool tf32,
                           bool fast)
{
    int rc = set_target(name, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                        CUDNN_TYPE_CHAR, (int64_t)strlen(json), json);

    ddp__cudnn_target.tf32 = tf32;
    ddp__cudnn_target.fast = fast;
    ddp__cudnn_target.described = true;
    return rc;
}

/* ---- several GPUs ------------------------------------------------------- */

int ddp__cudnn_target_enter(void)
{
    int before = -1;

    if (ddp__cudnn_target.described || cudaGetDevice(&before) != cudaSuccess)
        return -1;
    if (before != ddp__cudnn_target.device)
        cudaSetDevice(ddp__cudnn_target.device);
    return before;
}

void ddp__cudnn_target_leave(int before)
{
    if (before >= 0 && before != ddp__cudnn_target.device)
        cudaSetDevice(before);
}

static ddp__cudnn_desc others[DDP__CUDA_DEVICES]; /* owned */
static pthread_mutex_t others_lock = PTHREAD_MUTEX_INITIALIZER;

/* All that may exist are described equally. */
ddp__cudnn_desc ddp__cudnn_target_other(int device)
{
    ddp__cudnn_desc d;
    int rc = 0;

    if (ddp__cudnn_target.described)
        return ddp__cudnn_target.prop;
    pthread_mutex_lock(&others_lock);
    if (!others[device])
        rc = device_new(&others[device], "another GPU",
                        CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1,
                        &(int32_t){device});
    d = rc < 0 ? NULL : others[device];
    pthread_mutex_unlock(&others_lock);
    return d;
}

void ddp__cudnn_target_free(void)
{
    for (int i = 0; i < DDP__CUDA_DEVICES; i++)
        device_free(&others[i]);
    device_free(&ddp__cudnn_target.prop);
    ddp__cudnn_target = (struct ddp__cudnn_target){.prop = NULL};
}
