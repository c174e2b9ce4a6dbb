/* layer.c - what all layers share: create, name, free, fuse
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/layer.h"
#include "graph/params.h"

const char ddp_end_mark[] = "end of a list of layers";

ddp_layer_t *ddp_layer_new(size_t size, const struct ddp_layer_ops *ops)
{
    ddp_layer_t *l;

    if (size < sizeof(*l) || !ops || !ops->kind || !ops->shape ||
        !ops->forward || !ops->backward) {
        ddp__fail(DDP_EINVAL, "a layer needs a kind, shape, forward and "
                              "backward, and room for ddp_layer_t");
        return NULL;
    }
    if (!(l = calloc(1, size))) {
        ddp__fail(DDP_ENOMEM, "out of memory for a layer");
        return NULL;
    }
    l->ops = ops;
    l->param_block = -1;
    return l;
}

void ddp_layer_free(ddp_layer_t *l)
{
    if (!l || l == DDP_END)
        return;
    for (int i = 0; i < l->children; i++)
        ddp_layer_free(l->child[i]);
    ddp__params_free(l->params);
    if (l->ops->free)
        l->ops->free(l);
    free(l->child);
    free(l->name);
    free(l);
}

ddp_layer_t *ddp_layer_set_name(ddp_layer_t *l, const char *name)
{
    char *copy;

    if (!l)
        ddp__fail_null("layer");
    if (!l || !name)
        return l;
    if (!(copy = strdup(name))) {
        l->rc = ddp__fail(DDP_ENOMEM, "out of memory for a layer's name");
        return l;
    }
    free(l->name);
    l->name = copy;
    return l;
}

ddp_layer_t *ddp__composite_new(size_t size, const struct ddp_layer_ops *ops,
                                int n, ddp_layer_t *const child[])
{
    ddp_layer_t *l = ddp_layer_new(size, ops);
    bool whole = l && (l->child = malloc((size_t)(n + 1) * sizeof(*child)));

    if (l && !whole)
        ddp__fail(DDP_ENOMEM, "out of memory for a %s", ops->kind);
    for (int i = 0; i < n; i++) {
        if (!child[i])
            ddp__fail_null("layer");
        whole = whole && child[i] && child[i]->rc == 0;
    }
    if (!whole) {
        for (int i = 0; i < n; i++)
            ddp_layer_free(child[i]);
        ddp_layer_free(l);
        return NULL;
    }
    if (n)
        memcpy(l->child, child, (size_t)n * sizeof(*child));
    l->children = n;
    return l;
}

void ddp__child_name(const ddp_layer_t *l, int i, char *out, size_t size)
{
    if (l->child[i]->name)
        snprintf(out, size, "%s", l->child[i]->name);
    else
        snprintf(out, size, "%d", i);
}

size_t ddp__path_push(char *path, size_t size, const ddp_layer_t *l, int i)
{
    size_t cut = strlen(path);
    char name[64];

    ddp__child_name(l, i, name, sizeof(name));
    if (name[0])
        snprintf(path + cut, size - cut, "%s%s", cut ? "." : "", name);
    return cut;
}

int ddp__layer_shape(const ddp_layer_t *l, struct ddp_shape x,
                     struct ddp_shape *y)
{
    unsigned before = ddp__failures();
    int rc = l->ops->shape(l, x, y);

    if (rc < 0 && ddp__failures() == before)
        return ddp__fail(rc, "%s: cannot take an input of (%d, %d, %d)",
                         l->ops->kind, x.h, x.w, x.c);
    if (rc < 0)
        return rc;
    if (y->h < 1 || y->w < 1 || y->c < 1)
        return ddp__fail(DDP_ESHAPE,
                         "%s: an input of (%d, %d, %d) is too small: the "
                         "output would be empty",
                         l->ops->kind, x.h, x.w, x.c);
    return 0;
}

bool ddp__init_valid(const struct ddp_weight_init *init, const char *kind)
{
    if (init->std >= 0 && init->bound >= 0 &&
        (init->std == 0 || init->bound == 0))
        return true;
    ddp__fail(DDP_EINVAL,
              "%s: initial weights of deviation %g and within %g, expected "
              "only one of them, and not negative",
              kind, (double)init->std, (double)init->bound);
    return false;
}

static bool is_chain(const ddp_layer_t *l)
{
    return strcmp(l->ops->kind, "chain") == 0;
}

unsigned ddp__layer_fuses(const ddp_layer_t *l)
{
    if (l->ops->fuses || !l->children)
        return l->ops->fuses;
    if (is_chain(l))
        return ddp__layer_fuses(l->child[l->children - 1]);
    return 0;
}

/* ---- what is in a network ----------------------------------------------- */

/* A chain passes each child's output to the next; in every other layer all
 * children read the layer's input. */
static int each_below(const ddp_layer_t *l, char *path, size_t size,
                      struct ddp_shape x, ddp__layer_f fn, void *arg)
{
    struct ddp_shape y;
    int rc;

    if ((rc = ddp__layer_shape(l, x, &y)) < 0 ||
        (rc = fn(l, path, x, y, arg)) < 0)
        return rc;
    for (int i = 0; i < l->children; i++) {
        size_t cut = ddp__path_push(path, size, l, i);

        if ((rc = each_below(l->child[i], path, size, x, fn, arg)) < 0)
            return rc;
        path[cut] = '\0';
        if (is_chain(l) && (rc = ddp__layer_shape(l->child[i], x, &x)) < 0)
            return rc;
    }
    return 0;
}

int ddp__layer_each(const ddp_layer_t *l, struct ddp_shape x, ddp__layer_f fn,
                    void *arg)
{
    char path[160] = "";

    return each_below(l, path, sizeof(path), x, fn, arg);
}

int ddp__layer_options(const ddp_layer_t *l,
                       struct ddp_option o[DDP_MAX_OPTIONS])
{
    int n = l->ops->options ? l->ops->options(l, o) : 0;

    if (n >= 0 && n <= DDP_MAX_OPTIONS)
        return n;
    return ddp__fail(DDP_EINVAL, "%s: returned %d options, expected 0 to %d",
                     l->ops->kind, n, DDP_MAX_OPTIONS);
}
