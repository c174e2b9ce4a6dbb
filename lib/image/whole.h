/* whole.h - what formats share whose decoders give all pixels at once
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_WHOLE_H
#define DDP_WHOLE_H

#include "image/picture.h"

/* Their state. */
struct ddp__whole {
    uint8_t *x; /* (h, w, 4), zeroed; owned */
    int y;      /* the next row */
};

void *ddp__whole_new(void);

/* Check the size that a header has. */
int ddp__whole_check(struct ddp__picture *p, int64_t w, int64_t h);

/* Prepare for the rows of a box: memory for all pixels, to be filled in. */
int ddp__whole_reserve(struct ddp__whole *s, struct ddp__picture *p,
                       const struct ddp__box *b);

int ddp__whole_rows(void *state, struct ddp__picture *p, uint8_t *x, int n);
void ddp__whole_close(void *state);
void ddp__whole_free(void *state);

#endif
