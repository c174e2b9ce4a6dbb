/* dummy.c - a device in one folder: "accelerators" that CPU workers play
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * tests/test_device.c is linked with a list of devices that has one row more,
 * and with this.  DUMMY_DEVICES says how many the machine has, and their driver
 * finds as many.  They compute dense layers in plain C and leave all else to
 * the CPU.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "dummy.h"
#include "ref/backend.h"

struct dummy_calls dummy_calls;

/* ---- kernels ------------------------------------------------------------- */

static int dummy_init(const struct ddp__machine *m)
{
    (void)m;
    dummy_calls.started++;
    return 0;
}

static void dummy_fini(void)
{
    dummy_calls.stopped++;
}

static const char *dummy_describe(void)
{
    return "made of nothing 1.0";
}

static int dummy_dense_fwd(const struct ddp__task *t)
{
    atomic_fetch_add(&dummy_calls.dense_fwd, 1);
    return ddp__ref_dense_fwd(t);
}

static const struct ddp__backend backend = {
    .name = "dummy",
    .init = dummy_init,
    .fini = dummy_fini,
    .describe = dummy_describe,
    .kernel =
        {
            [DDP__OP_DENSE_FWD] = dummy_dense_fwd,
            [DDP__OP_DENSE_BWD_X] = ddp__ref_dense_bwd_x,
            [DDP__OP_DENSE_BWD_W] = ddp__ref_dense_bwd_w,
        },
};

static const struct ddp__backend *const backends[] = {&backend, NULL};

/* ---- the device ---------------------------------------------------------- */

static void dummy_find(struct ddp__gpus *g, int most)
{
    const char *there = getenv("DUMMY_DEVICES");

    g->seen = there ? atoi(there) : 0;
    while (g->count < g->seen && (!most || g->count < most)) {
        g->id[g->count] = g->count;
        g->count++;
    }
    if (g->count)
        snprintf(g->info[0].name, sizeof(g->info[0].name), "Dummy 1");
    else
        snprintf(g->why, sizeof(g->why), "no dummy is plugged in");
}

/* StarPU's CPU workers are theirs as well. */
static void dummy_configure(struct starpu_conf *conf, const struct ddp__gpus *g)
{
    (void)conf;
    dummy_calls.configured = g->count;
}

static void dummy_attach(struct starpu_codelet *cl, starpu_cpu_func_t run)
{
    cl->cpu_funcs[0] = run;
}

const struct ddp__device ddp__device_dummy = {
    .name = "dummy",
    .kind = DUMMY,
    .workers = STARPU_CPU_WORKER,
    .where = STARPU_CPU,
    .memory = STARPU_CPU_RAM,
    .speed = {.begin_us = 1, .flops = 1e9, .bytes = 1e9},
    .backends = backends,
    .count = "DUMMY_COUNT",
    .find = dummy_find,
    .configure = dummy_configure,
    .attach = dummy_attach,
};
