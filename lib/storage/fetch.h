/* fetch.h - files on their way from servers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A bounded number of threads waits for servers, so that workers do not: what
 * is announced is in memory by the time that it is read.
 */
#ifndef DDP_FETCH_H
#define DDP_FETCH_H

#include "storage/server.h"

/* Begin to fetch a file that will be read soon, unless it is on its way or too
 * many are. */
void ddp__fetch_ahead(const struct ddp__object *o);

/* The file, when it is there. */
int ddp__fetch(const struct ddp__object *o, struct ddp__bytes *b);

/* Drop a server's files that nobody has read, before it goes away. */
void ddp__fetch_forget(const struct ddp__server *s);

#endif
