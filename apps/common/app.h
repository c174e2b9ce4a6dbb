/* app.h - what the programs share: exit codes, messages, files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef APP_H
#define APP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes other than 0 and 1.  The large ones are those of sysexits.h. */
enum {
    EXIT_USAGE = 2,        /* a wrong option or setting; nothing was started */
    EXIT_DATA = 65,        /* more unreadable data than --max-bad tolerates */
    EXIT_UNAVAILABLE = 69, /* no device that can run this */
    EXIT_MEMORY = 71,      /* out of memory */
    EXIT_WRITE = 74,       /* a file could not be written or read */
    EXIT_AGAIN = 75,       /* interrupted, and saved: start it again */
    EXIT_PEER = 76,        /* another rank has ended, or a GPU fails */
};

/* Call first: sets the name that messages begin with, and ignores SIGPIPE.  Of
 * several ranks only rank 0 prints, except for errors of another one. */
void app_start(const char *name);

/* Last: rc, or exit code 74 after a message if rc is 0 and lines on stdout
 * could not be written; but not when the program that read them has ended. */
int app_end(int rc);

/* A line on stderr, after the program's name.  Names of files and the like may
 * be in it: it is made fit for a terminal. */
void app_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void app_vsay(const char *who, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

/* The same by any rank; those other than 0 say which they are.  They do so too
 * with what app_say() was given last if the program then ends with a failure;
 * but not once app_say_nothing() has been called. */
void app_say_rank(const char *text);
void app_say_nothing(void);

/* Create a folder and its parents.  0, or exit code 74 after a message. */
int app_make_dir(const char *path);

/* Have a folder on disk, so that new names in it are permanent.  0 or errno. */
int app_sync_dir(const char *dir);

bool app_is_dir(const char *path);

/* Open a text to read.  NULL, with errno, after a message; but without one if
 * it does not exist (ENOENT).  A pipe or a device is refused: it may have no
 * end. */
FILE *app_open_text(const char *path);

/* DIR/NAME, to free(); NULL without memory. */
char *app_path(const char *dir, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Seconds of a monotonic clock. */
double app_now(void);

/* Its time when app_start() was first called. */
double app_started(void);

/* CPU time of this thread in seconds. */
double app_thread_time(void);

/* "1:02:03" or "2:03" in buf, which it returns. */
const char *app_duration(double seconds, char *buf, size_t size);

/* Text as a field of a CSV record (RFC 4180), in quotation marks if need be. */
void app_csv_text(FILE *f, const char *text);

/* Text as JSON, with its quotation marks. */
void app_json_text(FILE *f, const char *text);

#endif
