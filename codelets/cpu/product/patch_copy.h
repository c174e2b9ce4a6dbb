/* patch_copy.h - patches, outputs of a group and weights of live taps, copied
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PATCH_COPY_H
#define DDP_PATCH_COPY_H

#include "patch.h"

/* The patches of a group of n images; x begins with the group's channels. */
void ddp__patch_gather(const struct ddp__patch *p, int n, const int *pixel,
                       const char *x, char *to);

/* The reverse: dx of patches; sum has room for a group's values of an image. */
void ddp__patch_spread(const struct ddp__patch *p, int n, const int *pixel,
                       const char *from, float *sum, char *dx);

/* Rows of a group's outputs, and among those of all groups. */
void ddp__patch_copy_columns(const struct ddp__patch *p, int n, char *group,
                             char *all, bool to_group);

/* The weights of a group, without the taps left out. */
void ddp__patch_crop(const struct ddp__patch *p, size_t group, const float *w,
                     float *to);

/* The gradient of these, into or onto that of all taps; those left out have
 * none. */
void ddp__patch_put_gradient(const struct ddp__patch *p, size_t group,
                             const float *from, bool accumulate, float *g);

#endif
