/* identity.c - by what data are recognised when a run resumes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Images are too many to read all of them: a sample of them shows that a folder
 * was prepared again, at another size or quality.  What cannot be read may be
 * repaired and is left out, for the run that stopped at it must resume.
 */
#include "config.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "base/philox.h"
#include "base/printable.h"
#include "data/dataset.h"
#include "data/identity.h"
#include "image/image.h"

enum { MOST_BYTES = 32 << 20 };

int ddp__identity_image(struct ddp__content *c, const struct ddp__bytes *file,
                        int64_t max_pixels)
{
    int rc = ddp__image_check(file->data, file->len, max_pixels);

    if (rc < 0)
        return rc;
    c->size = file->len;
    c->crc = ddp__crc32c(0, file->data, file->len);
    return 0;
}

/* Add a file if it can be read.  A storage that fails would be tried for
 * seconds at each file; DDP_EIO says so. */
static int add_file(struct ddp__identity *all, const ddp_dataset_t *d,
                    int64_t index)
{
    struct ddp__content one;
    int rc = d->ops->content(d, index, &one);

    if (rc == 0 && ddp__is_utf8(one.name))
        all->file[all->count++] = one;
    return rc == DDP_EDATA ? 0 : rc;
}

static int64_t file_number(const ddp_dataset_t *d, int64_t i)
{
    uint64_t bits = ddp__philox(DDP__SAMPLED, 0, (uint64_t)i).v[0];

    return d->count <= DDP__SAMPLED
               ? i
               : (int64_t)(bits * (uint64_t)d->count >> 32);
}

/* All files, or as many by a key; one that is drawn twice is listed twice. */
static int draw_files(struct ddp__identity *all, const ddp_dataset_t *d)
{
    int64_t n = d->count < DDP__SAMPLED ? d->count : DDP__SAMPLED;
    size_t bytes = 0;
    int rc = 0;

    for (int64_t i = 0; d->far && i < n; i++)
        d->ops->ahead((ddp_dataset_t *)(uintptr_t)d, file_number(d, i));
    for (int64_t i = 0; rc == 0 && i < n && bytes < MOST_BYTES; i++) {
        int before = all->count;

        rc = add_file(all, d, file_number(d, i));
        if (all->count > before)
            bytes += all->file[before].size;
    }
    return rc == DDP_ENOMEM ? rc : 0;
}

static void note_identity(ddp_dataset_t *d, const struct ddp__identity *all)
{
    pthread_mutex_lock(&d->lock);
    if (!d->identity.known)
        d->identity = *all;
    pthread_mutex_unlock(&d->lock);
}

const struct ddp__identity *ddp__dataset_identity(const ddp_dataset_t *d)
{
    struct ddp__identity all = {.known = true};
    struct ddp__error before = ddp__error_save();
    ddp_dataset_t *own = (ddp_dataset_t *)(uintptr_t)d;
    bool known;

    pthread_mutex_lock(&own->lock);
    known = d->identity.known;
    pthread_mutex_unlock(&own->lock);
    if (!known && d->ops->content && draw_files(&all, d) < 0)
        return NULL;
    ddp__error_restore(&before);
    if (!known)
        note_identity(own, &all);
    return &d->identity;
}

uint32_t ddp__dataset_labels(const ddp_dataset_t *d)
{
    uint32_t crc = d->ops->labels ? d->ops->labels(d) : 0;

    return d->label_of
               ? ddp__crc32c(crc, d->label_of,
                             (size_t)d->kind_classes * sizeof(*d->label_of))
               : crc;
}
