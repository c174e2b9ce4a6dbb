/* lines.c - a text file of a run that grows line by line
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/app.h"
#include "lines.h"

/* A disk may be full for days; but messages end. */
enum { TRIES = 1000 };

static void fail(struct lines *l)
{
    int error = errno;

    if (l->f)
        fclose(l->f);
    l->f = NULL;
    if (l->tries++ == 0)
        app_say("cannot write %s: %s; the run continues without it, and tries "
                "again after each epoch",
                l->path, strerror(error));
}

/* ---- opening ------------------------------------------------------------ */

/* The last line may have lost its end in a crash. */
static void copy_lines(struct lines *l, FILE *from, FILE *to)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len;

    while ((len = getline(&line, &size, from)) > 0)
        if (line[len - 1] == '\n' && l->keeps(line, l->arg))
            fputs(line, to);
    free(line);
}

/* The file with its head and what is kept of the one that is there. */
static FILE *replace(struct lines *l, const char *temp)
{
    FILE *to = fopen(temp, "w"), *from = to ? fopen(l->path, "r") : NULL;
    int error;

    if (!to)
        return NULL;
    fputs(l->head, to);
    if (from) {
        copy_lines(l, from, to);
        fclose(from);
    }
    if (fflush(to) == 0 && rename(temp, l->path) == 0)
        return to;
    error = errno;
    fclose(to);
    unlink(temp);
    errno = error;
    return NULL;
}

/* What a failed write left of a line is cut off. */
static FILE *reopen(const struct lines *l)
{
    FILE *f = fopen(l->path, "r+");

    if (f && ftruncate(fileno(f), l->size) == 0 && fseeko(f, 0, SEEK_END) == 0)
        return f;
    if (f)
        fclose(f);
    return NULL;
}

static void open_file(struct lines *l)
{
    char *temp;

    if (l->size >= 0) {
        l->f = reopen(l);
    } else if (asprintf(&temp, "%s.tmp", l->path) >= 0) {
        l->f = replace(l, temp);
        free(temp);
    }
    if (!l->f || (l->size = ftello(l->f)) < 0)
        fail(l);
}

bool lines_open(struct lines *l, const char *dir, const char *name,
                const char *head, lines_keeps *keeps, void *arg)
{
    *l = (struct lines){.path = app_path(dir, "%s", name),
                        .head = head,
                        .keeps = keeps,
                        .arg = arg,
                        .size = -1};
    if (l->path)
        open_file(l);
    return l->path != NULL;
}

/* ---- writing ------------------------------------------------------------ */

void lines_put(struct lines *l, const char *line)
{
    if (!l->path)
        return;
    if (l->f && (fputs(line, l->f) == EOF || fputc('\n', l->f) == EOF ||
                 fflush(l->f) != 0))
        fail(l);
    if (l->f)
        l->size += (off_t)strlen(line) + 1;
    else
        l->lost++;
}

int64_t lines_retry(struct lines *l)
{
    int64_t lost = l->lost;

    if (!l->path || l->f || l->tries > TRIES)
        return 0;
    open_file(l);
    if (!l->f) {
        if (l->tries > TRIES)
            app_say("%s is given up after %d tries", l->path, TRIES);
        return 0;
    }
    l->lost = 0;
    l->tries = 0;
    app_say("%s is written again, without %lld lines", l->path,
            (long long)lost);
    return lost;
}

void lines_close(struct lines *l)
{
    if (l->f && fclose(l->f) != 0)
        app_say("cannot write %s: %s", l->path, strerror(errno));
    if (l->lost)
        app_say("%s lacks the last %lld lines", l->path, (long long)l->lost);
    free(l->path);
    *l = (struct lines){0};
}
