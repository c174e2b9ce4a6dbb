/* fuzz.c - what reads a file, on damaged copies of good ones
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "fuzz.h"
#include "remove_tree.h"

/* Bytes that a damaged copy may be longer than the file. */
enum { GROWTH = 512 };

/* ---- files -------------------------------------------------------------- */

static char top[64];

static void remove_files(void)
{
    remove_tree(top);
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

/* ---- the corpus --------------------------------------------------------- */

/* Of the reader that is tested. */
static struct corpus {
    const struct fuzz_reader *r; /* NULL: not loaded */
    int files;
    size_t longest;
    struct {
        uint8_t *data;
        size_t len;
    } file[512];
} corpus;

static void add_file(struct corpus *c, const char *path)
{
    static uint8_t data[1 << 16];
    FILE *f = fopen(path, "rb");
    size_t len = f ? fread(data, 1, sizeof(data), f) : 0;

    if (!f || c->files == sizeof(c->file) / sizeof(c->file[0]))
        bail_out("cannot read %s", path);
    fclose(f);
    c->file[c->files].data = memcpy(malloc(len + 1), data, len);
    c->file[c->files++].len = len;
    c->longest = len > c->longest ? len : c->longest;
}

static void load_corpus(const struct fuzz_reader *r)
{
    const char *top_of_sources = getenv("srcdir");
    char folder[512], path[1024];
    struct dirent **entry;
    int n;

    if (corpus.r == r)
        return;
    for (int i = 0; i < corpus.files; i++)
        free(corpus.file[i].data);
    memset(&corpus, 0, sizeof(corpus));
    corpus.r = r;
    snprintf(folder, sizeof(folder), "%s/tests/corpus/%s",
             top_of_sources ? top_of_sources : ".", r->name);
    for (char *p = folder + strlen(folder) - strlen(r->name); *p; p++)
        *p = *p == ' ' ? '-' : *p;
    n = scandir(folder, &entry, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry[i]->d_name);
        if (entry[i]->d_name[0] != '.')
            add_file(&corpus, path);
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
}

int fuzz_corpus(const struct fuzz_reader *r)
{
    int rc;

    load_corpus(r);
    for (int i = 0; i < corpus.files; i++)
        if (!fuzz_read(r, corpus.file[i].data, corpus.file[i].len, &rc))
            return -1;
    return corpus.files;
}

/* ---- time --------------------------------------------------------------- */

bool fuzz_is_left_out(const struct fuzz_reader *r)
{
    const char *only = getenv("DDP_FUZZ_READER");

    if (only && !strcmp(only, "?"))
        printf("reader: %s\n", r->name);
    return only && strcmp(only, r->name) != 0;
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

static uint32_t seed(void)
{
    const char *text = getenv("DDP_FUZZ_SEED");

    return text ? (uint32_t)strtoul(text, NULL, 10) : 1;
}

struct fuzz_report fuzz_damaged(const struct fuzz_reader *r, const void *data,
                                size_t len)
{
    double end = now() + seconds() / r->seeds;
    size_t longest = len > corpus.longest ? len : corpus.longest;
    uint8_t *x = malloc(longest + GROWTH);
    struct fuzz_report report = {0};
    int rc;

    state = seed();
    for (report.good = true; report.good && now() < end; report.copies++) {
        /* Files of the corpus are hardly ever good. */
        uint32_t i =
            corpus.files && draw(2) ? 1 + draw((size_t)corpus.files) : 0;
        size_t n =
            i ? damage(r, corpus.file[i - 1].data, corpus.file[i - 1].len, x)
              : damage(r, data, len, x);

        report.good = fuzz_read(r, x, n, &rc);
        report.refused += rc < 0;
    }
    free(x);
    return report;
}

/* ---- searching ---------------------------------------------------------- */

#ifdef DDP_FUZZ
int LLVMFuzzerRunDriver(int *argc, char ***argv,
                        int (*one)(const uint8_t *data, size_t len));

static const struct fuzz_reader *searched;

static int read_one(const uint8_t *data, size_t len)
{
    int rc;

    if (len > 0 && !fuzz_read(searched, data, len, &rc))
        abort();
    return 0;
}

static int arguments;
static char **argument;

/* glibc passes main()'s arguments. */
__attribute__((constructor)) static void note_arguments(int argc, char **argv)
{
    arguments = argc;
    argument = argv;
}

/* The good files become the first ones of the folder that is searched. */
void fuzz_search(const struct fuzz_reader *r, const void *data, size_t len)
{
    static int seeds;
    char path[512];
    FILE *f;

    snprintf(path, sizeof(path), "%s/good%d",
             arguments > 1 ? argument[1] : "nowhere", ++seeds);
    if ((f = fopen(path, "wb"))) {
        fwrite(data, 1, len, f);
        fclose(f);
    }
    if (seeds < r->seeds)
        return;
    searched = r;
    exit(LLVMFuzzerRunDriver(&arguments, &argument, read_one));
}
#else
void fuzz_search(const struct fuzz_reader *r, const void *data, size_t len)
{
    (void)r;
    (void)data;
    (void)len;
}
#endif
