/* test_tap.c - tap.h reports correctly, since all other tests rely on it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdbool.h>
#include <unistd.h>
#include <sys/wait.h>
#include "tap.h"

/* Runs f in a child; its stdout comes back in text, its exit code as result. */
static int capture(int (*f)(void), char *text, size_t size)
{
    int fd[2], status;
    size_t n = 0;
    ssize_t got;
    pid_t pid;

    fflush(stdout);
    if (pipe(fd) < 0 || (pid = fork()) < 0)
        bail_out("pipe or fork");
    if (pid == 0) {
        dup2(fd[1], STDOUT_FILENO);
        close(fd[0]);
        close(fd[1]);
        tap_count = tap_failed = 0;
        tap_planned = -1;
        exit(f());
    }
    close(fd[1]);
    while (n < size - 1 && (got = read(fd[0], text + n, size - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    close(fd[0]);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int all_pass(void)
{
    ok(true, "first");
    is_int(2, 2, "second # of %d", 2);
    is_str("a", "a", "third");
    is_near(1.0, 1.1, 0.2, "fourth");
    skip(1, "why");
    return done_testing();
}

static int one_fails(void)
{
    is_int(2, 3, "two is three");
    return done_testing();
}

static int too_few(void)
{
    plan(2);
    ok(true, "only one");
    return done_testing();
}

static int nan_is_far(void)
{
    is_near(0.0 / 0.0, 0, 1, "not a number");
    return done_testing();
}

int main(void)
{
    char text[4096];

    is_int(capture(all_pass, text, sizeof(text)), 0, "passing exits with 0");
    is_str(text,
           "ok 1 - first\nok 2 - second + of 2\nok 3 - third\n"
           "ok 4 - fourth\nok 5 # SKIP why\n1..5\n",
           "passing prints its points and the plan");
    is_int(capture(one_fails, text, sizeof(text)), 1, "failing exits with 1");
    ok(!strncmp(text, "not ok 1 - two is three\n", 24), "and prints not ok");
    ok(strstr(text, "# got 2, want 3\n"), "with both values");
    is_int(capture(too_few, text, sizeof(text)), 1,
           "fewer points than planned exits with 1");
    is_int(capture(nan_is_far, text, sizeof(text)), 1, "NaN is near nothing");
    return done_testing();
}
