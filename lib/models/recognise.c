/* recognise.c - which model a file of weights is for
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "weights/safetensors.h"

static const char counter[] = "num_batches_tracked";

/* Tensors of the file, without PyTorch's counters of batches. */
static int count_tensors(const struct ddp__st_file *f)
{
    int n = 0;

    for (int i = 0; i < f->n; i++) {
        const char *name = f->tensor[i].name;
        size_t len = strlen(name), tail = sizeof(counter) - 1;

        n += len < tail || strcmp(name + len - tail, counter) != 0;
    }
    return n;
}

/* How many parameters of the chain have the shape that they have in the file; 0
 * if names or numbers of dimensions differ. */
static int count_shapes(ddp_chain_t *c, const struct ddp__st_file *f)
{
    struct ddp_param_info p;
    int i, same = 1;

    for (i = 0; ddp_chain_param(c, i, &p) == 0; i++) {
        const struct ddp__st_tensor *t = ddp__st_find(f, p.name);
        bool equal = true;

        if (!t || t->ndim != p.ndim)
            return 0;
        for (int d = 0; d < p.ndim; d++)
            equal = equal && t->dim[d] == p.dim[d];
        same += equal;
    }
    return i == count_tensors(f) ? same : 0;
}

static const char *best_model(const struct ddp__st_file *f)
{
    const char *best = NULL, *name;
    int most = 0;

    for (int i = 0; (name = ddp_model_name(i)); i++) {
        ddp_chain_t *c = ddp_model_new(name, NULL);
        int same = c ? count_shapes(c, f) : 0;

        if (same > most) {
            most = same;
            best = name;
        }
        ddp_chain_free(c);
    }
    return best;
}

int ddp_weights_model(const char *path, const char **name)
{
    struct ddp__error before = ddp__error_save();
    struct ddp__st_file *f;
    int rc;

    if (!name)
        return ddp__fail(DDP_EINVAL, "name is NULL");
    *name = NULL;
    if ((rc = ddp__st_open(&f, path)) < 0)
        return rc;
    *name = best_model(f);
    ddp__st_close(f);
    ddp__error_restore(&before); /* each list of parameters ends with one */
    return 0;
}
