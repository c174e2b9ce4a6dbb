/* state.h - trainer.json: a run's settings, and where it was
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CHECKPOINT_STATE_H
#define DDP_CHECKPOINT_STATE_H

#include <jansson.h>

#include "checkpoint/changes.h"
#include "data/stream.h"
#include "ddp.h"
#include "engine/loss_scaler.h"

/* What evaluations have come to with DDP_PLATEAU. */
struct ddp__plateau {
    int64_t evaluations; /* so far; 0: the others mean nothing */
    double factor;       /* of the learning rate */
    double best;
    int64_t bad;      /* evaluations since the best one */
    int64_t cooldown; /* of those to come, how many do not count */
};

/* The position and progress of a run, besides its weights. */
struct ddp__run {
    int64_t step;          /* steps done; of a checkpoint */
    int64_t on_epoch_step; /* the step after which on_epoch was last called */
    struct ddp_metrics epoch; /* sums since the epoch began */
    double epoch_divisor;
    int64_t evaluated, best, ema_evaluated; /* after which step; 0: never */
    struct ddp_metrics evaluation, best_evaluation, ema_evaluation;
    struct ddp__plateau plateau;
    struct ddp__place place; /* of the last step, if a stream was read; else n
                                is 0 */
    int64_t stale;           /* evaluations since the best one */
    double scaler[DDP__SCALER_STATE]; /* of a checkpoint */
    double seconds;                   /* of training, before this process */
    char devices[256];                /* what computed it; of a checkpoint */
    json_t *changes; /* of settings so far, an array of {"step", "settings"},
                        or NULL; a trainer owns its own */
};

/* trainer.json, which includes the result of ddp__settings_json().  *out is to
 * be freed. */
int ddp__state_json(const struct ddp__run *r, json_t *settings, json_t **out);

/* Whether a run with these settings, but for allowed changes, can resume from
 * this state.
 * Errors   DDP_EINVAL: it has another format, or other settings; DDP_EDATA: it
 *          is no such state at all. */
int ddp__state_check(const json_t *state, const json_t *settings,
                     const char *path, struct ddp__changes *changes);

/* Read the position and progress of the run.  DDP_EDATA. */
int ddp__state_parse(const json_t *state, const char *path, struct ddp__run *r);

/* Steps of an epoch, as the settings in a state have it; 0: unknown. */
int64_t ddp__state_epoch_steps(const json_t *state);

/* Count steps so that epochs of `to` steps replace those of `from`. */
void ddp__run_renumber(struct ddp__run *r, int64_t from, int64_t to);

#endif
