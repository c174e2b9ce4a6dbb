/* gunzip.c - decompress what gzip has written, by zlib
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "data/gunzip.h"

#ifdef HAVE_ZLIB

#include <zlib.h>

enum { GZIP_ONLY = 16 + MAX_WBITS, FIRST = 64 << 10 };

static int grow(struct ddp__bytes *b, size_t max)
{
    size_t room = b->room ? 2 * b->room : FIRST;
    uint8_t *data;

    room = room < max + 1 ? room : max + 1;
    if (!(data = realloc(b->data, room)))
        return ddp__fail(DDP_ENOMEM, "out of memory to decompress a file");
    b->data = data;
    b->room = room;
    return 0;
}

/* All of the stream; Z_STREAM_END, or what zlib says of it. */
static int inflate_all(z_stream *z, size_t max, struct ddp__bytes *out, int *rc)
{
    int state = Z_OK;

    while (state == Z_OK && out->len <= max) {
        size_t room;

        if (out->len == out->room && (*rc = grow(out, max)) < 0)
            return state;
        room = out->room - out->len;
        z->next_out = out->data + out->len;
        z->avail_out = (uInt)room;
        state = inflate(z, Z_NO_FLUSH);
        out->len += room - z->avail_out;
    }
    return state;
}

int ddp__gunzip(const struct ddp__bytes *in, size_t max, struct ddp__bytes *out)
{
    z_stream z = {.next_in = in->data, .avail_in = (uInt)in->len};
    int state, rc = 0;

    *out = (struct ddp__bytes){0};
    if (inflateInit2(&z, GZIP_ONLY) != Z_OK)
        return ddp__fail(DDP_ENOMEM, "out of memory to decompress a file");
    state = inflate_all(&z, max, out, &rc);
    if (rc == 0 && out->len > max)
        rc = ddp__fail(DDP_EDATA, "decompresses to more than %zu bytes", max);
    else if (rc == 0 && state == Z_MEM_ERROR)
        rc = ddp__fail(DDP_ENOMEM, "out of memory to decompress a file");
    else if (rc == 0 && state != Z_STREAM_END)
        rc = ddp__fail(DDP_EDATA, "is not a whole gzip file: %s",
                       z.msg ? z.msg : "it ends too early");
    inflateEnd(&z);
    if (rc < 0) {
        free(out->data);
        *out = (struct ddp__bytes){0};
    }
    return rc;
}

#else

int ddp__gunzip(const struct ddp__bytes *in, size_t max, struct ddp__bytes *out)
{
    (void)in;
    (void)max;
    *out = (struct ddp__bytes){0};
    return ddp__fail(DDP_EDATA, "this build of libddp lacks zlib: decompress "
                                "the file with gunzip");
}

#endif
