/* profile.h - the files in which AWS's tools keep settings
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PROFILE_H
#define DDP_PROFILE_H

#include <stdbool.h>

/* What is used of a profile. */
struct ddp__profile {
    bool found;
    char id[160], secret[256], token[4096], region[32], endpoint[256];
    char other[32]; /* a way to credentials that is not supported; "": none */
};

/* The profile's name: the data set's, AWS_PROFILE, or "default". */
const char *ddp__profile_name(void);

/* Read what both files have about it.  No file is as an empty one. */
int ddp__profile_read(struct ddp__profile *p);

/* Add what a text has; prefix: "profile " where sections have it. */
int ddp__profile_parse(struct ddp__profile *p, const char *name,
                       const char *prefix, char *text);

#endif
