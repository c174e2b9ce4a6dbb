/* error.c - codes, texts, the last message of a thread
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

static __thread struct ddp__error last;
static __thread unsigned failures;

const char *ddp_strerror(int code)
{
    switch (code) {
    case DDP_OK:
        return "no error";
#define X(name, num, text)                                                     \
    case DDP_E##name:                                                          \
        return text;
        DDP_ERRORS(X)
#undef X
    default:
        return "unknown error";
    }
}

const char *ddp_errmsg(void)
{
    return last.message;
}

int ddp_errcode(void)
{
    return last.code;
}

unsigned ddp__failures(void)
{
    return failures;
}

/* An argument may be the message before, so it is replaced at the end. */
int ddp__fail(int code, const char *fmt, ...)
{
    char message[sizeof(last.message)];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    ddp_printable(message);
    strcpy(last.message, message);
    last.code = code;
    failures++;
    return code;
}

int ddp__fail_null(const char *what)
{
    if (!*last.message)
        ddp__fail(DDP_EINVAL, "%s is NULL", what);
    return DDP_EINVAL;
}

struct ddp__error ddp__error_save(void)
{
    return last;
}

void ddp__error_restore(const struct ddp__error *e)
{
    last = *e;
}
