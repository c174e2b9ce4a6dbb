/* env_names.c - variables of the environment that nothing reads
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A misspelt name would change nothing, and nobody would notice.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/env_names.h"
#include "runtime/starpu_env.h"

extern char **environ;

static bool is_ours(const char *name)
{
    static const char *const names[] = {
        "BACKEND",    "BF16_INTEGERS", "CUDA_LIBS", "EARLY",   "FUZZ_SECONDS",
        "FUZZ_SEED",  "HYBRID",        "INFLIGHT",  "LIBCUDA", "LONG",
        "MODULE_DIR", "MPI",           "MPI_CUDA",  "ORACLES", "PROFILE",
        "PYTHON",     "SEGMENT_US",    "TF32",      "TUNE",    "UNLIKE_GPUS",
        "WINOGRAD"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (!strcmp(name, names[i]))
            return true;
    return !strncmp(name, "TEST_", 5);
}

static bool is_unknown(const char *name)
{
    if (!strncmp(name, "STARPU_", 7))
        return !ddp__starpu_env_known(name + 7);
    return !strncmp(name, "DDP_", 4) && !is_ours(name + 4);
}

void ddp__env_unknown(char *list, size_t size)
{
    char name[64];

    *list = '\0';
    for (char **e = environ; e && *e; e++) {
        size_t used = strlen(list);

        snprintf(name, sizeof(name), "%.*s", (int)strcspn(*e, "="), *e);
        if (is_unknown(name) && used + strlen(name) + 3 < size)
            snprintf(list + used, size - used, "%s%s", used ? ", " : "", name);
    }
    ddp_printable(list);
}
