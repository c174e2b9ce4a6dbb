/* png_write.c - a picture as the bytes of a PNG file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   W3C, PNG specification, third edition; RFC 1950 and 1951 for the
 *          stream of its pixels, in which each row is a block that is stored.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "image/png_write.h"

enum { GRAY = 0, RGB = 2 };            /* types of colour */
enum { CHUNK = 12, HEADER = 13 };      /* bytes around a chunk's; of IHDR */
enum { STREAM = 6, BLOCK = 5 };        /* bytes around rows; before one */
enum { NO_FILTER = 0, ADLER = 65521 }; /* of a row; of the checksum */

static const unsigned char signature[] = {0x89, 'P',  'N',  'G',
                                          '\r', '\n', 0x1a, '\n'};

/* Each returns where the next byte goes. */
static unsigned char *put_big(unsigned char *out, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        out[i] = (unsigned char)(v >> (24 - 8 * i));
    return out + 4;
}

static unsigned char *put_little(unsigned char *out, unsigned v)
{
    out[0] = (unsigned char)v;
    out[1] = (unsigned char)(v >> 8);
    return out + 2;
}

/* Begin a chunk of len bytes; end it, of which `begin` is the name. */
static unsigned char *begin_chunk(unsigned char *out, const char *name,
                                  size_t len)
{
    out = put_big(out, (uint32_t)len);
    memcpy(out, name, 4);
    return out + 4;
}

static unsigned char *end_chunk(unsigned char *out, const unsigned char *data,
                                size_t len)
{
    return put_big(out, ddp__crc32(0, data - 4, len + 4));
}

static unsigned char *put_header(unsigned char *out, struct ddp_shape s)
{
    unsigned char *data = begin_chunk(out, "IHDR", HEADER);

    out = put_big(data, (uint32_t)s.w);
    out = put_big(out, (uint32_t)s.h);
    *out++ = 8; /* bits of a channel */
    *out++ = s.c == 1 ? GRAY : RGB;
    memset(out, 0, 3);
    return end_chunk(out + 3, data, HEADER);
}

/* RFC 1950: a sum, and a sum of sums. */
static void add_adler(uint32_t sum[2], const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sum[0] = (sum[0] + p[i]) % ADLER;
        sum[1] = (sum[1] + sum[0]) % ADLER;
    }
}

static unsigned char *put_pixels(unsigned char *out, struct ddp_shape s,
                                 const uint8_t *pixels, size_t len)
{
    unsigned char *data = begin_chunk(out, "IDAT", len);
    size_t row = (size_t)s.w * (size_t)s.c;
    uint32_t sum[2] = {1, 0};

    out = put_little(data, 0x0178); /* no compression */
    for (int y = 0; y < s.h; y++) {
        unsigned n = (unsigned)row + 1;

        *out++ = y == s.h - 1; /* the last block */
        out = put_little(put_little(out, n), ~n);
        *out = NO_FILTER;
        memcpy(out + 1, pixels + (size_t)y * row, row);
        add_adler(sum, out, n);
        out += n;
    }
    return end_chunk(put_big(out, sum[1] << 16 | sum[0]), data, len);
}

unsigned char *ddp__png_write(struct ddp_shape s, const uint8_t *pixels,
                              size_t *len)
{
    size_t row = (size_t)s.w * (size_t)s.c + 1;
    size_t stream = STREAM + (size_t)s.h * (BLOCK + row);
    unsigned char *file, *out;

    *len = sizeof(signature) + CHUNK + HEADER + CHUNK + stream + CHUNK;
    if (!(file = malloc(*len)))
        return NULL;
    memcpy(file, signature, sizeof(signature));
    out = put_header(file + sizeof(signature), s);
    out = put_pixels(out, s, pixels, stream);
    out = begin_chunk(out, "IEND", 0);
    end_chunk(out, out, 0);
    return file;
}
