/* peer_lost.c - what a rank says of another one that is lost
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"
#include "runtime/net.h"
#include "runtime/peer_lost.h"

int ddp__peer_dead(const struct ddp__net *n, int rank)
{
    const struct ddp__beat *b = &n->peers.peer[rank].last;

    return ddp__fail(DDP_EPEER,
                     "rank %d (%s) has died: its process %lld is gone; it was "
                     "last heard of %s, after step %lld",
                     rank, b->status.host, (long long)b->process,
                     ddp_phase_name(b->status.phase),
                     (long long)b->status.step);
}

int ddp__peer_silent(const struct ddp__net *n, int rank, double seconds)
{
    const struct ddp__beat *b = &n->peers.peer[rank].last;

    return ddp__fail(DDP_EPEER,
                     "rank %d (%s) has not been heard of for %.0f s; it was "
                     "%s, after step %lld",
                     rank, b->status.host, seconds,
                     ddp_phase_name(b->status.phase),
                     (long long)b->status.step);
}

int ddp__peer_stuck(const struct ddp__net *n, int rank)
{
    const struct ddp_rank_status *s = &n->peers.peer[rank].last.status;

    return ddp__fail(DDP_EPEER,
                     "rank %d (%s) hangs and others wait for it: it has been "
                     "%s for %.0f s, after step %lld",
                     rank, s->host, ddp_phase_name(s->phase), s->phase_s,
                     (long long)s->step);
}

/* Of several others, nobody can say here which one it is. */
int ddp__peer_inside(const struct ddp__net *n, double seconds)
{
    int other = n->wire.count == 2 ? !n->wire.rank : -1;
    const struct ddp__beat *b;

    if (other < 0)
        return ddp__fail(DDP_EPEER,
                         "another rank is lost: MPI has not returned for %.0f "
                         "s; ranks that it returns to say which",
                         seconds);
    b = &n->peers.peer[other].last;
    return ddp__fail(DDP_EPEER,
                     "rank %d (%s) is lost: MPI has not returned for %.0f s; "
                     "it was last heard of %s, after step %lld",
                     other, b->status.host, seconds,
                     ddp_phase_name(b->status.phase),
                     (long long)b->status.step);
}

int ddp__peer_gone(const struct ddp__net *n, int rank)
{
    const struct ddp__beat *b = &n->peers.peer[rank].last;

    if (b->why[0])
        return ddp__fail(DDP_EPEER, "%s", b->why);
    return ddp__fail(DDP_EPEER, "rank %d (%s) has ended", rank, b->status.host);
}
