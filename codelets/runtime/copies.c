/* copies.c - which memories StarPU last copied between
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A copy may be made by the thread of either device: if it fails, the thread's
 * name alone does not tell which one was lost.
 */
#include "config.h"

#include <stdio.h>

#include "ddp.h"

#include "runtime/copies.h"
#include "runtime/lost.h"

static _Thread_local struct {
    bool made;
    unsigned from, to;
} last;

static int copy_any(void *src, unsigned from, void *dst, unsigned to,
                    void *async)
{
    if (ddp__lost_any())
        return 0; /* nobody reads the copy */
    last.made = true;
    last.from = from;
    last.to = to;
    return starpu_interface_variable_ops.copy_methods->any_to_any(
        src, from, dst, to, async);
}

const struct starpu_data_copy_methods ddp__copy_methods = {
    .any_to_any = copy_any,
};

void ddp__memory_name(unsigned node, char *name, size_t size)
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
    ddp__memory_name(last.from, from, sizeof(from));
    ddp__memory_name(last.to, to, sizeof(to));
    snprintf(text, size, "from %s to %s", from, to);
    return true;
}
