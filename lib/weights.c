/* weights.c - a chain's parameters to and from a safetensors file */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "safetensors.h"

/* All parameters in PyTorch's order of elements, with their names. */
struct weights {
    int n;
    struct ddp_param_info *info; /* owned */
    float **data;                /* owned, each one too */
};

static void weights_free(struct weights *w)
{
    for (int i = 0; w->data && i < w->n; i++)
        free(w->data[i]);
    free(w->data);
    free(w->info);
}

static int weights_new(struct weights *w, ddp_chain_t *c)
{
    struct ddp_param_info info;
    int n = 0;

    memset(w, 0, sizeof(*w));
    while (ddp_chain_param(c, n, &info) == 0)
        n++;
    w->info = calloc((size_t)n + 1, sizeof(*w->info));
    w->data = calloc((size_t)n + 1, sizeof(*w->data));
    if (!w->info || !w->data)
        goto nomem;
    for (w->n = 0; w->n < n; w->n++) {
        ddp_chain_param(c, w->n, &w->info[w->n]);
        if (!(w->data[w->n] = malloc(w->info[w->n].len * sizeof(float))))
            goto nomem;
    }
    return 0;

nomem:
    weights_free(w);
    return ddp__fail(DDP_ENOMEM, "no memory for a copy of the weights");
}

int ddp_chain_save(ddp_chain_t *c, const char *path)
{
    struct ddp__st_out *out = NULL;
    struct weights w;
    int rc = ddp__params_of(c) ? weights_new(&w, c) : DDP_EINVAL;

    if (rc < 0)
        return rc;
    if (!(out = calloc((size_t)w.n + 1, sizeof(*out)))) {
        rc = ddp__fail(DDP_ENOMEM, "no memory to save the weights");
        goto free_weights;
    }
    for (int i = 0; rc == 0 && i < w.n; i++) {
        out[i].name = w.info[i].name;
        out[i].ndim = w.info[i].ndim;
        for (int d = 0; d < w.info[i].ndim; d++)
            out[i].dim[d] = w.info[i].dim[d];
        out[i].data = w.data[i];
        rc = ddp_chain_get(c, w.info[i].name, w.data[i], w.info[i].len);
    }
    if (rc == 0)
        rc = ddp__st_write(path, w.n, out);
    free(out);
free_weights:
    weights_free(&w);
    return rc;
}

static bool same_shape(const struct ddp_param_info *p,
                       const struct ddp__st_tensor *t)
{
    if (p->ndim != t->ndim)
        return false;
    for (int d = 0; d < p->ndim; d++)
        if (p->dim[d] != t->dim[d])
            return false;
    return true;
}

static int read_one(struct ddp__st_file *f, const char *path,
                    const struct ddp_param_info *p, float *data)
{
    const struct ddp__st_tensor *t = ddp__st_find(f, p->name);

    if (!t)
        return ddp__fail(DDP_EDATA,
                         "%s: has no tensor %s, which the chain "
                         "needs",
                         path, p->name);
    if (!same_shape(p, t))
        return ddp__fail(DDP_ESHAPE,
                         "%s: %s has another shape than the chain's, which "
                         "has %d dimensions and %zu values",
                         path, p->name, p->ndim, p->len);
    return ddp__st_read_f32(f, t, data, p->len);
}

/* Everything is read before anything is set: no chain is half loaded. */
int ddp_chain_load(ddp_chain_t *c, const char *path)
{
    struct ddp__st_file *f = NULL;
    struct weights w;
    int rc = ddp__params_of(c) ? weights_new(&w, c) : DDP_EINVAL;

    if (rc < 0)
        return rc;
    rc = ddp__st_open(&f, path);
    for (int i = 0; rc == 0 && i < w.n; i++)
        rc = read_one(f, path, &w.info[i], w.data[i]);
    for (int i = 0; rc == 0 && i < w.n; i++)
        rc = ddp_chain_set(c, w.info[i].name, w.data[i], w.info[i].len);
    ddp__st_close(f);
    weights_free(&w);
    return rc;
}
