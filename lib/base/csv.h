/* csv.h - records of a comma-separated file, as RFC 4180 has them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CSV_H
#define DDP_CSV_H

#include <locale.h>

#include "base/file.h"

struct ddp__csv {
    char *path; /* owned */
    struct ddp__bytes text;
    char *at;     /* the next record */
    long line;    /* line where the record begins, from 1 */
    long next;    /* line where the next record begins */
    char **field; /* of this record, in text; owned */
    int fields, room;
};

/* The records of a text, which it takes, also after a failure; path is what
 * messages call it.  DDP_EDATA, DDP_ENOMEM. */
int ddp__csv_open(struct ddp__csv *c, const char *path,
                  struct ddp__bytes *text);

/* A longer one is not expected. */
#define DDP__CSV_MAX ((size_t)4 << 30)

/* The next record that is not an empty line: the number of its fields, 0 at
 * the end, or DDP_EDATA with path:line. */
int ddp__csv_next(struct ddp__csv *c);

/* Field i of the record as a finite number with a decimal point, in any
 * locale of the program: plain is the locale "C".  column: what messages call
 * it. DDP_EDATA. */
int ddp__csv_number(const struct ddp__csv *c, int i, const char *column,
                    locale_t plain, float *x);

void ddp__csv_close(struct ddp__csv *c);

#endif
