/* network.c - a network as its user wrote it, as JSON
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The graph of operations that a network becomes depends on the devices (images
 * are widened for GPUs) and on this version of the library (operations are
 * fused).  What is described here is neither: layers, and what was chosen for
 * them.  How weights are initialised does not matter to a run that resumes.
 */
#include "config.h"

#include "base/error.h"
#include "checkpoint/json.h"
#include "checkpoint/network.h"
#include "graph/layer.h"
#include "graph/params.h"

struct description {
    const struct ddp__params *params;
    json_t *layers;
};

static int out_of_memory(void)
{
    return ddp__fail(DDP_ENOMEM, "out of memory to describe a network");
}

static json_t *dimensions(const struct ddp_param *p)
{
    json_t *dim = json_array();

    for (int i = 0; i < p->ndim; i++)
        json_array_append_new(dim, json_integer(p->dim[i]));
    return dim;
}

/* By their names in files: {"0.weight": [8, 3, 3, 3], "0.bias": [8]} */
static json_t *parameters(const struct ddp__param_block *b)
{
    json_t *all = json_object();
    char name[DDP__PARAM_NAME];

    for (int i = 0; all && i < b->params; i++) {
        ddp__param_name(b, i, name);
        if (json_object_set_new(all, name, dimensions(&b->param[i])) < 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

/* A layer has this field only if it is not empty. */
static int set_if_any(json_t *layer, const char *name, json_t *value)
{
    if (json_is_object(value) && json_object_size(value) == 0) {
        json_decref(value);
        return 0;
    }
    return json_object_set_new(layer, name, value) < 0 ? out_of_memory() : 0;
}

static int add_layer(const ddp_layer_t *l, const char *name, struct ddp_shape x,
                     struct ddp_shape y, void *arg)
{
    struct description *d = arg;
    struct ddp_option option[DDP_MAX_OPTIONS];
    int options = ddp__layer_options(l, option), rc;
    json_t *layer;

    if (options < 0)
        return options;
    layer =
        json_pack("{s:s, s:s, s:o, s:o}", "name", name, "kind", l->ops->kind,
                  "input", ddp__json_shape(x), "output", ddp__json_shape(y));
    if (json_array_append_new(d->layers, layer) < 0)
        return out_of_memory();
    rc = set_if_any(layer, "options", ddp__json_options(option, options));
    if (rc == 0 && l->param_block >= 0)
        rc = set_if_any(layer, "parameters",
                        parameters(&d->params->block[l->param_block]));
    if (rc == 0 && l->children)
        rc = set_if_any(layer, "children", json_integer(l->children));
    return rc;
}

int ddp__network_json(ddp_chain_t *chain, struct ddp_shape in, json_t **out)
{
    struct description d = {ddp__params_of(chain), json_array()};
    int rc = !d.params ? ddp_errcode() : !d.layers ? out_of_memory() : 0;

    if (rc == 0)
        rc = ddp__layer_each(chain, in, add_layer, &d);
    if (rc < 0) {
        json_decref(d.layers);
        d.layers = NULL;
    }
    *out = d.layers;
    return rc;
}
