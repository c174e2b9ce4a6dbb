/* bn_bwd.c - batch normalisation of CPU workers, backward
 *
 * With dz = dy act'(y), m values per channel and inv = 1 / sqrt(var + eps):
 *
 *     dshift = sum dz,  dscale = inv sum dz (x - mean)
 *     dx = scale inv (dz - dshift / m - (x - mean) inv dscale / m)
 *
 * Two passes: one for the sums, which also writes dr = dz, one for dx.  For
 * relu without a residual, x tells where y > 0 (by the arithmetic of the
 * forward pass, to the last bit), and y need not be read.
 */
#include "config.h"

#include "bn.h"
#include "vmath.h"

/* Where dz comes from. */
enum source {
    FROM_DY, /* dz = dy */
    FROM_DZ, /* the same, in f32 */
    FROM_X,  /* relu */
    FROM_Y,
};

/* Parameters over a wide row, and those of dx = a (dz - k1 - (x - mean) k2) */
struct params {
    const float *mean, *a, *shift;
    const float *k1, *k2;
};

/* Where a block of rows is. */
struct block {
    const void *x, *y, *dy;
    const uint8_t *mask; /* instead of y; or NULL */
    void *dx, *dr;       /* as floats while in a block of results */
    size_t rows, width, len;
};

DDP__INLINE float dz_of(float d, float a, float shift, float y, float dy,
                        enum source from, enum ddp_act act)
{
    float z = d * a + shift;

    if (from == FROM_X)
        return z > 0 ? dy : 0;
    return from == FROM_Y ? ddp__act_grad(y, dy, act) : dy;
}

/* ---- first pass --------------------------------------------------------- */

/* s1 = sum of dz, s2 = sum of dz (x - mean) */
DDP__INLINE void sums(const struct params *p, const struct block *k,
                      float *restrict s1, float *restrict s2, enum source from,
                      enum ddp_act act, bool b)
{
    const float *restrict mean = p->mean, *restrict a = p->a;
    const float *restrict shift = p->shift;
    const void *restrict x = k->x, *restrict y = k->y, *restrict dy = k->dy;
    size_t w = k->width, r = 0;

    for (size_t i = 0; i < k->len; i++)
        s1[i] = s2[i] = 0;
#define DZ(j)                                                                  \
    float d##j = ddp__load(x, at + (j)*w, b) - mean[i];                        \
    float z##j =                                                               \
        dz_of(d##j, a[i], shift[i],                                            \
              from == FROM_Y ? ddp__load(y, at + (j)*w, b) : 0,                \
              ddp__load(dy, at + (j)*w, b && from != FROM_DZ), from, act)
    for (; r + 4 <= k->rows; r += 4)
        for (size_t i = 0; i < k->len; i++) {
            size_t at = r * w + i;

            DZ(0);
            DZ(1);
            DZ(2);
            DZ(3);
            s1[i] += (z0 + z1) + (z2 + z3);
            s2[i] += (z0 * d0 + z1 * d1) + (z2 * d2 + z3 * d3);
        }
    for (; r < k->rows; r++)
        for (size_t i = 0; i < k->len; i++) {
            size_t at = r * w + i;

            DZ(0);
            s1[i] += z0;
            s2[i] += z0 * d0;
        }
#undef DZ
}

/* dr = dz, with the slope taken from y */
DDP__INLINE void keep(const struct block *k, enum ddp_act act, bool b)
{
    const void *restrict y = k->y, *restrict dy = k->dy;
    float *restrict dr = k->dr;
    size_t len = (k->rows - 1) * k->width + k->len;

    for (size_t i = 0; i < len; i++)
        dr[i] = ddp__act_grad(ddp__load(y, i, b), ddp__load(dy, i, b), act);
}

/* ---- second pass -------------------------------------------------------- */

DDP__INLINE void spread(const struct params *p, const struct block *k,
                        enum source from, enum ddp_act act, bool b)
{
    const float *restrict mean = p->mean, *restrict a = p->a;
    const float *restrict shift = p->shift;
    const float *restrict k1 = p->k1, *restrict k2 = p->k2;
    const void *restrict x = k->x, *restrict y = k->y, *restrict dy = k->dy;
    float *restrict dx = k->dx;

    for (size_t r = 0; r < k->rows; r++)
        for (size_t i = 0; i < k->len; i++) {
            size_t at = r * k->width + i;
            float d = ddp__load(x, at, b) - mean[i];
            float dz = dz_of(d, a[i], shift[i],
                             from == FROM_Y ? ddp__load(y, at, b) : 0,
                             ddp__load(dy, at, b), from, act);

            dx[at] = a[i] * ((dz - k1[i]) - d * k2[i]);
        }
}

/* ---- loops -------------------------------------------------------------- */

/* X (name, source, activation): FROM_Y for each activation that has it. */
#define LOOPS(X)                                                               \
    X(dy, FROM_DY, DDP_IDENTITY)                                               \
    X(dz, FROM_DZ, DDP_IDENTITY)                                               \
    X(x, FROM_X, DDP_RELU)                                                     \
    X(y_relu, FROM_Y, DDP_RELU)                                                \
    X(y_relu6, FROM_Y, DDP_RELU6)                                              \
    X(y_sigmoid, FROM_Y, DDP_SIGMOID)                                          \
    X(y_tanh, FROM_Y, DDP_TANH)

typedef void (*sums_f)(const struct params *p, const struct block *k, float *s1,
                       float *s2);
typedef void (*keep_f)(const struct block *k);
typedef void (*spread_f)(const struct params *p, const struct block *k);

struct loops {
    sums_f sums;
    keep_f keep;
    spread_f spread;
};

#define LOOP(name, from, act, type, b)                                         \
    DDP__CLONES static void sums_##name##_##type(                              \
        const struct params *p, const struct block *k, float *s1, float *s2)   \
    {                                                                          \
        sums(p, k, s1, s2, from, act, b);                                      \
    }                                                                          \
    DDP__CLONES static void keep_##name##_##type(const struct block *k)        \
    {                                                                          \
        keep(k, act, b);                                                       \
    }                                                                          \
    DDP__CLONES static void spread_##name##_##type(const struct params *p,     \
                                                   const struct block *k)      \
    {                                                                          \
        spread(p, k, from, act, b);                                            \
    }
#define X(name, from, act)                                                     \
    LOOP(name, from, act, f32, false) LOOP(name, from, act, bf16, true)
LOOPS(X)
#undef X

#define ROW(name, type)                                                        \
    {                                                                          \
        sums_##name##_##type, keep_##name##_##type, spread_##name##_##type     \
    }
#define X(name, from, act) {ROW(name, f32), ROW(name, bf16)},
static const struct loops table[][2] = {LOOPS(X)};
#undef X
#define X(name, from, act) LOOP_##name,
enum { LOOPS(X) };
#undef X

static const struct loops *choose(enum ddp_act act, bool residual, bool b)
{
    static const int from_y[DDP_ACT_COUNT] = {[DDP_IDENTITY] = LOOP_dy,
                                              [DDP_RELU] = LOOP_y_relu,
                                              [DDP_RELU6] = LOOP_y_relu6,
                                              [DDP_SIGMOID] = LOOP_y_sigmoid,
                                              [DDP_TANH] = LOOP_y_tanh};

    return &table[act == DDP_RELU && !residual ? LOOP_x : from_y[act]][b];
}

/* ---- kernel ------------------------------------------------------------- */

/* What both passes work with; buf holds a chunk. */
struct pass {
    const struct ddp__task *t;
    struct ddp__rows r;
    struct params p;
    struct block all;
    float *buf;
    bool exact; /* dr holds dz to the last bit */
};

/* The block of at most `most` rows from `at` on, or the last, shorter row. */
static struct block block_at(const struct pass *s, size_t at, size_t most)
{
    struct block k = s->all;
    size_t left = at < s->r.rows ? s->r.rows - at : 0;
    size_t i = (s->r.rows - left) * s->r.width;
    bool b = s->r.b;

    k.x = ddp__at(k.x, i, b);
    k.y = k.y ? ddp__at(k.y, i, b) : NULL;
    k.dy = ddp__at(k.dy, i, b);
    k.mask = k.mask ? k.mask + i / 8 : NULL;
    k.dx = ddp__to(k.dx, i, b);
    k.dr = k.dr ? ddp__to(k.dr, i, b) : NULL;
    k.rows = left < most ? left : most;
    k.width = k.len = s->r.width;
    if (k.rows == 0) {
        k.rows = 1;
        k.len = s->r.tail;
    }
    return k;
}

static size_t length(const struct block *k)
{
    return (k->rows - 1) * k->width + k->len;
}

/* The sums over a block whose dz is kept as dr, which the second pass reads. */
static void sum_and_keep(const struct pass *s, const struct loops *f,
                         struct block k, float *s1, float *s2)
{
    void *dr = k.dr;

    if (s->r.b)
        k.dr = s->buf;
    if (k.mask)
        ddp__mask_apply(k.mask, k.dy, k.dr, length(&k), s->r.b);
    else
        f->keep(&k);
    k.dy = k.dr;
    table[LOOP_dz][s->r.b].sums(&s->p, &k, s1, s2);
    if (s->r.b)
        ddp__put(dr, k.dr, length(&k), true, false);
}

static void first_pass(const struct pass *s, const struct loops *f, float *s1,
                       float *s2, double *sum)
{
    size_t w = s->r.width, end = s->r.rows + (s->r.tail > 0);
    size_t most =
        s->all.dr && s->r.chunk < DDP__BN_BLOCK ? s->r.chunk : DDP__BN_BLOCK;
    struct block k;

    memset(sum, 0, 2 * w * sizeof(*sum));
    for (size_t at = 0; at < end; at += k.rows) {
        k = block_at(s, at, most);
        if (k.dr)
            sum_and_keep(s, f, k, s1, s2);
        else
            f->sums(&s->p, &k, s1, s2);
        for (size_t i = 0; i < k.len; i++) {
            sum[i] += s1[i];
            sum[w + i] += s2[i];
        }
    }
    ddp__put_end();
    ddp__bn_gather(&s->r, sum);
    ddp__bn_gather(&s->r, sum + w);
}

/* From the end to the beginning: what the first pass read last may still be in
 * a cache. */
static void second_pass(const struct pass *s, const struct loops *f)
{
    size_t blocks = ddp__bn_blocks(&s->r);

    while (blocks-- > 0) {
        struct block k = block_at(s, blocks * s->r.chunk, s->r.chunk);
        void *dx = k.dx;

        if (!s->r.direct)
            k.dx = s->buf;
        f->spread(&s->p, &k);
        if (!s->r.direct)
            ddp__put(dx, s->buf, length(&k), s->r.b, s->r.stream);
    }
    ddp__put_end();
}

static void put(const struct ddp__task *t, float *g, double v)
{
    *g = (float)(t->accumulate ? *g + v : v);
}

/* g, and the factors of the second pass.  par: mean, a, shift, k1, k2. */
static void conclude(const struct pass *s, const double *sum, float *par)
{
    const struct ddp__task *t = s->t;
    size_t c = s->r.c, w = s->r.width;
    double m = (double)ddp__rows(t, 0);
    const float *stat = t->data[4];
    float *g = t->data[5];

    for (size_t i = 0; i < c; i++) {
        double var = stat[c + i], inv = 1 / sqrt(var + t->call->bn.eps);
        double dscale = sum[w + i] * inv;

        par[3 * w + i] = (float)(sum[i] / m);
        par[4 * w + i] = (float)(dscale * inv / m);
        put(t, &g[i], dscale);
        put(t, &g[c + i], sum[i]);
        put(t, &g[2 * c + i], t->n * (double)stat[i]);
        put(t, &g[3 * c + i], t->n * (m > 1 ? var * m / (m - 1) : var));
    }
    ddp__bn_repeat(&s->r, par + 3 * w);
    ddp__bn_repeat(&s->r, par + 4 * w);
}

/* mean, a and shift, as the forward pass had them. */
static void recall(const struct pass *s, float *par)
{
    const float *w = s->t->data[3], *stat = s->t->data[4];
    size_t c = s->r.c, width = s->r.width;

    for (size_t i = 0; i < c; i++) {
        par[i] = stat[i];
        par[width + i] = w[i] / sqrtf(stat[c + i] + s->t->call->bn.eps);
        par[2 * width + i] = w[c + i];
    }
    for (size_t i = 0; i < 3; i++)
        ddp__bn_repeat(&s->r, par + i * width);
}

/* Buffers x, y or mask, dy, w, stat, g, dx [, dr] */
int ddp__cpu_bn_bwd(const struct ddp__task *t)
{
    struct pass s = {.t = t, .r = ddp__bn_rows(t, 0)};
    bool residual = t->call->bn.residual, b = s.r.b;
    enum ddp_act act = t->call->bn.act;
    const struct loops *f = choose(act, residual, b);
    size_t w = s.r.width, n = ddp__align(w * sizeof(float)) / sizeof(float);
    char *scratch =
        ddp__scratch(7 * n * sizeof(float) + 2 * n * sizeof(double) +
                     (s.r.chunk * w + 16) * sizeof(float));
    float *par = (float *)(void *)scratch;
    double *sum = (double *)(void *)(par + 7 * n);

    if (!scratch)
        return DDP_ENOMEM;
    s.p = (struct params){par, par + w, par + 2 * w, par + 3 * w, par + 4 * w};
    s.all = (struct block){.x = t->data[0],
                           .y = t->call->bn.mask ? NULL : t->data[1],
                           .dy = t->data[2],
                           .mask = t->call->bn.mask ? t->data[1] : NULL,
                           .dx = t->data[6],
                           .dr = residual ? t->data[7] : NULL};
    s.buf = (float *)(void *)(sum + 2 * n);
    s.exact = !b || act == DDP_IDENTITY || act == DDP_RELU || act == DDP_RELU6;
    recall(&s, par);
    first_pass(&s, f, par + 5 * w, par + 6 * w, sum);
    conclude(&s, sum, par);
    if (residual && s.exact) {
        s.all.dy = t->data[7];
        f = choose(DDP_IDENTITY, true, b);
    }
    second_pass(&s, f);
    return 0;
}
