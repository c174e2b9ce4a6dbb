/* infer.c - "imagenet infer": classify images
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "prediction.h"
#include "infer.h"
#include "names.h"
#include "options.h"
#include "progress.h"
#include "setup.h"
#include "setup_data.h"
#include "setup_network.h"
#include "weights.h"

/* One run; all owned but the settings. */
struct inference {
    const struct settings *set;
    struct names images, classes;
    ddp_t *ddp;
    ddp_dataset_t *data;
    ddp_chain_t *chain;
    struct top *top;
    void *pixels; /* room for one sample */
    struct work work;
    bool cannot_write;
};

/* ---- what to look at ---------------------------------------------------- */

static int collect_paths(struct inference *f, const struct opts *o,
                         const struct settings *s)
{
    int rc = OPTS_GO;

    for (char **p = s->input; rc == OPTS_GO && p && *p; p++)
        rc = strcmp(*p, "-") ? names_add(&f->images, *p)
                             : names_read(&f->images, *p);
    if (rc == OPTS_GO && s->list)
        rc = names_read(&f->images, s->list);
    if (rc == OPTS_GO && !s->input && !s->list) {
        opt_complain(o, "no images: name files, folders, or a --list");
        return EXIT_USAGE;
    }
    return rc;
}

/* Names from --class-map rather than from the weights. */
static int find_classes(struct inference *f, const struct settings *s)
{
    if (!s->class_map)
        return OPTS_GO;
    names_free(&f->classes);
    return names_read(&f->classes, s->class_map);
}

/* As many outputs as the run's options or the names say. */
static int count_classes(const struct inference *f, const struct opts *o,
                         struct settings *s)
{
    if (!s->classes)
        s->classes = f->classes.count ? f->classes.count : 1000;
    if (!f->classes.count || f->classes.count == s->classes ||
        (!s->class_map && f->classes.count < s->classes))
        return OPTS_GO;
    opt_complain(o, "%s has %lld names, expected one for each of %lld classes",
                 s->class_map ? s->class_map : s->weights,
                 (long long)f->classes.count, (long long)s->classes);
    return EXIT_USAGE;
}

static int open_inputs(struct inference *f, struct opts *o, struct settings *s)
{
    struct ddp_shape x;
    int rc;

    if ((rc = weights_setup(o, s, s->quiet ? NULL : stderr, &f->classes)) !=
            OPTS_GO ||
        (rc = collect_paths(f, o, s)) != OPTS_GO ||
        (rc = find_classes(f, s)) != OPTS_GO ||
        (rc = count_classes(f, o, s)) != OPTS_GO ||
        (rc = setup_images(o, s, (const char *const *)f->images.name,
                           f->images.count, &f->data)) != OPTS_GO ||
        (rc = setup_devices(s, &f->ddp)) != OPTS_GO)
        return rc;
    if ((rc = setup_network(s, &f->chain)) != OPTS_GO ||
        (rc = weights_load(s, f->chain, false)) != OPTS_GO)
        return rc;
    x = ddp_dataset_shape(f->data);
    f->pixels = malloc((size_t)x.h * (size_t)x.w * (size_t)x.c);
    f->top = calloc((size_t)s->topk, sizeof(*f->top));
    return f->pixels && f->top ? OPTS_GO : app_exit_code(DDP_ENOMEM);
}

/* ---- answers ------------------------------------------------------------ */

/* Why an image cannot be read: reading it again returns the message. */
static const char *read_error(const struct inference *f, int64_t index)
{
    const char *path = ddp_dataset_path(f->data, index), *why;
    size_t len = strlen(path);

    if (ddp_dataset_get(f->data, index, 0, f->pixels, NULL) == 0)
        return "it could not be read before";
    why = ddp_errmsg();
    return strlen(why) > len + 2 && !memcmp(why + len, ": ", 2) ? why + len + 2
                                                                : why;
}

static int on_sample(const struct ddp_prediction *x, void *arg)
{
    struct inference *f = arg;
    struct prediction a = {.top = f->top, .names = &f->classes};
    int k = (int)f->set->topk;

    if (x->bad)
        a.why = read_error(f, x->index);
    else
        prediction_top(x->output, x->len, a.k = k < x->len ? k : x->len,
                       f->top);
    a.path = ddp_dataset_path(f->data, x->index);
    prediction_print(&a, f->set->format, stdout);
    f->cannot_write = ferror(stdout);
    return f->cannot_write;
}

static int report_counts(const struct inference *f, double seconds)
{
    double n = (double)ddp_dataset_count(f->data);
    int64_t bad = ddp_dataset_bad_count(f->data);

    if (!f->set->quiet)
        app_say("images=%lld bad=%lld img/s=%.1f", (long long)n, (long long)bad,
                n / seconds);
    return bad > ddp_dataset_bad_limit(f->data, f->set->max_bad) ? EXIT_DATA
                                                                 : 0;
}

static void on_count(int64_t done, int64_t count, void *arg)
{
    work_count(done, count, &((struct inference *)arg)->work);
}

static int infer(struct inference *f)
{
    const struct settings *s = f->set;
    struct ddp_evaluate_config cfg;
    double t = app_now();
    int rc;

    setup_evaluation(s, &cfg);
    cfg.on_sample = on_sample;
    cfg.on_count = on_count;
    cfg.arg = f;
    work_begin(&f->work, "infer", true);
    prediction_print_head(s->format, stdout);
    rc = ddp_chain_evaluate(f->ddp, f->chain, f->data, &cfg, NULL);
    work_clear(&f->work);
    if (fflush(stdout) != 0 || f->cannot_write) {
        app_say("cannot write the output: %s", strerror(errno));
        return EXIT_WRITE;
    }
    setup_report_retries(f->data);
    return rc < 0 ? app_fail(rc) : report_counts(f, app_now() - t);
}

int infer_run(struct opts *o, struct settings *s)
{
    struct inference f = {.set = s};
    int rc = open_inputs(&f, o, s);

    if (rc == OPTS_GO)
        rc = infer(&f);
    ddp_dataset_free(f.data);
    ddp_chain_free(f.chain);
    ddp_finish(f.ddp);
    names_free(&f.images);
    names_free(&f.classes);
    free(f.pixels);
    free(f.top);
    return rc;
}
