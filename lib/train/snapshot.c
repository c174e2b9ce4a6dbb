/* snapshot.c - the state of a trainer between two steps
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>

#include "checkpoint/settings.h"
#include "checkpoint/state.h"
#include "runtime/describe.h"
#include "runtime/device_list.h"
#include "runtime/devices.h"
#include "train/snapshot.h"
#include "train/steps.h"

int ddp__snapshot_settings(const struct ddp_trainer *t, json_t **out)
{
    const struct ddp__settings s = {
        .cfg = &t->cfg,
        .data = t->loader.data,
        .chain = t->chain,
        .steps = ddp__is_stream(t->loader.data) ? t->cfg.steps : t->total,
        .own = t->own};

    return ddp__settings_json(&s, out);
}

void ddp__snapshot_devices(const ddp_t *ddp, char *text, size_t size)
{
    const struct ddp__devices *all = &ddp->devices;
    const char *cpu = ddp__devices_describe(&all->used[all->count - 1]);
    char gpus[256];

    if (ddp_gpu_count(ddp, NULL)) {
        ddp__describe_gpus(ddp, gpus, sizeof(gpus));
        snprintf(text, size, "GPU %s (%s)%s%s%s with libddp %s", gpus,
                 ddp__devices_describe(&all->used[0]),
                 all->hybrid ? ", CPU (" : "", all->hybrid ? cpu : "",
                 all->hybrid ? ")" : "", ddp_version());
    } else {
        snprintf(text, size, "CPU (%s) with libddp %s", cpu, ddp_version());
    }
}

/* trainer.json */
static int describe_state(const struct ddp_trainer *t, json_t **out)
{
    struct ddp__run run = t->run;
    json_t *settings;
    int rc;

    run.step = t->submitted;
    run.place = ddp__is_stream(t->loader.data) && run.step > 0
                    ? ddp__loader_place(&t->loader, run.step - 1)
                    : (struct ddp__place){0};
    if (t->training)
        run.seconds += ddp__now() - t->begin;
    ddp__snapshot_devices(t->ddp, run.devices, sizeof(run.devices));
    if ((rc = ddp__loss_scaler_get(t->engine, run.scaler)) < 0 ||
        (rc = ddp__snapshot_settings(t, &settings)) < 0)
        return rc;
    rc = ddp__state_json(&run, settings, out);
    json_decref(settings);
    return rc;
}

int ddp__snapshot_take(const struct ddp_trainer *t, struct ddp__ckpt_copy *copy)
{
    int rc = copy->sets ? 0 : ddp__ckpt_copy_new(copy, t->engine);

    if (rc < 0)
        return rc;
    copy->step = t->submitted;
    copy->best = t->run.best;
    rc = describe_state(t, &copy->state);
    if (rc == 0 && t->engine->ema)
        rc = ddp__ema_begin(t->engine->ema);
    if (rc == 0)
        rc = ddp__ckpt_copy_save(copy, t->engine);
    if (rc < 0)
        ddp__ckpt_copy_free(copy);
    return rc;
}
