/* fuzz_safetensors.c - any bytes as a safetensors file: refused or readable
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * It reads the files that it is given, or damaged copies of its own, and the
 * lists of several files too.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fuzz.h"
#include "weights/safetensors.h"

/* A file that opened: its tensors must tile the data, and be readable, or of a
 * type that is refused. */
static void use(struct ddp__st_file *f, size_t size)
{
    struct ddp__error before = ddp__error_save();
    size_t at = 0;

    for (int i = 0; i < f->n; i++) {
        const struct ddp__st_tensor *t = &f->tensor[i];
        float *x;

        if (t->begin != at || t->end < t->begin)
            abort();
        at = t->end;
        if (!ddp__st_find(f, t->name))
            abort();
        if (t->len > size) /* types of less than a byte: no need to try */
            continue;
        if (!(x = malloc(t->len * sizeof(float) + 1)))
            continue;
        if (ddp__st_read_f32(t, x, t->len) < 0 && !*ddp_errmsg())
            abort();
        ddp__error_restore(&before);
        free(x);
    }
    if (f->data + at != size)
        abort();
}

/* Open the file, and read all that is in it. */
static int read_tensors(const char *path, size_t data)
{
    struct ddp__st_file *f;
    int rc = ddp__st_open(&f, path);

    if (rc == 0)
        use(f, data);
    ddp__st_close(f);
    return rc;
}

static const char *const word[] = {
    "{",    "}",       "[",     "]",
    ",",    ":",       "\"",    "\\",
    "\\u0", "-1",      "1e9",   "null",
    "F16",  "F8_E4M3", "0",     "18446744073709551615",
    "16",   "dtype",   "shape", "\xff",
    NULL};

/* The bytes of the file are 8 with the length of the header, the header, and
 * then values. */
enum { VALUES = 16 };
static const char header[] =
    "{\"__metadata__\":{\"format\":\"pt\",\"k\":\"v\"},\"a\":{\"dtype\":"
    "\"F16\","
    "\"shape\":[1,2],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\","
    "\"shape\":[3],\"data_offsets\":[4,16]}}";

static size_t make_file(uint8_t *x, const uint8_t *text, size_t len)
{
    for (int i = 0; i < 8; i++)
        x[i] = (uint8_t)((uint64_t)len >> 8 * i);
    memcpy(x + 8, text, len);
    for (int i = 0; i < VALUES; i++)
        x[8 + len + (size_t)i] = (uint8_t)(17 * i);
    return 8 + len + VALUES;
}

static int read_whole(const char *path, const uint8_t *data, size_t len)
{
    (void)data;
    return read_tensors(path, len);
}

/* Only the header is damaged, and its length is right. */
static int read_header(const char *path, const uint8_t *data, size_t len)
{
    uint8_t *x = malloc(8 + len + VALUES);

    (void)path;
    fuzz_write("header.safetensors", x, make_file(x, data, len));
    free(x);
    return read_tensors(fuzz_path("header.safetensors"), 8 + len + VALUES);
}

/* ---- lists of several files --------------------------------------------- */

static const char *const shard[] = {
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}",
    "{\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
    "\"c\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[8,16]}}"};

static int read_index(const char *path, const uint8_t *data, size_t len)
{
    struct ddp__st_file *f;
    int rc = ddp__st_open(&f, path);

    (void)data;
    (void)len;
    for (int i = 0; rc == 0 && i < f->n; i++) {
        float x[4];

        if (ddp__st_find(f, f->tensor[i].name) != &f->tensor[i] ||
            ddp__st_read_f32(&f->tensor[i], x, f->tensor[i].len) < 0)
            abort();
    }
    ddp__st_close(f);
    return rc;
}

static void fuzz_index(void)
{
    static const char *const file[] = {"1-of-2.safetensors",
                                       "2-of-2.safetensors"};
    static const char list[] =
        "{\"metadata\":{\"total_size\":32},\"weight_map\":{"
        "\"a\":\"1-of-2.safetensors\",\"b\":\"2-of-2.safetensors\","
        "\"c\":\"2-of-2.safetensors\"}}";
    static const char *const words[] = {
        "{", "}",    "\"",  ":",     ",", "\"b\":", "../", "1-of-2.safetensors",
        "/", "null", "\\0", ".json", "[", "]",      NULL};
    static const struct fuzz_reader r = {
        "index", "model.safetensors.index.json", 1, read_index, words};
    uint8_t x[256];

    for (int i = 0; i < 2; i++)
        fuzz_write(file[i], x,
                   make_file(x, (const uint8_t *)shard[i], strlen(shard[i])));
    fuzz(&r, "two files", list, sizeof(list) - 1);
}

int main(int argc, char **argv)
{
    static const struct fuzz_reader whole = {"safetensors", "a.safetensors", 1,
                                             read_whole, word};
    static const struct fuzz_reader head = {"header", "header.json", 1,
                                            read_header, word};
    uint8_t x[512];

    if (fuzz_replay(&whole, argc, argv))
        return done_testing();
    fuzz(&whole, "two tensors", x,
         make_file(x, (const uint8_t *)header, sizeof(header) - 1));
    fuzz(&head, "two tensors", header, sizeof(header) - 1);
    fuzz_index();
    return done_testing();
}
