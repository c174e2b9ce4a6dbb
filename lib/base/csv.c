/* csv.c - records of a comma-separated file, split in place
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/error.h"

int ddp__csv_open(struct ddp__csv *c, const char *path, struct ddp__bytes *text)
{
    int rc;

    *c = (struct ddp__csv){.next = 1, .text = *text};
    *text = (struct ddp__bytes){0};
    if (!(c->path = strdup(path))) {
        rc = ddp__fail(DDP_ENOMEM, "out of memory for a path");
        goto close;
    }
    c->at = (char *)c->text.data;
    if (c->text.len >= 3 && !memcmp(c->at, "\xef\xbb\xbf", 3))
        c->at += 3; /* a byte order mark */
    if (memchr(c->text.data, 0, c->text.len)) {
        rc = ddp__fail(DDP_EDATA, "%s: contains zero bytes, expected text",
                       path);
        goto close;
    }
    return 0;

close:
    ddp__csv_close(c);
    return rc;
}

void ddp__csv_close(struct ddp__csv *c)
{
    free(c->path);
    free(c->text.data);
    free(c->field);
    *c = (struct ddp__csv){0};
}

static int add_field(struct ddp__csv *c, char *field)
{
    if (c->fields == c->room) {
        int room = c->room ? 2 * c->room : 16;
        char **more = realloc(c->field, (size_t)room * sizeof(*more));

        if (!more)
            return ddp__fail(DDP_ENOMEM, "%s:%ld: out of memory for fields",
                             c->path, c->line);
        c->field = more;
        c->room = room;
    }
    c->field[c->fields++] = field;
    return 0;
}

/* Remove the quotes of the field at *p and move *p behind the last one. */
static int unquote(struct ddp__csv *c, char **p)
{
    char *in = *p + 1, *out = *p;

    for (;; in++) {
        if (*in == '"' && *++in != '"')
            break;
        if (!*in)
            return ddp__fail(DDP_EDATA, "%s:%ld: a quote is never closed",
                             c->path, c->line);
        if (*in == '\n')
            c->next++;
        *out++ = *in;
    }
    if (*in && *in != ',' && *in != '\n' && !(*in == '\r' && in[1] == '\n'))
        return ddp__fail(DDP_EDATA,
                         "%s:%ld: text after a closing quote, expected a "
                         "comma or the end of the line",
                         c->path, c->line);
    /* The field is shorter by at least two, so its end is before *in. */
    *out = 0;
    *p = in;
    return 0;
}

/* Move c->at behind the end of the line, if it is there. */
static bool end_of_line(struct ddp__csv *c)
{
    if (c->at[0] == '\r' && c->at[1] == '\n')
        *c->at++ = 0;
    if (*c->at == '\n') {
        *c->at++ = 0;
        c->next++;
        return true;
    }
    return !*c->at;
}

/* A scanner that ends fields in place: each separator becomes the zero byte
 * of the field before it, after the separator has been looked at. */
static int read_record(struct ddp__csv *c)
{
    int rc;

    c->fields = 0;
    for (;;) {
        char *field = c->at;

        if (*c->at == '"') {
            if ((rc = unquote(c, &c->at)) < 0)
                return rc;
        } else {
            c->at += strcspn(c->at, ",\n");
            if (*c->at != ',' && c->at > field && c->at[-1] == '\r')
                c->at--;
        }
        if ((rc = add_field(c, field)) < 0)
            return rc;
        if (*c->at == ',') {
            *c->at++ = 0;
            continue;
        }
        if (*c->at == '\r')
            *c->at++ = 0;
        end_of_line(c);
        return c->fields;
    }
}

int ddp__csv_next(struct ddp__csv *c)
{
    while (*c->at) {
        c->line = c->next;
        if (!end_of_line(c))
            return read_record(c);
    }
    return 0;
}

int ddp__csv_number(const struct ddp__csv *c, int i, const char *column,
                    locale_t plain, float *x)
{
    const char *text = c->field[i] + strspn(c->field[i], " \t");
    char *end;

    *x = strtof_l(text, &end, plain);
    if (end != text && !end[strspn(end, " \t")] && isfinite(*x))
        return 0;
    return ddp__fail(DDP_EDATA,
                     "%s:%ld: column \"%s\" has \"%.40s\", expected a number",
                     c->path, c->line, column, text);
}
