/* main.c - how training scales: a simulated machine per row
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * StarPU reads a machine from files when it starts, so each one is simulated
 * by a separate process, ddp-predict-step.
 */
#include "config.h"
#include <errno.h>
#include <ftw.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/app.h"
#include "common/interrupt.h"
#include "common/opt_program.h"
#include "predict.h"

struct driver {
    struct predict_settings s;
    char **args;     /* of ddp-predict-step, ended by NULL; owned */
    char number[16]; /* of devices */
    char nodes[16], numa[16];
    char *step;  /* its path; owned */
    char *dir;   /* with the machine; owned, and removed */
    double base; /* images a second and GPU of the first row */
};

/* ---- one machine -------------------------------------------------------- */

static void run_step(const struct driver *d)
{
    setenv("STARPU_HOSTNAME", PREDICT_HOST, 1);
    setenv("STARPU_PERF_MODEL_DIR", d->dir, 1);
    setenv("STARPU_HOME", d->dir, 1);
    setenv("XDG_CACHE_HOME", d->dir, 1);
    setenv("STARPU_NCUDA", d->s.cpus[0] ? "0" : d->number, 1);
    setenv("STARPU_NCPU", d->s.cpus[0] ? d->number : "2", 1);
    execv(d->step, d->args);
    app_say("%s: %s", d->step, strerror(errno));
    _exit(EXIT_UNAVAILABLE);
}

/* The line that ddp-predict-step printed; NULL after a message. */
static json_t *simulate_step(const struct driver *d, int *rc)
{
    int fd[2], status = 0;
    json_error_t why;
    json_t *line;
    FILE *f;
    pid_t pid;

    *rc = EXIT_FAILURE;
    if (pipe(fd) < 0 || (pid = fork()) < 0) {
        app_say("cannot start a process: %s", strerror(errno));
        return NULL;
    }
    if (pid == 0) {
        dup2(fd[1], STDOUT_FILENO);
        close(fd[0]);
        close(fd[1]);
        run_step(d);
    }
    close(fd[1]);
    f = fdopen(fd[0], "r");
    line = f ? json_loadf(f, 0, &why) : NULL;
    if (f)
        fclose(f);
    waitpid(pid, &status, 0);
    *rc = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
    if (*rc == 0 && line)
        return line;
    if (!interrupt_wanted())
        app_say("simulating %s %s failed", d->number, predict_kind(&d->s));
    *rc = *rc ? *rc : EXIT_FAILURE;
    json_decref(line);
    return NULL;
}

/* ---- output ------------------------------------------------------------- */

static double get_number(const json_t *line, const char *key)
{
    return json_number_value(json_object_get(line, key));
}

/* Devices of the machine. */
static double get_devices(const json_t *line)
{
    return get_number(line, json_object_get(line, "cpus") ? "cpus" : "gpus");
}

static void print_row(const json_t *line)
{
    printf(
        "%5.0f %5.0f %10.2f %10.0f %9.1f%% %8.1f%% %5.0f of %-5.0f %9.2f GiB\n",
        get_number(line, "nodes"), get_devices(line),
        get_number(line, "step_ms"), get_number(line, "img_per_s"),
        100 * get_number(line, "efficiency"),
        100 * get_number(line, "idle_share"), get_number(line, "lanes_split"),
        get_number(line, "lanes_run"),
        (get_number(line, "peak_gpu_mib") +
         get_number(line, "copies_gpu_mib")) /
            1024);
}

static void print_reads(const json_t *line)
{
    double read = get_number(line, "read_gib"),
           remote = get_number(line, "remote_gib");

    printf("            %.0f NUMA nodes: %.2f GiB read in a step, %.2f GiB "
           "(%.1f %%) of them from other nodes, each byte once: %.2f GiB\n",
           get_number(line, "numa"), read, remote, 100 * remote / read,
           get_number(line, "once_gib"));
}

static void print_head(const struct predict_settings *s)
{
    printf("%s, %s, %lld sub-batches of %lld images of %lld pixels in %lld "
           "lanes\n",
           s->model, predict_dtypes[s->dtype], (long long)s->sub_batches,
           (long long)s->sub_batch, (long long)s->img_size,
           (long long)s->lanes);
    printf("%5s %5s %10s %10s %10s %9s %14s %13s\n", "nodes", predict_kind(s),
           "step, ms", "images/s", "efficiency", "idle", "split lanes",
           "memory");
}

static int print_result(struct driver *d, json_t *line)
{
    double each = get_number(line, "img_per_s") /
                  (get_number(line, "nodes") * get_devices(line));
    char *text;

    if (d->base == 0)
        d->base = each;
    json_object_set_new(line, "efficiency", json_real(each / d->base));
    if (!d->s.json) {
        print_row(line);
        if (get_number(line, "numa") > 1)
            print_reads(line);
        if (get_number(line, "unknown") > 0)
            app_say("%s has no time of %.0f operations: --tflops and --tbs "
                    "estimate them",
                    d->s.times, get_number(line, "unknown"));
        return 0;
    }
    if (!(text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(8))))
        return EXIT_MEMORY;
    printf("%s\n", text);
    free(text);
    return 0;
}

/* ---- all machines ----------------------------------------------------------
 */

static int predict_one(struct driver *d, int devices, int nodes, int numa)
{
    json_t *line = NULL;
    int rc;

    snprintf(d->number, sizeof(d->number), "%d", devices);
    snprintf(d->nodes, sizeof(d->nodes), "%d", nodes);
    snprintf(d->numa, sizeof(d->numa), "%d", numa);
    if ((rc = predict_machine(d->dir, &d->s, devices)) == 0 &&
        (line = simulate_step(d, &rc)))
        rc = print_result(d, line);
    json_decref(line);
    if (!interrupt_wanted()) /* a signal of the terminal ends both */
        return rc;
    app_say("ended by %s", interrupt_reason());
    return EXIT_FAILURE;
}

static int predict(struct driver *d)
{
    static const int one[] = {1, 0};
    const int *nodes = d->s.nodes[0] ? d->s.nodes : one;
    int rc = 0;

    if (!d->s.json)
        print_head(&d->s);
    for (const int *n = predict_counts(&d->s); rc == 0 && *n; n++)
        for (const int *k = nodes; rc == 0 && *k; k++)
            for (const int *m = d->s.numa; rc == 0 && *m; m++)
                rc = predict_one(d, *n, *k, *m);
    return rc;
}

/* This program's options, and then one machine; SimGrid prints errors only. */
static int make_args(struct driver *d, int argc, char **argv)
{
    int n = 0;

    if (!(d->args = calloc((size_t)argc + 8, sizeof(*d->args))))
        return EXIT_MEMORY;
    for (int i = 0; i < argc; i++)
        d->args[n++] = argv[i];
    d->args[n++] = (char *)"--log=root.thres:error";
    d->args[n++] = (char *)(d->s.cpus[0] ? "--cpus" : "--gpus");
    d->args[n++] = d->number;
    d->args[n++] = (char *)"--nodes";
    d->args[n++] = d->nodes;
    d->args[n++] = (char *)"--numa";
    d->args[n++] = d->numa;
    return 0;
}

/* A helper program that users do not run: next to this one in the build tree,
 * otherwise where make install puts it. */
static char *find_helper(const char *name)
{
    char self[4096], *slash, *path;
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[n < 0 ? 0 : n] = '\0';
    if ((slash = strrchr(self, '/')))
        *slash = '\0';
    path = app_path(slash ? self : ".", "%s", name);
    if (!path || access(path, X_OK) == 0)
        return path;
    free(path);
    return app_path(HELPER_DIR, "%s", name);
}

static int prepare_driver(struct driver *d, int argc, char **argv)
{
    const char *tmp = getenv("TMPDIR");
    int rc = make_args(d, argc, argv);

    d->step = find_helper("ddp-predict-step");
    d->dir = app_path(tmp && *tmp ? tmp : "/tmp", "ddp-predict-XXXXXX");
    if (rc || !d->step || !d->dir)
        return EXIT_MEMORY;
    if (mkdtemp(d->dir))
        return 0;
    app_say("%s: %s", d->dir, strerror(errno));
    d->dir[0] = '\0';
    return EXIT_WRITE;
}

static int remove_one(const char *path, const struct stat *st, int kind,
                      struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void free_driver(struct driver *d)
{
    if (d->dir && *d->dir)
        nftw(d->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(d->dir);
    free(d->step);
    free(d->args);
}

static const struct opt_program program = {
    .name = "ddp-predict",
    .command = (const struct opt_command *const[]){&predict_command, NULL},
};

int main(int argc, char **argv)
{
    struct driver d = {0};
    struct opts o;
    int rc;

    app_start("ddp-predict");
    if (opt_program_asked(&program, argc, argv, &rc))
        return app_end(rc);
    rc = opts_parse(&o, &predict_command, &d.s, argc, argv);
    predict_resolve(&d.s);
    interrupt_catch(0, NULL, NULL);
    if (rc == OPTS_GO && (rc = prepare_driver(&d, argc, argv)) == 0)
        rc = predict(&d);
    free_driver(&d);
    opts_free(&o);
    return app_end(rc);
}
