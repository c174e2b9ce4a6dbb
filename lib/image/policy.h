/* policy.h - augmentation policies: which operations a sample gets
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_POLICY_H
#define DDP_POLICY_H

#include "image/change.h"

struct ddp__bytes;

/* DDP_EINVAL for numbers that no policy has. */
int ddp__policy_check(const struct ddp_policy *p);

/* Those of timm fill in the mean colour. */
bool ddp__policy_is_timm(enum ddp_policy_kind kind);

/* A name in files; it must not change. */
const char *ddp__policy_name(enum ddp_policy_kind kind);

/* Operation i of chain `chain` of a sample of `size` pixels, as the key
 * decides; only AugMix has several chains. */
struct ddp__change ddp__policy_draw(const struct ddp_policy *p, uint64_t key,
                                    int size, int chain, int i);

/* How AugMix mixes: the share of the sample itself, then of each chain. */
void ddp__policy_shares(const struct ddp_policy *p, uint64_t key, float *share);

/* Apply a policy to x (size, size, 3).  room is memory.  DDP_ENOMEM. */
int ddp__policy_apply(const struct ddp_policy *p, uint64_t key,
                      const struct ddp__canvas *canvas, struct ddp__bytes *room,
                      uint8_t *x);

#endif
