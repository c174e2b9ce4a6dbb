/* proto.c - messages of Protocol Buffers, written field by field
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * https://protobuf.dev/programming-guides/encoding has the format.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/proto.h"

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };

static void put(struct ddp__proto *p, const void *data, size_t len)
{
    if (p->len + len > p->room) {
        size_t room = 2 * (p->len + len);
        void *more = realloc(p->data, room);

        if (!more) {
            p->lacks_memory = true;
            return;
        }
        p->data = more;
        p->room = room;
    }
    if (len)
        memcpy(p->data + p->len, data, len);
    p->len += len;
}

static void put_varint(struct ddp__proto *p, uint64_t v)
{
    unsigned char byte[10];
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        byte[n++] = (unsigned char)(v | 0x80);
    byte[n++] = (unsigned char)v;
    put(p, byte, n);
}

static void put_key(struct ddp__proto *p, int field, int type)
{
    put_varint(p, (uint64_t)field << 3 | (uint64_t)type);
}

/* Little-endian on any machine. */
static void put_fixed(struct ddp__proto *p, uint64_t v, size_t n)
{
    unsigned char byte[8];

    for (size_t i = 0; i < n; i++)
        byte[i] = (unsigned char)(v >> 8 * i);
    put(p, byte, n);
}

void ddp__proto_int(struct ddp__proto *p, int field, uint64_t v)
{
    put_key(p, field, VARINT);
    put_varint(p, v);
}

void ddp__proto_float(struct ddp__proto *p, int field, float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof(bits));
    put_key(p, field, FIXED32);
    put_fixed(p, bits, sizeof(bits));
}

void ddp__proto_double(struct ddp__proto *p, int field, double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    put_key(p, field, FIXED64);
    put_fixed(p, bits, sizeof(bits));
}

void ddp__proto_bytes(struct ddp__proto *p, int field, const void *data,
                      size_t len)
{
    put_key(p, field, LENGTH);
    put_varint(p, len);
    put(p, data, len);
}

void ddp__proto_text(struct ddp__proto *p, int field, const char *text)
{
    ddp__proto_bytes(p, field, text, strlen(text));
}

void ddp__proto_message(struct ddp__proto *p, int field,
                        struct ddp__proto *inner)
{
    p->lacks_memory |= inner->lacks_memory;
    ddp__proto_bytes(p, field, inner->data, inner->len);
    ddp__proto_clear(inner);
}

void ddp__proto_clear(struct ddp__proto *p)
{
    p->len = 0;
    p->lacks_memory = false;
}

void ddp__proto_free(struct ddp__proto *p)
{
    free(p->data);
    *p = (struct ddp__proto){0};
}
