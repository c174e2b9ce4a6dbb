/* param_values.c - the values of parameters: initial ones, one tensor, all
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/thread.h"
#include "graph/layer.h"
#include "graph/param_init.h"
#include "graph/param_values.h"
#include "graph/params_bind.h"
#include "runtime/pool.h"

/* ---- initial values ----------------------------------------------------- */

static void forget_set(struct ddp__params *p)
{
    for (int k = 0; k < p->blocks; k++)
        memset(p->block[k].set, 0, sizeof(p->block[k].set));
}

int ddp__params_reserve(struct ddp__params *p)
{
    for (int b = 0; b < p->buckets; b++) {
        struct ddp__bucket *k = &p->bucket[b];

        if (k->w)
            continue;
        if (!(k->w = ddp__pool_alloc(k->len * 4)))
            return ddp__fail(DDP_ENOMEM, "out of memory for %zu parameters",
                             p->total);
        ddp__threads_zero(k->w, k->len * 4);
    }
    return 0;
}

int ddp__params_need_values(struct ddp__params *p)
{
    int rc;

    if (p->valued)
        return 0;
    if ((rc = ddp__params_reserve(p)) < 0)
        return rc;
    ddp__params_init_unset(p, 0);
    p->valued = true;
    return 0;
}

/* ---- one tensor --------------------------------------------------------- */

/* A parameter is o times a matrix of inputs and pixels: PyTorch has the pixels
 * of an input side by side, we the inputs of a pixel.  So is a matrix that
 * reads flattened pixels. */
struct layout {
    size_t o, in, pixels;
};

static struct layout layout_of(const struct ddp_param *p)
{
    struct layout l = {ddp__param_len(p), 1, 1};

    if (p->ndim == 4)
        l.pixels = (size_t)p->dim[2] * (size_t)p->dim[3];
    else if (p->ndim == 2 && p->pixels > 1)
        l.pixels = (size_t)p->pixels;
    if (l.pixels > 1) {
        l.in = (size_t)p->dim[1] / (p->ndim == 2 ? l.pixels : 1);
        l.o = (size_t)p->dim[0];
    }
    return l;
}

/* out = in', row by row. */
static void transpose(const float *in, size_t rows, size_t cols, float *out)
{
    for (size_t i = 0; i < cols; i++)
        for (size_t j = 0; j < rows; j++)
            *out++ = in[j * cols + i];
}

static void copy_turned(const struct layout *l, size_t rows, size_t cols,
                        const float *in, float *out)
{
    size_t len = rows * cols;

    if (rows == 1 || cols == 1)
        memcpy(out, in, l->o * len * sizeof(*out));
    else
        for (size_t i = 0; i < l->o; i++)
            transpose(in + i * len, rows, cols, out + i * len);
}

void ddp__param_export(const struct ddp_param *p, const float *in, float *out)
{
    struct layout l = layout_of(p);

    copy_turned(&l, l.pixels, l.in, in, out);
}

size_t ddp__param_row(const struct ddp_param *p)
{
    struct layout l = layout_of(p);

    return l.pixels * l.in;
}

void ddp__param_export_here(const struct ddp_param *p, float *data, float *row)
{
    struct layout l = layout_of(p);
    size_t len = l.pixels * l.in;

    if (l.pixels == 1 || l.in == 1)
        return;
    for (size_t i = 0; i < l.o; i++, data += len) {
        memcpy(row, data, len * sizeof(*row));
        transpose(row, l.pixels, l.in, data);
    }
}

void ddp__param_import(const struct ddp_param *p, const float *in, float *out)
{
    struct layout l = layout_of(p);

    copy_turned(&l, l.in, l.pixels, in, out);
}

int ddp_chain_get(ddp_chain_t *c, const char *name, float *out, size_t len)
{
    struct ddp__params *p = ddp__params_of(c);
    const struct ddp__param_block *b;
    int i, rc;

    if (!p)
        return ddp_errcode();
    if ((rc = ddp__params_find_for(p, name, out, len, &b, &i)) < 0 ||
        (rc = ddp__params_begin(p, false)) < 0)
        return rc;
    ddp__param_export(&b->param[i], ddp__param_memory(p, b, i), out);
    ddp__params_end(p);
    return 0;
}

int ddp_chain_set(ddp_chain_t *c, const char *name, const float *in, size_t len)
{
    struct ddp__params *p = ddp__params_of(c);
    const struct ddp__param_block *b;
    int i, rc;

    if (!p)
        return ddp_errcode();
    if ((rc = ddp__params_find_for(p, name, in, len, &b, &i)) < 0 ||
        (rc = ddp__params_begin(p, true)) < 0)
        return rc;
    ddp__param_import(&b->param[i], in, ddp__param_memory(p, b, i));
    p->block[b - p->block].set[i] = true;
    ddp__params_end(p);
    return 0;
}

/* ---- all of them -------------------------------------------------------- */

int ddp__params_init_rest(struct ddp__params *p, uint64_t seed)
{
    int rc;

    if ((rc = ddp__params_begin(p, true)) < 0)
        return rc;
    ddp__params_init_unset(p, seed);
    p->valued = true;
    ddp__params_end(p);
    return 0;
}

int ddp_chain_init(ddp_chain_t *c, uint64_t seed)
{
    struct ddp__params *p = ddp__params_of(c);

    if (!p)
        return ddp_errcode();
    forget_set(p);
    return ddp__params_init_rest(p, seed);
}

/* Of one block, whose values are in its bucket. */
static double square_sum(const struct ddp__params *p,
                         const struct ddp__param_block *b)
{
    double sum = 0;

    for (int i = 0; i < b->params; i++) {
        const float *w = ddp__param_memory(p, b, i);

        for (size_t k = 0; b->param[i].role != DDP_RUNNING &&
                           k < ddp__param_len(&b->param[i]);
             k++)
            sum += (double)w[k] * (double)w[k];
    }
    return sum;
}

int ddp_chain_norm(ddp_chain_t *c, double *norm)
{
    struct ddp__params *p = ddp__params_of(c);
    double sum = 0;
    int rc;

    if (!p)
        return ddp_errcode();
    if (!norm)
        return ddp__fail(DDP_EINVAL, "norm is NULL");
    if ((rc = ddp__params_begin(p, false)) < 0)
        return rc;
    for (int i = 0; i < p->blocks; i++)
        sum += square_sum(p, &p->block[i]);
    ddp__params_end(p);
    *norm = sqrt(sum);
    return 0;
}

int ddp_chain_checksum(ddp_chain_t *c, uint32_t *crc)
{
    struct ddp__params *p = ddp__params_of(c);
    int rc;

    if (!p)
        return ddp_errcode();
    if (!crc)
        return ddp__fail(DDP_EINVAL, "crc is NULL");
    if ((rc = ddp__params_begin(p, false)) < 0)
        return rc;
    *crc = 0;
    for (int i = 0; i < p->blocks; i++)
        *crc = ddp__crc32c(*crc, ddp__param_memory(p, &p->block[i], 0),
                           p->block[i].len * sizeof(float));
    ddp__params_end(p);
    return 0;
}
