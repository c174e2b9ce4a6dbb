/* fuzz.c - what reads a file, on damaged copies of good ones
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <ctype.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "fuzz.h"

/* Bytes that a damaged copy may be longer than the file. */
enum { GROWTH = 512 };

/* ---- files -------------------------------------------------------------- */

static char top[64];

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *f)
{
    (void)st;
    (void)type;
    (void)f;
    return remove(path);
}

static void remove_files(void)
{
    nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_top(void)
{
    snprintf(top, sizeof(top), "/tmp/ddp-fuzz-XXXXXX");
    if (!mkdtemp(top))
        bail_out("cannot make %s", top);
    atexit(remove_files);
}

const char *fuzz_path(const char *name)
{
    static char path[4][256];
    static int i;
    char *at = path[++i % 4];

    if (!*top)
        make_top();
    snprintf(at, sizeof(path[0]), "%s/%s", top, name);
    for (char *p = at + strlen(top) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(at, 0777);
        *p = '/';
    }
    return at;
}

/* The file is not emptied first, for which some file systems wait for the
 * disk. */
void fuzz_write(const char *name, const void *data, size_t len)
{
    const char *path = fuzz_path(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

    if (fd < 0 || pwrite(fd, data, len, 0) != (ssize_t)len ||
        ftruncate(fd, (off_t)len) < 0 || close(fd) < 0)
        bail_out("cannot write %s", path);
}

/* ---- damage ------------------------------------------------------------- */

static uint32_t state;

static uint32_t draw(size_t n)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)state * n >> 32);
}

static bool in_word(uint8_t c)
{
    return isalnum(c) || c == '_' || c == '.' || c == '-' || c == '+';
}

/* Put in a word of the format at a place, or for the word that is there. */
static size_t put_word(const char *const *word, uint8_t *x, size_t len,
                       size_t room, size_t at, bool replace)
{
    size_t words = 0, end = at, size;

    while (word[words])
        words++;
    word += draw(words);
    size = strlen(*word);
    while (replace && at > 0 && in_word(x[at - 1]))
        at--;
    while (replace && end < len && in_word(x[end]))
        end++;
    if (len - (end - at) + size > room)
        return len;
    memmove(x + at + size, x + end, len - end);
    memcpy(x + at, *word, size);
    return len - (end - at) + size;
}

/* Change, remove or repeat some bytes, or put in a word. */
static size_t change(const struct fuzz_reader *r, uint8_t *x, size_t len,
                     size_t room)
{
    /* Headers more often than the rest. */
    size_t limit = draw(2) && len > 700 ? 700 : len;
    size_t at = draw(limit), more = draw(64);
    uint32_t how = draw(r->word ? 8 : 4);

    if (at + more > len)
        more = len - at;
    switch (how) {
    case 0:
        x[at] = (uint8_t)draw(256);
        return len;
    case 1:
        x[at] ^= (uint8_t)(1 << draw(8));
        return len;
    case 2:
        memmove(x + at, x + at + more, len - at - more);
        return len - more;
    case 3:
        memmove(x + at + more, x + at, len - at - more);
        return len;
    default:
        return put_word(r->word, x, len, room, at, how > 4);
    }
}

static size_t damage(const struct fuzz_reader *r, const uint8_t *from,
                     size_t len, uint8_t *to)
{
    size_t room = len + GROWTH;

    memcpy(to, from, len);
    for (uint32_t n = draw(4) + 1; n > 0 && len > 0; n--)
        len = change(r, to, len, room);
    return draw(8) ? len : draw(len + 1);
}

/* ---- reading ------------------------------------------------------------ */

static const char nothing[] = "no message";

bool fuzz_read(const struct fuzz_reader *r, const void *data, size_t len,
               int *rc)
{
    uint8_t *exact = malloc(len);
    bool spoke;

    if (len > 0)
        memcpy(exact, data, len);
    if (r->file)
        fuzz_write(r->file, data, len);
    ddp__fail(DDP_EINVAL, nothing);
    *rc = r->read(r->file ? fuzz_path(r->file) : NULL, exact, len);
    spoke = *ddp_errmsg() && strcmp(ddp_errmsg(), nothing) != 0;
    free(exact);
    return *rc < 0 ? spoke : !spoke;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds(void)
{
    const char *text = getenv("DDP_FUZZ_SECONDS");
    double s = text ? atof(text) : getenv("DDP_LONG") ? 60 : 1;

    if (!(s > 0))
        bail_out("DDP_FUZZ_SECONDS=%s, expected a number above 0", text);
    return s;
}

struct fuzz_report fuzz_damaged(const struct fuzz_reader *r, const void *data,
                                size_t len)
{
    double end = now() + seconds() / r->seeds;
    uint8_t *x = malloc(len + GROWTH);
    struct fuzz_report report = {0};
    int rc;

    state = 1;
    for (report.good = true; report.good && now() < end; report.copies++) {
        report.good = fuzz_read(r, x, damage(r, data, len, x), &rc);
        report.refused += rc < 0;
    }
    free(x);
    return report;
}
