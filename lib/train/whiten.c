/* whiten.c - a first layer whose outputs are uncorrelated
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   K. Jordan, arXiv:2404.00498, 3.2; D. Page, "How to train your
 *          ResNet", 2019.  Eigenvectors by Jacobi's cyclic rotations.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/dataset.h"
#include "ddp.h"

/* Values of a patch; moments are (len, len). */
enum { LONGEST = 1024 };

struct patches {
    struct ddp_param_info p; /* of the weights */
    ddp_dataset_t *d;
    size_t len;
    void *sample;
    float *x; /* the sample as floats */
    double *patch, *moment, *vector;
};

static void patches_free(struct patches *s)
{
    free(s->sample);
    free(s->x);
    free(s->patch);
    free(s->moment);
    free(s->vector);
}

static int check(const struct patches *s, int64_t images, double eps)
{
    struct ddp_shape x = s->d->shape;

    if (images < 1 || !(eps > 0))
        return ddp__fail(DDP_EINVAL,
                         "whiten: %lld images, eps %g, expected 1 or more, and "
                         "above 0",
                         (long long)images, eps);
    if (s->d->type != DDP_U8 && s->d->type != DDP_F32)
        return ddp__fail(DDP_EINVAL, "whiten: samples of u8 or f32 expected");
    if (s->p.ndim != 4 || s->p.dim[1] != x.c || s->p.dim[2] > x.h ||
        s->p.dim[3] > x.w)
        return ddp__fail(DDP_ESHAPE,
                         "whiten: '%s' is not a convolution of %d channels, or "
                         "larger than %dx%d",
                         s->p.name, x.c, x.h, x.w);
    if (s->len > LONGEST || (size_t)s->p.dim[0] > 2 * s->len)
        return ddp__fail(DDP_ESHAPE,
                         "whiten: %d outputs of patches of %zu values, "
                         "expected at most two for each value, and %d values",
                         s->p.dim[0], s->len, LONGEST);
    return 0;
}

static int begin(struct patches *s, ddp_chain_t *c, ddp_dataset_t *d,
                 int64_t images, double eps)
{
    size_t bytes = ddp__dataset_x_size(d);
    int rc = ddp_chain_param(c, 0, &s->p);

    if (rc < 0)
        return rc;
    s->d = d;
    s->len = s->p.len / (size_t)s->p.dim[0];
    if ((rc = check(s, images, eps)) < 0)
        return rc;
    s->sample = malloc(bytes);
    s->x = malloc(bytes * (d->type == DDP_U8 ? sizeof(float) : 1));
    s->patch = calloc(s->len, sizeof(double));
    s->moment = calloc(s->len * s->len, sizeof(double));
    s->vector = calloc(s->len * s->len, sizeof(double));
    if (!s->sample || !s->x || !s->patch || !s->moment || !s->vector)
        return ddp__fail(DDP_ENOMEM, "out of memory for patches of images");
    return 0;
}

/* ---- second moments ----------------------------------------------------- */

static void normalise(struct patches *s)
{
    const ddp_dataset_t *d = s->d;
    size_t n = (size_t)d->shape.h * (size_t)d->shape.w, c = (size_t)d->shape.c;

    if (d->type == DDP_F32) {
        memcpy(s->x, s->sample, n * c * sizeof(float));
        return;
    }
    for (size_t i = 0; i < n * c; i++)
        s->x[i] =
            ((float)((const uint8_t *)s->sample)[i] / 255.0f - d->mean[i % c]) /
            d->std[i % c];
}

/* In the order of the weights: channels, rows, columns. */
static void add_patch(struct patches *s, int top, int left)
{
    size_t w = (size_t)s->d->shape.w, c = (size_t)s->d->shape.c, n = 0;

    for (size_t i = 0; i < c; i++)
        for (int y = 0; y < s->p.dim[2]; y++)
            for (int x = 0; x < s->p.dim[3]; x++)
                s->patch[n++] =
                    (double)
                        s->x[((size_t)(top + y) * w + (size_t)(left + x)) * c +
                             i];
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k <= i; k++)
            s->moment[i * n + k] += s->patch[i] * s->patch[k];
}

/* Images from all parts of the data, each as it is in training. */
static int add_images(struct patches *s, int64_t images, double *count)
{
    int64_t all = s->d->count, n = images < all ? images : all;

    for (int64_t i = 0; i < n; i++) {
        int rc =
            ddp_dataset_get(s->d, i * (all / n), (uint64_t)i, s->sample, NULL);

        if (rc == DDP_EDATA)
            continue; /* training will name it */
        if (rc < 0)
            return rc;
        normalise(s);
        for (int y = 0; y + s->p.dim[2] <= s->d->shape.h; y++)
            for (int x = 0; x + s->p.dim[3] <= s->d->shape.w; x++, ++*count)
                add_patch(s, y, x);
    }
    return *count > 0
               ? 0
               : ddp__fail(DDP_EDATA, "whiten: none of %lld images can be read",
                           (long long)n);
}

/* ---- eigenvectors ------------------------------------------------------- */

/* Of rows p and q of m: (a, b) becomes (c a - s b, s a + c b). */
static void rotate_rows(double *m, size_t n, size_t p, size_t q, double c,
                        double s)
{
    for (size_t k = 0; k < n; k++) {
        double a = m[p * n + k], b = m[q * n + k];

        m[p * n + k] = c * a - s * b;
        m[q * n + k] = s * a + c * b;
    }
}

static void rotate_columns(double *m, size_t n, size_t p, size_t q, double c,
                           double s)
{
    for (size_t k = 0; k < n; k++) {
        double a = m[k * n + p], b = m[k * n + q];

        m[k * n + p] = c * a - s * b;
        m[k * n + q] = s * a + c * b;
    }
}

/* The rotation that makes element (p, q) of the symmetric m 0. */
static void annihilate(double *m, double *v, size_t n, size_t p, size_t q)
{
    double a = m[p * n + q], h, t, c;

    if (a == 0)
        return;
    h = (m[q * n + q] - m[p * n + p]) / (2 * a);
    t = (h < 0 ? -1 : 1) / (fabs(h) + sqrt(h * h + 1));
    c = 1 / sqrt(t * t + 1);
    rotate_rows(m, n, p, q, c, t * c);
    rotate_columns(m, n, p, q, c, t * c);
    rotate_rows(v, n, p, q, c, t * c);
}

/* The squares of what is not in the diagonal, as a share of all. */
static double remainder_of(const double *m, size_t n)
{
    double off = 0, all = 0;

    for (size_t i = 0; i < n * n; i++) {
        all += m[i] * m[i];
        off += i % (n + 1) ? m[i] * m[i] : 0;
    }
    return all > 0 ? off / all : 0;
}

/* The diagonal of m becomes its eigenvalues, the rows of v its eigenvectors.
 * A sweep squares the remainder in the end; ten are enough. */
static void diagonalise(double *m, double *v, size_t n)
{
    enum { SWEEPS = 30 };

    for (size_t i = 0; i < n; i++)
        v[i * n + i] = 1;
    for (int i = 0; i < SWEEPS && remainder_of(m, n) > 1e-26; i++)
        for (size_t p = 0; p + 1 < n; p++)
            for (size_t q = p + 1; q < n; q++)
                annihilate(m, v, n, p, q);
}

/* ---- the weights -------------------------------------------------------- */

/* The row of the largest eigenvalue. */
static size_t find_largest(const double *m, size_t n)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        if (m[i * n + i] > m[best * n + best])
            best = i;
    return best;
}

/* The sign of an eigenvector is free: its sum is positive. */
static double sign_of(const double *v, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return sum < 0 ? -1 : 1;
}

static int set_weights(struct patches *s, ddp_chain_t *c, double count,
                       double eps)
{
    float *w = calloc(s->p.len, sizeof(*w));
    size_t n = s->len;
    int rc;

    if (!w)
        return ddp__fail(DDP_ENOMEM, "out of memory for patches of images");
    for (int o = 0; o < s->p.dim[0]; o += 2) {
        size_t best = find_largest(s->moment, n);
        double *value = &s->moment[best * n + best];
        const double *v = s->vector + best * n;
        double by = sign_of(v, n) / sqrt(fmax(*value, 0) / count + eps);

        for (size_t i = 0; i < n; i++) {
            w[(size_t)o * n + i] = (float)(by * v[i]);
            if (o + 1 < s->p.dim[0])
                w[((size_t)o + 1) * n + i] = (float)(-by * v[i]);
        }
        *value = -INFINITY;
    }
    rc = ddp_chain_set(c, s->p.name, w, s->p.len);
    free(w);
    return rc;
}

int ddp_chain_whiten(ddp_chain_t *c, ddp_dataset_t *d, int64_t images,
                     double eps)
{
    struct patches s = {.d = d};
    double count = 0;
    int rc;

    if (!d)
        return ddp__fail_null("data set");
    if ((rc = begin(&s, c, d, images, eps)) == 0 &&
        (rc = add_images(&s, images, &count)) == 0) {
        for (size_t i = 0; i < s.len; i++)
            for (size_t k = 0; k < i; k++)
                s.moment[k * s.len + i] = s.moment[i * s.len + k];
        diagonalise(s.moment, s.vector, s.len);
        rc = set_weights(&s, c, count, eps);
    }
    patches_free(&s);
    return rc;
}
