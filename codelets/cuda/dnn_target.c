/* dnn_target.c - the GPU that plans are for, there or described */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dnn_plan.h"

struct ddp__cudnn_target ddp__cudnn_target;

static int target(const char *name, cudnnBackendAttributeName_t attribute,
                  cudnnBackendAttributeType_t type, int64_t count,
                  const void *value)
{
    struct ddp__cudnn_target *t = &ddp__cudnn_target;
    int rc;

    ddp__cudnn_target_free();
    rc = ddp__cudnn_status(cudnnBackendCreateDescriptor(
                               CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &t->prop),
                           "a device");
    if (rc == 0)
        rc = ddp__cudnn_status(
            cudnnBackendSetAttribute(t->prop, attribute, type, count, value),
            name);
    if (rc == 0)
        rc = ddp__cudnn_status(cudnnBackendFinalize(t->prop), name);
    if (rc < 0) {
        ddp__cudnn_target_free();
        return rc;
    }
    snprintf(t->name, sizeof(t->name), "%s, cuDNN %zu", name,
             cudnnGetVersion());
    return 0;
}

int ddp__cudnn_target_device(bool tf32, bool fast)
{
    struct cudaDeviceProp p;
    int driver = 0, id = 0, rc;
    char name[280];

    if ((rc = ddp__cuda_check(cudaSetDevice(id), "a device")) < 0 ||
        (rc = ddp__cuda_check(cudaGetDeviceProperties(&p, id),
                              "properties of a device")) < 0 ||
        (rc = ddp__cuda_check(cudaDriverGetVersion(&driver),
                              "version of the driver")) < 0)
        return rc;
    snprintf(name, sizeof(name), "%.200s, sm_%d%d, %d SMs, driver %d", p.name,
             p.major, p.minor, p.multiProcessorCount, driver);
    rc = target(name, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1,
                &(int32_t){id});
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

int ddp__cudnn_target_ready(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int rc = 0;

    pthread_mutex_lock(&lock);
    if (!ddp__cudnn_target.prop)
        rc = ddp__cudnn_target_device(switched_on("DDP_TF32"),
                                      switched_on("DDP_TUNE"));
    pthread_mutex_unlock(&lock);
    return rc;
}

int ddp__cudnn_target_json(const char *name, const char *json, bool tf32,
                           bool fast)
{
    int rc = target(name, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                    CUDNN_TYPE_CHAR, (int64_t)strlen(json), json);

    ddp__cudnn_target.tf32 = tf32;
    ddp__cudnn_target.fast = fast;
    ddp__cudnn_target.described = true;
    return rc;
}

void ddp__cudnn_target_free(void)
{
    if (ddp__cudnn_target.prop)
        cudnnBackendDestroyDescriptor(ddp__cudnn_target.prop);
    ddp__cudnn_target = (struct ddp__cudnn_target){.prop = NULL};
}
