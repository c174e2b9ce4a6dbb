/* metadata.c - words that files of a chain's weights carry with them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/printable.h"
#include "graph/params.h"
#include "weights/safetensors.h"

/* The place of a key in key, value, ..., NULL; that of the end if it is not
 * there. */
static int find_key(char **pair, const char *key)
{
    int i = 0;

    while (pair && pair[i] && strcmp(pair[i], key))
        i += 2;
    return i;
}

static int add_pair(struct ddp__params *p, int at, const char *key, char *value)
{
    size_t room = (size_t)at + 3;
    char **more = realloc(p->metadata, room * sizeof(*more));
    char *name = more ? strdup(key) : NULL;

    if (more)
        p->metadata = more;
    if (!name) {
        if (more)
            more[at] = NULL;
        free(value);
        return ddp__fail(DDP_ENOMEM, "out of memory for metadata");
    }
    more[at] = name;
    more[at + 1] = value;
    more[at + 2] = NULL;
    return 0;
}

int ddp_chain_set_metadata(ddp_chain_t *c, const char *key, const char *value)
{
    struct ddp__params *p = ddp__params_of(c);
    char *copy;
    int at;

    if (!p)
        return ddp_errcode();
    if (!key || !*key || !value || !strcmp(key, "format"))
        return ddp__fail(DDP_EINVAL,
                         "metadata need a value, and a key other than format");
    if (!ddp__is_utf8(key) || !ddp__is_utf8(value))
        return ddp__fail(DDP_EINVAL, "metadata %.99s: not UTF-8", key);
    if (!(copy = strdup(value)))
        return ddp__fail(DDP_ENOMEM, "out of memory for metadata");
    at = find_key(p->metadata, key);
    if (!p->metadata || !p->metadata[at])
        return add_pair(p, at, key, copy);
    free(p->metadata[at + 1]);
    p->metadata[at + 1] = copy;
    return 0;
}

int ddp_weights_metadata(const char *path,
                         int (*fn)(const char *key, const char *value,
                                   void *arg),
                         void *arg)
{
    struct ddp__st_file *f;
    const char *const *pair;
    int rc;

    if (!path || !fn)
        return ddp__fail(DDP_EINVAL, "metadata need a file and a function");
    if ((rc = ddp__st_open(&f, path)) < 0)
        return rc;
    for (pair = ddp__st_metadata(f); rc == 0 && pair && pair[0]; pair += 2)
        if (fn(pair[0], pair[1], arg) != 0)
            rc = ddp__fail(DDP_ESTOPPED, "%s: stopped at its metadata", path);
    ddp__st_close(f);
    return rc;
}
