/* app_log.h - what a program prints, line by line, also for a file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef APP_LOG_H
#define APP_LOG_H

#include <stdbool.h>

/* From now on keep the lines of app_print() and app_say(), until app_log_to()
 * says where they go: the kept ones at once, later ones as they are printed, by
 * any thread, one at a time.  line has no newline. */
void app_log_begin(void);
void app_log_to(void (*put)(const char *line, void *arg), void *arg);
/* No more, and what is kept is forgotten. */
void app_log_end(void);

/* printf() for the log as well. */
void app_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Whether app_print() prints: if not, its lines are for the log alone. */
void app_log_only(bool only);

/* A line for the log alone. */
void app_log(const char *line);

#endif
