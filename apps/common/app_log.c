/* app_log.c - what a program prints, line by line, also for a file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/app_log.h"

/* Lines that are kept without a file; a program says less before it has one. */
enum { KEPT = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool logging, only_log;
static char *kept[KEPT]; /* owned, like part */
static int kept_count;
static char *part; /* of a line of app_print() that has not ended */
static void (*put_line)(const char *line, void *arg);
static void *put_arg;
static _Thread_local bool putting;

/* ---- lines -------------------------------------------------------------- */

/* What a put_line() that fails says itself is not for its file. */
void app_log(const char *line)
{
    if (putting)
        return;
    pthread_mutex_lock(&lock);
    putting = true;
    if (logging && put_line)
        put_line(line, put_arg);
    else if (logging && kept_count < KEPT && (kept[kept_count] = strdup(line)))
        kept_count++;
    putting = false;
    pthread_mutex_unlock(&lock);
}

/* The lines of text; what follows the last newline waits for its end. */
static void log_text(const char *text)
{
    char *all, *line, *end;

    if (asprintf(&all, "%s%s", part ? part : "", text) < 0)
        return;
    for (line = all; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        app_log(line);
    }
    free(part);
    part = *line ? strdup(line) : NULL;
    free(all);
}

void app_log_only(bool only)
{
    only_log = only;
}

void app_print(const char *fmt, ...)
{
    va_list ap;
    char *text;
    int n;

    va_start(ap, fmt);
    n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    if (!only_log)
        fputs(text, stdout);
    log_text(text);
    free(text);
}

/* ---- where they go ------------------------------------------------------ */

static void forget_kept(void)
{
    while (kept_count > 0)
        free(kept[--kept_count]);
}

void app_log_begin(void)
{
    pthread_mutex_lock(&lock);
    logging = true;
    pthread_mutex_unlock(&lock);
}

void app_log_to(void (*put)(const char *line, void *arg), void *arg)
{
    pthread_mutex_lock(&lock);
    putting = true;
    for (int i = 0; i < kept_count; i++)
        put(kept[i], arg);
    putting = false;
    forget_kept();
    put_line = put;
    put_arg = arg;
    pthread_mutex_unlock(&lock);
}

void app_log_end(void)
{
    pthread_mutex_lock(&lock);
    logging = false;
    put_line = NULL;
    forget_kept();
    free(part);
    part = NULL;
    pthread_mutex_unlock(&lock);
}
