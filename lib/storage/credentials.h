/* credentials.h - who asks an S3 server
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * In this order: the environment, a profile of ~/.aws/credentials and
 * ~/.aws/config, the container's or the instance's role, nobody.  None of it
 * becomes part of a message; `source` may.
 */
#ifndef DDP_CREDENTIALS_H
#define DDP_CREDENTIALS_H

#include <stdatomic.h>
#include <time.h>

struct ddp__credentials {
    char id[160], secret[256], token[4096]; /* id "": requests are not signed;
                                               token "": none */
    char source[160];                       /* for messages */
    time_t expires;                         /* 0: never */
};

/* Look for them. */
int ddp__credentials_find(struct ddp__credentials *c);

/* What a container or an instance answers about its role, in JSON; source: what
 * messages call it. */
int ddp__role_read(struct ddp__credentials *c, const void *text, size_t len,
                   const char *source);

/* The region and the endpoint that the environment or the profile names; "":
 * none. */
struct ddp__aws_place {
    char region[32], endpoint[256];
};
int ddp__aws_place(struct ddp__aws_place *p);

#endif
