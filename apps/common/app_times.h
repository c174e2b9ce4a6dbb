/* app_times.h - the file of ddp-bench calibrate
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef APP_TIMES_H
#define APP_TIMES_H

/* Read measured times of operations, for plans and simulations of so many
 * workers.  0, or an exit code after a message. */
int app_times_read(const char *path, int workers);

/* The file of this machine, if nobody names one; to free().  NULL: there is no
 * home folder to have it in, or no memory. */
char *app_times_place(void);

#endif
