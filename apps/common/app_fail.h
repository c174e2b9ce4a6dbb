/* app_fail.h - errors of the library as messages and exit codes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef APP_FAIL_H
#define APP_FAIL_H

/* The exit code for one of the library's error codes. */
int app_exit_code(int ddp_code);

/* Print the library's message on stderr, and return the exit code. */
int app_fail(int ddp_code);

#endif
