/* proto.h - messages of Protocol Buffers, field by field
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PROTO_H
#define DDP_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message, all zeros when it is empty. */
struct ddp__proto {
    unsigned char *data; /* owned */
    size_t len, room;
    bool lacks_memory; /* a field is missing */
};

void ddp__proto_int(struct ddp__proto *p, int field, uint64_t v);
void ddp__proto_float(struct ddp__proto *p, int field, float v);
void ddp__proto_double(struct ddp__proto *p, int field, double v);
void ddp__proto_bytes(struct ddp__proto *p, int field, const void *data,
                      size_t len);
void ddp__proto_text(struct ddp__proto *p, int field, const char *text);

/* A message as a field of another; inner is empty afterwards. */
void ddp__proto_message(struct ddp__proto *p, int field,
                        struct ddp__proto *inner);

/* A field that was read; by its type, a number or bytes of the message. */
struct ddp__proto_field {
    int number;
    uint64_t value;
    const unsigned char *data; /* NULL: it is a number */
    size_t len;
};

/* Read the field at *at of a message up to `end`, and move *at behind it.
 * Returns false at the end, and where there is no whole field. */
bool ddp__proto_next(const unsigned char **at, const unsigned char *end,
                     struct ddp__proto_field *f);

/* Empty it, and keep its memory. */
void ddp__proto_clear(struct ddp__proto *p);
void ddp__proto_free(struct ddp__proto *p);

#endif
