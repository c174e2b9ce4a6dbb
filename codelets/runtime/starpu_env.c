/* starpu_env.c - STARPU_* variables, checked before StarPU reads them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * StarPU aborts the process on a value that it cannot read or use.  The names
 * are those whose "abc" did so in StarPU 1.3.10 and 1.4.10, with GPUs or
 * without.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hwloc.h>

#include "base/error.h"
#include "device.h"
#include "runtime/starpu_env.h"

/* Without STARPU_: whole numbers; the empty text counts as 0. */
/* clang-format off */
static const char *const counts[] = {
    "BACKOFF_MAX", "BACKOFF_MIN", "BUS_CALIBRATE", "CALIBRATE",
    "CALIBRATE_MINIMUM", "CATCH_SIGNALS", "CODELET_PROFILING",
    "CUDA_ONLY_FAST_ALLOC_OTHER_MEMNODES", "CUDA_PIPELINE",
    "CUDA_THREAD_PER_DEV", "CUDA_THREAD_PER_WORKER",
    "DATA_LOCALITY_ENFORCE", "DIDUSE_BARRIER",
    "DISABLE_ASYNCHRONOUS_COPY", "DISABLE_ASYNCHRONOUS_CUDA_COPY",
    "DISABLE_ASYNCHRONOUS_HIP_COPY", "DISABLE_ASYNCHRONOUS_MAX_FPGA_COPY",
    "DISABLE_ASYNCHRONOUS_MIC_COPY", "DISABLE_ASYNCHRONOUS_MPI_MS_COPY",
    "DISABLE_ASYNCHRONOUS_OPENCL_COPY",
    "DISABLE_ASYNCHRONOUS_TCPIP_MS_COPY", "DISABLE_KERNELS",
    "DISABLE_PINNING", "DISPLAY_BINDINGS", "ENABLE_CUDA_GPU_GPU_DIRECT",
    "ENABLE_MAP", "ENERGY_PROFILING",
    "EXPECTED_TRANSFER_TIME_WRITEBACK", "FXT_TRACE", "GLOBAL_ARBITER",
    "HISTORY_MAX_ERROR", "LIMIT_BANDWIDTH", "LIMIT_CPU_MEM",
    "LIMIT_CPU_NUMA_MEM", "LIMIT_CUDA_MEM", "LIMIT_MAX_SUBMITTED_TASKS",
    "LIMIT_MIN_SUBMITTED_TASKS", "MAIN_THREAD_BIND", "MAX_MEMORY_USE",
    "MAX_PRIO", "MEMORY_STATS", "MINIMUM_AVAILABLE_MEM",
    "MINIMUM_CLEAN_BUFFERS", "MIN_PRIO", "NCPU", "NCPUS", "NCUDA", "NMIC",
    "NMPI_MS", "NOPENCL", "OPENCL_ONLY_ON_CPUS", "OPENCL_ON_CPUS",
    "PERF_MODEL_HOMOGENEOUS_CPU", "PERF_MODEL_HOMOGENEOUS_CUDA",
    "PERF_MODEL_HOMOGENEOUS_MIC", "PERF_MODEL_HOMOGENEOUS_MPI_MS",
    "PERF_MODEL_HOMOGENEOUS_OPENCL", "PREFETCH", "RESERVE_NCPU", "SILENT",
    "SIMGRID", "SINGLE_COMBINED_WORKER", "STATS", "SUBALLOCATOR",
    "TARGET_AVAILABLE_MEM",
    "TARGET_CLEAN_BUFFERS", "TASK_BREAK_ON_EXEC", "TASK_BREAK_ON_POP",
    "TASK_BREAK_ON_PUSH", "TASK_BREAK_ON_SCHED", "TASK_PROGRESS",
    "TRACE_BUFFER_SIZE", "USE_NUMA", "WATCHDOG_CRASH", "WATCHDOG_DELAY",
    "WORKERS_GETBIND", "WORKERS_NOBIND", "WORKER_TREE"
};
/* clang-format on */

/* Lists of processors or devices: "0 2 4-7", "4-". */
static const char *const lists[] = {"WORKERS_CPUID", "WORKERS_COREID",
                                    "WORKERS_CUDAID", "WORKERS_HIPID",
                                    "WORKERS_OPENCLID"};

/* Others that StarPU reads, and what modules of clusters set. */
/* clang-format off */
static const char *const others[] = {
    "BUS_STATS", "BUS_STATS_FILE", "DIR", "DISK_SWAP",
    "DISK_SWAP_BACKEND", "DISK_SWAP_SIZE",
    "ENABLE_STATS", "EXP_LEN_THRESHOLD", "GENERATE_TRACE",
    "GENERATE_TRACE_OPTIONS", "HIP_PIPELINE", "HOME", "HOSTNAME",
    "HWLOC_INPUT", "IDLE_FILE", "IDLE_POWER", "IDLE_TIME", "LOGFILENAME",
    "MAIN_THREAD_COREID", "MAIN_THREAD_CPUID", "MIC_PROGRAM_PATH", "NHIP",
    "NMAX_FPGA", "NTASKS_THRESHOLD", "NTCPIP_MS", "NTHREADS_PER_CORE",
    "NWORKER_PER_CUDA", "OPENCL_PIPELINE", "OPENCL_PROGRAM_DIR", "PCI_FLAT",
    "PERF_MODEL_DIR", "PERF_MODEL_PATH", "PROFILING", "RAND_SEED", "ROOT",
    "SCHED", "SCHED_ALPHA", "SCHED_BETA", "SCHED_GAMMA",
    "SCHED_GRAPH_TEST_DESCENDANTS", "SCHED_LIB", "SCHED_READY",
    "SCHED_SORTED_ABOVE", "SCHED_SORTED_BELOW",
    "SYNTHESIZE_ARITY_COMBINED_WORKER", "VERSION", "WATCHDOG_TIMEOUT",
    "WINDOW_TIME_SIZE", "WORKER_STATS", "WORKER_STATS_FILE"
};
static const char *const families[] = {
    "AUTOHETEROPRIO_", "FXT_", "HETEROPRIO_", "LAHETEROPRIO_", "LIMIT_CUDA_",
    "LIMIT_HIP_", "LIMIT_OPENCL_", "MPI_", "OPENMP_", "SCHED_COMPONENT_",
    "SIMGRID_", "TCPIP_"
};
/* clang-format on */

static bool is_in(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(name, list[i]))
            return true;
    return false;
}

#define IS_IN(name, list) is_in(name, list, sizeof(list) / sizeof(*(list)))

bool ddp__starpu_env_known(const char *name)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
        if (!strncmp(name, families[i], strlen(families[i])))
            return true;
    return IS_IN(name, counts) || IS_IN(name, lists) || IS_IN(name, others);
}

/* The value of a variable of StarPU, and its whole name. */
static const char *value_of(const char *name, char full[64])
{
    snprintf(full, 64, "STARPU_%s", name);
    return getenv(full);
}

/* A whole number from least to most. */
static int check_number(const char *name, long least, long most)
{
    char full[64], *end;
    const char *text = value_of(name, full);
    long n;

    if (!text)
        return 0;
    errno = 0;
    n = strtol(text, &end, 10);
    if (!errno && end != text && !*end && n >= least && n <= most)
        return 0;
    return ddp__fail(DDP_EINVAL,
                     "%s is '%.64s', expected a whole number from %ld to %ld",
                     full, text, least, most);
}

/* The next range of the list "0 2 4-7" or "4-", of which `to` is then LONG_MAX;
 * false: there is none, and *text is where reading ended. */
static bool next_range(const char **text, long *from, long *to)
{
    const char *at = *text + strspn(*text, " \t,;");
    char *end;

    *text = at;
    if (!isdigit((unsigned char)*at))
        return false;
    *from = *to = strtol(at, &end, 10);
    if (*end == '-') {
        *to = LONG_MAX;
        at = end + 1;
        end++;
        if (isdigit((unsigned char)*at))
            *to = strtol(at, &end, 10);
    }
    *text = end;
    return true;
}

/* Of numbers up to most. */
static int check_list(const char *name, long most)
{
    char full[64];
    const char *text = value_of(name, full), *at = text;
    long from, to;
    bool any = false, fits = true;

    while (at && next_range(&at, &from, &to)) {
        any = true;
        fits = fits && from <= most && (to == LONG_MAX || to <= most);
    }
    if (!text || (any && fits && !*at))
        return 0;
    if (any && !*at)
        return ddp__fail(DDP_EINVAL,
                         "%s is '%.64s', expected numbers from 0 to %ld", full,
                         text, most);
    return ddp__fail(DDP_EINVAL,
                     "%s is '%.64s', expected a list of numbers, such as "
                     "'0 2 4-7'",
                     full, text);
}

uint32_t ddp__starpu_env_gpus(void)
{
    char full[64];
    const char *at = value_of("WORKERS_CUDAID", full);
    long from, to;
    uint32_t chosen = 0;

    while (at && next_range(&at, &from, &to))
        for (long i = from; i <= to && i < DDP__MAX_GPUS; i++)
            chosen |= UINT32_C(1) << i;
    return chosen;
}

int ddp__starpu_env_fits_gpus(int seen)
{
    return seen > 0 ? check_list("WORKERS_CUDAID", seen - 1) : 0;
}

/* What only a StarPU with CUDA reads. */
static int check_gpus(void)
{
    char name[32], full[64];
    const char *worker = value_of("CUDA_THREAD_PER_WORKER", full);
    int rc = check_number("NWORKER_PER_CUDA", 1, STARPU_NMAXWORKERS - 1);

    for (int i = 0; i < DDP__MAX_GPUS && rc == 0; i++) {
        snprintf(name, sizeof(name), "LIMIT_CUDA_%d_MEM", i);
        rc = check_number(name, 0, INT_MAX);
    }
    if (rc == 0 && worker && atoi(worker) == 1 &&
        value_of("CUDA_THREAD_PER_DEV", full))
        return ddp__fail(DDP_EINVAL,
                         "STARPU_CUDA_THREAD_PER_WORKER=1 excludes "
                         "STARPU_CUDA_THREAD_PER_DEV: unset one of them");
    return rc;
}

int ddp__starpu_env_check(void)
{
    char full[64];
    const char *text;
    int rc = 0;

    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts) && rc == 0; i++)
        if ((text = value_of(counts[i], full)) && *text)
            rc = check_number(counts[i], 0, INT_MAX);
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists) && rc == 0; i++)
        rc = check_list(lists[i], INT_MAX);
    if (rc == 0)
        rc = check_gpus();
    return rc < 0 ? rc : check_number("WATCHDOG_TIMEOUT", 0, INT_MAX);
}

int ddp__starpu_env_fits(const struct ddp__topology *t)
{
    int cores = hwloc_get_nbobjs_by_type(t->hw, HWLOC_OBJ_CORE), rc;
    int cpus = hwloc_get_nbobjs_by_type(t->hw, HWLOC_OBJ_PU);

    if (cores <= 0)
        cores = cpus;
    if ((rc = check_list("WORKERS_CPUID", cpus - 1)) < 0 ||
        (rc = check_list("WORKERS_COREID", cores - 1)) < 0 ||
        (rc = check_number("MAIN_THREAD_CPUID", 0, cpus - 1)) < 0 ||
        (rc = check_number("MAIN_THREAD_COREID", 0, cores - 1)) < 0 ||
        (rc = check_number("MPI_THREAD_CPUID", 0, cpus - 1)) < 0 ||
        (rc = check_number("MPI_THREAD_COREID", 0, cores - 1)) < 0)
        return rc;
    return check_number("NTHREADS_PER_CORE", 1,
                        t->threads > 1 ? t->threads : 1);
}
