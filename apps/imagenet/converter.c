/* converter.c - drawings that another program makes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/app.h"
#include "common/opt.h"
#include "converter.h"

static const char *last(char *const argv[])
{
    while (argv[1])
        argv++;
    return argv[0];
}

int converter_run(const struct converter *c, char *const argv[])
{
    int error, status = -1;
    pid_t pid;

    if ((error = posix_spawnp(&pid, c->program, NULL, NULL, argv, environ))) {
        app_say("%s, which makes %s, cannot be run: %s; install Debian's %s, "
                "or use %s",
                c->program, c->makes, strerror(error), c->package, c->instead);
        return EXIT_UNAVAILABLE;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    app_say("%s could not make %s", c->program, last(argv));
    return EXIT_WRITE;
}
