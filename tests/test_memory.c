/* test_memory.c - whichever allocation fails, a run ends with a sentence
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * This program has its own malloc().  A small run starts, trains, saves, loads
 * and evaluates, again and again in a process of its own, and each time another
 * allocation fails once: with DDP_LONG=1 each of them, else some.  Those that
 * StarPU and hwloc make for themselves are spared, because StarPU aborts
 * without its few bytes.  Those that oneDNN makes by C++'s operator new fail as
 * well, and the run continues.  With DDP_FAIL_AT=n only the n-th fails, and the
 * run is in this process, for a debugger.
 *
 * Then a step has less address space than it needs.
 */
#include "config.h"

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "defaults.h"
#include "remove_tree.h"
#include "sanitized.h"
#include "tap.h"

enum { COUNT = 24, LEN = 6, CLASSES = 3, SECONDS = 60, SOME = 100 };

/* ---- allocations that fail ---------------------------------------------- */

enum { OWN_MALLOC = !SANITIZED };

static atomic_long count; /* allocations so far */
static long fail_at;      /* the number of the one that fails; 0: none */
static bool counting;
static bool of_new; /* those of C++ are counted, and not ours */

#if !SANITIZED
extern const char __executable_start[], etext[];
static struct range {
    const char *begin, *end;
} jansson, cplusplus; /* libraries that allocate for us */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);

static bool is_in(const struct range *r, const char *p)
{
    return p >= r->begin && p < r->end;
}

/* Whether the allocation that a caller asks for is the one. */
static bool fails(const void *caller)
{
    const struct range own = {__executable_start, etext};
    bool ours = of_new ? is_in(&cplusplus, caller)
                       : is_in(&own, caller) || is_in(&jansson, caller);

    if (!counting || !ours || atomic_fetch_add(&count, 1) + 1 != fail_at)
        return false;
    errno = ENOMEM;
    return true;
}

#define FAILS() fails(__builtin_return_address(0))

void *malloc(size_t size)
{
    return FAILS() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return FAILS() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    return FAILS() ? NULL : __libc_realloc(p, size);
}

int posix_memalign(void **p, size_t align, size_t size)
{
    if (FAILS())
        return ENOMEM;
    *p = __libc_memalign(align, size);
    return *p ? 0 : ENOMEM;
}

char *strdup(const char *s)
{
    size_t size = strlen(s) + 1;
    char *p = FAILS() ? NULL : __libc_malloc(size);

    return p ? memcpy(p, s, size) : NULL;
}

static int note_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct range *r = strstr(info->dlpi_name, "libjansson")  ? &jansson
                      : strstr(info->dlpi_name, "libstdc++") ? &cplusplus
                                                             : NULL;

    (void)size;
    (void)arg;
    for (int i = 0; r && i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_flags & PF_X) {
            r->begin =
                (const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            r->end = r->begin + info->dlpi_phdr[i].p_memsz;
            break;
        }
    return 0;
}

static void note_libraries(void)
{
    dl_iterate_phdr(note_library, NULL);
}
#else
static void note_libraries(void)
{
}
#endif

/* ---- the run ------------------------------------------------------------ */

static char top[] = "/tmp/ddp-test-memory-XXXXXX";

/* What a run tells. */
struct outcome {
    int rc;
    long allocations;
    uint32_t crc; /* of the weights */
    char message[512];
};

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    (void)arg;
    (void)key;
    for (int i = 0; i < LEN; i++)
        ((float *)s->x)[i] = (float)((index * 7 + i * 3) % 5) - 2;
    s->label = (int32_t)(index % CLASSES);
    return 0;
}

static const struct ddp_source source = {.count = COUNT,
                                         .shape = {1, 1, LEN},
                                         .type = DDP_F32,
                                         .classes = CLASSES,
                                         .get = get};

static int use_trainer(ddp_trainer_t *t, ddp_chain_t *net, ddp_dataset_t *data,
                       const char *file, uint32_t *crc)
{
    struct ddp_metrics m;
    int rc;

    for (int i = 0; i < 2; i++)
        if ((rc = ddp_trainer_step(t, &m)) < 0)
            return rc;
    if ((rc = ddp_chain_checksum(net, crc)) < 0 ||
        (rc = ddp_trainer_checkpoint(t)) < 0 ||
        (rc = ddp_chain_save(net, file, NULL)) < 0 ||
        (rc = ddp_chain_load(net, file, NULL, NULL)) < 0)
        return rc;
    return ddp_trainer_evaluate(t, data, &m);
}

static int use_context(ddp_t *ddp, const char *dir, uint32_t *crc)
{
    struct ddp_model_options o = {MODEL_DEFAULTS, .classes = CLASSES,
                                  .sizes = (const int[]){LEN, 16, 0}};
    struct ddp_train_config c;
    ddp_chain_t *net = ddp_model_new("mlp", &o);
    ddp_dataset_t *data = ddp_dataset_callback(&source);
    ddp_trainer_t *t;
    char runs[96], file[96];
    int rc;

    snprintf(runs, sizeof(runs), "%s/runs", dir);
    snprintf(file, sizeof(file), "%s/w.safetensors", dir);
    ddp_train_config_init(&c);
    c.optimizer = ddp_adam(1e-2f);
    c.sub_batch = 4;
    c.batch = 12;
    c.checkpoint.dir = runs;
    t = ddp_trainer_new(ddp, net, data, &c);
    rc = t ? use_trainer(t, net, data, file, crc) : ddp_errcode();
    ddp_trainer_free(t);
    ddp_dataset_free(data);
    ddp_chain_free(net);
    return rc;
}

static void run_once(const char *dir, struct outcome *out)
{
    struct ddp_config c;
    ddp_t *ddp;

    ddp_config_init(&c);
    c.cpus = 2;
    c.gpus = 0;
    ddp = ddp_init(&c);
    out->rc = ddp ? use_context(ddp, dir, &out->crc) : ddp_errcode();
    snprintf(out->message, sizeof(out->message), "%s",
             out->rc < 0 ? ddp_errmsg() : "");
    ddp_finish(ddp);
    out->allocations = count;
}

/* ---- in a process of its own -------------------------------------------- */

static void child(int fd, const char *dir, long n)
{
    struct outcome out = {0};

    alarm(SECONDS);
    counting = true;
    fail_at = n;
    run_once(dir, &out);
    _exit(write(fd, &out, sizeof(out)) == sizeof(out) ? 0 : 3);
}

/* Run with allocation n failing; the wait status. */
static int run_child(long n, struct outcome *out)
{
    char dir[80];
    int fd[2], status;
    pid_t pid;

    snprintf(dir, sizeof(dir), "%s/%ld", top, n);
    if (mkdir(dir, 0777) < 0 || pipe(fd) < 0)
        bail_out("no folder or pipe");
    fflush(stdout);
    if ((pid = fork()) == 0)
        child(fd[1], dir, n);
    close(fd[1]);
    if (read(fd[0], out, sizeof(*out)) != sizeof(*out))
        *out = (struct outcome){.rc = DDP_EINVAL};
    close(fd[0]);
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        bail_out("no process");
    remove_tree(dir);
    return status;
}

/* Success, with the right weights, or DDP_ENOMEM with a sentence. */
static bool is_good(int status, const struct outcome *o, uint32_t crc)
{
    if (status != 0)
        return false;
    return o->rc == 0 ? o->crc == crc : o->rc == DDP_ENOMEM && o->message[0];
}

static void complain(const char *what, long n, int status,
                     const struct outcome *o)
{
    if (WIFSIGNALED(status))
        diag("%s %ld: %s", what, n, strsignal(WTERMSIG(status)));
    else
        diag("%s %ld: exit %d, code %d, weights %08x: %s", what, n,
             WEXITSTATUS(status), o->rc, o->crc, o->message);
}

/* ---- tests -------------------------------------------------------------- */

static int run_here(long n)
{
    struct outcome o = {0};

    fail_at = n;
    counting = true;
    run_once(top, &o);
    counting = false;
    is_int(o.rc, DDP_ENOMEM, "allocation %ld fails: %s", n, o.message);
    remove_tree(top);
    return done_testing();
}

static void test_each(const struct outcome *whole)
{
    long stride = getenv("DDP_LONG") ? 1 : whole->allocations / SOME + 1;
    int runs = 0, failed = 0, bad = 0;
    struct outcome o;

    for (long n = 1; n <= whole->allocations; n += stride, runs++) {
        int status = run_child(n, &o);

        failed += status == 0 && o.rc < 0;
        if (is_good(status, &o, whole->crc))
            continue;
        complain("allocation", n, status, &o);
        bad++;
    }
    ok(bad == 0 && failed > runs / 2,
       "%d of %ld allocations fail: %d runs end with DDP_ENOMEM, %d without it "
       "have the same weights",
       runs, whole->allocations, failed, runs - failed);
}

/* ---- oneDNN's ----------------------------------------------------------- */

/* operator new tries again after it has called the handler.  What oneDNN
 * allocates without it and does not check, such as the objects for its
 * memory, ends the process. */
static void test_onednn(const struct outcome *usual)
{
    struct outcome whole, o;
    int runs = 0, bad = 0;
    long stride;

    of_new = true;
    if (run_child(0, &whole) != 0)
        bail_out("the run fails: %s", whole.message);
    stride = whole.allocations / (getenv("DDP_LONG") ? 1000 : SOME / 4) + 1;
    for (long n = 1; n <= whole.allocations; n += stride, runs++) {
        int status = run_child(n, &o);

        if (status == 0 && o.rc == 0 && o.crc == usual->crc)
            continue;
        complain("allocation of C++", n, status, &o);
        bad++;
    }
    of_new = false;
    if (whole.allocations == 0) {
        skip(1, "built without oneDNN");
        return;
    }
    ok(bad == 0, "%d of the %ld allocations of oneDNN's C++ fail: it continues",
       runs, whole.allocations);
}

/* ---- a step without room ------------------------------------------------ */

enum { WIDE = 4096, ROOM = 100 << 20 };

/* Let the address space grow by so many bytes; 0: without limit. */
static void limit_space(size_t more)
{
    struct rlimit limit;
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f || fscanf(f, "%ld", &pages) != 1 || getrlimit(RLIMIT_AS, &limit) < 0)
        bail_out("cannot read the size of this process");
    fclose(f);
    limit.rlim_cur =
        more ? (rlim_t)(pages * sysconf(_SC_PAGESIZE)) + more : limit.rlim_max;
    if (setrlimit(RLIMIT_AS, &limit) < 0)
        bail_out("cannot limit the size of this process");
}

/* A chain whose activations are large, and whose weights are small. */
static ddp_trainer_t *make_trainer(ddp_t *ddp, ddp_chain_t *net,
                                   ddp_dataset_t *data, int sub_batch)
{
    struct ddp_train_config c;

    ddp_train_config_init(&c);
    c.optimizer = ddp_sgd(1e-2f);
    c.sub_batch = sub_batch;
    c.lanes = 2;
    c.batch = 2 * sub_batch;
    return ddp_trainer_new(ddp, net, data, &c);
}

static ddp_chain_t *wide_chain(void)
{
    return ddp_chain_new(ddp_dense_new(LEN, WIDE, NULL), ddp_sigmoid_new(),
                         ddp_dense_new(WIDE, LEN, NULL), ddp_tanh_new(),
                         ddp_dense_new(LEN, WIDE, NULL), ddp_sigmoid_new(),
                         ddp_dense_new(WIDE, CLASSES, NULL), DDP_END);
}

/* What oneDNN allocates at its first use it does not check. */
static void warm_up(ddp_t *ddp, ddp_chain_t *net, ddp_dataset_t *data)
{
    ddp_trainer_t *t = make_trainer(ddp, net, data, 4);
    struct ddp_metrics m;

    if (!t || ddp_trainer_step(t, &m) < 0)
        bail_out("%s", ddp_errmsg());
    ddp_trainer_free(t);
}

/* StarPU asks for a buffer of a task again and again. */
static void test_step(void)
{
    struct ddp_source wide = source;
    ddp_t *ddp =
        ddp_init(&(struct ddp_config){START_DEFAULTS, .cpus = 2, .gpus = 0});
    ddp_chain_t *net = wide_chain();
    ddp_dataset_t *data;
    ddp_trainer_t *t;
    struct ddp_metrics m;
    int rc;

    wide.count = 2 * WIDE;
    data = ddp_dataset_callback(&wide);
    warm_up(ddp, net, data);
    if (!(t = make_trainer(ddp, net, data, WIDE)))
        bail_out("%s", ddp_errmsg());
    alarm(SECONDS);
    limit_space(ROOM);
    rc = ddp_trainer_step(t, &m);
    ok(rc == DDP_ENOMEM &&
           strstr(ddp_errmsg(), "out of memory for a buffer of"),
       "a step without room fails: %s", ddp_errmsg());
    ddp_trainer_free(t);
    limit_space(0);
    t = make_trainer(ddp, net, data, WIDE);
    is_int(ddp_trainer_step(t, &m), 0, "with room, the next one succeeds");
    is_int(ddp_trainer_evaluate(t, data, &m), 0, "and an evaluation");
    alarm(0);
    ddp_trainer_free(t);
    ddp_dataset_free(data);
    ddp_chain_free(net);
    ddp_finish(ddp);
}

int main(void)
{
    struct outcome whole;

    if (!OWN_MALLOC) {
        skip(1, "a sanitizer has its own malloc()");
        return done_testing();
    }
    if (!mkdtemp(top))
        bail_out("no folder for files");
    note_libraries();
    if (getenv("DDP_FAIL_AT"))
        return run_here(atol(getenv("DDP_FAIL_AT")));
    if (run_child(0, &whole) != 0 || whole.rc < 0)
        bail_out("the run fails: %s", whole.message);
    diag("%ld allocations", whole.allocations);
    test_each(&whole);
    test_onednn(&whole);
    test_step();
    rmdir(top);
    return done_testing();
}
