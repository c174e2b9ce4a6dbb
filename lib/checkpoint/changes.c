/* changes.c - settings that a run may change when it resumes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "checkpoint/changes.h"

/* Each with its parts: "optimizer" is "optimizer.lr", too. */
static const char changeable[] =
    "batch,sub_batch,lanes,seed,order,label_smoothing,ema_decay,optimizer,"
    "schedule,data,eval_data,augmentation,target_threshold,focal_gamma,"
    "focal_alpha,mixup,cutmix,mix_prob,mix_switch_prob,mix_off_epoch,"
    "groups,layer_decay,ema_warmup,class_weights,pos_weight,repeats,"
    "teacher,distill_weight,distill_temperature,"
    "sync_bn";

/* These decide which state a checkpoint has, and the shapes of the network. */
static const char fixed[] = "optimizer.kind,optimizer.update_states,data.shape,"
                            "data.type,data.classes,data.targets";

/* A checkpoint has state for these only if they are not 0. */
static const char stateful[] =
    "ema_decay,optimizer.momentum,optimizer.lookahead";

/* Whether the setting is `name` (of len bytes) or a part of it. */
static bool is_below(const char *setting, const char *name, size_t len)
{
    return len && !strncmp(setting, name, len) &&
           (setting[len] == 0 || setting[len] == '.');
}

bool ddp__setting_listed(const char *list, const char *setting)
{
    for (const char *s = list; s && *s; s += strspn(s, ",")) {
        size_t len = strcspn(s, ",");

        if (is_below(setting, s, len))
            return true;
        s += len;
    }
    return false;
}

bool ddp__setting_can_change(const char *setting, const json_t *there,
                             const json_t *here)
{
    bool same = (json_number_value(there) > 0) == (json_number_value(here) > 0);

    return ddp__setting_listed(changeable, setting) &&
           !ddp__setting_listed(fixed, setting) &&
           (same || !ddp__setting_listed(stateful, setting));
}

int ddp__changes_check(const char *allowed)
{
    char name[64];

    for (const char *s = allowed; s && *s; s += strspn(s, ",")) {
        size_t len = strcspn(s, ",");

        snprintf(name, sizeof(name), "%.*s", (int)len, s);
        if (!ddp__setting_listed(changeable, name) ||
            ddp__setting_listed(fixed, name))
            return ddp__fail(DDP_EINVAL,
                             "'%s' is not a setting that a run can change: "
                             "expected some of %s, or parts of them such as "
                             "optimizer.lr",
                             name, changeable);
        s += len;
    }
    return 0;
}
