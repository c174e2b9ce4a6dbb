/* identity.h - by what data are recognised when a run resumes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_IDENTITY_H
#define DDP_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ddp.h"

enum { DDP__SAMPLED = 64 };

/* The contents of some files that checksum() knows only by their names. */
struct ddp__identity {
    bool known;
    int count;
    struct ddp__content {
        const char *name; /* in the folder of the data; the kind's */
        size_t size;
        uint32_t crc; /* CRC-32C */
    } file[DDP__SAMPLED];
};

/* The contents of up to DDP__SAMPLED files, drawn by a key, as they were when
 * this was first called: of those that can be read whole and have a name in
 * UTF-8.  Fewer of large files.  NULL: no memory. */
const struct ddp__identity *ddp__dataset_identity(const ddp_dataset_t *d);

/* Fill in size and crc from an image file; DDP_EDATA if it is damaged. */
struct ddp__bytes;
int ddp__identity_image(struct ddp__content *c, const struct ddp__bytes *file,
                        int64_t max_pixels);

/* The CRC-32C of the numbers that classes have here in place of those that the
 * kind gives them; 0: the same. */
uint32_t ddp__dataset_labels(const ddp_dataset_t *d);

#endif
