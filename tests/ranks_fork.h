/* ranks_fork.h - ranks that are processes of a test, without MPI
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The module of tests/wire carries their messages.  The test itself must not
 * have started libddp.
 */
#ifndef RANKS_FORK_H
#define RANKS_FORK_H

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

enum { FORK_MOST = 16 };

struct fork_ranks {
    int count;
    pid_t process[FORK_MOST];
    int socket[FORK_MOST][FORK_MOST]; /* of the first to the second */
};

/* Memory that processes share. */
static void *fork_memory(size_t size)
{
    void *m = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (m == MAP_FAILED)
        bail_out("no memory for %zu bytes", size);
    return m;
}

static void fork_connect(struct fork_ranks *f)
{
    for (int a = 0; a < f->count; a++)
        for (int b = a + 1; b < f->count; b++) {
            int end[2];

            if (socketpair(AF_UNIX, SOCK_STREAM, 0, end) < 0)
                bail_out("no sockets: %s", strerror(errno));
            f->socket[a][b] = end[0];
            f->socket[b][a] = end[1];
        }
}

/* A socket whose process has ended must be closed everywhere. */
static void fork_disconnect(const struct fork_ranks *f, int but)
{
    for (int a = 0; a < f->count; a++)
        for (int b = 0; b < f->count; b++)
            if (a != b && a != but)
                close(f->socket[a][b]);
}

/* As a launcher and the module of tests/wire want it. */
static void fork_environment(const struct fork_ranks *f, int rank)
{
    char text[16 * FORK_MOST + 16], dir[4096];
    int len = snprintf(text, sizeof(text), "%d", rank);

    for (int r = 0; r < f->count; r++)
        len += snprintf(text + len, sizeof(text) - (size_t)len, " %d",
                        f->socket[rank][r]);
    setenv("TEST_WIRE", text, 1);
    snprintf(text, sizeof(text), "%d", f->count);
    setenv("OMPI_COMM_WORLD_SIZE", text, 1);
    snprintf(dir, sizeof(dir), "%s/tests/wire/.libs",
             getenv("builddir") ? getenv("builddir") : ".");
    setenv("DDP_MODULE_DIR", dir, 1);
    setenv("STARPU_NCPU", "1", 1);
}

/* Each rank runs a function, and exits with its result. */
static void fork_start(struct fork_ranks *f, int count, int (*run)(int rank))
{
    *f = (struct fork_ranks){.count = count};
    fork_connect(f);
    for (int r = 0; r < count; r++) {
        if ((f->process[r] = fork()) < 0)
            bail_out("no process: %s", strerror(errno));
        if (f->process[r] == 0) {
            fork_disconnect(f, r);
            fork_environment(f, r);
            _exit(run(r)); /* not what the test does at its exit */
        }
    }
    fork_disconnect(f, -1);
}

/* The exit code of a rank that has ended; of a signal 128 more. */
static int fork_code(struct fork_ranks *f, int rank)
{
    int status;

    if (waitpid(f->process[rank], &status, 0) < 0)
        bail_out("waitpid: %s", strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
