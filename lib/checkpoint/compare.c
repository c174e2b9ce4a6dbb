/* compare.c - the settings of a checkpoint and of this run, field by field
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/changes.h"
#include "checkpoint/compare.h"
#include "checkpoint/settings.h"

/* Settings that checkpoints of earlier versions do not have, nor those of runs
 * without such data. */
static const char optional[] = "data.labels,data.sample,eval_data";

/* Contents of files by their names. */
static const char samples[] = "data.sample,eval_data.sample";

/* The number of differences to name; nobody reads a longer message. */
enum { NAMED = 5, VALUE = 160 };

struct differences {
    int count;
    char text[NAMED * (2 * VALUE + 256)];
};

struct comparison {
    struct ddp__changes
        *changes; /* which are allowed; its names are added to */
    struct differences refused, accepted;
    bool final;        /* one of those refused may never differ */
    const char *whole; /* what those that are compared are listed as; NULL:
                          each by its own name */
};

/* Numbers with this many digits; other values as in JSON. */
static void print_value(const json_t *v, int digits, char text[VALUE])
{
    char *json;

    if (!v || json_is_null(v))
        snprintf(text, VALUE, "absent");
    else if (json_is_string(v))
        snprintf(text, VALUE, "%s", json_string_value(v));
    else if (json_is_real(v))
        snprintf(text, VALUE, "%.*g", digits, json_real_value(v));
    else {
        json = json_dumps(v, JSON_ENCODE_ANY);
        snprintf(text, VALUE, "%s", json ? json : "?");
        free(json);
    }
}

/* "PREFIXname is 2, in this run 1"; few digits, unless that hides the
 * difference. */
static void add_text(struct differences *d, const char *prefix,
                     const char *name, const json_t *there, const json_t *here)
{
    char a[VALUE], b[VALUE];
    size_t n = strlen(d->text);

    if (d->count++ >= NAMED)
        return;
    for (int digits = 6; digits <= 17; digits += 11) {
        print_value(there, digits, a);
        print_value(here, digits, b);
        if (strcmp(a, b))
            break;
    }
    snprintf(d->text + n, sizeof(d->text) - n, "%s%s%s is %s, in this run %s",
             n ? "; " : "", prefix, name, a, b);
}

static void add_name(struct ddp__changes *changes, const char *setting)
{
    size_t n = strlen(changes->names);

    snprintf(changes->names + n, sizeof(changes->names) - n, "%s%s",
             n ? "," : "", setting);
}

static void add_difference(struct comparison *c, const char *prefix,
                           const char *name, const json_t *there,
                           const json_t *here)
{
    char setting[2 * VALUE];
    bool can;

    snprintf(setting, sizeof(setting), "%s%s", c->whole ? "" : prefix,
             c->whole ? c->whole : name);
    can = ddp__setting_can_change(setting, there, here);
    c->final |= !can;
    if (!ddp__setting_listed(c->changes->names, setting))
        add_name(c->changes, setting);
    add_text(can && ddp__setting_listed(c->changes->allowed, setting)
                 ? &c->accepted
                 : &c->refused,
             prefix, name, there, here);
}

/* Files that both have been able to read; their names may be anything, and are
 * listed as `whole`. */
static void compare_samples(struct comparison *d, const char *whole,
                            const json_t *there, const json_t *here)
{
    char inner[VALUE + 1];
    const char *name;
    json_t *value;

    snprintf(inner, sizeof(inner), "%s.", whole);
    d->whole = whole;
    json_object_foreach((json_t *)here, name, value)
    {
        const json_t *other = json_object_get(there, name);

        if (other && !json_equal(other, value))
            add_difference(d, inner, name, other, value);
    }
    d->whole = NULL;
}

static void compare_objects(struct comparison *d, const char *prefix,
                            const json_t *there, const json_t *here);

static void compare_values(struct comparison *d, const char *prefix,
                           const char *name, const json_t *there,
                           const json_t *here)
{
    char setting[VALUE], inner[VALUE + 1];

    snprintf(setting, sizeof(setting), "%s%s", prefix, name);
    if ((!there || !here) && ddp__setting_listed(optional, setting))
        return;
    if (ddp__setting_listed(samples, setting)) {
        compare_samples(d, setting, there, here);
    } else if (json_is_object(there) && json_is_object(here)) {
        snprintf(inner, sizeof(inner), "%s.", setting);
        compare_objects(d, inner, there, here);
    } else if (!json_equal(there, here)) {
        add_difference(d, prefix, name, there, here);
    }
}

/* NULL has no fields. */
static void compare_objects(struct comparison *d, const char *prefix,
                            const json_t *there, const json_t *here)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)here, name, value)
    {
        compare_values(d, prefix, name, json_object_get(there, name), value);
    }
    json_object_foreach((json_t *)there, name, value)
    {
        if (!json_object_get(here, name))
            compare_values(d, prefix, name, value, NULL);
    }
}

/* ---- networks ----------------------------------------------------------- */

static const char *text_of(const json_t *o, const char *name)
{
    const char *text = json_string_value(json_object_get(o, name));

    return text ? text : "";
}

static bool same_field(const json_t *a, const json_t *b, const char *name)
{
    a = json_object_get(a, name);
    b = json_object_get(b, name);
    return a == b || json_equal(a, b);
}

/* "layer conv1 (conv): "; the outermost layer has no name. */
static void print_layer(const json_t *layer, char text[VALUE])
{
    const char *name = text_of(layer, "name");

    snprintf(text, VALUE, "%s%.100s (%.40s): ", *name ? "layer " : "network",
             name, text_of(layer, "kind"));
}

/* Names matter only for parameters. */
static void compare_layer(struct comparison *d, const json_t *there,
                          const json_t *here)
{
    static const char *const shape[] = {"input", "output", "children"};
    static const char *const named[] = {"options", "parameters"};
    char prefix[VALUE];

    print_layer(here, prefix);
    for (int i = 0; i < 2; i++)
        compare_objects(d, prefix, json_object_get(there, named[i]),
                        json_object_get(here, named[i]));
    for (int i = 0; i < 3; i++)
        if (!same_field(there, here, shape[i]))
            add_difference(d, prefix, shape[i],
                           json_object_get(there, shape[i]),
                           json_object_get(here, shape[i]));
}

/* After a layer of another kind, or an added one, all later layers differ,
 * too. */
static void compare_networks(struct comparison *d, const json_t *there,
                             const json_t *here)
{
    size_t a = json_array_size(there), b = json_array_size(here);
    char prefix[VALUE];

    for (size_t i = 0; i < a || i < b; i++) {
        const json_t *x = json_array_get(there, i);
        const json_t *y = json_array_get(here, i);

        if (!same_field(x, y, "kind")) {
            print_layer(y ? y : x, prefix);
            add_difference(d, prefix, "kind", json_object_get(x, "kind"),
                           json_object_get(y, "kind"));
            return;
        }
        compare_layer(d, x, y);
    }
}

/* "a is 1, in this run 2; b is ...; and 3 more" */
static void print_differences(struct differences *d, char *text, size_t size)
{
    char more[32] = "";

    if (d->count > NAMED)
        snprintf(more, sizeof(more), "; and %d more", d->count - NAMED);
    ddp_printable(d->text);
    snprintf(text, size, "%s%s", d->text, more);
}

int ddp__settings_differences(const json_t *there, const json_t *here,
                              struct ddp__changes *changes,
                              char text[DDP__DIFFERENCES])
{
    struct comparison c = {.changes = changes};

    _Static_assert(sizeof(c.refused.text) + 32 <= DDP__DIFFERENCES,
                   "no room for differences");
    changes->names[0] = 0;
    compare_objects(&c, "", json_object_get(there, "settings"),
                    json_object_get(here, "settings"));
    compare_networks(&c, json_object_get(there, "network"),
                     json_object_get(here, "network"));
    print_differences(&c.accepted, text, DDP__DIFFERENCES);
    snprintf(changes->text, sizeof(changes->text), "%.*s",
             (int)sizeof(changes->text) - 1, text);
    if (c.final)
        changes->names[0] = 0;
    print_differences(&c.refused, text, DDP__DIFFERENCES);
    return c.refused.count;
}

int ddp__settings_compare(const char *path, const json_t *there,
                          const json_t *here, struct ddp__changes *changes)
{
    char text[DDP__DIFFERENCES];

    if (ddp__settings_differences(there, here, changes, text) == 0)
        return 0;
    return ddp__fail(DDP_EINVAL, "%s was written with other settings: %s", path,
                     text);
}
