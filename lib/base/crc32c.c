/* crc32c.c - CRC-32C, eight bytes at a time
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   RFC 3720 section 12.1 (the polynomial and its bit order);
 *          Kounavis and Berry, "A systematic approach to building high
 *          performance software-based CRC generators", ISCC 2005 (slicing).
 */
#include "config.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/crc32c.h"

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41 with its bits reversed */

/* table[k][b]: the CRC of byte b followed by k zero bytes. */
static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t c = b;

        for (int bit = 0; bit < 8; bit++)
            c = c >> 1 ^ (c & 1 ? POLYNOMIAL : 0);
        table[0][b] = c;
    }
    for (int k = 1; k < 8; k++)
        for (int b = 0; b < 256; b++)
            table[k][b] =
                table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 0xff];
}

/* The CRC of a word that holds the first of eight bytes in its lowest bits. */
static uint32_t slice(uint64_t v)
{
    return table[7][v & 0xff] ^ table[6][v >> 8 & 0xff] ^
           table[5][v >> 16 & 0xff] ^ table[4][v >> 24 & 0xff] ^
           table[3][v >> 32 & 0xff] ^ table[2][v >> 40 & 0xff] ^
           table[1][v >> 48 & 0xff] ^ table[0][v >> 56];
}

uint32_t ddp__crc32c_tables(uint32_t crc, const void *p, size_t n)
{
    const unsigned char *s = p;

    pthread_once(&once, make_tables);
    crc = ~crc;
    for (; n >= 8; n -= 8, s += 8) {
        uint64_t v = 0;

        for (int i = 7; i >= 0; i--) /* one load on little-endian machines */
            v = v << 8 | s[i];
        crc = slice(v ^ crc);
    }
    for (; n > 0; n--, s++)
        crc = crc >> 8 ^ table[0][(crc ^ *s) & 0xff];
    return ~crc;
}

#ifdef __x86_64__
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t
by_instruction(uint32_t crc, const void *p, size_t n)
{
    const unsigned char *s = p;
    uint64_t c = ~crc, v;

    for (; n >= 8; n -= 8, s += 8) {
        memcpy(&v, s, 8);
        c = _mm_crc32_u64(c, v);
    }
    for (; n > 0; n--, s++)
        c = _mm_crc32_u8((uint32_t)c, *s);
    return ~(uint32_t)c;
}

static bool has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}
#else
#define by_instruction ddp__crc32c_tables
#define has_instruction() false
#endif

uint32_t ddp__crc32c(uint32_t crc, const void *p, size_t n)
{
    return has_instruction() ? by_instruction(crc, p, n)
                             : ddp__crc32c_tables(crc, p, n);
}
