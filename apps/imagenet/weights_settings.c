/* weights_settings.c - the network's settings in a file of weights
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A file of weights carries the network options and class names of the run that
 * wrote it.  Runs of earlier versions have them in config.txt and classes.txt.
 */
#include "config.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "common/opt_file.h"
#include "common/opt_value.h"
#include "weights_settings.h"

/* ---- settings of the file ----------------------------------------------- */

static const char prefix[] = "imagenet.";

/* A file's settings, as they are read. */
struct reading {
    struct opts *o;
    struct settings *s;
    const char *path;
    struct names *classes; /* NULL: not wanted */
    FILE *log;
    int settings, rc;
};

/* Evaluation may choose these; all others are those that the network was
 * trained with. */
static bool is_free(const char *name)
{
    static const char *const names[] = {"img-size",        "val-crop-size",
                                        "val-resize-size", "crop-pct",
                                        "upright",         "dtype"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

/* Metadata are UTF-8, and names of folders may hold any bytes: those are then
 * written as if they were Latin-1. */
static char *from_latin1(const char *text)
{
    char *out = malloc(2 * strlen(text) + 1), *to = out;

    for (; out && *text; text++) {
        unsigned char byte = (unsigned char)*text;

        if (byte >= 0x80)
            *to++ = (char)(0xc0 | byte >> 6);
        *to++ = (char)(byte < 0x80 ? byte : 0x80 | (byte & 0x3f));
    }
    if (out)
        *to = 0;
    return out;
}

/* The inverse, in place. */
static void to_latin1(char *text)
{
    char *to = text;

    for (; *text; text++)
        if ((unsigned char)*text < 0xc0 || !text[1])
            *to++ = *text;
        else {
            *to++ = (char)(*text << 6 | (text[1] & 0x3f));
            text++;
        }
    *to = 0;
}

/* A value as text, to free(); NULL without memory. */
static char *value_text(const struct opt *row, const void *values)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    if (!f)
        return NULL;
    opt_print_value(row, values, f);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

/* A value that was given must be the file's. */
static int check_given(const struct reading *r, const struct opt *row,
                       const char *value)
{
    char *given = value_text(row, r->o->values);
    int rc = OPTS_GO;

    if (!given)
        return EXIT_MEMORY;
    if (strcmp(given, value) && !is_free(row->name) && !r->s->partial_weights) {
        opt_complain(r->o,
                     "--%s is %s, but the weights in %s are of a network with "
                     "%.99s: leave out --%s, or use other weights",
                     row->name, given, r->path, value, row->name);
        rc = EXIT_USAGE;
    }
    free(given);
    return rc;
}

/* In the line of what a file has set. */
static int show_setting(struct reading *r, const char *path,
                        const struct opt *row)
{
    char *text = value_text(row, r->o->values);

    if (!text)
        return EXIT_MEMORY;
    ddp_printable(text);
    if (r->log)
        fprintf(r->log, "%s %s=%s", r->settings ? "" : path, row->name, text);
    r->settings++;
    free(text);
    return OPTS_GO;
}

static int take_setting(struct reading *r, const char *name, const char *value)
{
    int i = opt_index(r->o->cmd, name);
    const struct opt *row = i < 0 ? NULL : opt_at(r->o->cmd, i);
    int rc;

    if (!row || !row->of_network)
        return OPTS_GO; /* an option of another command */
    if (r->o->given[i])
        return check_given(r, row, value);
    if (!strcmp(name, "val-resize-size") && opts_given(r->o, "img-size"))
        return OPTS_GO; /* belongs to the file's size */
    if ((rc = opt_set(r->o, row, value)) != OPTS_GO) {
        opt_complain(r->o, "the value above comes from %s", r->path);
        return rc;
    }
    r->o->loaded[i] = true;
    return show_setting(r, r->path, row);
}

static int take_classes(const struct reading *r, const char *lines)
{
    FILE *f = r->classes && *lines
                  ? fmemopen((char *)(uintptr_t)lines, strlen(lines), "r")
                  : NULL;
    int rc = f ? names_read_from(r->classes, f) : OPTS_GO;

    if (f)
        fclose(f);
    return rc;
}

static int take_latin1(const struct reading *r, const char *lines)
{
    char *copy = strdup(lines);
    int rc = EXIT_MEMORY;

    if (copy) {
        to_latin1(copy);
        rc = take_classes(r, copy);
    }
    free(copy);
    return rc;
}

static int take_pair(const char *key, const char *value, void *arg)
{
    struct reading *r = arg;

    if (strncmp(key, prefix, strlen(prefix)) != 0)
        return 0;
    key += strlen(prefix);
    if (!strcmp(key, "classes"))
        r->rc = take_classes(r, value);
    else if (!strcmp(key, "classes-latin1"))
        r->rc = take_latin1(r, value);
    else
        r->rc = take_setting(r, key, value);
    return r->rc != OPTS_GO;
}

/* ---- files next to it, of earlier versions ------------------------------ */

/* The path of a file of the run that wrote the weights: in their folder, or two
 * folders above for weights of a checkpoint.  To free(); NULL: no memory. */
static char *file_near(const char *weights, const char *name)
{
    static const char *const up[] = {"", "../../"};
    const char *slash = strrchr(weights, '/');
    int n = slash ? (int)(slash - weights) : 1;
    char *path[2];

    for (int i = 0; i < 2; i++)
        if (asprintf(&path[i], "%.*s/%s%s", n, slash ? weights : ".", up[i],
                     name) < 0)
            path[i] = NULL;
    if (path[0] && path[1] && access(path[0], R_OK) != 0 &&
        access(path[1], R_OK) == 0) {
        free(path[0]);
        return path[1];
    }
    free(path[1]);
    return path[0];
}

static int read_config(struct reading *r)
{
    char *path = file_near(r->path, "config.txt");
    const struct opt *row;
    int rc = path ? opts_load(r->o, path) : EXIT_MEMORY;

    for (int i = 0; rc == OPTS_GO && (row = opt_at(r->o->cmd, i)); i++)
        if (r->o->loaded[i])
            rc = show_setting(r, path, row);
    free(path);
    return rc;
}

static int read_class_list(const struct reading *r)
{
    char *path = file_near(r->path, "classes.txt");
    int rc = path ? OPTS_GO : EXIT_MEMORY;

    if (path && r->classes && access(path, R_OK) == 0)
        rc = names_read(r->classes, path);
    free(path);
    return rc;
}

int weights_settings_read(struct opts *o, struct settings *s, FILE *log,
                          struct names *classes)
{
    struct reading r = {.o = o,
                        .s = s,
                        .path = s->weights,
                        .classes = classes,
                        .log = log,
                        .rc = OPTS_GO};
    int rc = ddp_weights_metadata(s->weights, take_pair, &r);

    if (rc < 0 && rc != DDP_ESTOPPED)
        return app_fail(rc);
    rc = r.rc;
    if (rc == OPTS_GO && !r.settings && (rc = read_config(&r)) == OPTS_GO)
        rc = read_class_list(&r);
    if (r.settings && log)
        fprintf(log, "\n");
    return rc;
}

/* ---- settings into the file --------------------------------------------- */

static int add_setting(ddp_chain_t *c, const char *name, const char *value)
{
    char *key;
    int rc;

    if (asprintf(&key, "%s%s", prefix, name) < 0)
        return DDP_ENOMEM;
    rc = ddp_chain_set_metadata(c, key, value);
    free(key);
    return rc;
}

static int add_row(ddp_chain_t *c, const struct opt *row, const void *values)
{
    char *text = value_text(row, values);
    int rc = !text ? DDP_ENOMEM : *text ? add_setting(c, row->name, text) : 0;

    free(text);
    return rc;
}

static int add_latin1(ddp_chain_t *c, const char *text)
{
    char *clean = from_latin1(text);
    int rc = clean ? add_setting(c, "classes-latin1", clean) : DDP_ENOMEM;

    free(clean);
    return rc;
}

static int add_classes(ddp_chain_t *c, const ddp_dataset_t *d)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    int rc = DDP_ENOMEM;

    if (f) {
        names_print(d, f);
        if (fclose(f) == 0)
            rc = add_setting(c, "classes", text);
        if (rc == DDP_EINVAL)
            rc = add_latin1(c, text);
    }
    free(text);
    return rc;
}

/* Which images training held back, for eval to find them. */
static int add_split(const struct opts *o, ddp_chain_t *c)
{
    static const char *const names[] = {"val-split", "seed"};
    const struct settings *s = o->values;
    int rc = 0;

    for (int i = 0; rc == 0 && s->val_split > 0 && i < 2; i++)
        rc = add_row(c, opt_at(o->cmd, opt_index(o->cmd, names[i])), s);
    return rc;
}

int weights_settings_add(const struct opts *o, ddp_chain_t *c,
                         const ddp_dataset_t *d)
{
    const struct opt *row;
    int rc = 0;

    for (int i = 0; rc == 0 && (row = opt_at(o->cmd, i)); i++)
        if (row->of_network)
            rc = add_row(c, row, o->values);
    if (rc == 0)
        rc = add_split(o, c);
    return rc < 0 ? rc : add_classes(c, d);
}
