/* app.c - what the programs share: exit codes, messages, files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_log.h"
#include "common/app_rank.h"

static const char *app_name = "ddp";
static char *unsaid; /* by a rank other than 0, last; owned */
static double started;

void app_start(const char *name)
{
    app_name = name;
    if (!started)
        started = app_now();
    signal(SIGPIPE, SIG_IGN);
    if (app_rank() > 0 && !freopen("/dev/null", "w", stdout))
        fclose(stdout);
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
}

void app_vsay(const char *who, const char *fmt, va_list ap)
{
    char *text, *line;

    if (vasprintf(&text, fmt, ap) < 0)
        return;
    ddp_printable(text);
    if (app_rank() > 0) {
        free(unsaid);
        unsaid = text;
        return;
    }
    fprintf(stderr, "%s: %s\n", who, text);
    if (asprintf(&line, "%s: %s", who, text) >= 0) {
        app_log(line);
        free(line);
    }
    free(text);
}

void app_say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    app_vsay(app_name, fmt, ap);
    va_end(ap);
}

void app_say_nothing(void)
{
    free(unsaid);
    unsaid = NULL;
}

void app_say_rank(const char *text)
{
    char *own = strdup(text), who[96];

    if (app_rank() == 0) {
        app_say("%s", text);
    } else if (own) {
        ddp_printable(own);
        fprintf(stderr, "%s: %s: %s\n", app_name,
                app_rank_name(who, sizeof(who)), own);
    }
    free(own);
}

static bool reader_is_gone(void)
{
    struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};

    return poll(&p, 1, 0) > 0 && (p.revents & POLLERR);
}

int app_end(int rc)
{
    bool failed = fflush(stdout) != 0;
    int error = failed ? errno : 0;

    if (unsaid && rc && rc != EXIT_AGAIN)
        app_say_rank(unsaid);
    app_say_nothing();

    if ((!failed && !ferror(stdout)) || reader_is_gone())
        return rc;
    app_say("lines on stdout could not be written%s%s", error ? ": " : "",
            error ? strerror(error) : "");
    app_say_nothing();
    return rc ? rc : EXIT_WRITE;
}

bool app_is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Some file systems cannot sync a folder: EINVAL. */
int app_sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error;

    if (fd < 0)
        return errno == EACCES ? 0 : errno;
    error = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : errno;
    close(fd);
    return error;
}

/* A folder is still there after a power failure if its parent is on disk.
 * Returns 0 or errno. */
static int make_one(const char *path)
{
    const char *end = strrchr(path, '/');
    char *parent;
    int error;

    if (mkdir(path, 0777) < 0) {
        error = errno;
        return app_is_dir(path) ? 0 : error;
    }
    if (!end)
        return app_sync_dir(".");
    if (!(parent = strndup(path, end > path ? (size_t)(end - path) : 1)))
        return ENOMEM;
    error = app_sync_dir(parent);
    free(parent);
    return error;
}

FILE *app_open_text(const char *path)
{
    /* Do not wait for a writer if it is a pipe. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error = 0;
    struct stat st;
    FILE *f = NULL;

    if (fd < 0 || fstat(fd, &st) < 0) {
        error = errno;
    } else if (!S_ISREG(st.st_mode)) {
        app_say("%s: is not a regular file", path);
        error = EINVAL;
    } else if (!(f = fdopen(fd, "r"))) {
        error = errno;
    }
    if (!f && fd >= 0)
        close(fd);
    if (error && error != EINVAL && error != ENOENT)
        app_say("%s: %s", path, strerror(error));
    errno = error;
    return f;
}

int app_make_dir(const char *path)
{
    char *copy = strdup(path);
    size_t len = strlen(path);
    int err;

    if (!copy) {
        app_say("out of memory");
        return EXIT_MEMORY;
    }
    while (len > 1 && copy[len - 1] == '/')
        copy[--len] = 0;
    for (char *s = copy + 1; len && *s; s++)
        if (*s == '/' && s[-1] != '/') {
            *s = 0;
            make_one(copy); /* only the last error matters */
            *s = '/';
        }
    err = make_one(copy);
    free(copy);
    if (!err)
        return 0;
    app_say("cannot create the folder %s: %s", path,
            strerror(err == EEXIST ? ENOTDIR : err));
    return EXIT_WRITE;
}

char *app_path(const char *dir, const char *fmt, ...)
{
    char *name, *path;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vasprintf(&name, fmt, ap);
    va_end(ap);
    if (n < 0)
        return NULL;
    n = asprintf(&path, "%s/%s", dir, name);
    free(name);
    return n < 0 ? NULL : path;
}

static double read_clock(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double app_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

double app_started(void)
{
    return started;
}

double app_thread_time(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

const char *app_duration(double seconds, char *buf, size_t size)
{
    int64_t s = seconds > 0 && seconds < 1e9 ? (int64_t)(seconds + 0.5) : 0;
    int h = (int)(s / 3600), m = (int)(s / 60 % 60), rest = (int)(s % 60);

    if (h)
        snprintf(buf, size, "%d:%02d:%02d", h, m, rest);
    else
        snprintf(buf, size, "%d:%02d", m, rest);
    return buf;
}

void app_csv_text(FILE *f, const char *text)
{
    bool quote = text[strcspn(text, ",\"\r\n")] || *text == ' ';

    if (quote)
        fputc('"', f);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', f);
        fputc(*text, f);
    }
    if (quote)
        fputc('"', f);
}

void app_json_text(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++) {
        unsigned char ch = (unsigned char)*text;

        if (ch == '"' || ch == '\\')
            fprintf(f, "\\%c", ch);
        else if (ch < 0x20)
            fprintf(f, "\\u%04x", ch);
        else
            fputc(ch, f);
    }
    fputc('"', f);
}
