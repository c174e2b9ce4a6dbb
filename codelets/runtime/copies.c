/* copies.c - which memories StarPU last copied between
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * StarPU aborts the process where a copy fails, in the thread that asked for
 * it, which may be that of either device: so the thread's name alone does not
 * tell which one was lost.
 */
#include "config.h"

#include <stdio.h>

#include "ddp.h"

#include "runtime/copies.h"

static _Thread_local struct {
    bool made;
    unsigned from, to;
} last;

static int copy_any(void *src, unsigned from, void *dst, unsigned to,
                    void *async)
{
    last.made = true;
    last.from = from;
    last.to = to;
    return starpu_interface_variable_ops.copy_methods->any_to_any(
        src, from, dst, to, async);
}

const struct starpu_data_copy_methods ddp__copy_methods = {
    .any_to_any = copy_any,
};

/* As StarPU names the threads of devices: "CUDA 1". */
static void name_memory(unsigned node, char *name, size_t size)
{
    const char *kind =
        starpu_node_get_kind(node) == STARPU_CUDA_RAM ? "CUDA" : "device";

    if (starpu_node_get_kind(node) == STARPU_CPU_RAM)
        snprintf(name, size, "main memory");
    else
        snprintf(name, size, "%s %d", kind, starpu_memory_node_get_devid(node));
}

bool ddp_last_copy(char *text, size_t size)
{
    char from[32], to[32];

    if (!last.made)
        return false;
    name_memory(last.from, from, sizeof(from));
    name_memory(last.to, to, sizeof(to));
    snprintf(text, size, "from %s to %s", from, to);
    return true;
}
