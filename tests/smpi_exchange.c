/* smpi_exchange.c - how long sums over ranks take on a simulated network
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Built by SMPI's compiler, with the exchange and the module for MPI that real
 * ranks use.  For each number of elements in the arguments rank 0 prints the
 * messages and bytes that it has sent, the seconds until the last rank has the
 * sum, and whether all have the right one.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#include "engine/parts.h"

ddp__wire_open_f ddp_wire_open;

static struct ddp__wire wire;
static int (*send_message)(struct ddp__wire *w, int to, int tag,
                           const void *data, size_t len, uintptr_t *request);
static double messages, bytes;

static int count_message(struct ddp__wire *w, int to, int tag, const void *data,
                         size_t len, uintptr_t *request)
{
    messages++;
    bytes += (double)len;
    return send_message(w, to, tag, data, len, request);
}

/* Every rank gives its number, counted from 1. */
static int exchange(float *x, size_t len)
{
    void **piece = calloc((size_t)wire.count, sizeof(*piece));
    struct ddp__split s = {wire.count, wire.count, wire.count};
    struct ddp__parts p = {
        .all = {.piece = piece, .sum = x, .size = 4, .add = ddp__add_f32},
        .len = len,
        .others = wire.count - 1};
    int rc = piece ? 0 : -1;

    for (size_t i = 0; i < len; i++)
        x[i] = (float)(wire.rank + 1);
    if (piece)
        piece[wire.rank] = x;
    while (rc == 0)
        rc = ddp__parts_poll(&p, &wire, &s, 1);
    ddp__parts_free(&p);
    free(piece);
    return rc;
}

static int is_right(const float *x, size_t len)
{
    float n = (float)wire.count;

    for (size_t i = 0; i < len; i++)
        if (x[i] != n * (n + 1) / 2)
            return 0;
    return 1;
}

static int measure(size_t len)
{
    float *x = malloc(len * sizeof(*x));
    double begin, mine[2], all[2];
    int rc;

    if (!x)
        return -1;
    messages = bytes = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    rc = exchange(x, len);
    mine[0] = MPI_Wtime() - begin;
    mine[1] = !(rc == 1 && is_right(x, len));
    MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (wire.rank == 0)
        printf("%d %zu %.0f %.0f %.9f %s\n", wire.count, len, messages, bytes,
               all[0], all[1] > 0 ? "wrong" : "right");
    free(x);
    return rc == 1 ? 0 : -1;
}

int main(int argc, char **argv)
{
    int rc = ddp_wire_open(&wire);

    if (rc < 0) {
        fprintf(stderr, "%s\n", wire.why);
        return EXIT_FAILURE;
    }
    send_message = wire.send;
    wire.send = count_message;
    for (int i = 1; i < argc && rc == 0; i++)
        rc = measure((size_t)strtoull(argv[i], NULL, 10));
    wire.close(&wire);
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
