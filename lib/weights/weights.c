/* weights.c - a chain's parameters to and from a safetensors file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "base/file.h"
#include "base/thread.h"
#include "graph/param_init.h"
#include "graph/param_values.h"
#include "graph/params.h"
#include "graph/params_bind.h"
#include "weights/safetensors.h"
#include "weights/safetensors_write.h"
#include "weights/weights.h"

enum { NAMES_SHOWN = 3 }; /* names of each kind in a message */

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
    const struct ddp__params *p = ddp__params_of(c);
    int n = 0;

    memset(w, 0, sizeof(*w));
    if (!p)
        return ddp_errcode();
    for (int k = 0; k < p->blocks; k++)
        n += p->block[k].params;
    w->info = calloc((size_t)n + 1, sizeof(*w->info));
    w->data = calloc((size_t)n + 1, sizeof(*w->data));
    if (!w->info || !w->data)
        goto nomem;
    for (w->n = 0; w->n < n; w->n++)
        ddp_chain_param(c, w->n, &w->info[w->n]);
    return 0;

nomem:
    weights_free(w);
    return ddp__fail(DDP_ENOMEM, "out of memory for a copy of the weights");
}

/* Memory for the values of a parameter; to load them, only once the file is
 * known to have them: the chain may be one that settings in a file describe. */
static int reserve_param(struct weights *w, int i)
{
    if ((w->data[i] = malloc(w->info[i].len * sizeof(float))))
        return 0;
    return ddp__fail(DDP_ENOMEM, "out of memory for a copy of the weights");
}

/* ---- saving ------------------------------------------------------------- */

/* Tensor i as a file will have it; its values are in w. */
static struct ddp__st_out describe_tensor(const struct weights *w, int i,
                                          enum ddp_dtype dtype)
{
    const struct ddp_param_info *p = &w->info[i];
    struct ddp__st_out t = {.name = p->name, .ndim = p->ndim};

    t.type = dtype == DDP_BF16 ? DDP__ST_BF16 : DDP__ST_F32;
    for (int d = 0; d < p->ndim; d++)
        t.dim[d] = p->dim[d];
    t.data = w->data[i];
    return t;
}

static const struct ddp_save_options save_defaults = {
    .struct_size = sizeof(save_defaults), .dtype = DDP_F32};

void ddp_save_options_init_sized(struct ddp_save_options *o, size_t size)
{
    ddp__options_init(o, size, &save_defaults, sizeof(save_defaults));
}

static int write_weights(struct weights *w, ddp_chain_t *c, const char *path,
                         enum ddp_dtype dtype, ddp__values_f get, void *arg)
{
    struct ddp__st_out *out = calloc((size_t)w->n + 1, sizeof(*out));
    int rc =
        out ? 0 : ddp__fail(DDP_ENOMEM, "out of memory to save the weights");

    for (int i = 0; rc == 0 && i < w->n; i++) {
        if ((rc = reserve_param(w, i)) < 0)
            break;
        out[i] = describe_tensor(w, i, dtype);
        rc = get(arg, w->info[i].name, w->data[i], w->info[i].len);
    }
    if (rc == 0)
        rc = ddp__st_write_with(
            path, w->n, out, (const char *const *)ddp__params_of(c)->metadata,
            NULL);
    free(out);
    return rc;
}

int ddp__weights_save(ddp_chain_t *c, const char *path,
                      const struct ddp_save_options *given, ddp__values_f get,
                      void *arg)
{
    struct ddp_save_options o = save_defaults;
    int rc = ddp__options_copy(&o, sizeof(o), given, "ddp_save_options");
    struct weights w;

    if (rc < 0)
        return rc;
    if (o.dtype != DDP_F32 && o.dtype != DDP_BF16)
        return ddp__fail(DDP_EINVAL,
                         "weights can be saved only as f32 or bf16");
    if ((rc = weights_new(&w, c)) < 0)
        return rc;
    rc = write_weights(&w, c, path, o.dtype, get, arg);
    weights_free(&w);
    return rc;
}

static int own_values(void *c, const char *name, float *out, size_t len)
{
    return ddp_chain_get(c, name, out, len);
}

int ddp_chain_save(ddp_chain_t *c, const char *path,
                   const struct ddp_save_options *o)
{
    return ddp__weights_save(c, path, o, own_values, c);
}

/* ---- what fits ---------------------------------------------------------- */

/* Names for a message: the first few, and how many there are. */
struct names {
    int n;
    char text[480];
};

static void __attribute__((format(printf, 2, 3)))
names_add(struct names *l, const char *fmt, ...)
{
    size_t at = strlen(l->text), room = sizeof(l->text) - at;
    va_list ap;

    if (l->n++ >= NAMES_SHOWN)
        return;
    if (at)
        at += (size_t)snprintf(l->text + at, room, ", ");
    va_start(ap, fmt);
    if (at < sizeof(l->text))
        vsnprintf(l->text + at, sizeof(l->text) - at, fmt, ap);
    va_end(ap);
    ddp_printable(l->text);
}

/* Append "3 tensors ARE: a, b, c". */
static void names_say(const struct names *l, const char *are, char *text,
                      size_t size)
{
    size_t at = strlen(text);

    if (!l->n)
        return;
    at += (size_t)snprintf(text + at, size - at, "%s%d %s: %s", at ? "; " : "",
                           l->n, are, l->text);
    if (l->n > NAMES_SHOWN && at < size)
        snprintf(text + at, size - at, " and %d more", l->n - NAMES_SHOWN);
}

/* The tensors of a file that match the parameters of a chain. */
struct fit {
    const struct ddp__st_tensor **found; /* of each parameter, or NULL; owned */
    int end; /* parameters that must fit: those before the head, or all */
    struct names missing, unexpected, other;
};

static const char *dims(int ndim, const int64_t *dim, char *buf, size_t size)
{
    size_t at = (size_t)snprintf(buf, size, "(");

    for (int d = 0; d < ndim && at < size; d++)
        at += (size_t)snprintf(buf + at, size - at, "%s%lld", d ? ", " : "",
                               (long long)dim[d]);
    if (at < size)
        snprintf(buf + at, size - at, ")");
    return buf;
}

static void add_other(struct fit *f, const struct ddp_param_info *p,
                      const struct ddp__st_tensor *t)
{
    int64_t dim[4];
    char has[200], expected[100];

    for (int d = 0; d < p->ndim; d++)
        dim[d] = p->dim[d];
    names_add(&f->other, "%.80s %s, expected %s", p->name,
              dims(t->ndim, t->dim, has, sizeof(has)),
              dims(p->ndim, dim, expected, sizeof(expected)));
}

/* Whether all dimensions from `first` on are the same. */
static bool same_dims(const struct ddp_param_info *p,
                      const struct ddp__st_tensor *t, int first)
{
    if (p->ndim != t->ndim)
        return false;
    for (int d = first; d < p->ndim; d++)
        if (p->dim[d] != t->dim[d])
            return false;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct ddp_param_info *const *)a)->name,
                  (*(const struct ddp_param_info *const *)b)->name);
}

/* PyTorch's norms count batches; nothing here depends on that. */
static bool counts_batches(const char *name)
{
    static const char tail[] = "num_batches_tracked";
    size_t len = strlen(name), n = sizeof(tail) - 1;

    return len >= n && !strcmp(name + len - n, tail) &&
           (len == n || name[len - n - 1] == '.');
}

/* Find the parameters' tensors, and tensors that match no parameter. */
static int fit_new(struct fit *f, const struct weights *w,
                   const struct ddp__st_file *file)
{
    size_t n = (size_t)w->n;
    const struct ddp_param_info **sorted = calloc(n + 1, sizeof(*sorted));

    *f = (struct fit){.end = w->n};
    if (!(f->found = calloc(n + 1, sizeof(*f->found))) || !sorted) {
        free(sorted);
        return ddp__fail(DDP_ENOMEM, "out of memory for a list of tensors");
    }
    for (size_t i = 0; i < n; i++)
        sorted[i] = &w->info[i];
    qsort(sorted, n, sizeof(*sorted), by_name);
    for (int i = 0; i < file->n; i++) {
        const struct ddp__st_tensor *t = &file->tensor[i];
        struct ddp_param_info key;
        const struct ddp_param_info *k = &key, **at;

        snprintf(key.name, sizeof(key.name), "%s", t->name);
        at = bsearch(&k, sorted, n, sizeof(*sorted), by_name);
        if (at && !strcmp((*at)->name, t->name))
            f->found[*at - w->info] = t;
        else if (!counts_batches(t->name))
            names_add(&f->unexpected, "%.80s", t->name);
    }
    free(sorted);
    return 0;
}

/* Whether the file has the parameters head .. n - 1 for another number of
 * outputs, and no other difference. */
static bool other_outputs(const struct fit *f, const struct weights *w,
                          int head)
{
    for (int i = head; i < w->n; i++)
        if (!f->found[i] || !same_dims(&w->info[i], f->found[i], 1) ||
            w->info[i].dim[0] == f->found[i]->dim[0])
            return false;
    return true;
}

/* If the last layer has another number of outputs in the file, do not load
 * it. */
static void spare_head(struct fit *f, const struct weights *w,
                       const struct ddp__params *p,
                       struct ddp_load_report *report)
{
    const struct ddp__param_block *b =
        p->blocks ? &p->block[p->blocks - 1] : NULL;
    int head = w->n - (b ? b->params : 0);

    if (!b || b->param[0].role != DDP_WEIGHT || !other_outputs(f, w, head))
        return;
    report->new_head = true;
    snprintf(report->text, sizeof(report->text),
             "%.80s has %lld outputs in the file and %d here: it keeps its "
             "initial values",
             b->prefix[0] ? b->prefix : "the last layer",
             (long long)f->found[head]->dim[0], w->info[head].dim[0]);
    f->end = head;
    for (int i = head; i < w->n; i++)
        f->found[i] = NULL;
}

/* List missing parameters, and those with a different shape. */
static void fit_check(struct fit *f, const struct weights *w)
{
    for (int i = 0; i < f->end; i++)
        if (!f->found[i])
            names_add(&f->missing, "%.80s", w->info[i].name);
        else if (!same_dims(&w->info[i], f->found[i], 0))
            add_other(f, &w->info[i], f->found[i]);
}

/* 0, or an error code and message if the file cannot be loaded.  A partial load
 * has to match at least one tensor: a file for a different network is an
 * error. */
static int fit_judge(const struct fit *f, const char *path, bool partial,
                     struct ddp_load_report *r)
{
    char text[sizeof(r->text)] = "";
    bool none = f->end > 0 && f->missing.n == f->end;
    bool lacks = none || (!partial && (f->missing.n || f->unexpected.n));

    r->missing = f->missing.n;
    r->unexpected = f->unexpected.n;
    if (lacks || f->other.n) {
        names_say(&f->missing, "missing", text, sizeof(text));
        names_say(&f->unexpected, "unexpected", text, sizeof(text));
        names_say(&f->other, "of a different shape", text, sizeof(text));
        return ddp__fail(lacks ? DDP_EDATA : DDP_ESHAPE,
                         "%s: its tensors do not match the chain's: %s", path,
                         text);
    }
    names_say(&f->missing, "missing", r->text, sizeof(r->text));
    names_say(&f->unexpected, "skipped", r->text, sizeof(r->text));
    return 0;
}

/* ---- loading ------------------------------------------------------------ */

struct param {
    struct ddp__param_block *b;
    int i; /* of the block */
};

/* All cores read and set one tensor after the other. */
struct load {
    struct ddp__params *p;
    struct weights *w;
    const struct fit *f;
    struct param *param; /* owned; those of w */
    atomic_int rc;
    struct ddp__error error; /* of rc */
};

static void read_param(void *arg, int i)
{
    struct load *l = arg;
    int none = 0, rc = 0;

    if (!l->f->found[i] || atomic_load(&l->rc) < 0)
        return;
    if ((rc = reserve_param(l->w, i)) == 0)
        rc = ddp__st_read_f32(l->f->found[i], l->w->data[i], l->w->info[i].len);
    if (rc < 0 && atomic_compare_exchange_strong(&l->rc, &none, rc))
        l->error = ddp__error_save();
}

static void set_param(void *arg, int i)
{
    struct load *l = arg;
    struct ddp__param_block *b = l->param[i].b;
    int k = l->param[i].i;

    if (!l->f->found[i])
        return;
    ddp__param_import(&b->param[k], l->w->data[i],
                      ddp__param_memory(l->p, b, k));
    b->set[k] = true;
}

static int list_params(struct load *l)
{
    int n = 0;

    if (!(l->param = calloc((size_t)l->w->n + 1, sizeof(*l->param))))
        return ddp__fail(DDP_ENOMEM, "out of memory for a list of parameters");
    for (int k = 0; k < l->p->blocks; k++)
        for (int i = 0; i < l->p->block[k].params; i++)
            l->param[n++] = (struct param){&l->p->block[k], i};
    return 0;
}

/* Without a copy of all. */
static void load_param(void *arg, int i)
{
    struct load *l = arg;

    read_param(l, i);
    if (atomic_load(&l->rc) == 0)
        set_param(l, i);
    free(l->w->data[i]);
    l->w->data[i] = NULL;
}

static bool is_set(const struct load *l)
{
    bool any = l->p->valued;

    for (int i = 0; i < l->w->n; i++)
        any = any || l->param[i].b->set[l->param[i].i];
    return any;
}

/* Read everything before setting anything, so that no chain is partly loaded;
 * one without values has none if a tensor cannot be read. */
static void load_all(struct load *l)
{
    int n = l->w->n;

    if (is_set(l)) {
        ddp__threads_each(n, n, read_param, l);
        if (l->rc == 0)
            ddp__threads_each(n, n, set_param, l);
        return;
    }
    ddp__threads_each(n, n, load_param, l);
    for (int i = 0; l->rc < 0 && i < n; i++)
        l->param[i].b->set[l->param[i].i] = false;
}

static int load_params(struct load *l)
{
    int rc = list_params(l);

    if (rc == 0 && (rc = ddp__params_begin(l->p, true)) == 0) {
        load_all(l);
        ddp__params_end(l->p);
        if ((rc = l->rc) < 0)
            ddp__error_restore(&l->error);
    }
    free(l->param);
    return rc;
}

/* How many the file has. */
static int count_found(const struct fit *f, int n)
{
    int found = 0;

    for (int i = 0; i < n; i++)
        found += f->found[i] != NULL;
    return found;
}

static const struct ddp_load_options load_defaults = {
    .struct_size = sizeof(load_defaults)};

void ddp_load_options_init_sized(struct ddp_load_options *o, size_t size)
{
    ddp__options_init(o, size, &load_defaults, sizeof(load_defaults));
}

int ddp_chain_load(ddp_chain_t *c, const char *path,
                   const struct ddp_load_options *given,
                   struct ddp_load_report *report)
{
    struct ddp_load_options o = load_defaults;
    struct ddp_load_report r = {0};
    struct ddp__st_file *file = NULL;
    struct fit f = {0};
    struct weights w;
    int rc = ddp__options_copy(&o, sizeof(o), given, "ddp_load_options");

    if (rc < 0 || (rc = weights_new(&w, c)) < 0)
        return rc;
    if ((rc = ddp__st_open(&file, path)) < 0 ||
        (rc = fit_new(&f, &w, file)) < 0)
        goto close;
    if (o.new_head)
        spare_head(&f, &w, ddp__params_of(c), &r);
    fit_check(&f, &w);
    if ((rc = fit_judge(&f, path, o.partial, &r)) == 0)
        rc = load_params(
            &(struct load){.p = ddp__params_of(c), .w = &w, .f = &f});
    r.loaded = count_found(&f, w.n);
    if (report && rc == 0)
        *report = r;
close:
    ddp__st_close(file);
    free(f.found);
    weights_free(&w);
    return rc;
}
