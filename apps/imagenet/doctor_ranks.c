/* doctor_ranks.c - where the ranks are, and the network between them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdbool.h>
#include <stdio.h>

#include "common/app_fail.h"
#include "doctor_ranks.h"

enum { MESSAGE = 4 << 20, ROUNDS = 20 };

/* What a rank tells the others. */
struct place {
    int local_rank, workers, gpus;
    double message_s, part_s; /* to the next rank: 1 byte, MESSAGE bytes */
};

static int measure(ddp_t *ddp, struct place *p)
{
    int rc = ddp_barrier(ddp);

    if (rc == 0)
        rc = ddp_ranks_measure(ddp, 1, ROUNDS, &p->message_s);
    if (rc == 0)
        rc = ddp_ranks_measure(ddp, MESSAGE, ROUNDS, &p->part_s);
    return rc;
}

static void print_place(const ddp_t *ddp, int rank, const struct place *p)
{
    struct ddp_rank_status s;
    char name[32], gpus[32] = "";

    if (ddp_ranks_status(ddp, rank, &s) < 0)
        return;
    snprintf(name, sizeof(name), "rank %d", rank);
    if (p->gpus)
        snprintf(gpus, sizeof(gpus), ", %d GPU%s", p->gpus,
                 p->gpus == 1 ? "" : "s");
    report_line(name,
                "host %s, local rank %d, %d device%s%s; to rank %d: %.0f us, "
                "%.2f GB/s",
                s.host, p->local_rank, p->workers, p->workers == 1 ? "" : "s",
                gpus, (rank + 1) % ddp_rank_count(ddp), 1e6 * p->message_s,
                1e-9 * MESSAGE / p->part_s);
}

/* Of a few ranks; of many it would be a list that nobody reads. */
static int print_places(ddp_t *ddp, const struct place *mine)
{
    enum { MOST = 64 };
    int n = ddp_rank_count(ddp), rc = 0;

    for (int i = 0; i < n && i < MOST && rc == 0; i++) {
        struct place p = *mine;

        if ((rc = ddp_bcast(ddp, &p, sizeof(p), i)) == 0)
            print_place(ddp, i, &p);
    }
    return rc;
}

void doctor_ranks(struct report *r, ddp_t *ddp)
{
    struct place p = {.local_rank = ddp_local_rank(ddp),
                      .workers = ddp_worker_count(ddp),
                      .gpus = ddp_gpu_count(ddp, NULL)};
    int rc;

    if (ddp_rank_count(ddp) == 1)
        return;
    report_line("ranks", "%d by %s", ddp_rank_count(ddp),
                ddp_ranks_describe(ddp));
    if ((rc = measure(ddp, &p)) == 0)
        rc = print_places(ddp, &p);
    if (rc < 0)
        report_problem(r, app_exit_code(rc), "network between ranks: %s",
                       ddp_errmsg());
}

/* Blocks of the tree over lanes that lie in a range: a rank sends a vector for
 * each. */
static int count_pieces(int begin, int end, int lanes)
{
    int count = 0;

    for (; begin < end; count++) {
        int size = 1;

        while (begin % (2 * size) == 0 && begin + size < end &&
               (begin + 2 * size <= end || end == lanes))
            size *= 2;
        begin += size;
    }
    return count;
}

void doctor_lanes(int lanes, int ranks)
{
    int least = lanes / ranks, most = (lanes + ranks - 1) / ranks, pieces = 0;
    int better = ranks;

    for (int r = 0; r < ranks; r++) {
        int n = count_pieces((int)((long)r * lanes / ranks),
                             (int)((long)(r + 1) * lanes / ranks), lanes);

        pieces = n > pieces ? n : pieces;
    }
    if (least == most)
        report_line("lanes", "%d for each rank, in %d piece%s", least, pieces,
                    pieces == 1 ? "" : "s");
    else
        report_line("lanes", "%d or %d for each rank, in up to %d pieces",
                    least, most, pieces);
    while (2 * better <= lanes)
        better *= 2;
    if (pieces > 1 || least < most)
        report_line("advice",
                    "a power of two times the ranks balances them and sends "
                    "the fewest bytes: --lanes %d or %d",
                    better, 2 * better);
}
