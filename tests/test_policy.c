/* test_policy.c - augmentation policies: names, timm's strengths, equal bits
 *
 * test_pillow.c compares operations and torchvision's policies.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "defaults.h"
#include "image/change.h"
#include "image/image.h"
#include "tap.h"

enum { SIDE = 40, DRAWS = 20000 };

/* ---- names -------------------------------------------------------------- */

static void test_names(void)
{
    static const char *const bad[] = {
        "",           "auto",      "rand-x9",     "rand-m",    "rand-m9-",
        "rand-m99",   "ra-m31",    "ra-m2.5",     "augmix-m0", "augmix-w9",
        "rand-n-3",   "rand-n1.5", "ta_wide-m3",  "ra-n17",    "rand-mnan",
        "rand-m9-p2", "v0-m9",     "original-n2", "v1"};
    struct ddp_policy p = {0};

    ok(ddp_policy_parse("rand-m9-mstd0.5-inc1", &p) == 0 &&
           p.kind == DDP_TIMM_AUGMENT && p.magnitude == 9 &&
           p.deviation == 0.5 && p.increasing && p.ops == 2 &&
           p.probability == 0.5,
       "timm's rand-m9-mstd0.5-inc1");
    ok(ddp_policy_parse("augmix-m5-w4-d2", &p) == 0 && p.kind == DDP_AUGMIX &&
           p.magnitude == 5 && p.chains == 4 && p.ops == 2 && p.alpha == 1 &&
           !p.increasing,
       "AugMix with numbers");
    ok(ddp_policy_parse("ra-n3", &p) == 0 && p.kind == DDP_RAND_AUGMENT &&
           p.ops == 3 && p.magnitude == 9,
       "RandAugment with three operations");
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ok(ddp_policy_parse(bad[i], &p) == DDP_EINVAL &&
               p.kind == DDP_RAND_AUGMENT,
           "'%s' is refused: %s", bad[i], ddp_errmsg());
}

/* ---- timm's RandAugment ------------------------------------------------- */

/* Of auto_augment.py, at magnitude 9 and for 40 pixels: _rand_increasing and
 * without; 0: there is no strength. */
static const struct {
    enum ddp__change_kind kind;
    double increasing[2], plain[2]; /* with either sign */
} timm[] = {
    {DDP__AUTO_CONTRAST, {0, 0}, {0, 0}},
    {DDP__EQUALIZE, {0, 0}, {0, 0}},
    {DDP__INVERT, {0, 0}, {0, 0}},
    {DDP__ROTATE, {27, -27}, {27, -27}},
    {DDP__POSTERIZE, {1, 1}, {3, 3}},
    {DDP__SOLARIZE, {26, 26}, {230, 230}},
    {DDP__SOLARIZE_ADD, {99, 99}, {99, 99}},
    {DDP__COLOR, {1.81, 0.19}, {1.72, 1.72}},
    {DDP__CONTRAST_BY, {1.81, 0.19}, {1.72, 1.72}},
    {DDP__LIGHTEN, {1.81, 0.19}, {1.72, 1.72}},
    {DDP__SHARPEN, {1.81, 0.19}, {1.72, 1.72}},
    {DDP__SHEAR_X, {0.27, -0.27}, {0.27, -0.27}},
    {DDP__SHEAR_Y, {0.27, -0.27}, {0.27, -0.27}},
    {DDP__TRANSLATE_X, {16.2, -16.2}, {16.2, -16.2}},
    {DDP__TRANSLATE_Y, {16.2, -16.2}, {16.2, -16.2}},
};
enum { TIMM = sizeof(timm) / sizeof(*timm) };

/* The row of a change; -1: timm has none such. */
static int row_of(const struct ddp__change *c, bool increasing)
{
    for (int i = 0; i < TIMM; i++) {
        const double *by = increasing ? timm[i].increasing : timm[i].plain;

        if (timm[i].kind == c->kind &&
            (by[0] == 0 || fabs(c->by - by[0]) < 1e-9 ||
             fabs(c->by - by[1]) < 1e-9))
            return i;
    }
    return -1;
}

/* Half of the draws are operations, each as often, by five deviations. */
static void test_timm(bool increasing)
{
    int count[TIMM] = {0}, nothing = 0, unknown = 0, off = 0;
    double each = DRAWS / 2.0 / TIMM;
    struct ddp_policy p;

    ddp_policy_parse(increasing ? "rand-m9-inc1" : "rand-m9", &p);
    for (uint64_t key = 0; key < DRAWS; key++) {
        struct ddp__change c = ddp__policy_draw(&p, key, SIDE, 0, 1);
        int row = row_of(&c, increasing);

        if (c.kind == DDP__NO_CHANGE)
            nothing++;
        else if (row < 0)
            unknown++;
        else
            count[row]++;
    }
    for (int i = 0; i < TIMM; i++)
        off += fabs(count[i] - each) > 5 * sqrt(each);
    is_int(unknown, 0, "timm, inc%d: strengths", increasing);
    is_int(off, 0, "timm, inc%d: each operation as often", increasing);
    is_near(nothing, DRAWS / 2.0, 5 * sqrt(DRAWS / 4.0),
            "timm, inc%d: half of them are left out", increasing);
}

/* The magnitude of rotations, which is 3 degrees for each unit. */
static void test_deviation(void)
{
    double mean = 0, square = 0, least = 10, most = 0;
    struct ddp_policy p;
    int n = 0;

    ddp_policy_parse("rand-m5-mstd0.5-p1", &p);
    for (uint64_t key = 0; key < DRAWS; key++) {
        struct ddp__change c = ddp__policy_draw(&p, key, SIDE, 0, 0);
        double m = fabs(c.by) / 3;

        if (c.kind != DDP__ROTATE)
            continue;
        n++;
        mean += m;
        square += (m - 5) * (m - 5);
    }
    is_near(mean / n, 5, 5 * 0.5 / sqrt(n), "mstd0.5: the mean magnitude");
    is_near(square / n, 0.25, 5 * 0.25 * sqrt(2.0 / n), "its variance");
    ddp_policy_parse("rand-m8-mstd101-p1", &p);
    for (uint64_t key = 0; key < DRAWS; key++) {
        struct ddp__change c = ddp__policy_draw(&p, key, SIDE, 0, 0);

        if (c.kind != DDP__ROTATE)
            continue;
        least = fmin(least, fabs(c.by) / 3);
        most = fmax(most, fabs(c.by) / 3);
    }
    ok(least < 0.1 && most > 7.9 && most <= 8,
       "mstd101: uniform from 0 to the magnitude");
}

/* ---- timm's AutoAugment ------------------------------------------------- */

/* Of auto_augment_policy() for 40 pixels: which of two operations, its share of
 * the samples, and the mean size of its strength, of timm's own functions. */
struct share {
    int at;
    enum ddp__change_kind kind;
    double share, by;
};
static const struct share original[] = {
    {0, DDP__COLOR, 0.096, 0.94},      {0, DDP__EQUALIZE, 0.136, 0},
    {0, DDP__INVERT, 0.048, 0},        {0, DDP__POSTERIZE, 0.072, 6.22222},
    {0, DDP__ROTATE, 0.088, 23.1818},  {0, DDP__SHARPEN, 0.016, 1.36},
    {0, DDP__SHEAR_X, 0.024, 0.15},    {0, DDP__SOLARIZE, 0.072, 110.667},
    {1, DDP__AUTO_CONTRAST, 0.048, 0}, {1, DDP__COLOR, 0.056, 0.357143},
    {1, DDP__CONTRAST_BY, 0.08, 1.54}, {1, DDP__EQUALIZE, 0.312, 0},
    {1, DDP__INVERT, 0.024, 0},        {1, DDP__POSTERIZE, 0.04, 6},
    {1, DDP__ROTATE, 0.056, 25.2857},  {1, DDP__SOLARIZE, 0.072, 170.222},
};
static const struct share v0[] = {
    {0, DDP__COLOR, 0.152, 0.677895},
    {0, DDP__EQUALIZE, 0.16, 0},
    {0, DDP__INVERT, 0.016, 0},
    {0, DDP__POSTERIZE, 0.048, 0.666667},
    {0, DDP__ROTATE, 0.04, 21},
    {0, DDP__SHEAR_X, 0.008, 0.27},
    {0, DDP__SHEAR_Y, 0.048, 0.07},
    {0, DDP__SOLARIZE, 0.104, 133.231},
    {1, DDP__AUTO_CONTRAST, 0.04, 0},
    {1, DDP__COLOR, 0.048, 1.27},
    {1, DDP__EQUALIZE, 0.16, 0},
    {1, DDP__ROTATE, 0.144, 16.6667},
    {1, DDP__SHEAR_Y, 0.056, 0.107143},
    {1, DDP__SOLARIZE, 0.08, 132.9},
    {1, DDP__SOLARIZE_ADD, 0.056, 51.8571},
    {1, DDP__TRANSLATE_Y, 0.032, 16.2},
};
enum { SHARES = 16 };

/* Strengths of rules differ by less than their mean, so 10 % is five deviations
 * for 150 draws and more. */
static void test_table(const char *name, const struct share *want,
                       const double posterize[2])
{
    double count[SHARES] = {0}, by[SHARES] = {0};
    int unknown = 0, off = 0;
    struct ddp_policy p;

    ddp_policy_parse(name, &p);
    for (uint64_t draw = 0; draw < 2 * DRAWS; draw++) {
        struct ddp__change c =
            ddp__policy_draw(&p, draw / 2, SIDE, 0, (int)(draw % 2));
        int i = 0;

        while (i < SHARES &&
               (want[i].at != (int)(draw % 2) || want[i].kind != c.kind))
            i++;
        unknown += i == SHARES && c.kind != DDP__NO_CHANGE;
        if (i < SHARES) {
            count[i]++;
            by[i] += fabs(c.by);
        }
    }
    for (int i = 0; i < SHARES; i++) {
        double each = want[i].share * DRAWS, mean = by[i] / count[i];
        double expected =
            want[i].kind == DDP__POSTERIZE ? posterize[want[i].at] : want[i].by;

        off += fabs(count[i] - each) > 5 * sqrt(each);
        off += expected > 0 && fabs(mean - expected) > 0.1 * expected;
    }
    is_int(unknown, 0, "timm's %s: its operations", name);
    is_int(off, 0, "timm's %s: their shares and strengths", name);
}

static void test_tables(void)
{
    test_table("original", original, (const double[]){6.2222, 6});
    test_table("originalr", original, (const double[]){1.7778, 2});
    test_table("v0", v0, (const double[]){0.6667, 0});
    test_table("v0r", v0, (const double[]){3.3333, 0});
}

/* ---- samples ------------------------------------------------------------ */

static uint8_t photo[SIDE * SIDE * 3];

static void sample(const char *policy, uint64_t key, uint8_t *x)
{
    struct ddp_image_options in = {IMAGE_DEFAULTS, .size = SIDE}, o;

    in.augment = DDP_AUGMENT_RANDOM;
    in.min_area = 1;
    in.ratio[0] = in.ratio[1] = 1;
    in.horizontal_flip = 0;
    if (ddp_policy_parse(policy, &in.policy) < 0 ||
        ddp__image_options(&in, SIDE, &o) < 0 ||
        ddp__image_pixels(photo, SIDE, SIDE, &o, key, x) < 0)
        bail_out("%s: %s", policy, ddp_errmsg());
}

static void test_keys(const char *policy)
{
    static uint8_t a[SIDE * SIDE * 3], b[SIDE * SIDE * 3];
    int same = 0, plain = 0;

    for (uint64_t key = 0; key < 200; key++) {
        sample(policy, key, a);
        sample(policy, key, b);
        same += !memcmp(a, b, sizeof(a));
        plain += !memcmp(a, photo, sizeof(a));
    }
    is_int(same, 200, "%s: a key decides the sample", policy);
    ok(plain < 120, "%s: most samples are changed", policy);
}

static void test_augmix(void)
{
    struct ddp_policy p;
    double own = 0, off = 0;
    float share[9];

    ddp_policy_parse("augmix-w4", &p);
    for (uint64_t key = 0; key < DRAWS; key++) {
        double sum = 0;

        ddp__policy_shares(&p, key, share);
        for (int i = 0; i <= 4; i++)
            sum += (double)share[i];
        off = fmax(off, fabs(sum - 1));
        own += (double)share[0] / DRAWS;
    }
    ok(off < 1e-6, "AugMix: shares add up to 1");
    /* Uniform: its deviation is 0.29. */
    is_near(own, 0.5, 5 * 0.29 / sqrt(DRAWS), "AugMix: half is the sample");
}

static void test_none(void)
{
    uint8_t x[SIDE * SIDE * 3];

    sample("none", 7, x);
    ok(!memcmp(x, photo, sizeof(x)), "none: the sample as it is");
}

/* ---- maps, where arithmetic is exact ------------------------------------ */

static const uint8_t paint[3] = {1, 2, 3};

static void change(enum ddp__change_kind kind, double by,
                   enum ddp_interpolation filter, uint8_t x[SIDE * SIDE * 3])
{
    static uint32_t room[(SIDE + 2) * (SIDE + 2)];
    struct ddp__change c = {kind, by};
    struct ddp__canvas canvas = {SIDE, filter, {paint[0], paint[1], paint[2]}};

    memcpy(x, photo, sizeof(photo));
    ddp__change_apply(&c, &canvas, room, x);
}

static const uint8_t *pixel(const uint8_t *x, int row, int column)
{
    return x + (ptrdiff_t)(row * SIDE + column) * 3;
}

/* No pixel is off by a level, which interpolation between places that were off
 * by a rounding error would truncate. */
static void test_turns(enum ddp_interpolation filter, const char *name)
{
    static uint8_t left[SIDE * SIDE * 3], half[SIDE * SIDE * 3];
    static uint8_t right[SIDE * SIDE * 3];
    int off = 0;

    change(DDP__ROTATE, 90, filter, left);
    change(DDP__ROTATE, 180, filter, half);
    change(DDP__ROTATE, -90, filter, right);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            int a = SIDE - 1 - i, b = SIDE - 1 - j;
            const uint8_t *x = pixel(photo, i, j);

            off += memcmp(pixel(left, b, i), x, 3) != 0;
            off += memcmp(pixel(half, a, b), x, 3) != 0;
            off += memcmp(pixel(right, j, a), x, 3) != 0;
        }
    is_int(off, 0, "turns by 90, 180 and -90 degrees, %s: exact", name);
}

/* Up, and to the left, by half a pixel: the mean of two, truncated.  The last
 * one's place is on the border, which is outside. */
static void test_half_pixels(void)
{
    static uint8_t up[SIDE * SIDE * 3], left[SIDE * SIDE * 3];
    const int last = SIDE - 1;
    int off = 0;

    change(DDP__TRANSLATE_Y, -0.5, DDP_BILINEAR, up);
    change(DDP__TRANSLATE_X, -0.5, DDP_BILINEAR, left);
    for (int i = 0; i < SIDE * SIDE * 3; i++) {
        int row = i / (SIDE * 3), column = i / 3 % SIDE;

        off += up[i] != (row < last ? (photo[i] + photo[i + SIDE * 3]) / 2
                                    : paint[i % 3]);
        off += left[i] !=
               (column < last ? (photo[i] + photo[i + 3]) / 2 : paint[i % 3]);
    }
    is_int(off, 0, "moves by half a pixel: exact, and the last ones painted");
}

int main(void)
{
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        photo[i] = (uint8_t)(40 + i * 7919 % 150 + i / 60);
    test_names();
    test_timm(true);
    test_timm(false);
    test_deviation();
    test_tables();
    test_augmix();
    test_none();
    test_turns(DDP_BILINEAR, "bilinear");
    test_turns(DDP_BICUBIC, "bicubic");
    test_half_pixels();
    test_keys("ta_wide");
    test_keys("ra");
    test_keys("imagenet");
    test_keys("augmix");
    test_keys("rand-m9-mstd0.5-inc1");
    test_keys("original-mstd0.5");
    test_keys("v0");
    return done_testing();
}
