/* json_parse.c - JSON from files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * If there is no memory for a string, Jansson reports that the text is invalid
 * there, or nothing at all.  A text is invalid only if it fails twice in the
 * same way.
 */
#include "config.h"

#include <string.h>

#include "base/json_parse.h"
#include "ddp.h"

static json_t *parse(const void *text, size_t n, json_error_t *err)
{
    return json_loadb(text, n, JSON_REJECT_DUPLICATES, err);
}

int ddp__json_parse(const void *text, size_t n, json_t **root,
                    json_error_t *err)
{
    json_error_t first;

    if ((*root = parse(text, n, &first)) || (*root = parse(text, n, err)))
        return 0;
    if (json_error_code(err) == json_error_out_of_memory || !err->text[0] ||
        first.position != err->position || strcmp(first.text, err->text))
        return DDP_ENOMEM;
    return DDP_EDATA;
}
