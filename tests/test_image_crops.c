/* test_image_crops.c - crops, augmentations and erased boxes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "image_oracle.h"

/* ---- crops -------------------------------------------------------------- */

static void test_random_crop(void)
{
    struct ddp_image_options o,
        in = {IMAGE_DEFAULTS, .augment = DDP_AUGMENT_RANDOM};
    int wrong = 0, flips = 0, n = 4000;
    double areas = 0, ratios = 0, left = 0;

    ddp__image_options(&in, 224, &o);
    for (int i = 0; i < n; i++) {
        uint64_t key = (uint64_t)i * 0x9E3779B97F4A7C15u;
        struct ddp__crop c = ddp__augment(&o, key, 500, 375);
        double area = c.box.w * c.box.h / (500.0 * 375);
        double ratio = (double)c.box.w / c.box.h;

        wrong += c.box.x < 0 || c.box.y < 0 || c.box.w < 1 || c.box.h < 1 ||
                 c.box.x + c.box.w > 500 || c.box.y + c.box.h > 375 ||
                 area < 0.078 || ratio < 0.73 || ratio > 1.36 || c.w != 224 ||
                 c.h != 224;
        flips += c.flip;
        areas += area / n;
        ratios += log(ratio) / n;
        left += (c.box.x + c.box.w / 2.0) / 500 / n;
    }
    is_int(wrong, 0,
           "random crops lie in the image, with areas and ratios as "
           "asked");
    /* torchvision's RandomResizedCrop.get_params gives these over 100000 draws
     * for this size (wide boxes fit more often); the means of 4000 draws
     * deviate by 0.0034, 0.0026, 0.0021 and 32. */
    is_near(areas, 0.4338, 0.015, "of torchvision's mean area");
    is_near(ratios, 0.031, 0.012, "of torchvision's mean ratio");
    is_near(left, 0.5, 0.01, "centred in the mean");
    is_near(flips, n / 2, 160, "half of them flipped");
    in.horizontal_flip = 0;
    in.min_area = 1;
    ddp__image_options(&in, 224, &o);
    for (int i = flips = 0; i < 100; i++)
        flips += ddp__augment(&o, (uint64_t)i, 500, 375).flip;
    is_int(flips, 0, "horizontal_flip 0: none");
    in.horizontal_flip = 0.2f;
    ddp__image_options(&in, 224, &o);
    for (int i = flips = 0; i < n; i++)
        flips += ddp__augment(&o, (uint64_t)i, 500, 375).flip;
    is_near(flips, 0.2 * n, 110, "0.2: a fifth"); /* deviates by 25 */
    in.horizontal_flip = 1;
    ddp__image_options(&in, 224, &o);
    for (int i = flips = 0; i < 100; i++)
        flips += ddp__augment(&o, (uint64_t)i, 500, 375).flip;
    is_int(flips, 100, "1: all");
}

/* Areas and ratios of other ranges than the usual ones. */
static void test_crop_ranges(void)
{
    struct ddp_image_options o,
        in = {IMAGE_DEFAULTS, .augment = DDP_AUGMENT_RANDOM};
    double areas = 0, ratios = 0;
    int n = 4000, upside = 0, cubic = 0;

    in.min_area = 0.2f;
    in.max_area = 0.7f;
    in.ratio[0] = 0.5;
    in.ratio[1] = 3;
    in.vertical_flip = 0.3f;
    in.interpolation = DDP_EITHER_FILTER;
    ddp__image_options(&in, 224, &o);
    for (int i = 0; i < n; i++) {
        uint64_t key = (uint64_t)i * 0x9E3779B97F4A7C15u;
        struct ddp__crop c = ddp__augment(&o, key, 500, 375);

        areas += c.box.w * c.box.h / (500.0 * 375) / n;
        ratios += log((double)c.box.w / c.box.h) / n;
        upside += c.vertical_flip;
        cubic += c.filter == DDP_BICUBIC;
    }
    /* torchvision's RandomResizedCrop.get_params over 100000 draws; the means
     * of 4000 draws deviate by 0.0021 and 0.0072, the counts by 29, 32. */
    is_near(areas, 0.4154, 0.01, "scale 0.2 to 0.7: torchvision's area");
    is_near(ratios, 0.242, 0.033, "ratio 1/2 to 3: torchvision's ratio");
    is_near(upside, 0.3 * n, 140, "vertical_flip 0.3: of 3 in 10");
    is_near(cubic, 0.5 * n, 150, "either filter: bicubic for half of them");
}

/* Factors and deviations are evenly distributed as torchvision draws them. */
static void test_colour_plan(void)
{
    struct ddp_image_options o,
        in = {IMAGE_DEFAULTS, .augment = DDP_AUGMENT_SHIFT,
              .jitter = {0.4f, 1.5f, 0.2f, 0.1f}};
    static const double low[] = {0.6, 0, 0.8, -0.1},
                        high[] = {1.4, 2.5, 1.2, 0.1};
    double sum[4] = {0}, square[4] = {0}, blur = 0;
    int n = 24000, wrong = 0, jittered = 0, gray = 0, blurred = 0;
    int first[4][4] = {{0}}, uneven = 0;

    in.jitter_share = 0.8f;
    in.grayscale = 0.2f;
    in.blur = 0.5f;
    ddp__image_options(&in, 32, &o);
    for (int i = 0; i < n; i++) {
        struct ddp__colour c = ddp__augment(&o, (uint64_t)i, 40, 50).colour;

        for (int k = 0; k < 4; k++) {
            double u = ((double)c.factor[k] - low[k]) / (high[k] - low[k]);

            wrong += u < -1e-6 || u > 1 + 1e-6;
            sum[k] += u / n;
            square[k] += u * u / n;
            first[k][c.order[k]]++;
        }
        jittered += c.jitter;
        gray += c.gray;
        blurred += c.blur > 0;
        blur += (double)c.blur;
    }
    for (int k = 0; k < 4; k++) {
        wrong +=
            fabs(sum[k] - 1 / 2.0) > 0.009 || fabs(square[k] - 1 / 3.0) > 0.009;
        for (int j = 0; j < 4; j++) /* deviations of 67 */
            uneven += abs(first[k][j] - n / 4) > 300;
    }
    is_int(wrong, 0, "factors of jitter are even between their limits");
    is_int(uneven, 0, "each of them comes first to last equally often");
    is_near(jittered, 0.8 * n, 280, "jitter_share 0.8: of 8 in 10");
    is_near(gray, 0.2 * n, 280, "grayscale 0.2: 2 in 10");
    is_near(blurred, 0.5 * n, 350, "blur 0.5: half of them");
    is_near(blur / blurred, 1.05, 0.025, "deviations of 0.1 to 2");
}

/* What is wrong has a sentence that says which. */
static void test_colour_limits(void)
{
    struct ddp_image_options o,
        bad[] = {{IMAGE_DEFAULTS, .jitter = {0, 0, 0, 0.6f}},
                 {IMAGE_DEFAULTS, .grayscale = 2},
                 {IMAGE_DEFAULTS, .blur = -1},
                 {IMAGE_DEFAULTS, .vertical_flip = 1.5f},
                 {IMAGE_DEFAULTS, .interpolation = DDP_EITHER_FILTER}};
    static const char *const word[] = {"hue", "grayscale", "blur",
                                       "vertical_flip", "interpolation"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ok(ddp__image_options(&bad[i], 32, &o) == DDP_EINVAL &&
               strstr(ddp_errmsg(), word[i]),
           "%s out of its range is refused", word[i]);
}

static void test_erased_boxes(void)
{
    struct ddp_image_options o,
        in = {IMAGE_DEFAULTS, .augment = DDP_AUGMENT_SHIFT};
    int wrong = 0, erased = 0, n = 4000;
    double areas = 0, ratios = 0, middle = 0;

    in.erase = 0.25f;
    ddp__image_options(&in, 32, &o);
    for (int i = 0; i < n; i++)
        erased += ddp__augment(&o, (uint64_t)i, 40, 50).erased.box[0].w > 0;
    is_near(erased, n / 4, 140, "erase 0.25: a quarter of the samples");
    in.erase = 1;
    ddp__image_options(&in, 32, &o);
    for (int i = 0; i < n; i++) {
        struct ddp__box b = ddp__augment(&o, (uint64_t)i, 40, 50).erased.box[0];

        wrong += b.w < 1 || b.h < 1 || b.x < 0 || b.y < 0 || b.x + b.w > 32 ||
                 b.y + b.h > 32;
        areas += b.w * b.h / 1024.0 / n;
        ratios += log((double)b.h / b.w) / n;
        middle += (b.x + b.w / 2.0) / 32 / n;
    }
    is_int(wrong, 0, "erase 1: a box within every sample");
    /* torchvision's RandomErasing.get_params over 20000 draws; the means of
     * 4000 draws deviate by 0.0014, 0.011 and 0.0029. */
    is_near(areas, 0.1745, 0.006, "of torchvision's mean area");
    is_near(ratios, -0.004, 0.045, "of torchvision's mean ratio");
    is_near(middle, 0.5, 0.012, "centred in the mean");
}

/* Erasing paints its box in the mean colour and leaves the rest. */
static void test_erase(void)
{
    enum { SIZE = 16 };
    struct ddp_image_options o,
        in = {IMAGE_DEFAULTS, .augment = DDP_AUGMENT_SHIFT};
    static const uint8_t mean[3] = {124, 116, 104}; /* of 255 */
    uint8_t *rgb = make_pixels(SIZE, SIZE, 3, 7), x[SIZE * SIZE * 3],
            y[SIZE * SIZE * 3];
    struct ddp__box b;
    int wrong = 0;

    ddp__image_options(&in, SIZE, &o);
    ddp__image_pixels(rgb, SIZE, SIZE, &o, 5, x);
    o.erase = 1;
    ddp__image_pixels(rgb, SIZE, SIZE, &o, 5, y);
    b = ddp__augment(&o, 5, SIZE, SIZE).erased.box[0];
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            bool in_box =
                i >= b.y && i < b.y + b.h && j >= b.x && j < b.x + b.w;
            int at = (i * SIZE + j) * 3;

            wrong += memcmp(y + at, in_box ? mean : x + at, 3) != 0;
        }
    is_int(wrong, 0, "the box has the mean colour, the rest is as without");
    free(rgb);
}

/* Samples of one colour, erased, of DRAWN keys. */
enum { DRAWN = 8000, DRAWN_SIZE = 32, DRAWN_PIXELS = DRAWN_SIZE * DRAWN_SIZE };

struct drawn {
    double area;      /* mean share of the pixels that are painted over */
    double pixels;    /* how many there are */
    double mean[3];   /* of their values, and their deviation */
    double square[3]; /* mean square */
    double ends[2];   /* shares of red values that are 0 and 255 */
    double pairs;     /* neighbours in a row */
    double next;      /* mean product of their red values */
    double colours;   /* share of those that are equal */
    double same;      /* keys that give the same sample twice */
};

static void count_drawn(const uint8_t *x, struct drawn *d)
{
    const uint8_t *before = NULL;

    for (int i = 0; i < DRAWN_PIXELS; i++, x += 3) {
        if (x[0] == 9 && x[1] == 9 && x[2] == 9) {
            before = NULL;
            continue;
        }
        d->pixels++;
        for (int c = 0; c < 3; c++) {
            d->mean[c] += x[c];
            d->square[c] += x[c] * x[c];
        }
        d->ends[0] += x[0] == 0;
        d->ends[1] += x[0] == 255;
        if (before) {
            d->pairs++;
            d->next += before[0] * x[0];
            d->colours += !memcmp(before, x, 3);
        }
        before = x;
    }
}

static struct drawn draw_erased(enum ddp_erase fill, int count)
{
    struct ddp_image_options o,
        in = {IMAGE_DEFAULTS, .augment = DDP_AUGMENT_SHIFT};
    static uint8_t x[DRAWN_PIXELS * 3], y[DRAWN_PIXELS * 3];
    struct drawn d = {0};

    in.erase = 1;
    in.erase_fill = fill;
    in.erase_count = count;
    ddp__image_options(&in, DRAWN_SIZE, &o);
    for (uint64_t key = 0; key < DRAWN; key++) {
        struct ddp__erasure e = ddp__erase_plan(&o, key, DRAWN_SIZE);

        memset(x, 9, sizeof(x));
        memset(y, 9, sizeof(y));
        ddp__erase(&e, DRAWN_SIZE, x);
        ddp__erase(&e, DRAWN_SIZE, y);
        d.same += !memcmp(x, y, sizeof(x));
        count_drawn(x, &d);
    }
    d.area = d.pixels / DRAWN / DRAWN_PIXELS;
    d.next /= d.pairs;
    d.colours /= d.pairs;
    for (int c = 0; c < 3; c++) {
        d.mean[c] /= d.pixels;
        d.square[c] /= d.pixels;
    }
    d.ends[0] /= d.pixels;
    d.ends[1] /= d.pixels;
    return d;
}

/* timm's RandomErasing of 32 x 32 pixels, over 100000 samples: areas deviate by
 * 0.0901 and 0.0679, so those of 8000 by 0.0010 and 0.00076.  Its noise of 4000
 * samples, clipped to bytes: 720000 pixels, whose means deviate by 0.07 and
 * deviations by 0.05. */
static void test_erased_fills(void)
{
    static const double mean[] = {123.84, 116.52, 104.29};
    static const double deviation[] = {56.93, 55.71, 55.43};
    struct drawn one = draw_erased(DDP_ERASE_NOISE, 1);
    struct drawn three = draw_erased(DDP_ERASE_COLOUR, 3);

    is_int((int)one.same, DRAWN, "a key decides the noise");
    is_near(one.area, 0.1754, 0.0045, "noise: timm's mean area");
    is_near(three.area, 0.1683, 0.0035, "up to three boxes share it");
    for (int c = 0; c < 3; c++) {
        is_near(one.mean[c], mean[c], 0.35, "noise: timm's mean, channel %d",
                c);
        is_near(sqrt(one.square[c] - one.mean[c] * one.mean[c]), deviation[c],
                0.3, "and its deviation");
    }
    is_near(one.ends[0], 0.0175, 0.002, "timm's share of values below black");
    is_near(one.ends[1], 0.0126, 0.002, "and above white");
    ok(one.colours < 0.001 && three.colours > 0.95,
       "neighbours differ, or boxes have one colour");
    /* 1.3 million pairs: this deviates by 0.0003. */
    is_near(one.next / (one.mean[0] * one.mean[0]), 1, 0.002,
            "neighbours do not depend on each other");
    /* 8000 to 24000 colours, of deviation 57 */
    is_near(three.mean[0], mean[0], 4, "colours have the mean of the noise");
}

/* Two pixels of noise agree once in 8 million pairs, the product of three
 * channels of deviation 57: these 512 have 0.016 equal pairs. */
static void test_noise_differs(void)
{
    enum { W = 32, H = 8, PIXELS = 2 * W * H };
    static uint8_t x[W * W * 3];
    struct ddp__erasure e = {.fill = DDP_ERASE_NOISE,
                             .key = 3,
                             .mean = {0.5f, 0.5f, 0.5f},
                             .std = {0.22f, 0.22f, 0.22f},
                             .box = {{0, 0, W, H}, {0, H, W, H}}};
    int equal = 0;

    ddp__erase(&e, W, x);
    for (int i = 0; i < PIXELS; i++)
        for (int j = 0; j < i; j++)
            equal += !memcmp(x + i * 3, x + j * 3, 3);
    is_int(equal, 0, "no pixel of noise repeats another, nor a box another");
}

/* How often a place of `places` is the first, or the last, against the chance
 * that each has: the sum of 1 / places, whose square is the variance's bound.
 */
struct edges {
    int first, last;
    double chance;
};

static void count_edges(struct edges *e, int at, int places)
{
    e->first += at == 0;
    e->last += at == places - 1;
    e->chance += 1.0 / places;
}

static bool edges_are_even(const struct edges *e)
{
    double far = 4.5 * sqrt(e->chance); /* once in 150000 tries */

    if (fabs(e->first - e->chance) <= far && fabs(e->last - e->chance) <= far)
        return true;
    diag("%d first and %d last, expected %.1f -+ %.1f of each", e->first,
         e->last, e->chance, far);
    return false;
}

/* Every place comes as often as the others, the outermost ones too. */
static void test_edges(void)
{
    struct ddp_image_options crop, shift,
        in = {IMAGE_DEFAULTS, .augment = DDP_AUGMENT_RANDOM};
    struct edges x = {0}, y = {0}, dx = {0}, dy = {0}, ex = {0}, ey = {0};

    ddp__image_options(&in, 16, &crop);
    in.augment = DDP_AUGMENT_SHIFT;
    in.erase = 1;
    ddp__image_options(&in, 16, &shift);
    for (int i = 0; i < 8000; i++) {
        uint64_t key = (uint64_t)i * 0x9E3779B97F4A7C15u;
        struct ddp__box b = ddp__augment(&crop, key, 20, 16).box;
        struct ddp__crop c = ddp__augment(&shift, key, 20, 16);

        count_edges(&x, b.x, 20 - b.w + 1);
        count_edges(&y, b.y, 16 - b.h + 1);
        count_edges(&dx, c.dx + shift.shift, 2 * shift.shift + 1);
        count_edges(&dy, c.dy + shift.shift, 2 * shift.shift + 1);
        count_edges(&ex, c.erased.box[0].x, 16 - c.erased.box[0].w + 1);
        count_edges(&ey, c.erased.box[0].y, 16 - c.erased.box[0].h + 1);
    }
    ok(edges_are_even(&x) && edges_are_even(&y),
       "random crops reach all edges of the image equally often");
    ok(edges_are_even(&dx) && edges_are_even(&dy),
       "shifts reach both ends of their range equally often");
    ok(edges_are_even(&ex) && edges_are_even(&ey),
       "erased boxes reach all edges of the sample equally often");
}

static void test_long_images(void)
{
    struct ddp_image_options o,
        in = {IMAGE_DEFAULTS, .augment = DDP_AUGMENT_RANDOM};
    struct ddp__crop c;

    ddp__image_options(&in, 224, &o);
    c = ddp__augment(&o, 1, 1, 1000);
    ok(c.box.w == 1 && c.box.h == 1 && c.box.y == 499,
       "1 x 1000: the centre, of the largest ratio allowed");
    c = ddp__augment(&o, 1, 3000, 9);
    ok(c.box.w == 12 && c.box.h == 9 && c.box.x == 1494, "3000 x 9 likewise");
    in.augment = DDP_AUGMENT_NONE;
    ddp__image_options(&in, 224, &o);
    c = ddp__augment(&o, 1, 1, 1000000);
    ok(c.w == 256 && c.h == 256000000 && c.x == 16 && c.y == 127999888,
       "1 x 1000000: no number overflows");
    c = ddp__augment(&o, 1, 500, 375);
    ok(c.w == 341 && c.h == 256 && c.x == 58 && c.y == 16,
       "500 x 375: torchvision's size and centre");
    c = ddp__augment(&o, 1, 335, 500);
    ok(c.w == 256 && c.h == 382 && c.x == 16 && c.y == 79,
       "335 x 500 likewise");
}

static void test_flip(void)
{
    enum { SIZE = 33 };
    struct bytes b = make_photo(120, 90, 3);
    uint8_t x[SIZE * SIZE * 3], y[SIZE * SIZE * 3];
    struct ddp__crop c = {.box = {11, 7, 80, 70}, .w = SIZE, .h = SIZE};
    int wrong = 0;

    ddp__image_crop(b.data, b.len, most, &c, SIZE, SIZE, x);
    c.flip = true;
    ddp__image_crop(b.data, b.len, most, &c, SIZE, SIZE, y);
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++)
            wrong += memcmp(x + (i * SIZE + j) * 3,
                            y + (i * SIZE + SIZE - 1 - j) * 3, 3) != 0;
    is_int(wrong, 0, "a flipped crop is the crop, flipped");
    free(b.data);
}

/* All numbers of taps, from enlarging to shrinking 40 times. */
static void test_scales(void)
{
    struct jpeg_kind k = {.w = 641, .h = 643, .in = JCS_RGB, .hs = 1, .vs = 1};
    uint8_t *pixels = make_pixels(k.w, k.h, 3, 1), x[40 * 40 * 3];
    struct bytes b = make_jpeg(&k, pixels);
    int w, h, n, worst = 0;
    uint8_t *rgb = decode_whole(&b, &w, &h, &n);

    for (int side = 7; side <= 640; side += side / 5 + 1) {
        struct ddp__crop c = {.box = {1, 2, side, side}, .w = 16, .h = 40};
        uint8_t *want;

        c.w = side % 2 ? 40 : 16;
        c.h = c.w;
        ddp__image_crop(b.data, b.len, most, &c, (int)c.w, (int)c.w, x);
        want = resize_box(rgb, w, &c.box, (int)c.w, (int)c.h);
        n = largest_difference(x, want, (int)(c.w * c.h) * 3);
        worst = n > worst ? n : worst;
        free(want);
    }
    ok(worst <= 1, "scales from 6 up to 40 down: within 1 level");
    free(pixels);
    free(rgb);
    free(b.data);
}

/* Kept pixels give the same sample, also of a damaged file. */
static void test_kept_damage(void)
{
    static const struct jpeg_kind kinds[] = {
        {.w = 149, .h = 103, .in = JCS_RGB},
        {.w = 149, .h = 103, .in = JCS_RGB, .restart = 1},
        {.w = 149, .h = 103, .in = JCS_RGB, .progressive = true}};
    int kept = 0, wrong = 0;

    srand(1);
    for (int i = 0; i < 600; i++) {
        const struct jpeg_kind *k = &kinds[i % 3];
        uint8_t *pixels = make_pixels(k->w, k->h, 3, 1);
        struct bytes b = make_jpeg(k, pixels);
        int rc;

        b.data[700 + (size_t)rand() % (b.len - 702)] ^= 1 << i % 8;
        rc = compare_kept(&b, 6);
        kept += rc >= 0;
        wrong += rc > 0;
        free(pixels);
        free(b.data);
    }
    ok(wrong == 0 && kept > 50,
       "600 damaged files, of which %d are kept: none gives other samples",
       kept);
}

int main(void)
{
    test_kept_damage();
    test_random_crop();
    test_crop_ranges();
    test_colour_plan();
    test_colour_limits();
    test_edges();
    test_long_images();
    test_erased_boxes();
    test_erase();
    test_erased_fills();
    test_noise_differs();
    test_flip();
    test_scales();
    return done_testing();
}
