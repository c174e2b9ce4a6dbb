/* abort.c - the last sentence of a process that is aborted
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A StarPU that contrib/build-starpu did not build aborts where a GPU is lost
 * during a copy or a kernel.  A handler may call little, so the sentence is
 * written in pieces.
 */
#include "config.h"
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "ddp.h"

#include "abort.h"

static char checkpoints[PATH_MAX], latest[PATH_MAX + 8];

static void say(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));

    (void)written; /* there is nobody to report to */
}

/* StarPU names its threads after their devices: "CUDA 1". */
static void say_last(int sig)
{
    char thread[17] = "?", copy[80], name[256];
    ssize_t len = readlink(latest, name, sizeof(name) - 1);

    (void)sig;
    prctl(PR_GET_NAME, thread);
    say("imagenet: aborted in thread ");
    say(thread);
    if (ddp_last_copy(copy, sizeof(copy))) {
        say(", whose last copy was ");
        say(copy);
    }
    say(", for the reason above; ");
    if (len > 0) {
        name[len] = '\0';
        say("the last checkpoint is ");
        say(checkpoints);
        say("/");
        say(name);
        say(": the same command continues from it\n");
    } else {
        say("there is no checkpoint yet\n");
    }
}

/* The handler is there once: abort() ends the process when it returns. */
void abort_notes(const char *folder)
{
    struct sigaction a = {.sa_handler = say_last,
                          .sa_flags = (int)SA_RESETHAND};

    snprintf(checkpoints, sizeof(checkpoints), "%s", folder);
    snprintf(latest, sizeof(latest), "%s/latest", checkpoints);
    sigemptyset(&a.sa_mask);
    sigaction(SIGABRT, &a, NULL);
}
