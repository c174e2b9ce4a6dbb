/* app_peer.c - the end of a run whose other ranks are gone
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/app.h"
#include "common/app_peer.h"
#include "common/app_rank.h"

enum { SECONDS = 5 };

static char said[1024];
static atomic_bool lost;

static void end_program(int sig)
{
    (void)sig;
    _exit(EXIT_PEER);
}

/* Rank 0 speaks for all that are left; without it, each for itself. */
static bool is_ours(const char *why)
{
    int rank;

    return app_rank() == 0 || (sscanf(why, "rank %d", &rank) == 1 &&
                               rank == 0 && !strstr(why, "has ended"));
}

void app_peer_lost(const char *why, void *arg)
{
    (void)arg;
    if (is_ours(why)) {
        app_say_rank(why);
        snprintf(said, sizeof(said), "%s", why);
    }
    atomic_store(&lost, true);
    signal(SIGALRM, end_program);
    alarm(SECONDS);
}

bool app_peer_is_lost(void)
{
    return atomic_load(&lost);
}

const char *app_peer_unsaid(const char *text)
{
    size_t len = strlen(said);

    if (!app_peer_is_lost() || len == 0 || strncmp(text, said, len) != 0)
        return text;
    text += len;
    return text + strspn(text, "; ");
}
