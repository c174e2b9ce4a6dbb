/* test_printable.c - text that terminals would obey
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "ddp.h"
#include "tap.h"

static void becomes(const char *from, const char *to, const char *what)
{
    char text[128];

    snprintf(text, sizeof(text), "%s", from);
    ddp_printable(text);
    is_str(text, to, "%s", what);
}

int main(void)
{
    becomes("n01440764 tench_10026.JPEG", "n01440764 tench_10026.JPEG",
            "ASCII remains");
    becomes("K\xc3\xa4se \xe7\x8c\xab \xf0\x9f\x90\x88",
            "K\xc3\xa4se \xe7\x8c\xab \xf0\x9f\x90\x88",
            "so do letters of other languages");
    becomes("\x1b[2J\x1b]0;title\a", "?[2J?]0;title?", "escape sequences");
    becomes("a\r\n\tb\x7f", "a???b?", "control characters");
    becomes("a\x9b"
            "31mb",
            "a?31mb", "a C1 character as a byte");
    becomes("a\xc2\x9b"
            "31mb",
            "a?31mb", "and as UTF-8");
    becomes("\xe2\x80\xae"
            "gpj.exe",
            "?gpj.exe", "a right-to-left override");
    becomes("\xe2\x81\xa6x\xe2\x81\xa9 \xd8\x9cy\xe2\x80\x8f", "?x? ?y?",
            "isolates and marks");
    becomes("a\xe2\x80\xa8"
            "b",
            "a?b", "a line separator");
    becomes("a\xff\xfe\xc3", "a???", "what is not UTF-8, also at the end");
    becomes("\xc0\x9b"
            "b",
            "??b", "an overlong form");
    becomes("\xe0\x82\x9b", "???", "an overlong C1 character");
    becomes("\xed\xa0\x80", "???", "a surrogate");
    becomes("\xf4\x90\x80\x80", "????", "past the last character");
    becomes("", "", "nothing");

    ddp__fail(DDP_EDATA, "%s: %s", "a\x1b[31m.jpg",
              "\xe2\x80\xae"
              "no JPEG");
    is_str(ddp_errmsg(), "a?[31m.jpg: ?no JPEG",
           "every message of the library is cleaned");
    return done_testing();
}
