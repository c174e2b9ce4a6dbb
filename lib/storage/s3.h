/* s3.h - objects of S3 and of servers that speak its language
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_S3_H
#define DDP_S3_H

#include "storage/server.h"

/* For s3://bucket or s3://bucket/folder; NULL and a message.  Nothing is
 * asked. */
struct ddp__server *ddp__s3_new(const char *root);

#endif
