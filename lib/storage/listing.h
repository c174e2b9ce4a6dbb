/* listing.h - what S3 answers in XML
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_LISTING_H
#define DDP_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One page of ListObjectsV2. */
struct ddp__page {
    bool more;        /* there are others */
    char token[2048]; /* for the next one */
    /* Called for each file, and for each folder with an etag of NULL. */
    int (*found)(const char *key, const char *etag, int64_t size, void *arg);
    void *arg;
};

/* Read it; DDP_EIO: it is none; DDP_EDATA: an item makes no sense. */
int ddp__page_read(struct ddp__page *p, const void *text, size_t len);

/* What the text of an error has; each "" if it has none. */
struct ddp__reason {
    char code[48];   /* such as "NoSuchKey" */
    char region[32]; /* where the bucket is */
};
void ddp__reason_read(const void *text, size_t len, struct ddp__reason *reason);

#endif
