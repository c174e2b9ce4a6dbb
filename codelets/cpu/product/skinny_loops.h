/* skinny_loops.h - products with few rows, by vectors of LANES parts of a sum
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * skinny_v16.c and skinny_v8.c compile these loops for their vectors, which are
 * `parts` here since no other values alias them, with the COUNT that registers
 * suffice for.  They add a sum's parts by add_parts() and store vectors by
 * put_parts().
 */
enum {
    ROWS = DDP__SKINNY_ROWS,
    BLOCK = 2 * LANES, /* of a row whose gradient is in registers */
    PIECE = 256, /* of a row of weights, of which ROWS are in the first-level
                    cache while the next ones are fetched */
    GROUPS = 4,  /* of ROWS that use a piece of x */
    SHORT = DDP__SKINNY_MOST / GROUPS, /* rows of x for which they do, */
    LONG = 1 << 17 /* if x has values for half of a second-level cache */
};
_Static_assert(DDP__SKINNY_STEP % BLOCK == 0, "pieces are whole blocks");

/* to += a from */
VEC_INLINE void add_multiple(const float *restrict from, float a, size_t len,
                             float *restrict to)
{
    for (size_t i = 0; i < len; i++)
        to[i] += a * from[i];
}

/* A share of `len` columns of ROWS rows of weights, which are needed after
 * those that are now multiplied: in turn with products, fetches do not wait. */
VEC_INLINE void fetch_share(const float *w, size_t in, size_t len, size_t share,
                            size_t shares)
{
    size_t end = len * (share + 1) / shares;

    for (size_t i = len * share / shares / 16 * 16; i < end; i += 16)
#pragma GCC unroll 4
        for (size_t r = 0; r < ROWS; r++)
            __builtin_prefetch(w + r * in + i);
}

/* ---- forward ------------------------------------------------------------ */

/* Add w x to the parts of a sum for each of `rows` rows of w and the `count`
 * rows of x from `first` on; rows and count are constants. */
VEC_INLINE void multiply_block(const struct ddp__skinny_product *p,
                               const struct ddp__skinny_tap *t, size_t first,
                               const float *w, const float *x, size_t len,
                               size_t rows, size_t count, parts *sums)
{
    parts sum[ROWS * COUNT], a, b[COUNT];
    const float *from[COUNT];

#pragma GCC unroll 4
    for (size_t k = 0; k < count; k++) {
        from[k] = x + t->at[first + k];
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++)
            sum[k * rows + r] = sums[t->row[first + k] * rows + r];
    }
    for (size_t i = 0; i < len; i += LANES) {
#pragma GCC unroll 4
        for (size_t k = 0; k < count; k++)
            memcpy(&b[k], from[k] + i, sizeof(*b));
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++) {
            memcpy(&a, w + r * p->in + i, sizeof(a));
#pragma GCC unroll 4
            for (size_t k = 0; k < count; k++)
                sum[k * rows + r] += a * b[k];
        }
    }
#pragma GCC unroll 4
    for (size_t k = 0; k < count; k++)
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++)
            sums[t->row[first + k] * rows + r] = sum[k * rows + r];
}

/* A piece of ROWS rows or one of w with all rows of x under a tap. */
VEC_INLINE void multiply_piece(const struct ddp__skinny_product *p,
                               const struct ddp__skinny_tap *t, const float *w,
                               const float *x, size_t len, size_t rows,
                               parts *sums)
{
    size_t i = 0;

    for (; i + COUNT <= t->n; i += COUNT) {
        if (rows == ROWS)
            fetch_share(w + PIECE, p->in, len, i / COUNT, t->n / COUNT);
        multiply_block(p, t, i, w, x, len, rows, COUNT, sums);
    }
    for (; i + 2 <= t->n; i += 2)
        multiply_block(p, t, i, w, x, len, rows, 2, sums);
    if (i < t->n)
        multiply_block(p, t, i, w, x, len, rows, 1, sums);
}

/* What LANES leaves of ROWS rows or one of w. */
VEC_INLINE void multiply_rest(const struct ddp__skinny_product *p,
                              const struct ddp__skinny_tap *t, const float *w,
                              const float *x, size_t whole, size_t rows,
                              float *y)
{
    for (size_t i = 0; i < t->n; i++)
        for (size_t r = 0; r < rows; r++)
            for (size_t k = whole; k < p->c; k++)
                y[t->row[i] * p->out + r] += w[r * p->in + k] * x[t->at[i] + k];
}

/* `groups` of `rows` rows of w, ROWS or one, a piece after the other, so that
 * it comes from memory once. */
VEC_INLINE void multiply_rows(const struct ddp__skinny_product *p,
                              const float *w, const float *x, size_t rows,
                              size_t groups, float *y)
{
    parts sums[ROWS * DDP__SKINNY_MOST];
    size_t whole = p->c - p->c % LANES, len, count = rows * groups;

    memset(sums, 0, count * p->n * sizeof(*sums));
    for (size_t tap = 0; tap < p->x->taps; tap++)
        for (size_t at = 0; at < whole; at += len) {
            len = whole - at < PIECE ? whole - at : PIECE;
            for (size_t r = 0; r < count; r += rows)
                multiply_piece(p, &p->x->tap[tap],
                               w + r * p->in + tap * p->c + at, x + at, len,
                               rows, sums + r * p->n);
        }
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < p->n; i++)
            y[i * p->out + r] =
                add_parts(sums[(r / rows * p->n + i) * rows + r % rows]);
    for (size_t tap = 0; tap < p->x->taps && whole < p->c; tap++)
        multiply_rest(p, &p->x->tap[tap], w + tap * p->c, x, whole, count, y);
}

/* Outputs first .. end - 1 of all rows.  Where x does not stay in the
 * second-level cache, more rows of weights use a piece of it. */
VEC static void multiply(const struct ddp__skinny_product *p, const float *w,
                         const float *x, size_t first, size_t end, float *y)
{
    bool often = p->n <= SHORT && p->x->len >= LONG;
    size_t o = first;

    for (; often && o + GROUPS * ROWS <= end; o += GROUPS * ROWS)
        multiply_rows(p, w + o * p->in, x, ROWS, GROUPS, y + o);
    for (; o + ROWS <= end; o += ROWS)
        multiply_rows(p, w + o * p->in, x, ROWS, 1, y + o);
    for (; o < end; o++)
        multiply_rows(p, w + o * p->in, x, 1, 1, y + o);
}

/* ---- data gradient ------------------------------------------------------ */

/* dx += dy w, for ROWS rows of w and `count` rows of dx, a constant. */
VEC_INLINE void add_rows(const float *restrict w, const float *const *dy,
                         size_t in, size_t len, size_t count,
                         float *restrict dx)
{
    for (size_t i = 0; i < len; i++)
#pragma GCC unroll 2
        for (size_t k = 0; k < count; k++)
            dx[k * len + i] +=
                (dy[k][0] * w[i] + dy[k][1] * w[in + i]) +
                (dy[k][2] * w[2 * in + i] + dy[k][3] * w[3 * in + i]);
}

/* The sums of all rows of dx. */
VEC_INLINE void add_row_pairs(const struct ddp__skinny_product *p,
                              const struct ddp__skinny_tap *t, const float *w,
                              const float *dy, size_t len, float *sums)
{
    size_t i = 0;

    for (; i + 2 <= t->n; i += 2) {
        if (t->n > 2)
            fetch_share(w + ROWS * p->in, p->in, len, i / 2, t->n / 2);
        add_rows(w,
                 (const float *[]){dy + t->row[i] * p->out,
                                   dy + t->row[i + 1] * p->out},
                 p->in, len, 2, sums + i * len);
    }
    if (i < t->n)
        add_rows(w, (const float *[]){dy + t->row[i] * p->out}, p->in, len, 1,
                 sums + i * len);
}

/* The sums of each row become part of dx when they are complete. */
VEC static void add_columns(const struct ddp__skinny_product *p,
                            const struct ddp__skinny_tap *t, const float *w,
                            const float *dy, size_t len, float *dx)
{
    float sums[DDP__SKINNY_CACHED];
    size_t o = 0;

    memset(sums, 0, t->n * len * sizeof(*sums));
    for (; o + ROWS <= p->out; o += ROWS)
        add_row_pairs(p, t, w + o * p->in, dy + o, len, sums);
    for (; o < p->out; o++)
        for (size_t i = 0; i < t->n; i++)
            add_multiple(w + o * p->in, dy[t->row[i] * p->out + o], len,
                         sums + i * len);
    for (size_t i = 0; i < t->n; i++)
        add_multiple(sums + i * len, 1, len, dx + t->at[i]);
}

/* ---- weight gradients --------------------------------------------------- */

/* What a tap sees of n rows, and their dy of up to ROWS outputs, one after the
 * other. */
struct panel {
    size_t n, len, in;
    bool add, stream;
    float x[DDP__SKINNY_CACHED], dy[ROWS * DDP__SKINNY_MOST];
};

/* BLOCK columns of the gradients of `rows` outputs, a constant: the sum over
 * rows of x dy. */
VEC_INLINE void put_block(const struct panel *q, const float *x, size_t rows,
                          float *dw)
{
    parts sum[2 * ROWS], b[2];

#pragma GCC unroll 4
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (size_t k = 0; k < 2; k++)
            if (q->add)
                memcpy(&sum[2 * r + k], dw + r * q->in + k * LANES,
                       sizeof(*sum));
            else
                sum[2 * r + k] = (parts){0};
    for (size_t i = 0; i < q->n; i++) {
#pragma GCC unroll 2
        for (size_t k = 0; k < 2; k++)
            memcpy(&b[k], x + i * q->len + k * LANES, sizeof(*b));
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 2
            for (size_t k = 0; k < 2; k++)
                sum[2 * r + k] += q->dy[i * rows + r] * b[k];
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (size_t k = 0; k < 2; k++)
            put_parts(dw + r * q->in + k * LANES, sum[2 * r + k], q->stream);
}

/* The panel's columns of the gradients of ROWS outputs or one. */
VEC_INLINE void put_rows(const struct ddp__skinny_product *p,
                         const struct ddp__skinny_tap *t, const float *dy,
                         size_t rows, struct panel *q, float *dw)
{
    size_t whole = q->len - q->len % BLOCK;

    for (size_t i = 0; i < q->n; i++)
        for (size_t r = 0; r < rows; r++)
            q->dy[i * rows + r] = dy[t->row[i] * p->out + r];
    for (size_t at = 0; at < whole; at += BLOCK)
        put_block(q, q->x + at, rows, dw + at);
    for (size_t r = 0; r < rows && whole < q->len; r++) {
        float *to = dw + r * p->in + whole;

        if (!q->add)
            memset(to, 0, (q->len - whole) * sizeof(*to));
        for (size_t i = 0; i < q->n; i++)
            add_multiple(q->x + i * q->len + whole, q->dy[i * rows + r],
                         q->len - whole, to);
    }
}

VEC static void put_columns(const struct ddp__skinny_product *p,
                            const struct ddp__skinny_columns *k, const float *x,
                            const float *dy, float *dw)
{
    const struct ddp__skinny_tap *t = k->tap;
    struct panel q;
    size_t o = 0;

    q.n = t->n;
    q.len = k->len;
    q.in = p->in;
    q.add = k->add;
    q.stream = k->stream;
    for (size_t i = 0; i < t->n; i++)
        memcpy(q.x + i * k->len, x + t->at[i], k->len * sizeof(*x));
    for (; o + ROWS <= p->out; o += ROWS)
        put_rows(p, t, dy + o, ROWS, &q, dw + o * p->in);
    for (; o < p->out; o++)
        put_rows(p, t, dy + o, 1, &q, dw + o * p->in);
}
