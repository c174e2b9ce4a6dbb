/* servers.h - the servers that are open, and their addresses
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SERVERS_H
#define DDP_SERVERS_H

#include "storage/server.h"

/* An address may hold a secret: "user:password@", or a signature in a query.
 * Messages then must not have it.  DDP_EINVAL. */
int ddp__address_check(const char *address);

/* A copy of the first n bytes without slashes that mean nothing, which the
 * caller frees; NULL and a message. */
char *ddp__address_clean(const char *address, size_t n);

/* The server that has an address, listed, until ddp__server_leave(); NULL and a
 * message. */
struct ddp__server *ddp__server_use(const char *address);
void ddp__server_leave(struct ddp__server *s);

/* Whether one that has it is open. */
bool ddp__server_is_open(const char *address);

/* One of its own, without a list of its files. */
struct ddp__server *ddp__server_new(const char *address);
void ddp__server_free(struct ddp__server *s);

#endif
