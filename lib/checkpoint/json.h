/* json.h - values of the library as JSON
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CHECKPOINT_JSON_H
#define DDP_CHECKPOINT_JSON_H

#include <jansson.h>
#include <math.h>

#include "ddp.h"

/* JSON has no NaN and no infinity. */
static inline json_t *ddp__json_number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static inline json_t *ddp__json_shape(struct ddp_shape s)
{
    return json_pack("[i, i, i]", s.h, s.w, s.c);
}

static inline json_t *ddp__json_options(const struct ddp_option *o, int n)
{
    json_t *all = json_object();

    for (int i = 0; all && i < n; i++)
        if (json_object_set_new(all, o[i].name,
                                o[i].text ? json_string(o[i].text)
                                          : ddp__json_number(o[i].value)) < 0) {
            json_decref(all);
            return NULL;
        }
    return all;
}

#endif
