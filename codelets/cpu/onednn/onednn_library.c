/* onednn_library.c - oneDNN itself: its engine, its streams, its threads
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "base/error.h"
#include "onednn_library.h"
#include "onednn_room.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine; /* kept to the end of the process */
static dnnl_status_t engine_rc;
static int (*omp_max_threads)(void);
static void (*omp_threads)(int);
static char version[32];

/* oneDNN may be built on OpenMP, whose symbols are then there: every worker
 * would have a team of its own. */
static void start_onednn(void)
{
    const dnnl_version_t *v = dnnl_version();

    snprintf(version, sizeof(version), "oneDNN %d.%d.%d", v->major, v->minor,
             v->patch);
    omp_max_threads = (int (*)(void))dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    omp_threads = (void (*)(int))dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    engine_rc = ddp__dnn_room() < 0 ? dnnl_out_of_memory
                                    : dnnl_engine_create(&engine, dnnl_cpu, 0);
}

int ddp__dnn_enter(void)
{
    int threads;

    pthread_once(&once, start_onednn);
    if (!omp_max_threads || !omp_threads)
        return 1;
    threads = omp_max_threads();
    if (threads != 1)
        omp_threads(1);
    return threads;
}

void ddp__dnn_leave(int threads)
{
    if (threads != 1)
        omp_threads(threads);
}

dnnl_status_t ddp__dnn_engine(dnnl_engine_t *out)
{
    *out = engine;
    return engine_rc;
}

int ddp__dnn_check(dnnl_status_t st, const char *what)
{
    if (st == dnnl_success)
        return 0;
    if (st == dnnl_unimplemented)
        return ddp__fail(DDP_ENODEV, "%s has no %s of this kind for this CPU",
                         version, what);
    if (st == dnnl_out_of_memory)
        return ddp__fail(DDP_ENOMEM, "%s: out of memory for its %s", version,
                         what);
    return ddp__fail(DDP_EDEVICE, "%s: %s failed with status %d", version, what,
                     (int)st);
}

/* A stream per thread: cheap, and freed with the thread. */
static pthread_once_t stream_once = PTHREAD_ONCE_INIT;
static pthread_key_t stream_key;
static int stream_key_rc;
static __thread dnnl_stream_t my_stream;

static void stream_free(void *s)
{
    dnnl_stream_destroy(s);
}

static void stream_key_new(void)
{
    stream_key_rc = pthread_key_create(&stream_key, stream_free);
}

static int stream_new(dnnl_stream_t *out)
{
    dnnl_stream_t s;
    int rc;

    pthread_once(&stream_once, stream_key_new);
    rc = ddp__dnn_check(
        dnnl_stream_create(&s, engine, dnnl_stream_default_flags), "stream");
    if (rc < 0)
        return rc;
    if (stream_key_rc || pthread_setspecific(stream_key, s)) {
        dnnl_stream_destroy(s);
        return ddp__fail(DDP_ENOMEM, "out of memory for a stream of oneDNN");
    }
    *out = my_stream = s;
    return 0;
}

int ddp__dnn_stream(dnnl_stream_t *out)
{
    if (!my_stream)
        return stream_new(out);
    *out = my_stream;
    return 0;
}

const char *ddp__dnn_version(void)
{
    ddp__dnn_leave(ddp__dnn_enter());
    return version;
}

/* The instruction sets are sets of bits; oneDNN's limit (DNNL_MAX_CPU_ISA)
 * counts. */
static bool may_use(dnnl_cpu_isa_t set)
{
    ddp__dnn_room(); /* without it there may still be enough */
    return ((int)dnnl_get_effective_cpu_isa() & (int)set) == (int)set;
}

bool ddp__dnn_bf16(void)
{
    return may_use(dnnl_cpu_isa_avx512_core_bf16);
}

bool ddp__dnn_amx(void)
{
    return may_use(dnnl_cpu_isa_avx512_core_amx);
}

const char *ddp__dnn_isa(void)
{
    static const struct {
        dnnl_cpu_isa_t set;
        const char *name;
    } best_first[] = {
        {dnnl_cpu_isa_avx512_core_amx, "AMX"},
        {dnnl_cpu_isa_avx512_core_bf16, "AVX-512 BF16"},
        {dnnl_cpu_isa_avx512_core_vnni, "AVX-512 VNNI"},
        {dnnl_cpu_isa_avx512_core, "AVX-512"},
        {dnnl_cpu_isa_avx2_vnni, "AVX2 VNNI"},
        {dnnl_cpu_isa_avx2, "AVX2"},
        {dnnl_cpu_isa_avx, "AVX"},
        {dnnl_cpu_isa_sse41, "SSE4.1"},
    };

    for (size_t i = 0; i < sizeof(best_first) / sizeof(*best_first); i++)
        if (may_use(best_first[i].set))
            return best_first[i].name;
    return "no vectors";
}
