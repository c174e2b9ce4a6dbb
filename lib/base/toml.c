/* toml.c - TOML 1.0 as the values of jansson
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/printable.h"
#include "base/toml.h"
#include "base/toml_scalar.h"

enum { DEPTH_MAX = 64, KEY_MAX = 256 };

/* How a table or array came to be, which decides who may add to it. */
enum origin { HEADER = 1, DOTTED, CLOSED };

struct toml {
    const char *path, *at;
    int line, depth, rc;
    json_t *root, *table; /* the one of the last header */
    struct note {
        const json_t *value;
        enum origin origin;
    } * note; /* owned */
    size_t notes, room;
};

static int fail(struct toml *t, const char *what)
{
    if (t->rc == 0)
        t->rc = ddp__fail(DDP_EDATA, "%s:%d: %s", t->path, t->line, what);
    return t->rc;
}

static int fail_memory(struct toml *t)
{
    if (t->rc == 0)
        t->rc = ddp__fail(DDP_ENOMEM, "%s: out of memory", t->path);
    return t->rc;
}

/* ---- origins ------------------------------------------------------------ */

static enum origin origin_of(const struct toml *t, const json_t *value)
{
    for (size_t i = 0; i < t->notes; i++)
        if (t->note[i].value == value)
            return t->note[i].origin;
    return 0;
}

static int set_origin(struct toml *t, const json_t *value, enum origin origin)
{
    if (t->notes == t->room) {
        size_t room = t->room ? 2 * t->room : 32;
        void *more = realloc(t->note, room * sizeof(*t->note));

        if (!more)
            return fail_memory(t);
        t->note = more;
        t->room = room;
    }
    t->note[t->notes++] = (struct note){value, origin};
    return 0;
}

/* ---- space -------------------------------------------------------------- */

static void skip_blanks(struct toml *t)
{
    t->at += strspn(t->at, " \t");
}

static bool take(struct toml *t, const char *text)
{
    size_t n = strlen(text);

    if (strncmp(t->at, text, n) != 0)
        return false;
    t->at += n;
    return true;
}

/* The end of a line, with a comment before it; false: there is something. */
static bool take_end(struct toml *t)
{
    skip_blanks(t);
    if (*t->at == '#')
        t->at += strcspn(t->at, "\r\n");
    if (!*t->at)
        return true;
    if (!take(t, "\n") && !take(t, "\r\n"))
        return false;
    t->line++;
    return true;
}

static void skip_lines(struct toml *t)
{
    const char *before;

    do {
        before = t->at;
        take_end(t);
    } while (t->at != before);
}

/* ---- strings ------------------------------------------------------------ */

/* Text that grows; freed by the caller. */
struct text {
    char *data;
    size_t len, room;
};

static int put(struct toml *t, struct text *s, const char *from, size_t n)
{
    if (s->len + n >= s->room) {
        size_t room = 2 * (s->len + n) + 32;
        char *more = realloc(s->data, room);

        if (!more)
            return fail_memory(t);
        s->data = more;
        s->room = room;
    }
    memcpy(s->data + s->len, from, n);
    s->len += n;
    s->data[s->len] = 0;
    return 0;
}

static int put_point(struct toml *t, struct text *s, unsigned long c)
{
    char out[4];

    if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return fail(t, "this is no character");
    if (c < 0x80)
        return out[0] = (char)c, put(t, s, out, 1);
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 63));
        return put(t, s, out, 2);
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 63));
        out[2] = (char)(0x80 | (c & 63));
        return put(t, s, out, 3);
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 63));
    out[2] = (char)(0x80 | (c >> 6 & 63));
    out[3] = (char)(0x80 | (c & 63));
    return put(t, s, out, 4);
}

/* Behind a backslash. */
static int read_escape(struct toml *t, struct text *s)
{
    static const char names[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
    const char *name = *t->at ? strchr(names, *t->at) : NULL;
    int digits = *t->at == 'u' ? 4 : *t->at == 'U' ? 8 : 0;
    char hex[9] = "";

    if (name) {
        t->at++;
        return put(t, s, &values[name - names], 1);
    }
    if (!digits)
        return fail(t, "unknown escape in a string");
    t->at++;
    for (int i = 0; i < digits; i++)
        if (!isxdigit((unsigned char)(hex[i] = *t->at++)))
            return fail(t, "\\u has four hexadecimal digits, \\U eight");
    return put_point(t, s, strtoul(hex, NULL, 16));
}

/* A backslash at the end of a line removes it and the blanks that follow. */
static bool take_continuation(struct toml *t)
{
    const char *p = t->at + strspn(t->at, " \t");

    if (*p != '\n' && strncmp(p, "\r\n", 2) != 0)
        return false;
    for (; *p && strchr(" \t\r\n", *p); p++)
        t->line += *p == '\n';
    t->at = p;
    return true;
}

/* Up to the closing quote(s).  Of more than three, the first are the text's. */
static int read_quoted(struct toml *t, struct text *s, char quote, bool many)
{
    const char end[] = {quote, many ? quote : 0, many ? quote : 0, 0};
    int rc = put(t, s, "", 0);

    while (rc == 0) {
        if (!strncmp(t->at, end, strlen(end)) &&
            !(many && t->at[3] == quote && strspn(t->at, end) <= 5))
            break;
        if (!*t->at || (*t->at == '\n' && !many) || (*t->at == '\r' && !many))
            return fail(t, "a string does not end");
        if (quote == '"' && *t->at == '\\') {
            t->at++;
            rc = many && take_continuation(t) ? 0 : read_escape(t, s);
            continue;
        }
        t->line += *t->at == '\n';
        rc = put(t, s, t->at++, 1);
    }
    t->at += strlen(end);
    return rc;
}

static int read_string(struct toml *t, struct text *s)
{
    char quote = *t->at;
    bool many = t->at[1] == quote && t->at[2] == quote;

    t->at += many ? 3 : 1;
    if (many && (take(t, "\n") || take(t, "\r\n")))
        t->line++;
    return read_quoted(t, s, quote, many);
}

/* ---- keys --------------------------------------------------------------- */

static int read_key(struct toml *t, char key[KEY_MAX])
{
    struct text s = {0};
    size_t n;

    skip_blanks(t);
    if (*t->at == '"' || *t->at == '\'') {
        char quote = *t->at++;

        if (read_quoted(t, &s, quote, false) == 0 && s.len < KEY_MAX &&
            strlen(s.data) == s.len)
            memcpy(key, s.data, s.len + 1);
        else
            fail(t, "a key is too long");
        free(s.data);
        return t->rc;
    }
    n = strspn(t->at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                      "abcdefghijklmnopqrstuvwxyz0123456789_-");
    if (n == 0 || n >= KEY_MAX)
        return fail(t, n ? "a key is too long" : "expected a key");
    memcpy(key, t->at, n);
    key[n] = 0;
    t->at += n;
    return 0;
}

/* Whether a dot and another key follow. */
static bool take_dot(struct toml *t)
{
    skip_blanks(t);
    if (!take(t, "."))
        return false;
    skip_blanks(t);
    return true;
}

static json_t *add_table(struct toml *t, json_t *in, const char *key,
                         enum origin origin)
{
    json_t *made = json_object();

    if (!made || json_object_set_new(in, key, made) < 0) {
        fail_memory(t);
        return NULL;
    }
    if (origin && set_origin(t, made, origin) < 0)
        return NULL;
    return made;
}

/* ---- values ------------------------------------------------------------- */

static json_t *read_scalar(struct toml *t)
{
    json_t *value = ddp__toml_scalar(&t->at);

    if (!value)
        fail(t, "expected a value: text in quotes, a number, true, false, a "
                "date, [...] or {...}");
    return value;
}

static json_t *read_value(struct toml *t);
static int read_pair(struct toml *t, json_t *table);

static json_t *read_array(struct toml *t)
{
    json_t *array = json_array(), *value;

    t->at++;
    for (skip_lines(t); array && !take(t, "]"); skip_lines(t)) {
        if (!(value = read_value(t)))
            break;
        if (json_array_append_new(array, value) < 0)
            fail_memory(t);
        skip_lines(t);
        if (!take(t, ",") && *t->at != ']')
            fail(t, "expected a comma or ] in an array");
        if (t->rc)
            break;
    }
    return array;
}

/* On one line, without a comma at its end. */
static json_t *read_inline(struct toml *t)
{
    json_t *table = json_object();

    t->at++;
    skip_blanks(t);
    if (!table || take(t, "}"))
        return table;
    while (read_pair(t, table) == 0) {
        skip_blanks(t);
        if (take(t, "}"))
            break;
        if (!take(t, ","))
            fail(t, "expected a comma or } in a table");
    }
    return table;
}

static json_t *read_value(struct toml *t)
{
    struct text s = {0};
    json_t *value = NULL;

    if (++t->depth > DEPTH_MAX) {
        fail(t, "values are nested too deep");
        return NULL;
    }
    if (*t->at == '"' || *t->at == '\'') {
        if (read_string(t, &s) == 0 && !(value = json_stringn(s.data, s.len)))
            fail_memory(t);
        free(s.data);
    } else {
        value = *t->at == '['   ? read_array(t)
                : *t->at == '{' ? read_inline(t)
                                : read_scalar(t);
        if (!value)
            fail_memory(t);
    }
    t->depth--;
    if (t->rc == 0)
        return value;
    json_decref(value);
    return NULL;
}

/* a.b.c = value */
static int read_pair(struct toml *t, json_t *table)
{
    char key[KEY_MAX];
    json_t *value;

    if (read_key(t, key) < 0)
        return t->rc;
    while (take_dot(t)) {
        json_t *next = json_object_get(table, key);

        if (next && (!json_is_object(next) || origin_of(t, next) == HEADER ||
                     origin_of(t, next) == CLOSED))
            return fail(t, "this key has a value already");
        if (!(table = next ? next : add_table(t, table, key, DOTTED)) ||
            read_key(t, key) < 0)
            return t->rc;
    }
    if (!take(t, "="))
        return fail(t, "expected = and a value after a key");
    skip_blanks(t);
    if (json_object_get(table, key))
        return fail(t, "this key has a value already");
    if (!(value = read_value(t)))
        return t->rc;
    if ((json_is_object(value) || json_is_array(value)) &&
        set_origin(t, value, CLOSED) < 0) {
        json_decref(value);
        return t->rc;
    }
    return json_object_set_new(table, key, value) < 0 ? fail_memory(t) : 0;
}

/* ---- headers ------------------------------------------------------------ */

/* The table that a part of a header names: of an array, the last one. */
static json_t *enter(struct toml *t, json_t *in, const char *key)
{
    json_t *next = json_object_get(in, key);

    if (!next)
        return add_table(t, in, key, 0);
    if (json_is_array(next) && origin_of(t, next) != CLOSED)
        next = json_array_get(next, json_array_size(next) - 1);
    if (json_is_object(next) && origin_of(t, next) != CLOSED)
        return next;
    fail(t, "this table has a value already");
    return NULL;
}

/* [[key]]: one more table of an array. */
static json_t *add_element(struct toml *t, json_t *in, const char *key)
{
    json_t *array = json_object_get(in, key), *made;

    if (array && (!json_is_array(array) || origin_of(t, array) == CLOSED)) {
        fail(t, "this table has a value already");
        return NULL;
    }
    if (!array && json_object_set_new(in, key, array = json_array()) < 0) {
        fail_memory(t);
        return NULL;
    }
    made = json_object();
    if (!made || json_array_append_new(array, made) < 0 ||
        set_origin(t, made, HEADER) < 0) {
        fail_memory(t);
        return NULL;
    }
    return made;
}

/* [key]: a table that no header had before. */
static json_t *define_table(struct toml *t, json_t *in, const char *key)
{
    json_t *table = json_object_get(in, key);

    if (!table)
        return add_table(t, in, key, HEADER);
    if (!json_is_object(table) || origin_of(t, table)) {
        fail(t, "this table has a value already");
        return NULL;
    }
    return set_origin(t, table, HEADER) < 0 ? NULL : table;
}

static int read_header(struct toml *t)
{
    bool element = take(t, "[[");
    json_t *in = t->root;
    char key[KEY_MAX];

    t->at += !element;
    if (read_key(t, key) < 0)
        return t->rc;
    while (take_dot(t))
        if (!(in = enter(t, in, key)) || read_key(t, key) < 0)
            return t->rc;
    if (!take(t, element ? "]]" : "]"))
        return fail(t, "expected ] at the end of a table's name");
    t->table = element ? add_element(t, in, key) : define_table(t, in, key);
    return t->rc;
}

/* ---- the text ----------------------------------------------------------- */

/* UTF-8 without control characters; a carriage return only ends lines. */
static int check_text(struct toml *t, const char *text, size_t len)
{
    for (const char *p = text; p < text + len; p++) {
        t->line += *p == '\n';
        if (((unsigned char)*p < ' ' && *p != '\t' && *p != '\n' &&
             (*p != '\r' || p[1] != '\n')) ||
            *p == 127)
            return fail(t, "control characters must be escaped");
    }
    t->line = 1;
    return ddp__is_utf8(text) ? 0 : fail(t, "the text is not UTF-8");
}

static int read_lines(struct toml *t)
{
    while (t->rc == 0) {
        skip_lines(t);
        if (!*t->at)
            break;
        if ((*t->at == '[' ? read_header(t) : read_pair(t, t->table)) < 0)
            break;
        if (!take_end(t))
            fail(t, "expected the end of the line");
    }
    return t->rc;
}

json_t *ddp__toml_read(const char *path, const char *text, size_t len)
{
    char *copy = malloc(len + 1);
    struct toml t = {.path = path, .at = copy, .line = 1};

    if (copy) {
        memcpy(copy, text, len);
        copy[len] = 0;
    }
    if (!copy || !(t.root = json_object()))
        fail_memory(&t);
    t.table = t.root;
    if (t.rc == 0 && check_text(&t, copy, len) == 0)
        read_lines(&t);
    free(t.note);
    free(copy);
    if (t.rc == 0)
        return t.root;
    json_decref(t.root);
    return NULL;
}
