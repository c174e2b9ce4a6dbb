/* fuzz.h - what reads a file, on damaged copies of good ones
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For any bytes, a reader succeeds, or it returns a negative code and
 * has set a message; it never crashes or hangs.  Each reader gets a second, or
 * DDP_FUZZ_SECONDS.  With DDP_FUZZ_READER=NAME there is only this one, and with
 * DDP_FUZZ_READER=? their names are printed.
 *
 * What is damaged is the good file, and those that tests/corpus/NAME has: each
 * of them takes another path through the reader.  contrib/fuzz-corpus finds
 * them with clang's libFuzzer, for which it compiles with -DDDP_FUZZ.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ddp.h"
#include "tap.h"

struct fuzz_reader {
    const char *name;
    const char *file; /* for fuzz_path(); NULL: read() reads from memory */
    int seeds;        /* good files, which share the time */
    /* Read the file at path, or the same bytes, a block of this very length. */
    int (*read)(const char *path, const uint8_t *data, size_t len);
    const char *const *word; /* to be put in; ended by NULL; may be NULL */
};

/* "FOLDER/name", with the folders in name, until the fourth next call.  FOLDER
 * is this program's, and removed when main() returns: after a crash, the file
 * that was read is still there. */
const char *fuzz_path(const char *name);
void fuzz_write(const char *name, const void *data, size_t len);

/* Whether the reader does with these bytes what it must; what it returned. */
bool fuzz_read(const struct fuzz_reader *r, const void *data, size_t len,
               int *rc);

/* Whether DDP_FUZZ_READER leaves this one out. */
bool fuzz_is_left_out(const struct fuzz_reader *r);

/* With -DDDP_FUZZ: search, by the program's arguments, and exit. */
void fuzz_search(const struct fuzz_reader *r, const void *data, size_t len);

/* Read the corpus; the number of files, negative: the last one of them was not
 * read as it must be. */
int fuzz_corpus(const struct fuzz_reader *r);

/* What became of damaged copies: the same ones in every run, or with
 * DDP_FUZZ_SEED=N others. */
struct fuzz_report {
    int copies, refused;
    bool good; /* else the last one was not read as it must be */
};
struct fuzz_report fuzz_damaged(const struct fuzz_reader *r, const void *data,
                                size_t len);

/* Three test points: the reader reads a good file, the corpus, and damaged
 * copies of both. */
static __attribute__((unused)) void fuzz(const struct fuzz_reader *r,
                                         const char *what, const void *data,
                                         size_t len)
{
    struct fuzz_report report;
    int rc = 0, files;
    bool good;

    if (fuzz_is_left_out(r))
        return;
    fuzz_search(r, data, len);
    good = fuzz_read(r, data, len, &rc);
    ok(good && rc == 0, "%s: %s is read", r->name, what);
    if (rc < 0)
        diag("%s", ddp_errmsg());
    files = fuzz_corpus(r);
    ok(files >= 0, "%s: %d files of the corpus are", r->name, files);
    report = fuzz_damaged(r, data, len);
    ok(report.good, "%s: %d damaged copies, %d are refused", r->name,
       report.copies, report.refused);
    if (!report.good)
        diag("the last one succeeds with a message, or fails without: \"%s\"",
             ddp_errmsg());
}

/* Read the files that are given as arguments, one test point each; whether
 * there are any. */
static __attribute__((unused)) bool fuzz_replay(const struct fuzz_reader *r,
                                                int argc, char **argv)
{
    static uint8_t data[1 << 20];

#ifdef DDP_FUZZ
    return false;
#endif
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        size_t len = f ? fread(data, 1, sizeof(data), f) : 0;
        int rc = 0;

        ok(f && fuzz_read(r, data, len, &rc), "%s, %s: %d%s%s", r->name,
           argv[i], rc, rc < 0 ? ": " : "", rc < 0 ? ddp_errmsg() : "");
        if (f)
            fclose(f);
    }
    return argc > 1;
}

#endif
