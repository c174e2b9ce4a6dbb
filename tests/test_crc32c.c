/* test_crc32c.c - CRC-32C against published values, both ways of computing it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/crc32c.h"
#include "tap.h"

/* Bit by bit, from the definition. */
static uint32_t slow(uint32_t crc, const unsigned char *p, size_t n)
{
    crc = ~crc;
    for (size_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ ((crc ^ p[i] >> bit) & 1 ? 0x82f63b78u : 0);
    return ~crc;
}

static void check(const char *what, const void *p, size_t n, uint32_t want)
{
    is_int(ddp__crc32c(0, p, n), want, "%s", what);
    is_int(ddp__crc32c_tables(0, p, n), want, "%s, by tables", what);
}

/* RFC 3720, appendix B.4 (it writes the bytes of the CRC first to last). */
static void test_rfc3720(void)
{
    static const unsigned char read10[48] = {
        0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
        0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
    unsigned char up[32], down[32], ones[32], zeros[32] = {0};

    for (int i = 0; i < 32; i++) {
        up[i] = (unsigned char)i;
        down[i] = (unsigned char)(31 - i);
        ones[i] = 0xff;
    }
    check("32 bytes of 0", zeros, 32, 0x8a9136aa);
    check("32 bytes of 0xff", ones, 32, 0x62a8ab43);
    check("0 to 31", up, 32, 0x46dd794e);
    check("31 to 0", down, 32, 0x113fdb5c);
    check("an iSCSI read command", read10, 48, 0xd9963a56);
}

/* All lengths and alignments, whole and in two parts. */
static void test_parts(void)
{
    unsigned char buf[96];
    int bad = 0, bad_parts = 0;

    for (unsigned i = 0; i < sizeof(buf); i++)
        buf[i] = (unsigned char)(i * 167 + 13);
    for (size_t at = 0; at < 8; at++)
        for (size_t n = 0; at + n <= sizeof(buf); n++) {
            uint32_t want = slow(0, buf + at, n);

            bad += ddp__crc32c(0, buf + at, n) != want;
            bad += ddp__crc32c_tables(0, buf + at, n) != want;
            for (size_t k = 0; k <= n; k++) {
                uint32_t a = ddp__crc32c(0, buf + at, k);
                uint32_t b = ddp__crc32c_tables(0, buf + at, k);

                bad_parts += ddp__crc32c(a, buf + at + k, n - k) != want;
                bad_parts += ddp__crc32c_tables(b, buf + at + k, n - k) != want;
            }
        }
    is_int(bad, 0, "every length at every alignment");
    is_int(bad_parts, 0, "in two parts it comes to the same");
}

int main(void)
{
    check("\"123456789\"", "123456789", 9, 0xe3069283);
    check("nothing", "", 0, 0);
    test_rfc3720();
    test_parts();
    return done_testing();
}
