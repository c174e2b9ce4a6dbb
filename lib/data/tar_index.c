/* tar_index.c - which sample is where in the shards of a data set
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/error.h"
#include "data/tar_index.h"
#include "ddp.h"

enum { SHARD, AT, LEN, LABEL, CRC, NAME, FIELDS };
static const char *const title[FIELDS] = {"shard", "offset", "size",
                                          "label", "crc32c", "name"};

static const int64_t max_len = (int64_t)1 << 30;

void ddp__tar_index_free(struct ddp__tar_index *x)
{
    for (int i = 0; i < x->shards; i++)
        free(x->shard[i].file);
    free(x->shard);
    free(x->member);
    free(x->text);
    *x = (struct ddp__tar_index){0};
}

/* ---- room --------------------------------------------------------------- */

static int fail_memory(const struct ddp__tar_index *x)
{
    return ddp__fail(DDP_ENOMEM, "out of memory for an index of %lld samples",
                     (long long)x->count);
}

static int reserve_member(struct ddp__tar_index *x)
{
    int64_t room = x->room ? 2 * x->room : 256;
    void *p;

    if (x->count < x->room)
        return 0;
    if (!(p = realloc(x->member, (size_t)room * sizeof(*x->member))))
        return fail_memory(x);
    x->member = p;
    x->room = room;
    return 0;
}

static int reserve_name(struct ddp__tar_index *x, size_t n)
{
    size_t room = 2 * (x->len + n) + 4096;
    void *p;

    if (x->text_room - x->len >= n)
        return 0;
    if (!(p = realloc(x->text, room)))
        return fail_memory(x);
    x->text = p;
    x->text_room = room;
    return 0;
}

int ddp__tar_index_add_shard(struct ddp__tar_index *x, const char *file)
{
    struct ddp__shard *s;

    if (x->shards == x->shard_room) {
        int room = x->shard_room ? 2 * x->shard_room : 64;
        void *p = realloc(x->shard, (size_t)room * sizeof(*x->shard));

        if (!p)
            return fail_memory(x);
        x->shard = p;
        x->shard_room = room;
    }
    s = &x->shard[x->shards];
    *s = (struct ddp__shard){.file = strdup(file), .first = x->count};
    if (!s->file)
        return fail_memory(x);
    x->shards++;
    return 0;
}

/* Its name of n bytes will be the next in text. */
static int add_member(struct ddp__tar_index *x, const struct ddp__member *m,
                      size_t n)
{
    int rc = reserve_member(x);
    struct ddp__member *own;

    if (rc < 0)
        return rc;
    own = &x->member[x->count++];
    *own = *m;
    own->shard = x->shards - 1;
    own->name = x->len;
    x->len += n;
    x->shard[own->shard].samples++;
    return 0;
}

int ddp__tar_index_add(struct ddp__tar_index *x, const struct ddp__member *m,
                       const char *name)
{
    size_t n = strlen(name) + 1, at = x->len;
    int rc = reserve_name(x, n);

    if (rc == 0 && (rc = add_member(x, m, n)) == 0)
        memcpy(x->text + at, name, n);
    return rc;
}

/* ---- lines -------------------------------------------------------------- */

static int fail_field(const struct ddp__csv *c, int field, const char *expected)
{
    return ddp__fail(DDP_EDATA, "%s:%ld: %s \"%.60s\", expected %s", c->path,
                     c->line, title[field], c->field[field], expected);
}

/* A number from least to most. */
static int read_number(const struct ddp__csv *c, int field, int64_t least,
                       int64_t most, int64_t *value)
{
    const char *text = c->field[field];
    char *end, expected[64];

    errno = 0;
    *value = strtoll(text, &end, 10);
    if (isdigit((unsigned char)*text) && !*end && !errno && *value >= least &&
        *value <= most)
        return 0;
    snprintf(expected, sizeof(expected), "a number from %lld to %lld",
             (long long)least, (long long)most);
    return fail_field(c, field, expected);
}

static int read_crc(const struct ddp__csv *c, uint32_t *crc)
{
    const char *text = c->field[CRC];

    if (strlen(text) != 8 ||
        strspn(text, "0123456789abcdefABCDEF") != strlen(text))
        return fail_field(c, CRC, "eight hexadecimal digits");
    *crc = (uint32_t)strtoul(text, NULL, 16);
    return 0;
}

/* The shard of a line: the one of the line before, or the next. */
static int read_shard(struct ddp__tar_index *x, const struct ddp__csv *c)
{
    const char *file = c->field[SHARD];
    const char *last = x->shards ? x->shard[x->shards - 1].file : "";

    if (x->shards && !strcmp(file, last))
        return 0;
    if (!*file || *file == '.' || strchr(file, '/'))
        return fail_field(c, SHARD, "the name of a file in this folder");
    if (strcmp(file, last) < 0)
        return fail_field(c, SHARD, "shards in the order of their names");
    return ddp__tar_index_add_shard(x, file);
}

/* It may become a path again, and then must not lead out of a folder. */
static int check_name(const struct ddp__csv *c)
{
    return ddp__path_is_below(c->field[NAME])
               ? 0
               : fail_field(c, NAME, "a path below a folder");
}

/* A line's name moves behind those before it, at the beginning of the text that
 * all are read from, so that names need no room of their own. */
static int read_line(struct ddp__tar_index *x, const struct ddp__csv *c,
                     int classes)
{
    const char *name = c->field[NAME];
    size_t n = strlen(name) + 1, at = x->len;
    struct ddp__member m = {0};
    int64_t len = 0, label = 0;
    int rc;

    if ((rc = read_shard(x, c)) < 0 ||
        (rc = read_number(c, LEN, 1, max_len, &len)) < 0 ||
        (rc = read_number(c, AT, 0, INT64_MAX - max_len, &m.at)) < 0 ||
        (rc = read_number(c, LABEL, 0, classes - 1, &label)) < 0 ||
        (rc = read_crc(c, &m.crc)) < 0 || (rc = check_name(c)) < 0)
        return rc;
    m.len = (uint32_t)len;
    m.label = (int32_t)label;
    if ((rc = add_member(x, &m, n)) == 0)
        memmove(c->text.data + at, name, n);
    return rc;
}

/* The names are in the text now, and it may be shorter. */
static void take_text(struct ddp__tar_index *x, struct ddp__csv *c)
{
    char *shorter;

    x->text = (char *)c->text.data;
    c->text = (struct ddp__bytes){0};
    if ((shorter = realloc(x->text, x->len)))
        x->text = shorter;
    x->text_room = x->len;
}

static int read_title(const struct ddp__csv *c, int fields)
{
    bool right = fields == FIELDS;

    for (int i = 0; right && i < FIELDS; i++)
        right = !strcmp(c->field[i], title[i]);
    return right ? 0
                 : ddp__fail(DDP_EDATA,
                             "%s:%ld: expected the line "
                             "shard,offset,size,label,crc32c,name",
                             c->path, c->line);
}

int ddp__tar_index_read(struct ddp__tar_index *x, const char *path,
                        struct ddp__bytes *text, int classes)
{
    struct ddp__csv c;
    int rc = ddp__csv_open(&c, path, text), n;

    if (rc < 0)
        return rc;
    if ((n = ddp__csv_next(&c)) >= 0)
        rc = read_title(&c, n);
    while (rc == 0 && n > 0 && (n = ddp__csv_next(&c)) > 0)
        rc = n == FIELDS
                 ? read_line(x, &c, classes)
                 : ddp__fail(DDP_EDATA, "%s:%ld: %d fields, expected %d", path,
                             c.line, n, FIELDS);
    if (rc == 0 && n < 0)
        rc = n;
    if (rc == 0 && !x->count)
        rc = ddp__fail(DDP_EDATA, "%s: there are no samples", path);
    if (rc == 0)
        take_text(x, &c);
    ddp__csv_close(&c);
    if (rc < 0)
        ddp__tar_index_free(x);
    return rc;
}

/* ---- classes ------------------------------------------------------------ */

static int add_class(struct ddp__names *n, const char *line, size_t len)
{
    int rc = ddp__names_add(n, line, len);

    if (rc == 0)
        ddp_printable(n->name[n->count - 1]);
    return rc;
}

int ddp__tar_classes_read(struct ddp__names *n, const char *path,
                          const struct ddp__bytes *text)
{
    const char *line = (const char *)text->data, *end = line + text->len;
    int rc = 0;

    *n = (struct ddp__names){0};
    while (rc == 0 && line < end) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((next ? next : end) - line);

        rc = add_class(n, line, len);
        line += len + 1;
    }
    if (rc == 0 && n->count < 2)
        rc = ddp__fail(DDP_EDATA, "%s: %d classes, expected two or more", path,
                       n->count);
    if (rc < 0)
        ddp__names_free(n);
    return rc;
}
