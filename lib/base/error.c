/* error.c - codes, texts, the last message of a thread
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"

static __thread char message[2048];
static __thread int last_code;
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
    return message;
}

int ddp_errcode(void)
{
    return last_code;
}

unsigned ddp__failures(void)
{
    return failures;
}

int ddp__fail(int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    last_code = code;
    failures++;
    return code;
}
