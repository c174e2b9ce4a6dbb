/* json_parse.h - JSON from files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_JSON_PARSE_H
#define DDP_JSON_PARSE_H

#include <jansson.h>

/* Parse n bytes of text, in which no object may have a key twice.  DDP_ENOMEM,
 * or DDP_EDATA: *err says where and why.  Without a message. */
int ddp__json_parse(const void *text, size_t n, json_t **root,
                    json_error_t *err);

#endif
