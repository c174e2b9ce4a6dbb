/* settings.h - what decides the weights of a run, as JSON
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CHECKPOINT_SETTINGS_H
#define DDP_CHECKPOINT_SETTINGS_H

#include <jansson.h>

#include "data/dataset.h"

struct ddp__settings {
    const struct ddp_train_config *cfg; /* resolved; nothing here is owned */
    const ddp_dataset_t *data;
    ddp_chain_t *chain;
    int64_t steps;   /* of the run */
    const char *own; /* what all ranks have, each on its own; "": they share */
};

/* Identifies samples: of equal ones it is the same. */
int ddp__settings_data(const ddp_dataset_t *d, uint32_t *crc);

/* {"settings": {...}, "network": [...]}, the former under the names that ddp.h
 * has for them, the latter from network.h.  *out is to be freed. */
int ddp__settings_json(const struct ddp__settings *s, json_t **out);

#endif
