/* app_rank.c - which of the processes of a run this one is
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/app_rank.h"

int app_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                        "PMI_RANK"};
    const char *alone = getenv("DDP_MPI");

    for (int i = 0; i < 3 && !(alone && !strcmp(alone, "0")); i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return 0;
}

const char *app_rank_name(char *buf, size_t size)
{
    char host[64] = "";

    gethostname(host, sizeof(host) - 1);
    snprintf(buf, size, "rank %d (%s)", app_rank(), host);
    return buf;
}
