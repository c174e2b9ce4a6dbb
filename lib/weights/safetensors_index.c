/* safetensors_index.c - tensors in several files, and their index
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * model.safetensors.index.json maps tensors to files in the same folder:
 *
 *     {"metadata": ..., "weight_map": {"fc.bias": "model-2.safetensors", ...}}
 *
 * The map and the files, called shards, must agree, tensor by tensor.  The name
 * of a shard leads to no other folder.
 *
 * Source   huggingface/transformers, which writes them for large models.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "base/file.h"
#include "weights/safetensors.h"
#include "weights/safetensors_header.h"
#include "weights/safetensors_index.h"

static const char suffix[] = ".safetensors";

/* Without its folder. */
static const char *shard_name(const struct ddp__st_file *shard)
{
    return strrchr(shard->path, '/') + 1;
}

static bool has_shard(const struct ddp__st_file *f, const char *name)
{
    for (int i = f->shards - 1; i >= 0; i--)
        if (!strcmp(shard_name(f->shard[i]), name))
            return true;
    return false;
}

/* "DIR/name" of the list DIR/x.json. */
static char *path_in_folder(const struct ddp__st_file *f, const char *name)
{
    const char *slash = strrchr(f->path, '/');
    char *path;

    if (asprintf(&path, "%.*s/%s", slash ? (int)(slash - f->path) : 1,
                 slash ? f->path : ".", name) < 0)
        return NULL;
    return path;
}

static int add_shard(struct ddp__st_file *f, const char *name)
{
    size_t len = strlen(name), end = sizeof(suffix) - 1;
    struct ddp__st_file **shard;
    char *path;
    int rc;

    if (strchr(name, '/') || len <= end || strcmp(name + len - end, suffix))
        return ddp__st_bad(f,
                           "%.95s does not name a %s file in the same folder",
                           name, suffix);
    shard = realloc(f->shard, ((size_t)f->shards + 1) * sizeof(*shard));
    if (shard)
        f->shard = shard;
    if (!shard || !(path = path_in_folder(f, name)))
        return ddp__fail(DDP_ENOMEM, "%s: out of memory", f->path);
    if ((rc = ddp__st_open(&f->shard[f->shards], path)) == 0)
        f->shards++;
    free(path);
    return rc;
}

static int open_shards(struct ddp__st_file *f, json_t *map)
{
    const char *tensor;
    json_t *v;
    int rc = 0;

    json_object_foreach(map, tensor, v)
    {
        const char *name = json_string_value(v);

        if (!name)
            return ddp__st_bad(f, "tensor %.95s is in no file", tensor);
        if (!has_shard(f, name) && (rc = add_shard(f, name)) < 0)
            return rc;
    }
    return 0;
}

/* Move the tensors of a shard to f and remove them from the map, so that no
 * tensor is found twice. */
static int move_shard_tensors(struct ddp__st_file *f,
                              struct ddp__st_file *shard, json_t *map)
{
    for (int i = 0; i < shard->n; i++) {
        struct ddp__st_tensor *t = &shard->tensor[i];
        const char *in = json_string_value(json_object_get(map, t->name));

        if (!in || strcmp(in, shard_name(shard)))
            return ddp__st_bad(f,
                               "tensor %.95s is in %.95s, but not listed there",
                               t->name, shard_name(shard));
        json_object_del(map, t->name);
        f->tensor[f->n++] = *t;
        t->name = NULL;
    }
    return 0;
}

static int move_tensors(struct ddp__st_file *f, json_t *map)
{
    size_t n = 0;
    const char *tensor;
    json_t *v;
    int rc = 0;

    for (int i = 0; i < f->shards; i++)
        n += (size_t)f->shard[i]->n;
    if (!(f->tensor = calloc(n + 1, sizeof(*f->tensor))))
        return ddp__fail(DDP_ENOMEM, "%s: out of memory", f->path);
    for (int i = 0; rc == 0 && i < f->shards; i++)
        rc = move_shard_tensors(f, f->shard[i], map);
    if (rc < 0)
        return rc;
    json_object_foreach(map, tensor, v) /* what is left */
        return ddp__st_bad(f, "tensor %.95s is not in %.95s", tensor,
                           json_string_value(v));
    return 0;
}

int ddp__st_read_index(struct ddp__st_file *f)
{
    struct ddp__bytes text = {0};
    json_t *root = NULL, *map;
    int rc = ddp__file_load(f->path, DDP__ST_HEADER_MAX, &text);

    if (rc == 0)
        rc = ddp__st_parse(f, (const char *)text.data, text.len, &root);
    free(text.data);
    if (rc < 0)
        return rc;
    map = json_object_get(root, "weight_map");
    if (!json_is_object(map))
        rc = ddp__st_bad(f,
                         "has no weight_map, so it is not an index of weights");
    if (rc == 0 && (rc = open_shards(f, map)) == 0)
        rc = move_tensors(f, map);
    json_decref(root);
    return rc;
}
