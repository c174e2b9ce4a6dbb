/* web.h - files of a web server
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_WEB_H
#define DDP_WEB_H

#include "storage/server.h"

/* For http://host/folder; NULL and a message.  Nothing is asked. */
struct ddp__server *ddp__web_new(const char *root);

/* Add the files that a list names.  The text is changed. */
int ddp__web_index(struct ddp__tree *t, char *text, size_t len);

#endif
