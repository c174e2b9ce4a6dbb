/* limits.c - how fast the cores could train a network at best
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdlib.h>

#include "common/app.h"
#include "common/app_fail.h"
#include "bench.h"
#include "limits.h"

const struct peak *limits_peak(const struct limits *l, enum ddp_dtype type)
{
    return &l->peak[type == DDP_BF16];
}

int limits_measure(struct limits *l, int workers)
{
    l->workers = workers;
    if (peak_measure(&l->peak[0], DDP_F32, workers, 0.3) == 0 &&
        peak_measure(&l->peak[1], DDP_BF16, workers, 0.3) == 0 &&
        memory_measure(&l->memory, workers, 0.3) == 0)
        return OPTS_GO;
    app_say("cannot start threads, or there is no memory");
    return EXIT_FAILURE;
}

/* Seconds of a sub-batch at least, on all workers together. */
struct least {
    double flops; /* a second */
    const struct memory *memory;
    double seconds;
};

static int add_operation(const struct ddp_operation *o, void *arg)
{
    struct least *l = arg;
    double by_flops = o->flops / l->flops;
    double by_bytes = memory_seconds(l->memory, o->bytes, o->read);

    l->seconds += by_flops > by_bytes ? by_flops : by_bytes;
    return 0;
}

int limits_speed(const struct limits *l, const struct bench_settings *s,
                 double *img)
{
    struct ddp_shape shape = {(int)s->img_size, (int)s->img_size, 3};
    struct ddp_optimizer o = ddp_momentum(0.01f, 0.9f);
    enum ddp_dtype type = bench_dtype(s);
    struct least least = {limits_peak(l, type)->flops, &l->memory, 0};
    ddp_chain_t *model = bench_model(s);
    int rc;

    rc = model ? ddp_chain_operations(model, shape, type, (int)s->sub_batch, &o,
                                      add_operation, &least)
               : ddp_errcode();
    ddp_chain_free(model);
    *img = least.seconds > 0 ? (double)s->sub_batch / least.seconds : 0;
    if (rc < 0)
        app_fail(rc);
    return rc;
}
