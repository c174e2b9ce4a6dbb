/* env.c - numbers in the environment
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/error.h"

int ddp__env_number(const char *name, int least, int most, int *value)
{
    const char *text = getenv(name);
    char *end;
    long n;

    if (!text || !*text)
        return 0;
    errno = 0;
    n = strtol(text, &end, 10);
    if (errno || *end || n < least || n > most)
        return ddp__fail(DDP_EINVAL, "%s=%s, expected a number from %d to %d",
                         name, text, least, most);
    *value = (int)n;
    return 0;
}

int ddp__env_switch(const char *name, bool *on)
{
    int value = 0, rc = ddp__env_number(name, 0, 1, &value);

    *on = value == 1;
    return rc;
}
