/* safetensors_header.h - the header of a safetensors file, read and checked
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SAFETENSORS_HEADER_H
#define DDP_SAFETENSORS_HEADER_H

#include "weights/safetensors.h"

enum { DDP__ST_HEADER_MAX = 25000000 };

/* Take the tensors and the words of an open file. */
int ddp__st_read_header(struct ddp__st_file *f);

/* Parse untrusted text as JSON. */
struct json_t;
int ddp__st_parse(const struct ddp__st_file *f, const char *text, size_t n,
                  struct json_t **root);

#endif
