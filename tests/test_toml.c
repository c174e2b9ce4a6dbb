/* test_toml.c - TOML: what is read, and what is refused
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   the specification of TOML 1.0.0, and Python's tomllib, which accepts
 *          and refuses the same texts.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/toml.h"
#include "ddp.h"
#include "tap.h"

/* Text, and its value as JSON. */
static const char *const good[][2] = {
    {"", "{}"},
    {"# c\r\na = 1 # d\n\n", "{\"a\":1}"},
    {"a = 'x\\n'\nb = \"\\u00e9\\t\\\"\"",
     "{\"a\":\"x\\\\n\",\"b\":\"é\\t\\\"\"}"},
    {"a = \"\"\"\nx\\\n  y\"\"\"\"\"", "{\"a\":\"xy\\\"\\\"\"}"},
    {"a = '''\nx'y'''", "{\"a\":\"x'y\"}"},
    {"a = \"\"\nb = ''", "{\"a\":\"\",\"b\":\"\"}"},
    {"a = [0xff, 0o17, 0b1_0, 1_000, -17, +3]",
     "{\"a\":[255,15,2,1000,-17,3]}"},
    {"a = [1.5, -0.0, 2e3, inf, nan]", "{\"a\":[1.5,-0.0,2000.0,null,null]}"},
    {"a = [1979-05-27T07:32:00Z, 07:32:00.25, 1979-05-27]",
     "{\"a\":[null,null,null]}"},
    {"a = [ # c\n true,\n false, # d\n]", "{\"a\":[true,false]}"},
    {"a.'b c'.\"d\" = 1\na.e = 2", "{\"a\":{\"b c\":{\"d\":1},\"e\":2}}"},
    {"a = {b = 1, c.d = {}}", "{\"a\":{\"b\":1,\"c\":{\"d\":{}}}}"},
    {"[a.b]\nc = 1\n[a]\nd = 2", "{\"a\":{\"b\":{\"c\":1},\"d\":2}}"},
    {"[[a]]\nb = 1\n[a.c]\nd = 2\n[[a]]\n[[a.e]]",
     "{\"a\":[{\"b\":1,\"c\":{\"d\":2}},{\"e\":[{}]}]}"},
    {"[a]\nb.c = 1\n[a.b.d]", "{\"a\":{\"b\":{\"c\":1,\"d\":{}}}}"},
};

/* Text, and a part of the message. */
static const char *const bad[][2] = {
    {"a", "t:1: expected ="},
    {"a = ", "t:1: expected a value"},
    {"\na = 1 b = 2", "t:2: expected the end of the line"},
    {"a = 1\na = 2", "t:2: this key has a value already"},
    {"a = 1\na.b = 2", "this key has a value already"},
    {"a = {b = 1}\na.c = 2", "this key has a value already"},
    {"a.b = 1\n[a]", "this table has a value already"},
    {"[a]\n[a]", "t:2: this table has a value already"},
    {"[a.b]\n[a]\nb.c = 1", "this key has a value already"},
    {"a = []\n[[a]]", "this table has a value already"},
    {"[[a]]\n[a]", "this table has a value already"},
    {"[a]\n[[a]]", "this table has a value already"},
    {"a = {b = 1,}", "expected a key"},
    {"a = {b = 1\n}", "expected a comma or } in a table"},
    {"a = [1 2]", "expected a comma or ] in an array"},
    {"a = [1", "expected a comma or ]"},
    {"a = \"x\n\"", "a string does not end"},
    {"a = \"\\x\"", "unknown escape"},
    {"a = \"\\ud800\"", "this is no character"},
    {"a = '\x01'", "control characters must be escaped"},
    {"a = \"\r\"", "control characters must be escaped"},
    {"a = \"\xff\"", "not UTF-8"},
    {"\xef\xbb\xbf"
     "a = 1",
     "expected a key"},
    {"a = 01", "expected a value"},
    {"a = 1__0", "expected a value"},
    {"a = 0x_1", "expected a value"},
    {"a = 0b2", "expected a value"},
    {"a = 1.", "expected a value"},
    {"a = .5", "expected a value"},
    {"a = 9223372036854775808", "expected a value"},
    {"a = tru", "expected a value"},
    {"= 1", "expected a key"},
    {"[a", "expected ] at the end of a table's name"},
    {"[a.]", "expected a key"},
};

static void test_good(const char *text, const char *want)
{
    json_t *value = ddp__toml_read("t", text, strlen(text));
    char *got = value ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    ok(got && !strcmp(got, want), "%s: %s", want, got ? got : ddp_errmsg());
    free(got);
    json_decref(value);
}

static void test_bad(const char *text, const char *message)
{
    json_t *value = ddp__toml_read("t", text, strlen(text));

    ok(!value && strstr(ddp_errmsg(), message), "refused: %s",
       value ? text : ddp_errmsg());
    json_decref(value);
}

static void test_depth(void)
{
    char text[4096] = "a = ";

    memset(text + 4, '[', 100);
    text[104] = 0;
    test_bad(text, "nested too deep");
}

int main(void)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        test_good(good[i][0], good[i][1]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        test_bad(bad[i][0], bad[i][1]);
    test_depth();
    return done_testing();
}
