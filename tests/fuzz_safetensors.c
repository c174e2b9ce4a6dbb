/* fuzz_safetensors.c - any bytes as a safetensors file: refused or readable
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * With clang -fsanitize=fuzzer -DDDP_FUZZER this is a libFuzzer target; else a
 * program that runs the files it is given, or bytes of its own.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "weights/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file that opened: its tensors must tile the data, and be readable. */
static void use(struct ddp__st_file *f, size_t size)
{
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
        free(x);
    }
    if (f->data + at != size)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char path[64];
    struct ddp__st_file *f;

    if (fd < 0) {
        fd = memfd_create("fuzz", 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    if (fd < 0 || ftruncate(fd, 0) < 0 ||
        pwrite(fd, data, size, 0) != (ssize_t)size)
        return 0;
    if (ddp__st_open(&f, path) == 0)
        use(f, size);
    else if (!*ddp_errmsg())
        abort();
    ddp__st_close(f);
    return 0;
}

#ifndef DDP_FUZZER
#include "tap.h"

static int replay(const char *name)
{
    static uint8_t buf[1 << 20];
    FILE *f = fopen(name, "rb");
    size_t n;

    if (!f)
        return -1;
    n = fread(buf, 1, sizeof(buf), f);
    fclose(f);
    return LLVMFuzzerTestOneInput(buf, n);
}

/* A good file with bytes changed, taken out and put in. */
static void mutate(int rounds)
{
    static const char head[] =
        "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F16\","
        "\"shape\":[1,2],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\","
        "\"shape\":[3],\"data_offsets\":[4,16]}}";
    static const char pieces[] = "0123456789[]{},:\"\\-.eFI \xff";
    uint32_t seed = 1;

    for (int r = 0; r < rounds; r++) {
        uint8_t buf[512] = {sizeof(head) - 1};
        size_t n = 8 + sizeof(head) - 1;

        memcpy(buf + 8, head, n - 8);
        n += 16;
        for (int k = 0; k < 1 + r % 4; k++) {
            size_t at;

            seed = seed * 1664525u + 1013904223u;
            at = (seed >> 8) % n;
            if (seed >> 30 == 0 && n > 9) { /* shorter by one */
                memmove(buf + at, buf + at + 1, n-- - at - 1);
                buf[0]--;
            } else if (seed >> 30 == 1 && n < 500) { /* longer by one */
                memmove(buf + at + 1, buf + at, n++ - at);
                buf[at] = (uint8_t)pieces[(seed >> 4) % (sizeof(pieces) - 1)];
                buf[0]++;
            } else if (at >= 8 || seed >> 28 == 15) {
                buf[at] = (uint8_t)pieces[(seed >> 4) % (sizeof(pieces) - 1)];
            }
        }
        LLVMFuzzerTestOneInput(buf, n);
    }
}

int main(int argc, char **argv)
{
    int rounds = getenv("DDP_LONG") ? 2000000 : 50000;

    for (int i = 1; i < argc; i++)
        ok(replay(argv[i]) == 0, "%s", argv[i]);
    if (argc == 1) {
        mutate(rounds);
        pass("%d damaged files: each refused or readable", rounds);
    }
    return done_testing();
}
#endif
