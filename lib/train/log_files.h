/* log_files.h - folders, names and times of logs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_LOG_FILES_H
#define DDP_LOG_FILES_H

#include <stddef.h>

/* Seconds since 1970. */
double ddp__log_now(void);

/* A folder, which may exist.
 * Errors   DDP_EIO. */
int ddp__log_folder(const char *path);

/* Replace the file at path by the text.
 * Errors   DDP_EIO. */
int ddp__log_write(const char *path, const char *text);

/* n random characters out of `letters` and a zero, which no other run has. */
void ddp__log_id(char *id, size_t n, const char *letters);

#endif
