/* proto.c - messages of Protocol Buffers, field by field
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * https://protobuf.dev/programming-guides/encoding has the format.
 */
#include "config.h"

#include <limits.h>
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

static bool get_varint(const unsigned char **at, const unsigned char *end,
                       uint64_t *v)
{
    *v = 0;
    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        unsigned char byte = *(*at)++;

        *v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Little-endian on any machine. */
static bool get_fixed(const unsigned char **at, const unsigned char *end,
                      uint64_t *v, int n)
{
    *v = 0;
    if (end - *at < n)
        return false;
    for (int i = 0; i < n; i++)
        *v |= (uint64_t)(*at)[i] << 8 * i;
    *at += n;
    return true;
}

bool ddp__proto_next(const unsigned char **at, const unsigned char *end,
                     struct ddp__proto_field *f)
{
    uint64_t key;

    *f = (struct ddp__proto_field){0};
    if (!get_varint(at, end, &key) || key >> 3 > INT_MAX)
        return false;
    f->number = (int)(key >> 3);
    switch (key & 7) {
    case VARINT:
        return get_varint(at, end, &f->value);
    case FIXED64:
        return get_fixed(at, end, &f->value, 8);
    case FIXED32:
        return get_fixed(at, end, &f->value, 4);
    case LENGTH:
        if (!get_varint(at, end, &f->value) || f->value > (uint64_t)(end - *at))
            return false;
        f->data = *at;
        f->len = (size_t)f->value;
        *at += f->len;
        return true;
    default:
        return false;
    }
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
