/* rounds.c - training a network several times, in turns with a peer
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "bench.h"
#include "layers_speed.h"
#include "limits.h"
#include "measure.h"
#include "peer.h"
#include "rounds.h"
#include "runs.h"

/* ---- what the machine reached ------------------------------------------- */

static void widen(struct range *r, double value)
{
    if (!(r->least > 0) || value < r->least)
        r->least = value;
    if (value > r->most)
        r->most = value;
}

static void note_limits(struct reached *all, const struct limits *l)
{
    for (int i = 0; i < 2; i++) {
        all->base[i] = l->peak[i].base;
        widen(&all->peak[i], l->peak[i].flops);
    }
    widen(&all->copy, l->memory.copy);
    widen(&all->only_read, l->memory.read);
}

/* ---- rounds ------------------------------------------------------------- */

struct samples {
    int n, peers; /* rounds, and those in which the peer had a speed */
    double img[ROUNDS_MAX], of_peak[ROUNDS_MAX], of_limit[ROUNDS_MAX];
    double of_layers[ROUNDS_MAX], peer[ROUNDS_MAX], of_peer[ROUNDS_MAX];
};

static void add_peer(struct samples *all, const struct bench_settings *s,
                     const struct bench_speed *v)
{
    double peer = peer_speed(s, v->batch);

    if (!(peer > 0))
        return;
    all->peer[all->peers] = peer;
    all->of_peer[all->peers++] = v->img_per_s / peer;
}

static double share(double img, double of)
{
    return of > 0 ? img / of : 0;
}

static int add_round(struct samples *all, const struct bench_settings *s,
                     struct reached *reached)
{
    struct limits l;
    struct bench_speed v;
    double limit, layers;
    int rc;

    if ((rc = limits_measure(&l, bench_workers(s->workers))) != OPTS_GO)
        return rc;
    note_limits(reached, &l);
    if ((rc = limits_speed(&l, s, &limit)) < 0 ||
        (rc = bench_speed(s, s->point_seconds, &v)) < 0)
        return app_exit_code(rc);
    if ((rc = layers_speed(s, v.batch, &layers)) != OPTS_GO)
        return rc;
    all->img[all->n] = v.img_per_s;
    all->of_peak[all->n] =
        v.img_per_s * v.flops_per_img / limits_peak(&l, bench_dtype(s))->flops;
    all->of_limit[all->n] = share(v.img_per_s, limit);
    all->of_layers[all->n++] = share(v.img_per_s, layers);
    if (s->peer)
        add_peer(all, s, &v);
    return OPTS_GO;
}

int rounds_measure(const struct bench_settings *s, struct rounds *out,
                   struct reached *reached)
{
    struct samples all = {0};
    int rc = OPTS_GO;

    while (all.n < s->rounds && rc == OPTS_GO)
        rc = add_round(&all, s, reached);
    *out = (struct rounds){.img_per_s = bench_median(all.img, all.n),
                           .of_peak = bench_median(all.of_peak, all.n),
                           .of_limit = bench_median(all.of_limit, all.n),
                           .of_layers = bench_median(all.of_layers, all.n),
                           .peer = bench_median(all.peer, all.peers),
                           .of_peer = bench_median(all.of_peer, all.peers)};
    return rc;
}
