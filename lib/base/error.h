/* error.h - the last message of a thread, for ddp_errmsg()
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ERROR_H
#define DDP_ERROR_H

#include "ddp.h"

/* Store a message for ddp_errmsg() and return code. */
int ddp__fail(int code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* DDP_EINVAL for an object that is NULL.  A constructor that failed set the
 * message, which is kept; without one, `what` is NULL. */
int ddp__fail_null(const char *what);

/* The number of calls by this thread.  It shows whether a callback of the
 * program that failed has set a message. */
unsigned ddp__failures(void);

/* The last error as it was, for who recovers from a failure: what succeeded
 * leaves ddp_errmsg() as it is. */
struct ddp__error {
    int code;
    char message[2048];
};
struct ddp__error ddp__error_save(void);
void ddp__error_restore(const struct ddp__error *e);

#endif
