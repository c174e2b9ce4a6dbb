/* changes.h - settings that a run may change when it resumes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CHECKPOINT_CHANGES_H
#define DDP_CHECKPOINT_CHANGES_H

#include <jansson.h>
#include <stdbool.h>

struct ddp__changes {
    const char *allowed; /* names separated by commas; NULL: none */
    char names[512]; /* found: those that differ; "" if one can never change */
    char text[1024]; /* found: those that differ and are allowed, with values */
};

/* DDP_EINVAL for a name in the list that is not of a setting that can change.
 */
int ddp__changes_check(const char *allowed);

/* Whether a run can continue with this value of a setting in place of that one.
 */
bool ddp__setting_can_change(const char *setting, const json_t *there,
                             const json_t *here);

/* Whether a list names the setting, or one that it is part of. */
bool ddp__setting_listed(const char *list, const char *setting);

#endif
