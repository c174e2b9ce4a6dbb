/* printable.c - text from files that may reach a terminal
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Names of files, classes and tensors come from other people.  Escape sequences
 * in them could rewrite what a terminal shows; so can C1 characters, which
 * terminals that do not use UTF-8 read as single bytes 0x80 to 0x9f, and the
 * marks of Unicode's bidirectional algorithm (UAX #9).
 */
#include "config.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/printable.h"
#include "ddp.h"

/* The character at s and its bytes; 0: s is not UTF-8 (RFC 3629). */
static int read_character(const unsigned char *s, uint32_t *c)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int len = s[0] < 0x80   ? 1
              : s[0] < 0xc2 ? 0
              : s[0] < 0xe0 ? 2
              : s[0] < 0xf0 ? 3
              : s[0] < 0xf5 ? 4
                            : 0;

    *c = len < 2 ? s[0] : s[0] & (0x7fu >> len);
    for (int i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *c = *c << 6 | (s[i] & 0x3f);
    }
    if (len &&
        (*c < least[len] || *c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000)))
        return 0;
    return len;
}

bool ddp__is_utf8(const char *s)
{
    uint32_t c;
    int len = 1;

    for (; *s && len; s += len)
        len = read_character((const unsigned char *)s, &c);
    return len > 0;
}

static bool is_harmless(uint32_t c)
{
    bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
    bool separator = c == 0x2028 || c == 0x2029;
    bool direction = c == 0x061c || c == 0x200e || c == 0x200f ||
                     (c >= 0x202a && c <= 0x202e) ||
                     (c >= 0x2066 && c <= 0x2069);

    return !control && !separator && !direction;
}

void ddp_printable(char *s)
{
    char *out = s;
    uint32_t c;

    while (*s) {
        int len = read_character((const unsigned char *)s, &c);

        if (len && is_harmless(c)) {
            memmove(out, s, (size_t)len);
            out += len;
        } else {
            *out++ = '?';
        }
        s += len ? len : 1;
    }
    *out = '\0';
}
