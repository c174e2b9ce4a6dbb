/* app_fail.c - errors of the library as messages and exit codes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "common/app_peer.h"
#include "common/app_rank.h"
#include "common/app_words.h"

int app_exit_code(int ddp_code)
{
    switch (ddp_code) {
    case DDP_OK:
        return EXIT_SUCCESS;
    case DDP_EINVAL:
    case DDP_ESHAPE:
        return EXIT_USAGE;
    case DDP_EDATA:
        return EXIT_DATA;
    case DDP_ENODEV:
        return EXIT_UNAVAILABLE;
    case DDP_ENOMEM:
        return EXIT_MEMORY;
    case DDP_EIO:
        return EXIT_WRITE;
    case DDP_EPEER:
    case DDP_EDEVICE: /* what is left can continue, too */
        return EXIT_PEER;
    default:
        return EXIT_FAILURE;
    }
}

/* What another rank says: the one that it is from, else rank 0 for all. */
static bool is_said(int ddp_code, const char *text)
{
    int rank, end = 0;

    if (sscanf(text, "rank %d (%*[^)]): %n", &rank, &end) == 1 && end)
        return rank != app_rank();
    return app_rank() > 0 &&
           (ddp_code == DDP_EPEER || !strncmp(text, "rank ", 5));
}

int app_fail(int ddp_code)
{
    const char *text = ddp_errmsg();
    char own[2560];

    app_translate(*text ? text : ddp_strerror(ddp_code), own, sizeof(own));
    if (!is_said(ddp_code, text) && *app_peer_unsaid(own))
        app_say_rank(app_peer_unsaid(own));
    app_say_nothing();
    return app_exit_code(ddp_code);
}
