/* picture.c - pictures of classes that a network can learn, made from numbers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A class is a shape with a texture.  Where it lies, how large, how turned and
 * how coloured it is, what lies behind it and the noise over all are random
 * and the same for all classes, so that neither a mean colour nor a single
 * pixel tells them apart.
 */
#include "config.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "picture.h"

enum { SHAPES = 10, TEXTURES = 10, BLOBS = 5 };

static const char *const shape_names[SHAPES] = {
    "disc", "square", "triangle", "ring",  "cross",
    "star", "bar",    "crescent", "heart", "frame"};
static const char *const texture_names[TEXTURES] = {
    "striped", "checked",    "dotted",       "plain",  "ringed",
    "gridded", "pinstriped", "fine-checked", "shaded", "wavy"};

/* ---- random numbers ----------------------------------------------------- */

/* Steele, Lea, Flood 2014, SplitMix: one 64-bit state, all values. */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static float uniform(uint64_t *state, float from, float to)
{
    return from + (to - from) * (float)(next(state) >> 40) * 0x1p-24f;
}

/* ---- shapes: inside is negative, in units of the radius ----------------- */

static float maxf(float a, float b)
{
    return a > b ? a : b;
}

static float minf(float a, float b)
{
    return a < b ? a : b;
}

static float box(float x, float y, float w, float h)
{
    return maxf(fabsf(x) - w, fabsf(y) - h);
}

/* The bits of hypotf(), whose newest version would be the only symbol of glibc
 * 2.35 in the program; squares of floats are exact in double. */
static float length_of(float x, float y)
{
    return (float)sqrt((double)x * x + (double)y * y);
}

/* A regular star or, with inner = cos(pi / points), polygon. */
static float star(float x, float y, int points, float inner)
{
    float sector = (float)M_PI / (float)points;
    float a = fmodf(fabsf(atan2f(x, -y)), 2 * sector), r = length_of(x, y);
    float px, py, ex, ey;

    if (a > sector)
        a = 2 * sector - a;
    px = r * cosf(a);
    py = r * sinf(a);
    ex = inner * cosf(sector) - 1; /* edge from (1, 0) to the inner corner */
    ey = inner * sinf(sector);
    return ((px - 1) * ey - py * ex) / length_of(ex, ey);
}

/* One case per shape. */
static float shape_at(int shape, float x, float y)
{
    float r = length_of(x, y);

    switch (shape) {
    case 0:
        return r - 0.9f;
    case 1:
        return box(x, y, 0.78f, 0.78f);
    case 2:
        return star(x, y + 0.15f, 3, 0.5f);
    case 3:
        return fabsf(r - 0.7f) - 0.28f;
    case 4:
        return minf(box(x, y, 0.95f, 0.3f), box(x, y, 0.3f, 0.95f));
    case 5:
        return star(x, y, 5, 0.42f);
    case 6:
        return box(x, y, 1.05f, 0.36f);
    case 7:
        return maxf(r - 0.95f, 0.75f - length_of(x - 0.5f, y));
    case 8:
        y = -y;
        x = fabsf(x);
        return x + y > 0.6f && y > 0.05f
                   ? length_of(x - 0.42f, y - 0.3f) - 0.48f
                   : maxf((x - y) * 0.707f - 0.58f, y - 0.5f);
    default:
        return maxf(box(x, y, 0.85f, 0.85f), -box(x, y, 0.45f, 0.45f));
    }
}

/* The weight of the second colour at a point, mostly 0 or 1. */
static float texture_at(int texture, float x, float y)
{
    float r = length_of(x, y);

    switch (texture) {
    case 0:
        return sinf(11 * x) > 0;
    case 1:
        return sinf(8 * x) * sinf(8 * y) > 0;
    case 2:
        return cosf(11 * x) + cosf(11 * y) > 0.9f;
    case 3:
        return 0;
    case 4:
        return sinf(14 * r) > 0;
    case 5:
        return cosf(11 * x) > 0.75f || cosf(11 * y) > 0.75f;
    case 6:
        return sinf(22 * x) > 0;
    case 7:
        return sinf(17 * x) * sinf(17 * y) > 0;
    case 8:
        return minf(maxf(0.5f + 0.6f * y, 0), 1);
    default:
        return sinf(11 * x + 2 * sinf(7 * y)) > 0;
    }
}

/* ---- the picture -------------------------------------------------------- */

struct colour {
    float v[3];
};

/* A blob of clutter. */
struct blob {
    float x, y, w, h, cos, sin;
    bool round;
    struct colour colour;
};

struct scene {
    int w, h, shape, texture;
    float x, y, radius, cos, sin; /* of the shape, in pixels */
    struct colour ink[2], ground[4];
    struct blob blob[BLOBS];
    float noise;
};

static struct colour random_colour(uint64_t *s)
{
    struct colour c;

    for (int i = 0; i < 3; i++)
        c.v[i] = uniform(s, 0.05f, 0.95f);
    return c;
}

static float luma(struct colour c)
{
    return 0.299f * c.v[0] + 0.587f * c.v[1] + 0.114f * c.v[2];
}

/* Two colours that can be distinguished, also in grey. */
static void random_inks(uint64_t *s, struct colour ink[2])
{
    do {
        ink[0] = random_colour(s);
        ink[1] = random_colour(s);
    } while (fabsf(luma(ink[0]) - luma(ink[1])) < 0.35f);
}

static void random_blob(uint64_t *s, const struct scene *sc, struct blob *b)
{
    float turn = uniform(s, 0, 6.2832f);

    b->x = uniform(s, 0, (float)sc->w);
    b->y = uniform(s, 0, (float)sc->h);
    b->w = uniform(s, 0.02f, 0.14f) * (float)sc->w;
    b->h = uniform(s, 0.02f, 0.14f) * (float)sc->w;
    b->cos = cosf(turn);
    b->sin = sinf(turn);
    b->round = next(s) & 1;
    b->colour = random_colour(s);
}

static void compose(struct scene *sc, int label, int size, uint64_t *s)
{
    float aspect = uniform(s, 0.75f, 1.34f), turn = uniform(s, -0.45f, 0.45f);
    float side = (float)size * uniform(s, 0.85f, 1.3f), small;

    sc->w = (int)(aspect > 1 ? side * aspect : side);
    sc->h = (int)(aspect > 1 ? side : side / aspect);
    small = (float)(sc->w < sc->h ? sc->w : sc->h);
    sc->shape = label % SHAPES;
    sc->texture = (label + label / SHAPES) % TEXTURES;
    sc->radius = small * uniform(s, 0.27f, 0.42f);
    sc->x = (float)sc->w / 2 + uniform(s, -0.16f, 0.16f) * (float)sc->w;
    sc->y = (float)sc->h / 2 + uniform(s, -0.16f, 0.16f) * (float)sc->h;
    sc->cos = cosf(turn);
    sc->sin = sinf(turn);
    random_inks(s, sc->ink);
    for (int i = 0; i < 4; i++)
        sc->ground[i] = random_colour(s);
    for (int i = 0; i < BLOBS; i++)
        random_blob(s, sc, &sc->blob[i]);
    sc->noise = uniform(s, 0.01f, 0.06f);
}

static void mix(struct colour *c, struct colour with, float share)
{
    for (int i = 0; i < 3; i++)
        c->v[i] += share * (with.v[i] - c->v[i]);
}

/* 1 inside, 0 outside, a pixel of blend between; d in pixels. */
static float cover(float d)
{
    return minf(maxf(0.5f - d, 0), 1);
}

static float blob_at(const struct blob *b, float x, float y)
{
    float u = b->cos * (x - b->x) + b->sin * (y - b->y);
    float v = b->cos * (y - b->y) - b->sin * (x - b->x);

    if (b->round)
        return (length_of(u / b->w, v / b->h) - 1) * minf(b->w, b->h);
    return box(u, v, b->w, b->h);
}

static struct colour pixel(const struct scene *sc, float x, float y)
{
    float u = (sc->cos * (x - sc->x) + sc->sin * (y - sc->y)) / sc->radius;
    float v = (sc->cos * (y - sc->y) - sc->sin * (x - sc->x)) / sc->radius;
    float gx = x / (float)sc->w, gy = y / (float)sc->h;
    struct colour c = sc->ground[0], low = sc->ground[2], ink = sc->ink[0];

    mix(&c, sc->ground[1], gx);
    mix(&low, sc->ground[3], gx);
    mix(&c, low, gy);
    for (int i = 0; i < BLOBS; i++)
        mix(&c, sc->blob[i].colour, cover(blob_at(&sc->blob[i], x, y)));
    mix(&ink, sc->ink[1], texture_at(sc->texture, u, v));
    mix(&c, ink, cover(shape_at(sc->shape, u, v) * sc->radius));
    return c;
}

static void paint(struct picture *img, const struct scene *sc, uint64_t *s)
{
    uint8_t *p = img->rgb;

    for (int y = 0; y < sc->h; y++)
        for (int x = 0; x < sc->w; x++) {
            struct colour c = pixel(sc, (float)x + 0.5f, (float)y + 0.5f);
            float grain = uniform(s, -1, 1) + uniform(s, -1, 1);

            for (int i = 0; i < 3; i++) {
                float v = c.v[i] + sc->noise * grain;

                *p++ = (uint8_t)(255 * minf(maxf(v, 0), 1) + 0.5f);
            }
        }
}

static int clip(float v, int end)
{
    return v < 0 ? 0 : v > (float)end ? end : (int)v;
}

int picture_draw(struct picture *img, int label, int64_t index, int size,
                 uint64_t seed)
{
    uint64_t s = seed * 0x9e3779b97f4a7c15u + (uint64_t)index;
    struct scene sc;

    s = next(&s) ^ ((uint64_t)label << 32);
    next(&s);
    compose(&sc, label, size, &s);
    *img = (struct picture){
        .w = sc.w,
        .h = sc.h,
        .left = clip(sc.x - sc.radius, sc.w - 1),
        .top = clip(sc.y - sc.radius, sc.h - 1),
        .right = clip(sc.x + sc.radius, sc.w - 1),
        .bottom = clip(sc.y + sc.radius, sc.h - 1),
        .rgb = malloc((size_t)sc.w * (size_t)sc.h * 3),
    };
    if (!img->rgb)
        return -1;
    paint(img, &sc, &s);
    return 0;
}

void picture_free(struct picture *img)
{
    free(img->rgb);
    img->rgb = NULL;
}

/* Which texture goes with which shape changes every SHAPES classes. */
void picture_class_name(int label, char *buf, size_t size)
{
    snprintf(buf, size, "%s %s",
             texture_names[(label + label / SHAPES) % TEXTURES],
             shape_names[label % SHAPES]);
}
