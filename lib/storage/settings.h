/* settings.h - what ddp_storage_configure() has set, and what was counted
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_STORAGE_SETTINGS_H
#define DDP_STORAGE_SETTINGS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "ddp.h"
#include "storage/copies.h"

/* For ddp_storage_stats(). */
struct ddp__storage_counts {
    atomic_llong requests, retries, bytes, hits, misses;
};
extern struct ddp__storage_counts ddp__storage_counts;

/* What ddp_storage_configure() has said of cache_dir. */
extern struct ddp__copies ddp__storage_copies;

/* Where S3 is and who asks, in place of what the environment says; NULL: as it
 * is.  For the process. */
int ddp__storage_set_place(const char *region, const char *endpoint,
                           const char *profile);
struct ddp__storage_place {
    char *region, *endpoint, *profile; /* owned; NULL: not set */
};
extern struct ddp__storage_place ddp__storage_place;

/* Of the process.  Its strings are never freed while a storage is open. */
const struct ddp_storage_config *ddp__storage_settings(void);

/* Requests at a time: 64, and one more for each call of the other, up to the
 * setting; false: there are as many. */
int ddp__storage_at_once(void);
bool ddp__storage_allow_another(void);

#endif
