/* convert.c - convert a file of weights: names, types, tensors to drop
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "weights/safetensors.h"
#include "weights/safetensors_write.h"

static const char training_only[] = "opt.*,ema.*,*num_batches_tracked";

/* The tensors to write, in the order of the input file. */
struct conversion {
    const struct ddp_convert_options *o;
    struct ddp__st_file *in;
    struct ddp__st_out *out; /* owned, with names and data */
    struct ddp_convert_report r;
};

/* ---- names -------------------------------------------------------------- */

/* Whether one of the patterns, separated by commas, matches the name. */
static int is_dropped(const char *patterns, const char *name, bool *yes)
{
    char *copy = strdup(patterns), *save = NULL;

    if (!copy)
        return ddp__fail(DDP_ENOMEM, "out of memory to convert weights");
    *yes = false;
    for (char *p = strtok_r(copy, ",", &save); p;
         p = strtok_r(NULL, ",", &save))
        *yes = *yes || fnmatch(p, name, 0) == 0;
    free(copy);
    return 0;
}

static int rename_tensor(struct conversion *c, const char *name, char **out)
{
    const char *strip = c->o->strip_prefix, *add = c->o->add_prefix;

    if (strip && *strip && !strncmp(name, strip, strlen(strip))) {
        name += strlen(strip);
        c->r.renamed++;
    }
    if (asprintf(out, "%s%s", add ? add : "", name) >= 0)
        return 0;
    *out = NULL;
    return ddp__fail(DDP_ENOMEM, "out of memory to convert weights");
}

/* ---- tensors ------------------------------------------------------------ */

static bool is_float(enum ddp__st_type type)
{
    return type == DDP__ST_F32 || type == DDP__ST_F16 || type == DDP__ST_BF16 ||
           type == DDP__ST_F64;
}

static int convert_tensor(struct conversion *c, const struct ddp__st_tensor *t)
{
    struct ddp__st_out *out = &c->out[c->r.written];
    char *name;
    float *data;
    int rc;

    if (!is_float(t->type))
        return ddp__fail(DDP_EDATA,
                         "%s: %s holds integers, which are not weights: drop "
                         "it",
                         c->in->path, t->name);
    if ((rc = rename_tensor(c, t->name, &name)) < 0)
        return rc;
    data = malloc((t->len ? t->len : 1) * sizeof(*data));
    *out = (struct ddp__st_out){.name = name, .ndim = t->ndim, .data = data};
    out->type = c->o->dtype == DDP_BF16 ? DDP__ST_BF16 : DDP__ST_F32;
    memcpy(out->dim, t->dim, sizeof(out->dim));
    c->r.written++;
    if (!data)
        return ddp__fail(DDP_ENOMEM, "out of memory for %s", t->name);
    return ddp__st_read_f32(t, data, t->len);
}

static int convert_tensors(struct conversion *c)
{
    const char *drop = c->o->drop ? c->o->drop : training_only;
    bool dropped = false;
    int rc = 0;

    for (int i = 0; rc == 0 && i < c->in->n; i++) {
        const struct ddp__st_tensor *t = &c->in->tensor[i];

        if ((rc = is_dropped(drop, t->name, &dropped)) < 0)
            return rc;
        if (dropped)
            c->r.dropped++;
        else
            rc = convert_tensor(c, t);
    }
    if (rc == 0 && c->r.written == 0)
        return ddp__fail(DDP_EDATA, "%s: all of its %d tensors are dropped",
                         c->in->path, c->in->n);
    if (rc == 0 && c->o->strip_prefix && *c->o->strip_prefix && !c->r.renamed)
        return ddp__fail(DDP_EDATA, "%s: no name begins with %s", c->in->path,
                         c->o->strip_prefix);
    return rc;
}

static const struct ddp_convert_options defaults = {
    .struct_size = sizeof(defaults), .dtype = DDP_F32};

void ddp_convert_options_init_sized(struct ddp_convert_options *o, size_t size)
{
    ddp__options_init(o, size, &defaults, sizeof(defaults));
}

/* All tensors are read and converted before the file is written, so that a
 * bad input leaves no output. */
int ddp_weights_convert(const char *in, const char *out,
                        const struct ddp_convert_options *given,
                        struct ddp_convert_report *report)
{
    struct ddp_convert_options o = defaults;
    struct conversion c = {.o = &o};
    int rc = ddp__options_copy(&o, sizeof(o), given, "ddp_convert_options");

    if (rc < 0)
        return rc;
    if (!in || !out)
        return ddp__fail(DDP_EINVAL, "a conversion needs two files");
    if (o.dtype != DDP_F32 && o.dtype != DDP_BF16)
        return ddp__fail(DDP_EINVAL,
                         "weights can be saved only as f32 or bf16");
    if ((rc = ddp__st_open(&c.in, in)) < 0)
        return rc;
    if (!(c.out = calloc((size_t)c.in->n + 1, sizeof(*c.out))))
        rc = ddp__fail(DDP_ENOMEM, "out of memory to convert weights");
    if (rc == 0 && (rc = convert_tensors(&c)) == 0 &&
        (rc = ddp__st_write_with(out, c.r.written, c.out,
                                 ddp__st_metadata(c.in), NULL)) == 0 &&
        report)
        *report = c.r;
    for (int i = 0; c.out && i < c.r.written; i++) {
        free((void *)(uintptr_t)c.out[i].name);
        free((void *)(uintptr_t)c.out[i].data);
    }
    free(c.out);
    ddp__st_close(c.in);
    return rc;
}
