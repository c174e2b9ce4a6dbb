/* test_amx_pixels.c - 1x1 convolutions on AMX tiles against sums in f64
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Products of two bf16 are exact in f32.  A sum of k of them has k roundings of
 * at most 2^-24 of the sum of their sizes, and its own to bf16, 2^-8 of itself:
 * each output must be as close.
 */
#include "config.h"

#include <math.h>

#include "tap.h"

#if !defined(HAVE_ONEDNN) || !defined(__x86_64__)
int main(void)
{
    skip_all("built without oneDNN, or not for x86-64");
}
#else
#include <sys/mman.h>
#include <unistd.h>

#include "base/half.h"
#include "cpu/amx.h"
#include "cpu/amx_pixels.h"
#include "cpu/amx_weight.h"

static const struct row {
    int n, h, w, c, o;
    bool bias;
} rows[] = {
    {1, 8, 8, 32, 32, false},   /* whole tiles alone */
    {1, 7, 7, 16, 96, false},   /* half a step, 17 pixels left */
    {1, 5, 5, 24, 40, true},    /* fewer pixels than two tiles have */
    {2, 13, 11, 40, 24, false}, /* two equal steps, half a panel left */
    {1, 9, 7, 80, 112, true},     {3, 7, 9, 112, 80, false},
    {2, 8, 8, 8, 5, true},        /* less than a panel */
    {1, 14, 14, 192, 320, true},  /* weights for several blocks */
    {1, 7, 7, 320, 192, false},   /* many terms */
    {4, 65, 65, 16, 96, false},   /* past the caches, whole lines */
    {4, 65, 65, 24, 104, true},   /* past them, and not all are whole */
    {5, 65, 65, 144, 240, false}, /* so, in several blocks */
};

struct layer {
    struct ddp__dnn_shape s;
    uint16_t *x, *y;
    float *w;
    void *packed, *map;
    size_t pixels, mapped; /* of an image; bytes of the map */
};

/* ---- numbers ------------------------------------------------------------ */

static uint64_t state = 1;

/* Between -1 and 1. */
static float draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(int64_t)(state >> 11 << 11) / 0x1p63);
}

static void *new_bytes(size_t size)
{
    void *p = aligned_alloc(64, (size + 63) / 64 * 64);

    if (!p)
        bail_out("out of memory");
    memset(p, 0x5a, size);
    return p;
}

/* Values that end where a page begins that nobody may read. */
static uint16_t *new_input(struct layer *l, size_t count)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = count * 2;
    size_t pages = (size + page - 1) / page * page;
    uint16_t *x;

    l->mapped = pages + page;
    l->map = mmap(NULL, l->mapped, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (l->map == MAP_FAILED ||
        mprotect((char *)l->map + pages, page, PROT_NONE) < 0)
        bail_out("no pages");
    x = (uint16_t *)(void *)((char *)l->map + pages - size);
    for (size_t i = 0; i < count; i++)
        x[i] = ddp__to_bf16(draw());
    return x;
}

/* ---- layers ------------------------------------------------------------- */

enum { GUARD = 64 }; /* values after y, which nobody may write */

static struct ddp__dnn_shape shape_of(const struct row *r)
{
    return (struct ddp__dnn_shape){.type = DDP_BF16,
                                   .n = r->n,
                                   .h = r->h,
                                   .w = r->w,
                                   .c = r->c,
                                   .oh = r->h,
                                   .ow = r->w,
                                   .o = r->o,
                                   .conv = {.kh = 1,
                                            .kw = 1,
                                            .sh = 1,
                                            .sw = 1,
                                            .dh = 1,
                                            .dw = 1,
                                            .groups = 1,
                                            .bias = r->bias}};
}

static void layer_new(struct layer *l, const struct row *r)
{
    size_t c = (size_t)r->c, o = (size_t)r->o;

    l->s = shape_of(r);
    l->pixels = (size_t)(r->h * r->w);
    l->x = new_input(l, (size_t)r->n * l->pixels * c);
    l->y = new_bytes(2 * ((size_t)r->n * l->pixels * o + GUARD));
    l->w = new_bytes((c + 1) * o * sizeof(float));
    for (size_t i = 0; i < (c + 1) * o; i++)
        l->w[i] = draw();
    l->packed = new_bytes(ddp__amx_weight_size(&l->s));
}

static void layer_free(struct layer *l)
{
    munmap(l->map, l->mapped);
    free(l->y);
    free(l->w);
    free(l->packed);
}

/* A sum, and that of sizes. */
struct sum {
    double of, sizes;
};

/* Output j of pixel p; turn: of the transposed weights. */
static struct sum output(const struct layer *l, size_t p, size_t j, bool turn)
{
    size_t c = (size_t)l->s.c, o = (size_t)l->s.o;
    struct sum s = {l->s.conv.bias ? l->w[c * o + j] : 0, 0};

    for (size_t i = 0; i < c; i++) {
        float w = l->w[turn ? i * o + j : j * c + i];
        double v = (double)ddp__from_bf16(l->x[p * c + i]) *
                   (double)ddp__from_bf16(ddp__to_bf16(w));

        s.of += v;
        s.sizes += fabs(v);
    }
    return s;
}

/* The largest error, in shares of what is allowed. */
static double error_of(const struct layer *l, bool turn)
{
    size_t o = (size_t)l->s.o, all = (size_t)l->s.n * l->pixels;
    double most = 0;

    for (size_t p = 0; p < all; p++)
        for (size_t j = 0; j < o; j++) {
            struct sum s = output(l, p, j, turn);
            double sum = (l->s.c + 1) * 0x1p-24 * (s.sizes + fabs(s.of));
            double allowed = sum + 0x1p-8 * (fabs(s.of) + sum);
            double e = fabs((double)ddp__from_bf16(l->y[p * o + j]) - s.of);

            most = fmax(most, isnan(e) ? INFINITY : e / allowed);
        }
    return most;
}

static void run(struct layer *l, const uint16_t *x, uint16_t *y)
{
    if (ddp__amx_pixels_run(&l->s, x, l->packed, y) < 0)
        bail_out("%s", ddp_errmsg());
}

/* ---- tests -------------------------------------------------------------- */

static void test_error(struct layer *l, const char *name, bool turn)
{
    size_t end = (size_t)l->s.n * l->pixels * (size_t)l->s.o;
    uint16_t guard[GUARD];
    double e;

    memcpy(guard, l->y + end, sizeof(guard));
    ddp__amx_weight_pack(&l->s, l->w, turn, l->packed);
    run(l, l->x, l->y);
    e = error_of(l, turn);
    ok(e <= 1, "%s%s: %.2f of the error that is allowed", name,
       turn ? ", transposed" : "", e);
    ok(memcmp(guard, l->y + end, sizeof(guard)) == 0,
       "%s: nothing after the output is written", name);
}

/* Each image by itself, and where lines begin elsewhere. */
static void test_bits(struct layer *l, const char *name)
{
    size_t x = l->pixels * (size_t)l->s.c, y = l->pixels * (size_t)l->s.o;
    size_t images = (size_t)l->s.n, size = images * y * sizeof(*l->y);
    uint16_t *other = new_bytes(size + sizeof(*other) * GUARD);

    ddp__amx_weight_pack(&l->s, l->w, false, l->packed);
    run(l, l->x, l->y);
    run(l, l->x, other + 1);
    ok(memcmp(l->y, other + 1, size) == 0, "%s: the same bits at any address",
       name);
    l->s.n = 1;
    for (size_t i = 0; i < images; i++)
        run(l, l->x + i * x, other + i * y);
    l->s.n = (int)images;
    ok(memcmp(l->y, other, size) == 0, "%s: the same bits in any sub-batch",
       name);
    free(other);
}

/* What one pixel has is seen by no other one. */
static void test_neighbours(struct layer *l, const char *name)
{
    size_t c = (size_t)l->s.c, o = (size_t)l->s.o, all, p, same = 0;
    size_t size = (size_t)l->s.n * l->pixels * o * sizeof(*l->y);
    uint16_t *other = new_bytes(size);

    all = (size_t)l->s.n * l->pixels;
    p = all / 2;
    for (size_t i = 0; i < c; i++)
        l->x[p * c + i] = ddp__to_bf16(INFINITY);
    run(l, l->x, other);
    for (size_t i = 0; i < all; i++)
        same += memcmp(l->y + i * o, other + i * o, o * sizeof(*other)) == 0;
    ok(same == all - 1 && !isfinite(ddp__from_bf16(other[p * o])),
       "%s: infinite values of a pixel change no other", name);
    free(other);
}

static void test_row(const struct row *r)
{
    struct layer l;
    char name[80];

    layer_new(&l, r);
    snprintf(name, sizeof(name), "%dx%dx%dx%d to %d%s", r->n, r->h, r->w, r->c,
             r->o, r->bias ? ", bias" : "");
    test_error(&l, name, false);
    if (!r->bias)
        test_error(&l, name, true);
    test_bits(&l, name);
    test_neighbours(&l, name);
    layer_free(&l);
}

/* Where it was measured, and was faster. */
static void test_choice(void)
{
    static const struct row row = {1, 14, 14, 64, 384, false};
    struct ddp__dnn_shape s = shape_of(&row);

    ok(ddp__amx_pixels_fits(&s), "64 channels to 384");
    s.conv.act = DDP_RELU;
    ok(!ddp__amx_pixels_fits(&s), "not with an activation");
    s.conv.act = DDP_IDENTITY;
    s.type = DDP_F32;
    ok(!ddp__amx_pixels_fits(&s), "not in f32");
    s.type = DDP_BF16;
    s.c = 68;
    ok(!ddp__amx_pixels_fits(&s), "not where tiles would be nearly empty");
    s.c = 64;
    s.h = s.w = s.oh = s.ow = 6;
    ok(!ddp__amx_pixels_fits(&s), "not for small images");
}

int main(void)
{
    if (!ddp__amx_here())
        skip_all("this processor lacks AMX");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        test_row(&rows[i]);
    test_choice();
    return done_testing();
}
#endif
