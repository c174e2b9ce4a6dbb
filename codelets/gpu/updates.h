/* updates.h - updates, norms that they clip by, averages, sums of statistics
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A block has a tile of a bucket and does what the spans in it say, all of a
 * bucket in one launch.
 */
#ifndef DDP_UPDATES_H
#define DDP_UPDATES_H

#include "rules.h"

struct ddp__k_merge_stats_shared {
    char none;
};

/* dst += src */
DDP__DEVICE void ddp__k_merge_stats_block(const struct ddp__k_merge_stats *p,
                                          struct ddp__k_merge_stats_shared *sh,
                                          unsigned block)
{
    (void)sh;
    (void)block;
    DDP__EACH(t, DDP__THREADS)
    {
        for (size_t i = t; i < p->len; i += DDP__THREADS)
            p->dst[i] += p->src[i];
    }
}

/* The first span that ends after element i. */
DDP__DEVICE int ddp__k_first_span(const struct ddp__k_optim *p, size_t i)
{
    int low = 0, high = p->spans;

    while (low < high) {
        int middle = (low + high) / 2;

        if (p->span[middle].end > i)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Elements begin .. end - 1: what a span and a tile share. */
struct ddp__k_piece {
    size_t begin, end;
};

DDP__DEVICE struct ddp__k_piece ddp__k_piece(const struct ddp__k_span *s,
                                             size_t tile)
{
    struct ddp__k_piece k = {tile, tile + DDP__TILE};

    if (s->begin > k.begin)
        k.begin = s->begin;
    if (s->end < k.end)
        k.end = s->end;
    return k;
}

/* Of both together: the sum, the first of trained values that is not finite,
 * the last of running statistics; 0: there is none. */
DDP__DEVICE struct ddp__k_norms ddp__k_join_norms(struct ddp__k_norms a,
                                                  struct ddp__k_norms b)
{
    a.squares += b.squares;
    if (a.trained == 0 || (b.trained != 0 && b.trained < a.trained))
        a.trained = b.trained;
    if (b.running > a.running)
        a.running = b.running;
    return a;
}

/* Element e of a span. */
DDP__DEVICE struct ddp__k_norms ddp__k_norm_of(const struct ddp__k_optim *p,
                                               const struct ddp__k_span *s,
                                               size_t e)
{
    struct ddp__k_norms n = {0, 0, 0};
    double place = (double)(p->begin + e + 1);
    float g = p->g[e];

    if (!(g - g == 0)) { /* infinite, or no number */
        n.squares = NAN;
        n.trained = s->running ? 0 : place;
        n.running = s->running ? place : 0;
    } else if (!s->running) {
        n.squares = (double)g * g;
    }
    return n;
}

struct ddp__k_sqnorm_shared {
    struct ddp__k_norms of[DDP__THREADS];
};

/* What a thread finds in a tile. */
DDP__DEVICE struct ddp__k_norms ddp__k_tile_norms(const struct ddp__k_optim *p,
                                                  size_t tile, unsigned t)
{
    struct ddp__k_norms n = {0, 0, 0};

    for (int i = ddp__k_first_span(p, tile);
         i < p->spans && p->span[i].begin < tile + DDP__TILE; i++) {
        struct ddp__k_piece k = ddp__k_piece(&p->span[i], tile);

        for (size_t e = tile + t; e < k.end; e += DDP__THREADS)
            if (e >= k.begin)
                n = ddp__k_join_norms(n, ddp__k_norm_of(p, &p->span[i], e));
    }
    return n;
}

/* Of a tile; nothing without a divisor.  4 in. */
DDP__DEVICE void ddp__k_sqnorm_block(const struct ddp__k_optim *p,
                                     struct ddp__k_sqnorm_shared *sh,
                                     unsigned block)
{
    DDP__EACH(t, DDP__THREADS)
    {
        sh->of[t] = ddp__k_tile_norms(p, (p->first + block) * DDP__TILE, t);
    }
    for (unsigned half = DDP__THREADS / 2; half > 0; half /= 2)
        DDP__EACH(t, half)
        {
            sh->of[t] = ddp__k_join_norms(sh->of[t], sh->of[t + half]);
        }
    DDP__EACH(t, 1)
    {
        struct ddp__k_norms n = {0, 0, 0};
        double d = p->stats[DDP__K_DIVISOR];

        if (d != 0) {
            n = sh->of[t];
            n.squares /= d * d;
        }
        p->part[block + t] = n;
    }
}

struct ddp__k_sqnorm_sum_shared {
    struct ddp__k_norms of[DDP__THREADS];
};

/* In the order of enum ddp__norm.  If a place was recorded before, the one of
 * trained values is kept. */
DDP__DEVICE void ddp__k_put_norms(const struct ddp__k_sqnorm_sum *p,
                                  struct ddp__k_norms n)
{
    double *norm = p->norm;

    norm[0] = p->add ? norm[0] + n.squares : n.squares;
    if (!p->add || norm[1] == 0)
        norm[1] = n.trained;
    if (!p->add || n.running != 0)
        norm[2] = n.running;
}

DDP__DEVICE void ddp__k_sqnorm_sum_block(const struct ddp__k_sqnorm_sum *p,
                                         struct ddp__k_sqnorm_sum_shared *sh,
                                         unsigned block)
{
    (void)block;
    DDP__EACH(t, DDP__THREADS)
    {
        struct ddp__k_norms n = {0, 0, 0};

        for (unsigned i = t; i < p->count; i += DDP__THREADS)
            n = ddp__k_join_norms(n, p->part[i]);
        sh->of[t] = n;
    }
    for (unsigned half = DDP__THREADS / 2; half > 0; half /= 2)
        DDP__EACH(t, half)
        {
            sh->of[t] = ddp__k_join_norms(sh->of[t], sh->of[t + half]);
        }
    DDP__EACH(t, 1)
    {
        ddp__k_put_norms(p, sh->of[t]);
    }
}

/* Make of[0] the sum of all. */
DDP__DEVICE void ddp__k_sum_squares(struct ddp__k_squares *of)
{
    for (unsigned half = DDP__THREADS / 2; half > 0; half /= 2)
        DDP__EACH(t, half)
        {
            of[t].w += of[t + half].w;
            of[t].step += of[t + half].step;
        }
}

/* ---- outputs whose gradients are clipped by the norm of their weights --- */

struct ddp__k_units_shared {
    float factor; /* of g */
    struct ddp__k_squares of[DDP__THREADS];
};

/* The elements of an output, and the span that they are in. */
struct ddp__k_output {
    int span;
    size_t begin, len;
};

/* Output `unit` of a launch. */
DDP__DEVICE struct ddp__k_output ddp__k_output_of(const struct ddp__k_optim *p,
                                                  unsigned unit)
{
    struct ddp__k_output o;
    int i = p->spans - 1;

    while (!p->unit[i].len || p->unit[i].first > unit)
        i--;
    o.span = i;
    o.len = p->unit[i].len;
    o.begin = p->span[i].begin + (unit - p->unit[i].first) * o.len;
    return o;
}

/* Brock et al. 2021: the gradient of an output is no longer than a share of its
 * weights. */
DDP__DEVICE float ddp__k_unit_factor(const struct ddp__k_optim *p,
                                     struct ddp__k_squares n)
{
    double norm = sqrt(n.step), w = sqrt(n.w), most;

    most = p->clip_unit * (w > DDP__UNIT_WEIGHTS ? w : DDP__UNIT_WEIGHTS);
    if (norm < most)
        return 1;
    return (float)(most /
                   (norm > DDP__UNIT_GRADIENT ? norm : DDP__UNIT_GRADIENT));
}

/* Of an output.  8 in. */
DDP__DEVICE void ddp__k_units_block(const struct ddp__k_optim *p,
                                    struct ddp__k_units_shared *sh,
                                    unsigned block)
{
    struct ddp__k_output o = ddp__k_output_of(p, block);

    DDP__EACH(t, 1)
    {
        (&sh->factor)[t] =
            p->stats[DDP__K_DIVISOR] != 0 ? ddp__k_gradient_factor(p) : 0;
    }
    DDP__EACH(t, DDP__THREADS)
    {
        struct ddp__k_squares n = {0, 0};

        for (size_t e = o.begin + t; e < o.begin + o.len; e += DDP__THREADS) {
            double d = (double)p->g[e] * sh->factor;

            n.w += (double)p->w[e] * p->w[e];
            n.step += d * d;
        }
        sh->of[t] = n;
    }
    ddp__k_sum_squares(sh->of);
    DDP__EACH(t, 1)
    {
        p->unit_factor[block + t] = ddp__k_unit_factor(p, sh->of[t]);
    }
}

/* ---- AdamP: Heo et al., ICLR 2021 --------------------------------------- */

struct ddp__k_outputs_shared {
    struct ddp__k_optim_shared rule;
    struct ddp__k_products of[DDP__THREADS];
};

/* Of element e, whose means are updated. */
DDP__DEVICE void ddp__k_add_products(const struct ddp__k_optim *p,
                                     const struct ddp__k_span *s,
                                     const struct ddp__k_optim_shared *sh,
                                     size_t e, struct ddp__k_products *to)
{
    struct ddp__k_states state = {p->m[e],  p->v[e], 0, p->w[e],
                                  s->decay, 1,       0, false};
    double d = ddp__k_gradient(p, s, sh, e), w = p->w[e];
    double step = ddp__k_adam(p, sh, (float)d, &state);

    p->m[e] = state.m;
    p->v[e] = state.v;
    to->ww += w * w;
    to->gg += d * d;
    to->wg += w * d;
    to->ws += w * step;
}

/* Make of[0] the sum of all. */
DDP__DEVICE void ddp__k_sum_products(struct ddp__k_products *of)
{
    for (unsigned half = DDP__THREADS / 2; half > 0; half /= 2)
        DDP__EACH(t, half)
        {
            of[t].ww += of[t + half].ww;
            of[t].gg += of[t + half].gg;
            of[t].wg += of[t + half].wg;
            of[t].ws += of[t + half].ws;
        }
}

/* Of an output.  16 in, 8 out. */
DDP__DEVICE void ddp__k_outputs_block(const struct ddp__k_optim *p,
                                      struct ddp__k_outputs_shared *sh,
                                      unsigned block)
{
    struct ddp__k_output o = ddp__k_output_of(p, block);

    DDP__EACH(t, 1)
    {
        ddp__k_begin_rule(p, &sh->rule + t);
    }
    DDP__EACH(t, DDP__THREADS)
    {
        struct ddp__k_products n = {0, 0, 0, 0};

        for (size_t e = o.begin + t; e < o.begin + o.len && sh->rule.any;
             e += DDP__THREADS)
            ddp__k_add_products(p, &p->span[o.span], &sh->rule, e, &n);
        sh->of[t] = n;
    }
    ddp__k_sum_products(sh->of);
    DDP__EACH(t, 1)
    {
        p->products[block + t] = sh->of[t];
    }
}

struct ddp__k_project_shared {
    struct ddp__k_products of[DDP__THREADS];
    double most[DDP__THREADS];
    bool each, whole; /* what steps are projected in: outputs, or all */
};

/* Of the angle between weights and gradients. */
DDP__DEVICE double ddp__k_cosine(const struct ddp__k_optim *p,
                                 const struct ddp__k_products *n)
{
    double eps = p->eps, w = sqrt(n->ww), g = sqrt(n->gg);
    double cosine = n->wg / ((w > eps ? w : eps) * (g > eps ? g : eps));

    return cosine < 0 ? -cosine : cosine;
}

/* What steps have of the weights. */
DDP__DEVICE float ddp__k_radial(const struct ddp__k_optim *p,
                                const struct ddp__k_products *n)
{
    double length = sqrt(n->ww) + (double)p->eps;

    return (float)(n->ws / (length * length));
}

/* The sums of a thread's outputs, and the largest cosine. */
DDP__DEVICE void ddp__k_project_part(const struct ddp__k_optim *p, unsigned i,
                                     unsigned count, unsigned t,
                                     struct ddp__k_project_shared *sh)
{
    struct ddp__k_products n = {0, 0, 0, 0};
    double most = 0;

    for (unsigned u = t; u < count; u += DDP__THREADS) {
        const struct ddp__k_products *one = &p->products[p->unit[i].first + u];
        double cosine = ddp__k_cosine(p, one);

        most = cosine > most ? cosine : most;
        n.ww += one->ww;
        n.gg += one->gg;
        n.wg += one->wg;
        n.ws += one->ws;
    }
    sh->of[t] = n;
    sh->most[t] = most;
}

/* Block i has span i: gradients that are nearly at right angles to the weights
 * of each output, or of all. */
DDP__DEVICE void ddp__k_project_block(const struct ddp__k_optim *p,
                                      struct ddp__k_project_shared *sh,
                                      unsigned i)
{
    size_t all = p->span[i].end - p->span[i].begin, len = p->unit[i].len;
    unsigned count = len ? (unsigned)(all / len) : 0;

    DDP__EACH(t, DDP__THREADS)
    {
        ddp__k_project_part(p, i, count, t, sh);
    }
    for (unsigned half = DDP__THREADS / 2; half > 0; half /= 2)
        DDP__EACH(t, half)
        {
            if (sh->most[t + half] > sh->most[t])
                sh->most[t] = sh->most[t + half];
        }
    ddp__k_sum_products(sh->of);
    DDP__EACH(t, 1)
    {
        struct ddp__k_project_shared *s = sh + t;

        s->each = count && s->most[0] < DDP__ADAMP_DELTA / sqrt((double)len);
        s->whole =
            count && !s->each &&
            ddp__k_cosine(p, s->of) < DDP__ADAMP_DELTA / sqrt((double)all);
        p->trust[i] = s->each || s->whole ? (float)DDP__ADAMP_DECAY : 1;
    }
    DDP__EACH(t, DDP__THREADS)
    {
        for (unsigned u = t; u < count; u += DDP__THREADS) {
            unsigned at = p->unit[i].first + u;

            p->unit_factor[at] = sh->each ? ddp__k_radial(p, &p->products[at])
                                 : sh->whole ? ddp__k_radial(p, sh->of)
                                             : 0;
        }
    }
}

/* ---- trust: how far a parameter goes, by its norms ---------------------- */

struct ddp__k_trust_shared {
    struct ddp__k_optim_shared rule;
    struct ddp__k_squares of[DDP__THREADS];
};

/* What |w| and |step| are made of, or in LARS |g|: of element e.  LAMB's means
 * are updated. */
DDP__DEVICE struct ddp__k_squares
ddp__k_squares_of(const struct ddp__k_optim *p, const struct ddp__k_span *s,
                  const struct ddp__k_optim_shared *sh, size_t e)
{
    float w = p->w[e], d = ddp__k_gradient(p, s, sh, e);
    struct ddp__k_squares n = {(double)w * w, (double)d * d};

    if (p->kind == DDP_LAMB) {
        struct ddp__k_states state = {p->m[e],  p->v[e], 0, w,
                                      s->decay, 1,       0, false};

        p->m[e] = state.m = p->beta1 * state.m + (1 - p->beta1) * d;
        p->v[e] = state.v = p->beta2 * state.v + (1 - p->beta2) * (d * d);
        d = ddp__k_lamb_step(p, sh, &state);
        n.step = (double)d * d;
    }
    return n;
}

/* What a thread finds in the part of a span that is in a tile. */
DDP__DEVICE struct ddp__k_squares
ddp__k_piece_squares(const struct ddp__k_optim *p, const struct ddp__k_span *s,
                     const struct ddp__k_optim_shared *sh, size_t tile,
                     unsigned t)
{
    struct ddp__k_piece k = ddp__k_piece(s, tile);
    struct ddp__k_squares n = {0, 0};

    for (size_t e = tile + t; e < k.end && sh->any && !s->running;
         e += DDP__THREADS)
        if (e >= k.begin) {
            struct ddp__k_squares one = ddp__k_squares_of(p, s, sh, e);

            n.w += one.w;
            n.step += one.step;
        }
    return n;
}

/* Of a tile: for each span in it, a part of the span's squares.  12 in; LAMB
 * 16 in, 8 out. */
DDP__DEVICE void ddp__k_trust_block(const struct ddp__k_optim *p,
                                    struct ddp__k_trust_shared *sh,
                                    unsigned block)
{
    size_t tile = (p->first + block) * DDP__TILE;

    DDP__EACH(t, 1)
    {
        ddp__k_begin_rule(p, &sh->rule + t);
    }
    for (int i = ddp__k_first_span(p, tile);
         i < p->spans && p->span[i].begin < tile + DDP__TILE; i++) {
        DDP__EACH(t, DDP__THREADS)
        {
            sh->of[t] =
                ddp__k_piece_squares(p, &p->span[i], &sh->rule, tile, t);
        }
        ddp__k_sum_squares(sh->of);
        DDP__EACH(t, 1)
        {
            p->squares[block + (unsigned)i + t] = sh->of[t];
        }
    }
}

struct ddp__k_trust_sum_shared {
    struct ddp__k_squares of[DDP__THREADS];
};

/* 1 where there is no decay, as in timm, or where one of the norms is 0. */
DDP__DEVICE float ddp__k_trust_of(const struct ddp__k_optim *p,
                                  const struct ddp__k_span *s,
                                  struct ddp__k_squares n)
{
    double w = sqrt(n.w), step = sqrt(n.step);

    if (!(s->decay > 0 && w > 0 && step > 0))
        return 1;
    return (float)(p->kind == DDP_LAMB
                       ? w / step
                       : DDP__LARS_TRUST * w / (step + (double)s->decay * w));
}

/* Block i has span i, and adds the parts of its tiles. */
DDP__DEVICE void ddp__k_trust_sum_block(const struct ddp__k_optim *p,
                                        struct ddp__k_trust_sum_shared *sh,
                                        unsigned i)
{
    const struct ddp__k_span *s = &p->span[i];
    size_t begin = s->begin / DDP__TILE - p->first;
    size_t end = (s->end - 1) / DDP__TILE - p->first + 1;

    DDP__EACH(t, DDP__THREADS)
    {
        struct ddp__k_squares n = {0, 0};

        for (size_t k = begin + t; k < end; k += DDP__THREADS) {
            n.w += p->squares[k + i].w;
            n.step += p->squares[k + i].step;
        }
        sh->of[t] = n;
    }
    ddp__k_sum_squares(sh->of);
    DDP__EACH(t, 1)
    {
        p->trust[i + t] = ddp__k_trust_of(p, s, sh->of[t]);
    }
}

/* ------------------------------------------------------------------------- */

/* Element e; w = (1 - momentum) w + momentum g / count if it is a running
 * statistic. */
DDP__DEVICE float ddp__k_update(const struct ddp__k_optim *p,
                                const struct ddp__k_span *s,
                                const struct ddp__k_optim_shared *sh, size_t e,
                                struct ddp__k_states *state)
{
    float w = p->w[e];

    float keep = p->projects ? 1 - (1 - s->keep) * state->trust : s->keep;

    if (s->running)
        return sh->share > 0
                   ? (1 - s->momentum) * w + s->momentum * sh->share * p->g[e]
                   : w;
    return keep * w -
           ddp__k_apply_rule(p, sh, ddp__k_gradient(p, s, sh, e), state);
}

/* Half the way back to where the weight was the last time, which is 0 before
 * the first; -0 stands for a weight that was 0. */
DDP__DEVICE void ddp__k_look_ahead(const struct ddp__k_optim *p, size_t e)
{
    float slow = p->slow[e];

    if (slow != 0 || signbit(slow))
        p->w[e] = slow + 0.5f * (p->w[e] - slow);
    p->slow[e] = p->w[e] != 0 ? p->w[e] : -0.0f;
}

/* Element e of weights and state. */
DDP__DEVICE void ddp__k_update_one(const struct ddp__k_optim *p,
                                   const struct ddp__k_span *s,
                                   const struct ddp__k_optim_shared *sh,
                                   size_t e)
{
    struct ddp__k_units u = {0, 0};
    struct ddp__k_states state = {
        p->m ? p->m[e] : 0,
        p->v ? p->v[e] : 0,
        p->x ? p->x[e] : 0,
        p->w[e],
        s->decay,
        p->layerwise || p->projects ? p->trust[s - p->span] : 1,
        0,
        false};

    if (p->projects)
        u = p->unit[s - p->span];
    state.updated = u.len > 0;
    if (u.len)
        state.radial = p->unit_factor[u.first + (e - s->begin) / u.len];

    p->w[e] = ddp__k_update(p, s, sh, e, &state);
    if (p->m && !s->running)
        p->m[e] = state.m;
    if (p->v && !s->running)
        p->v[e] = state.v;
    if (p->x && !s->running)
        p->x[e] = state.x;
    if (sh->looks && !s->running)
        ddp__k_look_ahead(p, e);
}

/* A span within a tile: threads side by side take elements side by side. */
DDP__DEVICE void ddp__k_update_piece(const struct ddp__k_optim *p,
                                     const struct ddp__k_span *s,
                                     const struct ddp__k_optim_shared *sh,
                                     size_t tile, unsigned t)
{
    struct ddp__k_piece k = ddp__k_piece(s, tile);

    for (size_t e = tile + t; e < k.end; e += DDP__THREADS) {
        if (e < k.begin)
            continue;
        if (sh->any)
            ddp__k_update_one(p, s, sh, e);
        if (p->half)
            ddp__k_put(p->half_type, p->half, e, p->w[e]);
    }
}

/* g, w, and the state in; w and the state out: 12 bytes an element for sgd, 20
 * for momentum, 28 for Adam, and 2 for a copy. */
DDP__DEVICE void ddp__k_optim_block(const struct ddp__k_optim *p,
                                    struct ddp__k_optim_shared *sh,
                                    unsigned block)
{
    size_t tile = (p->first + block) * DDP__TILE;

    DDP__EACH(t, 1)
    {
        ddp__k_begin_rule(p, sh + t);
    }
    DDP__EACH(t, DDP__THREADS)
    {
        for (int i = ddp__k_first_span(p, tile);
             i < p->spans && p->span[i].begin < tile + DDP__TILE; i++)
            ddp__k_update_piece(p, &p->span[i], sh, tile, t);
    }
}

struct ddp__k_ema_shared {
    char none;
};

/* 8 in, 4 out.  In this form the average of a weight that no longer changes
 * converges to that weight. */
DDP__DEVICE void ddp__k_ema_block(const struct ddp__k_ema *p,
                                  struct ddp__k_ema_shared *sh, unsigned block)
{
    size_t tile = (size_t)block * DDP__TILE, end = tile + DDP__TILE;
    bool any = p->stats[DDP__K_DIVISOR] != 0;

    (void)sh;
    end = end < p->len ? end : p->len;
    DDP__EACH(t, DDP__THREADS)
    {
        for (size_t e = tile + t; e < end && any; e += DDP__THREADS)
            p->dst[e] += p->share * (p->src[e] - p->dst[e]);
    }
}

#endif
