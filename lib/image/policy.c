/* policy.c - augmentation policies: which operations a sample gets
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   pytorch/vision torchvision/transforms/autoaugment.py: AutoAugment
 *          (ImageNet), RandAugment, TrivialAugmentWide, AugMix;
 *          huggingface/pytorch-image-models timm/data/auto_augment.py:
 *          rand_augment_transform(), auto_augment_policy(); with random numbers
 * of our own.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/philox.h"
#include "base/random.h"
#include "image/policy.h"
#include "image/warp.h"

/* The upper counter words of the keys; augment.c has others. */
enum { DRAW_KEY = 5, OWN_KEY, CHAIN_KEY, DEPTH_KEY, NORMAL_KEY };

enum { MAX_OPS = 16, MAX_CHAINS = 8, MAX_DEPTH = 3 };

/* ---- spaces: operations, and how strong they get ------------------------ */

struct space {
    int kinds;
    uint8_t kind[DDP__CHANGES];
    double shear, translate, rotate, enhance;
    bool relative; /* translate is a share of the size */
    int bits[2];   /* of posterize: weakest and strongest */
    int bins;      /* of strengths; 0: any */
};

#define MAPS                                                                   \
    DDP__SHEAR_X, DDP__SHEAR_Y, DDP__TRANSLATE_X, DDP__TRANSLATE_Y, DDP__ROTATE
#define ENHANCE DDP__LIGHTEN, DDP__COLOR, DDP__CONTRAST_BY, DDP__SHARPEN
#define LEVELS DDP__POSTERIZE, DDP__SOLARIZE, DDP__AUTO_CONTRAST, DDP__EQUALIZE

#define TIMM                                                                   \
    {                                                                          \
        15, {DDP__AUTO_CONTRAST, DDP__EQUALIZE,    DDP__INVERT,                \
             DDP__ROTATE,        DDP__POSTERIZE,   DDP__SOLARIZE,              \
             DDP__SOLARIZE_ADD,  DDP__COLOR,       DDP__CONTRAST_BY,           \
             DDP__LIGHTEN,       DDP__SHARPEN,     DDP__SHEAR_X,               \
             DDP__SHEAR_Y,       DDP__TRANSLATE_X, DDP__TRANSLATE_Y},          \
            0.3, 0.45, 30, 0.9, true, {4, 0}, 0                                \
    }

static const struct space spaces[] = {
    [DDP_POLICY_NONE] = {1, {DDP__NO_CHANGE}, 0, 0, 0, 0, false, {8, 8}, 1},
    [DDP_AUTO_AUGMENT] = {14,
                          {MAPS, ENHANCE, LEVELS, DDP__INVERT},
                          0.3,
                          150.0 / 331,
                          30,
                          0.9,
                          true,
                          {8, 4},
                          10},
    [DDP_RAND_AUGMENT] = {14,
                          {DDP__NO_CHANGE, MAPS, ENHANCE, LEVELS},
                          0.3,
                          150.0 / 331,
                          30,
                          0.9,
                          true,
                          {8, 4},
                          31},
    [DDP_TRIVIAL_AUGMENT] = {14,
                             {DDP__NO_CHANGE, MAPS, ENHANCE, LEVELS},
                             0.99,
                             32,
                             135,
                             0.99,
                             false,
                             {8, 2},
                             31},
    [DDP_AUGMIX] =
        {13, {MAPS, LEVELS, ENHANCE}, 0.3, 1.0 / 3, 30, 0.9, true, {4, 0}, 10},
    [DDP_TIMM_AUGMENT] = TIMM,
    [DDP_TIMM_ORIGINAL] = TIMM,
    [DDP_TIMM_V0] = TIMM,
};
enum { POLICIES = sizeof(spaces) / sizeof(*spaces) };

/* ---- names and checks --------------------------------------------------- */

const char *ddp__policy_name(enum ddp_policy_kind kind)
{
    static const char *const name[] = {
        [DDP_POLICY_NONE] = "none",  [DDP_AUTO_AUGMENT] = "auto_augment",
        [DDP_RAND_AUGMENT] = "rand", [DDP_TRIVIAL_AUGMENT] = "trivial_wide",
        [DDP_AUGMIX] = "augmix",     [DDP_TIMM_AUGMENT] = "timm_rand",
        [DDP_TIMM_V0] = "timm_v0",   [DDP_TIMM_ORIGINAL] = "timm_original",
    };

    return name[kind];
}

bool ddp__policy_is_timm(enum ddp_policy_kind kind)
{
    return kind == DDP_TIMM_AUGMENT || kind == DDP_TIMM_ORIGINAL ||
           kind == DDP_TIMM_V0;
}

static bool within(double x, double least, double most)
{
    return x >= least && x <= most; /* not a NaN */
}

int ddp__policy_check(const struct ddp_policy *p)
{
    int bins;

    if ((int)p->kind < 0 || (int)p->kind >= POLICIES)
        return ddp__fail(DDP_EINVAL, "unknown augmentation policy %d",
                         (int)p->kind);
    bins = spaces[p->kind].bins;
    if (p->kind == DDP_AUGMIX &&
        !(within(p->magnitude, 1, bins) && p->magnitude == rint(p->magnitude) &&
          within(p->alpha, 1e-3, 1e3) && p->chains >= 1 &&
          p->chains <= MAX_CHAINS))
        return ddp__fail(DDP_EINVAL,
                         "AugMix of severity %g, %d chains and alpha %g, "
                         "expected 1 to %d, 1 to %d, 0.001 to 1000",
                         p->magnitude, p->chains, p->alpha, bins, MAX_CHAINS);
    if (p->kind == DDP_RAND_AUGMENT && !(within(p->magnitude, 0, bins - 1) &&
                                         p->magnitude == rint(p->magnitude)))
        return ddp__fail(DDP_EINVAL,
                         "RandAugment of magnitude %g, expected 0 to "
                         "%d, a whole number",
                         p->magnitude, bins - 1);
    if (ddp__policy_is_timm(p->kind) &&
        !(within(p->magnitude, 0, 10) && p->deviation >= 0 &&
          within(p->probability, 0, 1)))
        return ddp__fail(DDP_EINVAL,
                         "RandAugment of magnitude %g, deviation %g and "
                         "probability %g, expected 0 to 10, 0 or more, 0 to 1",
                         p->magnitude, p->deviation, p->probability);
    if (p->ops < 0 || p->ops > MAX_OPS)
        return ddp__fail(DDP_EINVAL,
                         "%d operations of a policy, expected 0 to "
                         "%d",
                         p->ops, MAX_OPS);
    return 0;
}

/* ---- how strong --------------------------------------------------------- */

/* What an operation of strength part (0..1) does, where minus is the sign of
 * those that have one. */
static double strength(const struct space *s, int kind, double part, bool minus,
                       int size)
{
    double sign = minus ? -1 : 1;

    switch (kind) {
    case DDP__SHEAR_X:
    case DDP__SHEAR_Y:
        return sign * s->shear * part;
    case DDP__TRANSLATE_X:
    case DDP__TRANSLATE_Y:
        return sign * trunc(s->translate * part * (s->relative ? size : 1));
    case DDP__ROTATE:
        return sign * s->rotate * part;
    case DDP__POSTERIZE:
        return s->bits[0] - rint((s->bits[0] - s->bits[1]) * part);
    case DDP__SOLARIZE:
        return 255 * (1 - part);
    default:
        return 1 + sign * s->enhance * part;
    }
}

/* The same of timm, which truncates numbers of bits and levels, and not
 * pixels. */
static double timm_strength(const struct space *s, int kind, double part,
                            bool minus, bool increasing, int size)
{
    double level = fmin(256, floor(256 * part)), bits = floor(4 * part);

    if (kind == DDP__TRANSLATE_X || kind == DDP__TRANSLATE_Y)
        return (minus ? -1 : 1) * s->translate * part * size;
    if (kind == DDP__POSTERIZE)
        return increasing ? 4 - bits : bits;
    if (kind == DDP__SOLARIZE)
        return increasing ? 256 - level : level;
    if (kind == DDP__SOLARIZE_ADD)
        return fmin(128, floor(110 * part));
    if (kind >= DDP__LIGHTEN && kind <= DDP__SHARPEN)
        return increasing ? fmax(0.1, strength(s, kind, part, minus, size))
                          : 0.1 + 1.8 * part;
    return strength(s, kind, part, minus, size);
}

/* ---- AutoAugment -------------------------------------------------------- */

struct rule {
    uint8_t kind, tenths; /* probability */
    int bin;              /* of the strength, 0 to 9; timm: of 10 */
};

/* The policy of the paper for ImageNet: one of these pairs. */
static const struct rule imagenet[][2] = {
    {{DDP__POSTERIZE, 4, 8}, {DDP__ROTATE, 6, 9}},
    {{DDP__SOLARIZE, 6, 5}, {DDP__AUTO_CONTRAST, 6, 0}},
    {{DDP__EQUALIZE, 8, 0}, {DDP__EQUALIZE, 6, 0}},
    {{DDP__POSTERIZE, 6, 7}, {DDP__POSTERIZE, 6, 6}},
    {{DDP__EQUALIZE, 4, 0}, {DDP__SOLARIZE, 2, 4}},
    {{DDP__EQUALIZE, 4, 0}, {DDP__ROTATE, 8, 8}},
    {{DDP__SOLARIZE, 6, 3}, {DDP__EQUALIZE, 6, 0}},
    {{DDP__POSTERIZE, 8, 5}, {DDP__EQUALIZE, 10, 0}},
    {{DDP__ROTATE, 2, 3}, {DDP__SOLARIZE, 6, 8}},
    {{DDP__EQUALIZE, 6, 0}, {DDP__POSTERIZE, 4, 6}},
    {{DDP__ROTATE, 8, 8}, {DDP__COLOR, 4, 0}},
    {{DDP__ROTATE, 4, 9}, {DDP__EQUALIZE, 6, 0}},
    {{DDP__EQUALIZE, 0, 0}, {DDP__EQUALIZE, 8, 0}},
    {{DDP__INVERT, 6, 0}, {DDP__EQUALIZE, 10, 0}},
    {{DDP__COLOR, 6, 4}, {DDP__CONTRAST_BY, 10, 8}},
    {{DDP__ROTATE, 8, 8}, {DDP__COLOR, 10, 2}},
    {{DDP__COLOR, 8, 8}, {DDP__SOLARIZE, 8, 7}},
    {{DDP__SHARPEN, 4, 7}, {DDP__INVERT, 6, 0}},
    {{DDP__SHEAR_X, 6, 5}, {DDP__EQUALIZE, 10, 0}},
    {{DDP__COLOR, 4, 0}, {DDP__EQUALIZE, 6, 0}},
    {{DDP__EQUALIZE, 4, 0}, {DDP__SOLARIZE, 2, 4}},
    {{DDP__SOLARIZE, 6, 5}, {DDP__AUTO_CONTRAST, 6, 0}},
    {{DDP__INVERT, 6, 0}, {DDP__EQUALIZE, 10, 0}},
    {{DDP__COLOR, 6, 4}, {DDP__CONTRAST_BY, 10, 8}},
    {{DDP__EQUALIZE, 8, 0}, {DDP__EQUALIZE, 6, 0}},
};
enum { RULES = sizeof(imagenet) / sizeof(*imagenet) };

/* That of TensorFlow's EfficientNet, as timm has it. */
static const struct rule v0[RULES][2] = {
    {{DDP__EQUALIZE, 8, 1}, {DDP__SHEAR_Y, 8, 4}},
    {{DDP__COLOR, 4, 9}, {DDP__EQUALIZE, 6, 3}},
    {{DDP__COLOR, 4, 1}, {DDP__ROTATE, 6, 8}},
    {{DDP__SOLARIZE, 8, 3}, {DDP__EQUALIZE, 4, 7}},
    {{DDP__SOLARIZE, 4, 2}, {DDP__SOLARIZE, 6, 2}},
    {{DDP__COLOR, 2, 0}, {DDP__EQUALIZE, 8, 8}},
    {{DDP__EQUALIZE, 4, 8}, {DDP__SOLARIZE_ADD, 8, 3}},
    {{DDP__SHEAR_X, 2, 9}, {DDP__ROTATE, 6, 8}},
    {{DDP__COLOR, 6, 1}, {DDP__EQUALIZE, 10, 2}},
    {{DDP__INVERT, 4, 9}, {DDP__ROTATE, 6, 0}},
    {{DDP__EQUALIZE, 10, 9}, {DDP__SHEAR_Y, 6, 3}},
    {{DDP__COLOR, 4, 7}, {DDP__EQUALIZE, 6, 0}},
    {{DDP__POSTERIZE, 4, 6}, {DDP__AUTO_CONTRAST, 4, 7}},
    {{DDP__SOLARIZE, 6, 8}, {DDP__COLOR, 6, 9}},
    {{DDP__SOLARIZE, 2, 4}, {DDP__ROTATE, 8, 9}},
    {{DDP__ROTATE, 10, 7}, {DDP__TRANSLATE_Y, 8, 9}},
    {{DDP__SHEAR_X, 0, 0}, {DDP__SOLARIZE, 8, 4}},
    {{DDP__SHEAR_Y, 8, 0}, {DDP__COLOR, 6, 4}},
    {{DDP__COLOR, 10, 0}, {DDP__ROTATE, 6, 2}},
    {{DDP__EQUALIZE, 8, 4}, {DDP__EQUALIZE, 0, 8}},
    {{DDP__EQUALIZE, 10, 4}, {DDP__AUTO_CONTRAST, 6, 2}},
    {{DDP__SHEAR_Y, 4, 7}, {DDP__SOLARIZE_ADD, 6, 7}},
    {{DDP__POSTERIZE, 8, 2}, {DDP__SOLARIZE, 6, 10}},
    {{DDP__SOLARIZE, 6, 8}, {DDP__EQUALIZE, 6, 1}},
    {{DDP__COLOR, 8, 6}, {DDP__ROTATE, 4, 5}},
};

/* ---- what the key decides ----------------------------------------------- */

static int pick(uint32_t bits, int n)
{
    return (int)((uint64_t)bits * (uint64_t)n >> 32);
}

static struct ddp__change draw_rule(uint64_t key, int size, int i)
{
    const struct space *s = &spaces[DDP_AUTO_AUGMENT];
    struct ddp__philox all = ddp__philox(key, OWN_KEY, 0);
    struct ddp__philox r = ddp__philox(key, DRAW_KEY, (uint64_t)i);
    const struct rule *rule = &imagenet[pick(all.v[0], RULES)][i];

    if (!(ddp__uniform(r.v[0]) * 10 < (float)rule->tenths))
        return (struct ddp__change){DDP__NO_CHANGE, 0};
    return (struct ddp__change){
        (enum ddp__change_kind)rule->kind,
        strength(s, rule->kind, rule->bin / 9.0, r.v[1] >> 31, size)};
}

/* Normal about the magnitude m, or with a deviation beyond 100 anything below
 * it; of 10. */
static double timm_part(const struct ddp_policy *p, double m, uint64_t key,
                        int i, uint32_t bits)
{
    if (p->deviation > 100)
        m *= (double)ddp__uniform(bits);
    else if (p->deviation > 0)
        m += p->deviation *
             (double)ddp__draw_normal(ddp__key(key, NORMAL_KEY, (uint64_t)i));
    return fmax(0, fmin(m, 10)) / 10;
}

static struct ddp__change draw_timm(const struct ddp_policy *p, uint64_t key,
                                    int size, int i)
{
    const struct space *s = &spaces[DDP_TIMM_AUGMENT];
    struct ddp__philox r = ddp__philox(key, DRAW_KEY, (uint64_t)i);
    struct ddp__philox more = ddp__philox(key, OWN_KEY, (uint64_t)i);
    int kind = s->kind[pick(r.v[0], s->kinds)];

    if (!((double)ddp__uniform(r.v[1]) < p->probability))
        return (struct ddp__change){DDP__NO_CHANGE, 0};
    return (struct ddp__change){
        (enum ddp__change_kind)kind,
        timm_strength(s, kind, timm_part(p, p->magnitude, key, i, more.v[0]),
                      r.v[2] >> 31, p->increasing, size)};
}

/* timm's AutoAugment, where bits of posterize are counted in other ways. */
static struct ddp__change draw_timm_rule(const struct ddp_policy *p,
                                         uint64_t key, int size, int i)
{
    const struct space *s = &spaces[p->kind];
    bool original = p->kind == DDP_TIMM_ORIGINAL;
    struct ddp__philox all = ddp__philox(key, OWN_KEY, 0);
    struct ddp__philox r = ddp__philox(key, DRAW_KEY, (uint64_t)i);
    const struct rule *rule =
        &(original ? imagenet : v0)[pick(all.v[0], RULES)][i];
    double part = timm_part(p, rule->bin, key, i, r.v[2]), by;
    bool bits = rule->kind == DDP__POSTERIZE;

    if (!(ddp__uniform(r.v[0]) * 10 < (float)rule->tenths))
        return (struct ddp__change){DDP__NO_CHANGE, 0};
    by = timm_strength(s, rule->kind, part, r.v[1] >> 31, bits && p->increasing,
                       size);
    if (bits && original && !p->increasing)
        by += 4;
    return (struct ddp__change){(enum ddp__change_kind)rule->kind, by};
}

/* The bin of the strength: that of RandAugment is given, AugMix has the lowest
 * ones. */
static int draw_bin(const struct ddp_policy *p, uint32_t bits)
{
    if (p->kind == DDP_RAND_AUGMENT)
        return (int)p->magnitude;
    return pick(bits, p->kind == DDP_AUGMIX ? (int)p->magnitude
                                            : spaces[p->kind].bins);
}

struct ddp__change ddp__policy_draw(const struct ddp_policy *p, uint64_t key,
                                    int size, int chain, int i)
{
    const struct space *s = &spaces[p->kind];
    struct ddp__philox r =
        ddp__philox(key, DRAW_KEY + ((uint64_t)chain << 8), (uint64_t)i);
    int kind = s->kind[pick(r.v[0], s->kinds)];
    double part = s->bins > 1 ? draw_bin(p, r.v[1]) / (s->bins - 1.0) : 0;

    if (p->kind == DDP_AUTO_AUGMENT)
        return draw_rule(key, size, i);
    if (p->kind == DDP_TIMM_AUGMENT)
        return draw_timm(p, key, size, i);
    if (ddp__policy_is_timm(p->kind))
        return draw_timm_rule(p, key, size, i);
    return (struct ddp__change){(enum ddp__change_kind)kind,
                                strength(s, kind, part, r.v[2] >> 31, size)};
}

void ddp__policy_shares(const struct ddp_policy *p, uint64_t key, float *share)
{
    share[0] = ddp__draw_beta(ddp__key(key, OWN_KEY, 0), p->alpha);
    ddp__draw_shares(ddp__key(key, CHAIN_KEY, 0), p->alpha, p->chains,
                     share + 1);
    for (int c = 1; c <= p->chains; c++)
        share[c] *= 1 - share[0];
}

/* ---- applying ----------------------------------------------------------- */

/* Operations of a chain, where AugMix draws how many. */
static int chain_length(const struct ddp_policy *p, uint64_t key, int chain)
{
    if (p->kind == DDP_AUTO_AUGMENT || p->kind == DDP_TIMM_ORIGINAL ||
        p->kind == DDP_TIMM_V0)
        return 2;
    if (p->kind == DDP_TRIVIAL_AUGMENT)
        return 1;
    if (p->kind != DDP_AUGMIX || p->ops > 0)
        return p->ops;
    return 1 +
           pick(ddp__philox(key, DEPTH_KEY, (uint64_t)chain).v[0], MAX_DEPTH);
}

static void run_chain(const struct ddp_policy *p, uint64_t key, int chain,
                      const struct ddp__canvas *canvas, uint32_t *room,
                      uint8_t *x)
{
    for (int i = 0; i < chain_length(p, key, chain); i++) {
        struct ddp__change c = ddp__policy_draw(p, key, canvas->size, chain, i);

        ddp__change_apply(&c, canvas, room, x);
    }
}

/* The mean of x and of chains of changes of it, by their shares. */
static void mix_chains(const struct ddp_policy *p, uint64_t key,
                       const struct ddp__canvas *canvas, uint32_t *room,
                       float *sum, uint8_t *copy, uint8_t *x)
{
    size_t len = (size_t)canvas->size * (size_t)canvas->size * 3;
    float share[MAX_CHAINS + 1];

    ddp__policy_shares(p, key, share);
    for (size_t i = 0; i < len; i++)
        sum[i] = share[0] * x[i];
    for (int c = 1; c <= p->chains; c++) {
        memcpy(copy, x, len);
        run_chain(p, key, c, canvas, room, copy);
        for (size_t i = 0; i < len; i++)
            sum[i] += share[c] * copy[i];
    }
    for (size_t i = 0; i < len; i++)
        x[i] = (uint8_t)fminf(sum[i], 255);
}

int ddp__policy_apply(const struct ddp_policy *p, uint64_t key,
                      const struct ddp__canvas *canvas, struct ddp__bytes *room,
                      uint8_t *x)
{
    size_t n = ddp__warp_room(canvas->size);
    bool mixes = p->kind == DDP_AUGMIX;
    uint32_t *own;
    float *sum;
    int rc;

    if (p->kind == DDP_POLICY_NONE)
        return 0;
    if ((rc = ddp__bytes_reserve(
             room, n * (sizeof(*own) + (mixes ? 3 * sizeof(*sum) + 3 : 0)))) <
        0)
        return rc;
    own = (uint32_t *)(void *)room->data;
    sum = (float *)(void *)(own + n);
    if (mixes)
        mix_chains(p, key, canvas, own, sum, (uint8_t *)(sum + 3 * n), x);
    else
        run_chain(p, key, 0, canvas, own, x);
    return 0;
}
