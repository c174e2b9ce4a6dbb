/* tar_scan.c - the files in a tar file, one after the other
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   POSIX.1-2017, pax: ustar and pax headers; GNU tar's manual, "Basic
 *          Tar Format": long names ('L'), sizes in base 256.
 *
 * Only headers are looked at, but from a server pieces are fetched whole: a
 * request for each header would take longer.
 */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/tar_scan.h"

enum { BLOCK = 512, MOST_TEXT = 64 << 10 };
enum { NEAR_PIECE = 4 << 10, FAR_PIECE = 8 << 20 };

/* Where the fields of a header are. */
enum { NAME = 0, SIZE = 124, SUM = 148, TYPE = 156, MAGIC = 257, PREFIX = 345 };

struct ddp__tar_scan {
    struct ddp__storage *in;
    const char *file;
    int64_t size;
    struct ddp__bytes piece; /* of the file, from `from` on */
    int64_t from;
    char name[PATH_MAX];
    /* What the next file has from headers before its own: */
    char long_name[PATH_MAX];
    int64_t long_size; /* or -1 */
};

static int fail_tar(const struct ddp__tar_scan *t, int64_t at, const char *what)
{
    char name[PATH_MAX];

    ddp__storage_name(t->in, t->file, name, sizeof(name));
    return ddp__fail(DDP_EDATA, "%s: byte %lld: %s", name, (long long)at, what);
}

/* The last message, about the file. */
static int fail_named(const struct ddp__tar_scan *t, int rc)
{
    char name[PATH_MAX];

    ddp__storage_name(t->in, t->file, name, sizeof(name));
    return ddp__fail(rc, "%s: %s", name, ddp_errmsg());
}

/* n bytes of the file from byte `at`; NULL after a failure. */
static const uint8_t *view(struct ddp__tar_scan *t, int64_t at, int64_t n)
{
    int64_t piece = t->in->ops->ahead ? FAR_PIECE : NEAR_PIECE;
    int rc;

    if (n > t->size - at) {
        fail_tar(t, at, "the tar file ends too early");
        return NULL;
    }
    if (at < t->from || n > t->from + (int64_t)t->piece.len - at) {
        piece = piece < n ? n : piece < t->size - at ? piece : t->size - at;
        rc =
            t->in->ops->read_part(t->in, t->file, at, (size_t)piece, &t->piece);
        t->from = at;
        if (rc < 0) {
            t->piece.len = 0;
            fail_named(t, rc);
            return NULL;
        }
    }
    return t->piece.data + (at - t->from);
}

/* ---- headers ------------------------------------------------------------ */

/* Bytes count as unsigned, or, in old files, as signed. */
static bool is_header(const uint8_t *h)
{
    long sum = 0, old = 0, said = strtol((const char *)h + SUM, NULL, 8);

    for (int i = 0; i < BLOCK; i++) {
        uint8_t byte = i >= SUM && i < SUM + 8 ? ' ' : h[i];

        sum += byte;
        old += (int8_t)byte;
    }
    return said == sum || said == old;
}

static bool is_zero(const uint8_t *h)
{
    for (int i = 0; i < BLOCK; i++)
        if (h[i])
            return false;
    return true;
}

/* Octal digits, or base 256 with the highest bit set; -1: neither. */
static int64_t read_size(const uint8_t *h)
{
    const uint8_t *x = h + SIZE;
    int64_t size = 0;

    for (int i = 0; i < 12; i++) {
        if (x[0] & 0x80) {
            if (size >> 40)
                return -1;
            size = size << 8 | (i ? x[i] : x[i] & 0x7f);
        } else if (x[i] >= '0' && x[i] <= '7') {
            size = size << 3 | (x[i] - '0');
        } else if (x[i] && x[i] != ' ') {
            return -1;
        }
    }
    return size;
}

static void read_name(const uint8_t *h, char *name, size_t size)
{
    bool ustar = !memcmp(h + MAGIC, "ustar", 6);

    if (ustar && h[PREFIX])
        snprintf(name, size, "%.155s/%.100s", (const char *)h + PREFIX,
                 (const char *)h + NAME);
    else
        snprintf(name, size, "%.100s", (const char *)h + NAME);
}

/* ---- headers of the next file ------------------------------------------- */

/* Records "LENGTH KEY=VALUE\n". */
static int read_pax(struct ddp__tar_scan *t, int64_t at, const char *text,
                    size_t len)
{
    while (len) {
        char *key;
        size_t n = strtoul(text, &key, 10), head = (size_t)(key - text);

        if (head == 0 || *key != ' ' || n < head + 2 || n > len ||
            text[n - 1] != '\n')
            return fail_tar(t, at, "a damaged pax header");
        key++;
        if (!strncmp(key, "path=", 5))
            snprintf(t->long_name, sizeof(t->long_name), "%.*s",
                     (int)(text + n - 1 - (key + 5)), key + 5);
        if (!strncmp(key, "size=", 5))
            t->long_size = strtoll(key + 5, NULL, 10);
        text += n;
        len -= n;
    }
    return 0;
}

/* A file's header before its own: a long name, or pax records. */
static int read_extension(struct ddp__tar_scan *t, char type, int64_t at,
                          int64_t len)
{
    char *text;
    const uint8_t *x;
    int rc = 0;

    if (len < 1 || len > MOST_TEXT)
        return fail_tar(t, at, "a header of more than 64 KiB, or of none");
    if (!(x = view(t, at, len)))
        return ddp_errcode();
    if (!(text = strndup((const char *)x, (size_t)len)))
        return ddp__fail(DDP_ENOMEM, "out of memory for a tar header");
    if (type == 'x')
        rc = read_pax(t, at, text, strlen(text));
    else
        snprintf(t->long_name, sizeof(t->long_name), "%s", text);
    free(text);
    return rc;
}

static int visit_file(struct ddp__tar_scan *t, int64_t at, int64_t len,
                      ddp__tar_entry_f fn, void *arg)
{
    struct ddp__tar_entry e = {t->name, at, len};

    if (t->long_name[0])
        snprintf(t->name, sizeof(t->name), "%s", t->long_name);
    t->long_name[0] = 0;
    t->long_size = -1;
    return fn(t, &e, arg);
}

/* Links and the like have no bytes, even if their size is not 0. */
static bool has_bytes(char type)
{
    return !type || !strchr("123456", type);
}

/* One header and what belongs to it; *at moves behind both. */
static int visit_header(struct ddp__tar_scan *t, int64_t *at,
                        ddp__tar_entry_f fn, void *arg)
{
    const uint8_t *h = view(t, *at, BLOCK);
    int64_t len, begin = *at + BLOCK;
    char type;
    int rc = 0;

    if (!h)
        return ddp_errcode();
    if (is_zero(h)) {
        *at = t->size;
        return 0;
    }
    if (!is_header(h))
        return fail_tar(t, *at, "no header of a tar file");
    type = (char)h[TYPE];
    read_name(h, t->name, sizeof(t->name));
    len = read_size(h);
    if (t->long_size >= 0 && !strchr("xgLK", type))
        len = t->long_size;
    if (!has_bytes(type))
        len = 0;
    if (len < 0 || len > t->size - begin)
        return fail_tar(t, *at, "the tar file ends too early");
    if (type == 'x' || type == 'L')
        rc = read_extension(t, type, begin, len);
    else if (type == '0' || type == '7' || !type)
        rc = visit_file(t, begin, len, fn, arg);
    *at = begin + (len + BLOCK - 1) / BLOCK * BLOCK;
    return rc;
}

/* ---- the file ----------------------------------------------------------- */

int ddp__tar_scan(struct ddp__storage *in, const char *file,
                  ddp__tar_entry_f fn, void *arg)
{
    struct ddp__tar_scan t = {.in = in, .file = file, .long_size = -1};
    int64_t at = 0;
    int rc = 0;

    if ((t.size = in->ops->size(in, file)) < 0)
        return fail_named(&t, (int)t.size);
    while (rc == 0 && at < t.size)
        rc = visit_header(&t, &at, fn, arg);
    free(t.piece.data);
    return rc;
}

const uint8_t *ddp__tar_scan_bytes(struct ddp__tar_scan *t,
                                   const struct ddp__tar_entry *e)
{
    return view(t, e->at, e->len);
}
