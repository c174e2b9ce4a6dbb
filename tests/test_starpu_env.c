/* test_starpu_env.c - values and folders on which StarPU would abort
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Without the checks each of these ends the process in starpu_init(), and with
 * it this test.
 */
#include "config.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ddp.h"
#include "defaults.h"
#include "runtime/bus_file.h"
#include "tap.h"

static ddp_t *start(void)
{
    return ddp_init(&(struct ddp_config){START_DEFAULTS, .gpus = 0, .cpus = 1});
}

/* ---- variables ---------------------------------------------------------- */

static void refuses(const char *name, const char *value)
{
    ddp_t *ddp;

    setenv(name, value, 1);
    ddp = start();
    ok(!ddp && ddp_errcode() == DDP_EINVAL && strstr(ddp_errmsg(), name) &&
           strstr(ddp_errmsg(), value) && strstr(ddp_errmsg(), "expected"),
       "%s=%s: %s", name, value, ddp ? "it started" : ddp_errmsg());
    ddp_finish(ddp);
    unsetenv(name);
}

static void refuses_both(void)
{
    ddp_t *ddp;

    setenv("STARPU_CUDA_THREAD_PER_WORKER", "1", 1);
    setenv("STARPU_CUDA_THREAD_PER_DEV", "1", 1);
    ddp = start();
    ok(!ddp && strstr(ddp_errmsg(), "unset one of them"), "%s",
       ddp ? "it started" : ddp_errmsg());
    ddp_finish(ddp);
    unsetenv("STARPU_CUDA_THREAD_PER_WORKER");
    unsetenv("STARPU_CUDA_THREAD_PER_DEV");
}

static void accepts(const char *name, const char *value)
{
    ddp_t *ddp;

    setenv(name, value, 1);
    ddp = start();
    ok(ddp, "%s=%s is taken: %s", name, value, ddp ? "" : ddp_errmsg());
    ddp_finish(ddp);
    unsetenv(name);
}

static void test_variables(void)
{
    static const char *const number[] = {
        "STARPU_NCPU",          "STARPU_NCUDA",       "STARPU_CALIBRATE",
        "STARPU_SILENT",        "STARPU_PREFETCH",    "STARPU_LIMIT_CPU_MEM",
        "STARPU_CATCH_SIGNALS", "STARPU_BACKOFF_MAX", "STARPU_MAIN_THREAD_BIND",
    };
    static const char *const list[] = {"STARPU_WORKERS_CPUID",
                                       "STARPU_WORKERS_COREID"};

    for (size_t i = 0; i < sizeof(number) / sizeof(*number); i++) {
        refuses(number[i], "abc");
        refuses(number[i], "3x");
        refuses(number[i], "-1");
        refuses(number[i], "99999999999999999999");
    }
    for (size_t i = 0; i < 2; i++) {
        refuses(list[i], "abc");
        refuses(list[i], "-1");
        refuses(list[i], "0 x");
        refuses(list[i], "0 100000");
        refuses(list[i], "0-100000");
        refuses(list[i], "99999999999999999999");
        accepts(list[i], "0");
        accepts(list[i], "0-");
    }
    refuses("STARPU_MAIN_THREAD_CPUID", "100000");
    refuses("STARPU_MAIN_THREAD_COREID", "100000");
    refuses("STARPU_MPI_THREAD_CPUID", "100000");
    refuses("STARPU_MPI_THREAD_COREID", "abc");
    refuses("STARPU_WORKERS_CUDAID", "abc");
    refuses("STARPU_NTHREADS_PER_CORE", "0");
    refuses("STARPU_NTHREADS_PER_CORE", "100000");
    refuses("STARPU_WATCHDOG_TIMEOUT", "soon");
    refuses("STARPU_NWORKER_PER_CUDA", "0");
    refuses("STARPU_NWORKER_PER_CUDA", "9999");
    refuses("STARPU_LIMIT_CUDA_MEM", "-3");
    refuses("STARPU_LIMIT_CUDA_1_MEM", "much");
    refuses("STARPU_CUDA_PIPELINE", "-3");
    refuses("STARPU_SUBALLOCATOR", "no");
    refuses_both();
    accepts("STARPU_NCPU", "1");
    accepts("STARPU_PROFILING", "");
    accepts("STARPU_NTHREADS_PER_CORE", "1");
}

static void test_too_many(void)
{
    ddp_t *ddp;

    setenv("STARPU_NCPU", "5000", 1);
    ddp = start();
    ok(ddp && strstr(ddp_describe(ddp), "of 5000 asked for"),
       "that there are fewer workers is reported: %s",
       ddp ? ddp_describe(ddp) : ddp_errmsg());
    ddp_finish(ddp);
    unsetenv("STARPU_NCPU");
}

static void test_unknown(void)
{
    ddp_t *ddp = start();

    ok(ddp && !strstr(ddp_describe(ddp), "nothing reads"),
       "names that are known are not reported: %s", ddp_describe(ddp));
    ddp_finish(ddp);
    setenv("STARPU_SHED", "lws", 1);
    setenv("DDP_SEGMENTS_US", "1000", 1);
    ddp = start();
    ok(ddp && strstr(ddp_describe(ddp), "nothing reads ") &&
           strstr(ddp_describe(ddp), "STARPU_SHED") &&
           strstr(ddp_describe(ddp), "DDP_SEGMENTS_US"),
       "misspelt ones are: %s", ddp ? ddp_describe(ddp) : ddp_errmsg());
    ddp_finish(ddp);
    unsetenv("STARPU_SHED");
    unsetenv("DDP_SEGMENTS_US");
}

/* ---- folders ------------------------------------------------------------ */

static char home[64];

static void bus_path(const char *kind, char path[256])
{
    char machine[65];

    gethostname(machine, sizeof(machine));
    machine[strcspn(machine, ".")] = '\0';
    snprintf(path, 256, "%s/.starpu/sampling/bus/%s.%s", home, machine, kind);
}

/* Start with what is in path; then without. */
static void starts_apart(const char *path, const char *what)
{
    ddp_t *ddp = start();

    ok(ddp && strstr(ddp_describe(ddp), "temporary") &&
           strstr(ddp_describe(ddp), path),
       "%s: %s", what, ddp ? ddp_describe(ddp) : ddp_errmsg());
    ddp_finish(ddp);
    if (remove(path) < 0)
        bail_out("cannot remove %s", path);
    if ((ddp = start()))
        ok(!strstr(ddp_describe(ddp), "temporary"),
           "once it is deleted, the folder is used again");
    ddp_finish(ddp);
}

/* The file's text cut to `keep` bytes. */
static void starts_with_damage(const char *kind, long keep)
{
    char path[256], what[64];

    bus_path(kind, path);
    if (truncate(path, keep) < 0)
        bail_out("there is no %s", path);
    snprintf(what, sizeof(what), "%s of %ld bytes", kind, keep);
    starts_apart(path, what);
}

static void starts_with_text(const char *kind, const char *text)
{
    char path[256];
    FILE *f;

    bus_path(kind, path);
    if (!(f = fopen(path, "w")))
        bail_out("cannot write %s", path);
    fputs(text, f);
    fclose(f);
    starts_apart(path, kind);
}

static void starts_with_folder(const char *kind)
{
    char path[256];

    bus_path(kind, path);
    unlink(path);
    if (mkdir(path, 0777) < 0)
        bail_out("cannot make %s", path);
    starts_apart(path, kind);
}

/* As left by a process that was killed before it had measured. */
static void measures_again(void)
{
    char path[256], text[64] = "";
    ddp_t *ddp;
    FILE *f;

    bus_path("config", path);
    if (!(f = fopen(path, "w")))
        bail_out("cannot write %s", path);
    for (int i = 0; i < 16; i++)
        fputs("0 # not measured\n", f);
    fclose(f);
    ddp = start();
    ok(ddp && !strstr(ddp_describe(ddp), "temporary"),
       "numbers of another machine are no damage");
    ddp_finish(ddp);
    if (!(f = fopen(path, "r")) || !fgets(text, sizeof(text), f))
        bail_out("cannot read %s", path);
    fclose(f);
    is_str(text, "# Current configuration\n", "and measured again");
}

static void test_home(void)
{
    char longest[250] = "";
    ddp_t *ddp;
    struct stat st;

    setenv("HOME", "/proc/nobody", 1);
    ddp = start();
    ok(ddp && strstr(ddp_describe(ddp), "/proc/nobody/.starpu/sampling"),
       "a home that cannot be made: %s",
       ddp ? ddp_describe(ddp) : ddp_errmsg());
    ok(getenv("STARPU_PERF_MODEL_DIR") &&
           stat(getenv("STARPU_PERF_MODEL_DIR"), &st) == 0,
       "another folder is used");
    if (ddp && getenv("STARPU_PERF_MODEL_DIR"))
        snprintf(home, sizeof(home), "%s", getenv("STARPU_PERF_MODEL_DIR"));
    ddp_finish(ddp);
    ok(!getenv("STARPU_PERF_MODEL_DIR") && stat(home, &st) < 0,
       "and deleted at the end");

    memset(longest, 'a', sizeof(longest) - 1);
    memcpy(longest, "/tmp/", 5);
    setenv("HOME", longest, 1);
    ddp = start();
    ok(ddp && strstr(ddp_describe(ddp), "File name too long"),
       "a name that StarPU would cut: %s",
       ddp ? ddp_describe(ddp) : ddp_errmsg());
    ddp_finish(ddp);

    setenv("STARPU_PERF_MODEL_DIR", "/dev/null", 1);
    ddp = start();
    ok(ddp && strstr(ddp_describe(ddp), "/dev/null: Not a directory"),
       "so is a variable that names a file");
    ddp_finish(ddp);
    is_str(getenv("STARPU_PERF_MODEL_DIR"), "/dev/null",
           "which is then as it was");
    unsetenv("STARPU_PERF_MODEL_DIR");
}

/* Another process has begun to write StarPU's files, and holds the folder. */
static void waits_for_writer(void)
{
    char bus[128];
    int fd, status = -1;
    pid_t child;

    snprintf(bus, sizeof(bus), "%s/.starpu/sampling/bus", home);
    fd = open(bus, O_RDONLY | O_DIRECTORY);
    if (fd < 0 || flock(fd, LOCK_EX) < 0)
        bail_out("cannot lock %s", bus);
    if ((child = fork()) == 0) {
        close(fd); /* the lock is that of the parent alone */
        _exit(start() ? 0 : 1);
    }
    usleep(500000);
    is_int(waitpid(child, &status, WNOHANG), 0,
           "who starts meanwhile waits for it");
    flock(fd, LOCK_UN);
    close(fd);
    ok(waitpid(child, &status, 0) == child && status == 0, "and starts then");
}

/* Of a machine with GPUs, as StarPU 1.4.10 reads it: it ends the process where
 * this says false (emulated). */
static void near(const char *text, bool expected, const char *what)
{
    struct ddp__bus_counts c = {.numas = 2, .kinds = 3, .devices = {2, 0, 1}};
    char path[96];
    FILE *f;

    snprintf(path, sizeof(path), "%s/affinity", home);
    if (!(f = fopen(path, "w")))
        bail_out("cannot write %s", path);
    fputs(text, f);
    fclose(f);
    ok(ddp__bus_file_good(path, DDP__BUS_AFFINITY, &c) == expected,
       ".affinity: %s", what);
    unlink(path);
}

static void test_affinity(void)
{
    near("# GPU\tNUMA0\tNUMA1\t\n0\t1\t0\t\n1\t0\t1\t\n0\t0\t1\t\n", true,
         "nodes of two GPUs and another device");
    near("# GPU\tNUMA0\tNUMA1\t\n0\t1\t0\t\n", true, "devices are missing");
    near("# GPU\tNUMA0\tNUMA1\t\n0\t1\t\n", false, "a node is missing");
    near("# GPU\tNUMA0\tNUMA1\t\n1\t1\t0\t\n", false, "another GPU");
    near("# GPU\tNUMA0\tNUMA1\t\n0\t2\t0\t\n", false, "a third node");
    near("# GPU\tNUMA0\tNUMA1\t\n0\t1\t0\t\n1", false, "an open line");
}

static void test_damage(void)
{
    char command[96];

    snprintf(home, sizeof(home), "/tmp/ddp-home-XXXXXX");
    if (!mkdtemp(home))
        bail_out("cannot make %s", home);
    setenv("HOME", home, 1);
    ddp_finish(start());
    waits_for_writer();
    starts_with_damage("config", 0);
    starts_with_damage("config", 40);
    starts_with_damage("affinity", 0);
    starts_with_damage("latency", 0);
    starts_with_text("config", "# Current configuration\nmany # CPUs\n2\n0\n"
                               "0\n0\n0\n0\n0\n");
    starts_with_text("bandwidth", "# to NUMA 0\n\001\n");
    starts_with_folder("affinity");
    starts_with_folder("platform.v4.xml");
    measures_again();
    test_affinity();
    snprintf(command, sizeof(command), "rm -rf %s", home);
    if (system(command))
        diag("%s is left behind", home);
}

int main(void)
{
    static const char *const name[] = {"STARPU_NCPU", "STARPU_NCUDA",
                                       "STARPU_HOME", "XDG_CACHE_HOME",
                                       "STARPU_PERF_MODEL_DIR"};

    for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
        unsetenv(name[i]);
    test_variables();
    test_too_many();
    test_unknown();
    test_home();
    test_damage();
    return done_testing();
}
