/* test_isa.c - which instructions kernels use
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The flags that Linux lists are the oracle of what the processor has.
 * oneDNN's limit of instructions holds for our AMX kernels: both read it once,
 * so each is set in a process of its own.
 */
#include "config.h"

#include "tap.h"

#if !defined(HAVE_ONEDNN) || !defined(__x86_64__)
int main(void)
{
    skip_all("built without oneDNN, or not for x86-64");
}
#else
#include <sys/wait.h>
#include <unistd.h>

#include "cpu/isa.h"
#include "cpu/onednn/onednn_library.h"

static bool is_listed(const char *flag)
{
    static char line[1 << 14];
    FILE *f = fopen("/proc/cpuinfo", "r");
    bool found = false;

    if (!f)
        bail_out("no /proc/cpuinfo");
    while (!found && fgets(line, sizeof(line), f))
        found = strncmp(line, "flags", 5) == 0 && strstr(line, flag);
    fclose(f);
    return found;
}

/* What a process with this limit says of itself; NULL: without one. */
static bool has_tiles(const char *limit)
{
    int status;
    pid_t p = fork();

    if (p == 0) {
        unsetenv("DNNL_MAX_CPU_ISA");
        unsetenv("ONEDNN_MAX_CPU_ISA");
        if (limit)
            setenv("ONEDNN_MAX_CPU_ISA", limit, 1);
        if (ddp__amx_here() != (strcmp(ddp__dnn_isa(), "AMX") == 0))
            _exit(2);
        _exit(ddp__amx_here());
    }
    if (p < 0 || waitpid(p, &status, 0) != p || !WIFEXITED(status))
        bail_out("a process failed");
    ok(WEXITSTATUS(status) < 2, "%s: as oneDNN", limit ? limit : "no limit");
    return WEXITSTATUS(status) == 1;
}

int main(void)
{
    bool amx = is_listed("amx_tile") && is_listed("amx_bf16");
    bool avx512 = is_listed("avx512f") && is_listed("avx512bw") &&
                  is_listed("avx512dq") && is_listed("avx512vl");

    if (avx512 && !__builtin_cpu_supports("avx512f")) /* contrib/check-avx2 */
        skip_all("built as for a processor without AVX-512");
    is_int(ddp__avx2_here(), is_listed("avx2"), "AVX2");
    is_int(ddp__avx512_here(), avx512, "AVX-512");
    is_int(ddp__avx512_bf16_here(), avx512 && is_listed("avx512_bf16"),
           "AVX-512 with bf16");
    is_int(has_tiles(NULL), amx, "tiles if the processor has them");
    is_int(has_tiles("AVX512_CORE_AMX"), amx, "so if the limit has them");
    ok(!has_tiles("AVX512_CORE_BF16"), "none if it is AVX-512 with bf16");
    ok(!has_tiles("AVX2"), "none if it is AVX2");
    return done_testing();
}
#endif
