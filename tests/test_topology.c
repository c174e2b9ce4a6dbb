/* test_topology.c - cores, caches and memory nodes of machines made up for it
 *
 * hwloc builds a machine out of a line of text (HWLOC_SYNTHETIC) or a file, so
 * that line has the right answer.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <starpu.h>
#include "base/philox.h"
#include "runtime/context.h"
#include "runtime/place.h"
#include "runtime/pool.h"
#include "defaults.h"
#include "tap.h"

/* 2 packages of 4 cores of 2 hyper-threads: PU 2i is core i's first. */
#define SERVER                                                                 \
    "pack:2 [numa] l3:1(size=33554432) l2:4(size=1048576) core:1 pu:2"

/* NULL: this machine, without the part of hwloc that leaks; a choice of parts
 * would have hwloc look at this machine in any case. */
static void pretend(const char *variable, const char *machine)
{
    if (machine) {
        unsetenv("HWLOC_COMPONENTS");
        setenv(variable, machine, 1);
    } else {
        unsetenv(variable);
        setenv("HWLOC_COMPONENTS", "-pci", 1);
    }
}

static void load(struct ddp__topology *t, const char *machine, bool devices)
{
    pretend("HWLOC_SYNTHETIC", machine);
    if (ddp__topology_load(t, devices) < 0)
        bail_out("%s", ddp_errmsg());
    pretend("HWLOC_SYNTHETIC", NULL);
}

static const char *words(const struct ddp__topology *t)
{
    static char s[256];

    ddp__topology_describe(t, s, sizeof(s));
    return s;
}

/* ---- what is found ------------------------------------------------------ */

static void test_server(void)
{
    struct ddp__topology t;
    bool right = true;

    load(&t, SERVER, false);
    is_int(t.machine.cores, 8, "2 x 4 cores of 2 hyper-threads are 8");
    for (int i = 0; i < t.machine.cores; i++)
        right =
            right && t.core[i].pu == 2 * (unsigned)i && t.core[i].node == i / 4;
    ok(right, "each with its first hyper-thread, and the node of its package");
    ok(t.nodes == 2 && t.packages == 2 && t.threads == 2, "2 nodes, packages");
    ok(t.l3 == 32 << 20 && t.l2 == 1 << 20 && t.machine.l2_of_core == 1 << 20,
       "the caches' sizes");
    ok(strstr(words(&t), "8 cores of 2 hyper-threads in 2 packages, "
                         "2 NUMA nodes") &&
           strstr(words(&t), ", L2 1 MiB, L3 32 MiB"),
       "in words: %s", words(&t));
    ok(strstr(t.unbound, "another machine"),
       "nothing is bound on cores that are not there: %s", t.unbound);
    ddp__topology_free(&t);
}

static void test_caches(void)
{
    struct ddp__topology t;

    load(&t, "pack:1 [numa] l2:2(size=2097152) core:4 pu:1", false);
    ok(t.l3 == 0 && t.l2 == 2 << 20 && t.machine.l2_of_core == 512 << 10,
       "no L3, and an L2 that 4 cores share");
    is_str(strstr(words(&t), ", L2") ? strstr(words(&t), ", L2") : "",
           ", L2 2 MiB", "in words, there is no L3");
    ddp__topology_free(&t);
    load(&t, "pu:3", false);
    ok(t.machine.cores == 3 && t.machine.l2_of_core == 0 && t.nodes == 1,
       "a system that reports processors only: %s", words(&t));
    ddp__topology_free(&t);
}

/* ---- ranks of one machine ----------------------------------------------- */

enum { CORES = 8, MOST_RANKS = 4 };

static void load_allowed(struct ddp__topology *t, unsigned allowed)
{
    int kept = 0;

    load(t, SERVER, false);
    for (int i = 0; i < CORES; i++)
        if (allowed >> i & 1)
            t->core[kept++] = t->core[i];
    t->machine.cores = kept;
}

/* Which rank has each core, if their launcher allows them these (bit i: core
 * i): a digit, '-' for none and 'x' for several. */
static const char *shares(int ranks, const unsigned *allowed, int machines)
{
    static char owner[CORES + 1];
    struct ddp__topology t[MOST_RANKS];
    struct ddp__cores all[MOST_RANKS];

    memset(owner, '-', CORES);
    for (int r = 0; r < ranks; r++) {
        load_allowed(&t[r], allowed[r]);
        all[r].machine = (uint64_t)(r % machines);
        ddp__topology_cores(&t[r], &all[r]);
    }
    for (int r = 0; r < ranks; r++) {
        if (ddp__topology_share(&t[r], all, ranks, r) < 0)
            bail_out("%s", ddp_errmsg());
        for (int i = 0; i < t[r].machine.cores; i++) {
            char *at = &owner[t[r].core[i].pu / 2];

            *at = *at == '-' ? (char)('0' + r) : 'x';
        }
        ddp__topology_free(&t[r]);
    }
    return owner;
}

static void test_shares(void)
{
    is_str(shares(2, (unsigned[]){0xff, 0xff}, 1), "00001111",
           "two ranks that are not bound divide the cores");
    is_str(shares(3, (unsigned[]){0xff, 0xff, 0xff}, 1), "00111222",
           "so do three");
    is_str(shares(2, (unsigned[]){0x01, 0x02}, 1), "01------",
           "those that are bound to cores keep theirs");
    is_str(shares(4, (unsigned[]){0x0f, 0xf0, 0x0f, 0xf0}, 1), "00221133",
           "of those that are bound to packages two divide each");
    is_str(shares(2, (unsigned[]){0xff, 0x0f}, 1), "00110000",
           "what only one may use is not divided");
    is_str(shares(2, (unsigned[]){0xff, 0xff}, 2), "xxxxxxxx",
           "on two machines each has all");
    is_str(shares(2, (unsigned[]){0x01, 0x01}, 1), "x-------",
           "two ranks with one core share it");
}

/* ---- affinity ----------------------------------------------------------- */

/* The last CPU that this process may use: StarPU would take the first. */
static int last_cpu(cpu_set_t *all)
{
    int last = -1;

    if (sched_getaffinity(0, sizeof(*all), all) == 0)
        for (int i = 0; i < CPU_SETSIZE; i++)
            last = CPU_ISSET(i, all) ? i : last;
    return last;
}

static void note_cpus(void *arg)
{
    sched_getaffinity(0, sizeof(cpu_set_t), arg);
}

static void test_affinity(void)
{
    cpu_set_t all, one, worker;
    struct ddp__topology t;
    int cpu = last_cpu(&all);
    char machine[64];
    ddp_t *ddp;

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof(one), &one) < 0)
        bail_out("sched_setaffinity(): the system has no affinity");
    snprintf(machine, sizeof(machine), "core:%d pu:2", cpu / 2 + 3);
    setenv("HWLOC_THISSYSTEM", "1", 1);
    load(&t, machine, false);
    unsetenv("HWLOC_THISSYSTEM");
    ok(t.machine.cores == 1 && t.seen == cpu / 2 + 3 &&
           t.core[0].pu == (unsigned)cpu,
       "one core of many, by the hyper-thread that is allowed: %s", words(&t));
    ddp__topology_free(&t);

    unsetenv("STARPU_NCPU");
    ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .gpus = 0});
    is_int(ddp ? (int)starpu_cpu_worker_get_count() : -1, 1,
           "a worker for the one processor of the affinity: %s",
           ddp ? ddp_describe(ddp) : ddp_errmsg());
    starpu_execute_on_each_worker(note_cpus, &worker, STARPU_CPU);
    ok(CPU_EQUAL(&worker, &one), "which runs there, on CPU %d", cpu);
    ddp_finish(ddp);
    sched_setaffinity(0, sizeof(all), &all);
}

/* ---- places ------------------------------------------------------------- */

static bool on_node_1(const unsigned *pu, int n)
{
    bool good = true;

    for (int i = 0; i < n; i++)
        good = good && pu[i] >= 8;
    return good;
}

static void test_places(void)
{
    static const int near[] = {1, 0}, unknown[] = {-1};
    struct ddp__topology t;
    unsigned pu[16], seen = 0;

    load(&t, SERVER, false);
    ok(ddp__topology_place(&t, 3, near, 1, pu, 16) && on_node_1(pu, 4),
       "3 CPU workers and their GPU, on the node of the GPU");
    ok(pu[4] == pu[0] && pu[7] == pu[3], "the list begins again");
    ddp__topology_free(&t);
    load(&t, SERVER, false);
    ok(ddp__topology_place(&t, 6, near, 2, pu, 16) && pu[6] >= 8 && pu[7] < 8,
       "2 GPUs have cores near them though CPU workers take all others");
    for (int i = 0; i < 8; i++)
        seen |= 1u << pu[i];
    is_int((int)seen, 0x5555, "and nobody shares one");
    ddp__topology_free(&t);
    load(&t, SERVER, false);
    ok(ddp__topology_place(&t, 2, unknown, 1, pu, 16) &&
           (pu[0] | pu[1] | pu[2]) < 8,
       "a GPU that is nowhere: from the first core on");
    ok(ddp__topology_place(&t, 12, NULL, 0, pu, 16),
       "more workers than cores share them");
    ok(!ddp__topology_place(&t, 17, NULL, 0, pu, 16) &&
           !ddp__topology_place(&t, 0, NULL, 0, pu, 16),
       "a list that is too short, or for nobody, is refused");
    ddp__topology_free(&t);
}

/* Workers of a machine of 8 cores, and those of its cores that none has. */
static void test_left(int gpus, int cpus, int left)
{
    struct ddp ddp = {.gpus.count = gpus};
    struct starpu_conf conf;
    unsigned seen = 0;

    load(&ddp.topology, SERVER, false);
    starpu_conf_init(&conf);
    conf.ncpus = -1;
    ddp__place_workers(&ddp, &conf);
    if (cpus > STARPU_MAXCPUS) { /* StarPU was built for fewer */
        left += cpus - STARPU_MAXCPUS;
        cpus = STARPU_MAXCPUS;
    }
    is_int(conf.ncpus, cpus, "%d GPUs, 8 cores: %d CPU workers", gpus, cpus);
    for (int i = 0; i < conf.ncpus + gpus; i++)
        seen |= 1u << conf.workers_bindid[i];
    is_int(8 - __builtin_popcount(seen), left,
           "%d cores are left for the thread that submits", left);
    ddp__topology_free(&ddp.topology);
}

static void test_cores_left(void)
{
    test_left(0, 8, 0);
    test_left(1, 6, 1);
    test_left(3, 4, 1);
    test_left(8, 1, 0); /* one reads the input; it shares a core */
}

/* A core for each package, and a GPU in the second. */
static const char with_gpu[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
    "<topology version=\"2.0\">\n"
    "<object type=\"Machine\" os_index=\"0\" cpuset=\"0x3\" nodeset=\"0x3\" "
    "complete_cpuset=\"0x3\" complete_nodeset=\"0x3\" allowed_cpuset=\"0x3\" "
    "allowed_nodeset=\"0x3\" gp_index=\"1\">\n"
#define PACKAGE_OF(i, set)                                                     \
    "<object type=\"Package\" os_index=\"" i "\" cpuset=\"" set                \
    "\" nodeset=\"" set "\" complete_cpuset=\"" set                            \
    "\" complete_nodeset=\"" set "\" gp_index=\"2" i "\">\n"                   \
    "<object type=\"NUMANode\" os_index=\"" i "\" cpuset=\"" set               \
    "\" nodeset=\"" set "\" complete_cpuset=\"" set                            \
    "\" complete_nodeset=\"" set "\" gp_index=\"3" i "\"/>\n"                  \
    "<object type=\"Core\" os_index=\"" i "\" cpuset=\"" set                   \
    "\" nodeset=\"" set "\" complete_cpuset=\"" set                            \
    "\" complete_nodeset=\"" set "\" gp_index=\"4" i "\">\n"                   \
    "<object type=\"PU\" os_index=\"" i "\" cpuset=\"" set "\" nodeset=\"" set \
    "\" complete_cpuset=\"" set "\" complete_nodeset=\"" set                   \
    "\" gp_index=\"5" i "\"/></object>\n"
    PACKAGE_OF("0", "0x1") "</object>\n" PACKAGE_OF(
        "1", "0x2") "<object type=\"Bridge\" gp_index=\"60\" "
                    "bridge_type=\"0-1\" depth=\"0\" "
                    "bridge_pci=\"0001:[a0-af]\">\n"
                    "<object type=\"PCIDev\" gp_index=\"61\" "
                    "pci_busid=\"0001:a1:02.0\" "
                    "pci_type=\"0302 [10de:2335] [10de:18be] a1\" "
                    "pci_link_speed=\"0\"/>\n"
                    "</object></object></object></topology>\n";

static void test_gpu(void)
{
    char path[] = "/tmp/ddp-topology-XXXXXX";
    int fd = mkstemp(path);
    struct ddp__topology t;

    if (fd < 0 || write(fd, with_gpu, sizeof(with_gpu) - 1) < 0)
        bail_out("cannot write %s", path);
    close(fd);
    pretend("HWLOC_XMLFILE", path);
    if (ddp__topology_load(&t, true) < 0)
        bail_out("%s", ddp_errmsg());
    pretend("HWLOC_XMLFILE", NULL);
    unlink(path);
    is_int(ddp__topology_node_near(&t, 1, 0xa1, 2), 1,
           "a GPU of the second package is near node 1");
    is_int(ddp__topology_node_near(&t, 0, 0xa1, 2), -1,
           "one that is not there is near none");
    ddp__topology_free(&t);
}

/* ---- memory ------------------------------------------------------------- */

static bool run_on(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof(set), &set) == 0;
}

/* Two nodes of one processor each.  Where the memory really is, the machine
 * that was made up cannot tell, so the thread that frees counts. */
static void test_pool(void)
{
    enum { SIZE = 3 << 20 };
    struct ddp__topology t;
    cpu_set_t all;
    void *a, *b;

    sched_getaffinity(0, sizeof(all), &all);
    if (!run_on(0) || !run_on(1)) {
        sched_setaffinity(0, sizeof(all), &all);
        skip(2, "no CPUs 0 and 1 here");
        return;
    }
    load(&t, "numa:2 core:1 pu:1", false);
    ddp__pool_nodes(&t);
    run_on(0);
    ddp__pool_free(a = ddp__pool_alloc(SIZE), SIZE);
    run_on(1);
    b = ddp__pool_alloc(SIZE);
    ok(b && b != a, "another node has memory of its own");
    ddp__pool_free(b, SIZE);
    run_on(0);
    ok(ddp__pool_alloc(SIZE) == a, "what is freed is for its node again");
    ddp__pool_free(a, SIZE);
    sched_setaffinity(0, sizeof(all), &all);
    ddp__pool_trim();
    ddp__pool_nodes(NULL);
    ddp__topology_free(&t);
}

/* ---- training ----------------------------------------------------------- */

/* Activations of 2 MiB, which some of the machines below stream. */
enum { SIDE = 64, CHANNELS = 16, SUB = 8, CLASSES = 3, COUNT = 3 * SUB };
enum { MOST = 65536 };

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    (void)key;
    s->label = (int32_t)(index % CLASSES);
    for (int i = 0; i < SIDE * SIDE; i++)
        x[i] = ddp__uniform(ddp__philox(5, (uint64_t)index, (uint64_t)i).v[0]);
    return 0;
}

/* The weights after two steps on such a machine. */
static size_t train(const char *machine, const char *cpus, float *out)
{
    ddp_dataset_t *d =
        ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                  .shape = {SIDE, SIDE, 1},
                                                  .type = DDP_F32,
                                                  .classes = CLASSES,
                                                  .get = get});
    ddp_chain_t *c = ddp_chain_new(
        ddp_conv_new(1, CHANNELS, 3,
                     &(struct ddp_conv_options){CONV_DEFAULTS, .pad = 1}),
        ddp_batch_norm_new(CHANNELS, NULL), ddp_relu_new(),
        ddp_conv_new(CHANNELS, CHANNELS, 3,
                     &(struct ddp_conv_options){CONV_DEFAULTS, .pad = 1}),
        ddp_relu_new(), ddp_max_pool_new(8, NULL), ddp_flatten_new(),
        ddp_dense_new(SIDE * SIDE / 64 * CHANNELS, CLASSES, NULL), DDP_END);
    struct ddp_param_info p;
    ddp_trainer_t *t;
    ddp_t *ddp;
    size_t n = 0;

    setenv("STARPU_NCPU", cpus, 1);
    pretend("HWLOC_SYNTHETIC", machine);
    ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .gpus = 0});
    t = ddp ? ddp_trainer_new(
                  ddp, c, d,
                  &(struct ddp_train_config){
                      TRAIN_DEFAULTS, .optimizer = ddp_momentum(0.05f, 0.9f),
                      .sub_batch = SUB, .batch = COUNT, .steps = 2, .seed = 3})
            : NULL;
    if (!t || ddp_trainer_train(t) < 0)
        bail_out("%s", ddp_errmsg());
    for (int i = 0; ddp_chain_param(c, i, &p) == 0; n += p.len, i++)
        if (n + p.len > MOST || ddp_chain_get(c, p.name, out + n, p.len))
            bail_out("%s: %s", p.name, ddp_errmsg());
    diag("%s", ddp_describe(ddp));
    ddp_trainer_free(t);
    ddp_chain_free(c);
    ddp_dataset_free(d);
    ddp_finish(ddp);
    pretend("HWLOC_SYNTHETIC", NULL);
    return n;
}

static void test_train(void)
{
    static const char *const machine[] = {
        SERVER, "pack:1 [numa] l2:2(size=67108864) core:1 pu:1",
        "numa:2 core:1 pu:1", "pu:1"};
    static float here[MOST], there[MOST];
    size_t n = train(NULL, "2", here);

    for (size_t i = 0; i < sizeof(machine) / sizeof(machine[0]); i++)
        ok(train(machine[i],
                 i == 0   ? "3"
                 : i == 3 ? "1"
                          : "2",
                 there) == n &&
               memcmp(here, there, n * sizeof(*here)) == 0,
           "the same weights to the bit on %s", machine[i]);
}

/* Without STARPU_NCPU. */
static void test_workers(void)
{
    int n, want = STARPU_MAXCPUS < 8 ? STARPU_MAXCPUS : 8;
    unsigned seen = 0, cores = 0;
    ddp_t *ddp;

    unsetenv("STARPU_NCPU");
    pretend("HWLOC_SYNTHETIC", SERVER);
    if (!(ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .gpus = 0})))
        bail_out("%s", ddp_errmsg());
    n = (int)starpu_cpu_worker_get_count();
    is_int(n, want, "a worker for each core, not hyper-thread");
    for (int i = 0; i < n; i++)
        seen |= 1u << starpu_worker_get_bindid(i);
    for (int i = 0; i < 16; i++)
        cores += seen >> i & 1;
    ok((int)cores == n && (seen & 0xaaaa) == 0,
       "each has one for itself (PUs %#x)", seen);
    ok(strstr(ddp_describe(ddp), "8 cores of 2 hyper-threads") &&
           strstr(ddp_describe(ddp), "not bound to cores") &&
           !strstr(ddp_describe(ddp), "built for") == (n == 8),
       "the description has all that: %s", ddp_describe(ddp));
    ok(!getenv("STARPU_WORKERS_NOBIND"), "no variable is left behind");
    ddp_finish(ddp);

    setenv("STARPU_WORKERS_NOBIND", "1", 1);
    setenv("STARPU_NCPU", "2", 1);
    if (!(ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .gpus = 0})))
        bail_out("%s", ddp_errmsg());
    ok(strstr(ddp_describe(ddp), "STARPU_WORKERS_NOBIND=1 places workers"),
       "the user's variable is left alone, and named");
    ddp_finish(ddp);
    unsetenv("STARPU_WORKERS_NOBIND");
    pretend("HWLOC_SYNTHETIC", NULL);
}

int main(void)
{
    test_server();
    test_caches();
    test_shares();
    test_places();
    test_cores_left();
    test_gpu();
    test_pool();
    test_train();
    test_workers();
    test_affinity();
    return done_testing();
}
