/* data_files.h - files of data sets, and what is refused
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DATA_FILES_H
#define DATA_FILES_H

#include "ddp.h"
#include "defaults.h"
#include "scratch.h"

static inline void put_image(const char *name, uint32_t seed)
{
    struct bytes b = make_photo(48 + (int)seed % 7, 40, seed);

    put(name, b.data, b.len);
    free(b.data);
}

static const struct ddp_image_options small = {IMAGE_DEFAULTS, .size = 16,
                                               .resize = 20};

static inline bool ends(const char *s, const char *end)
{
    size_t n = strlen(end);

    return s && strlen(s) >= n && !strcmp(s + strlen(s) - n, end);
}

/* A data set could not be made, and the message has this text. */
static inline void refused(ddp_dataset_t *d, const char *says, const char *what)
{
    ok(!d && strstr(ddp_errmsg(), says), "%s: refused", what);
    if (d || !strstr(ddp_errmsg(), says))
        diag("%s; message: %s", d ? "made" : "not made", ddp_errmsg());
    ddp_dataset_free(d);
}

static inline int label_of(ddp_dataset_t *d, int64_t i)
{
    static uint8_t x[64 * 64 * 3];
    int32_t label = -1;

    return ddp_dataset_get(d, i, 1, x, &label) < 0 ? -1 : label;
}

static inline ddp_dataset_t *table(const char *text)
{
    put_text("t.csv", text);
    return ddp_dataset_csv(at("t.csv"), "y");
}

#endif
