/* policy_parse.c - augmentation policies by torchvision's and timm's names
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "image/policy.h"

/* torchvision's defaults, and timm's. */
static const struct {
    const char *name;
    struct ddp_policy policy;
} words[] = {
    {"none", {.kind = DDP_POLICY_NONE}},
    {"imagenet", {.kind = DDP_AUTO_AUGMENT}},
    {"ta_wide", {.kind = DDP_TRIVIAL_AUGMENT}},
    {"ra", {.kind = DDP_RAND_AUGMENT, .ops = 2, .magnitude = 9}},
    {"augmix", {.kind = DDP_AUGMIX, .magnitude = 3, .chains = 3, .alpha = 1}},
    {"rand",
     {.kind = DDP_TIMM_AUGMENT, .ops = 2, .magnitude = 10, .probability = 0.5}},
    {"original", {.kind = DDP_TIMM_ORIGINAL}},
    {"originalr", {.kind = DDP_TIMM_ORIGINAL, .increasing = true}},
    {"v0", {.kind = DDP_TIMM_V0}},
    {"v0r", {.kind = DDP_TIMM_V0, .increasing = true}},
};
enum { WORDS = sizeof(words) / sizeof(*words) };

/* "m9": a key and its value, of a policy that has it. */
static bool set_part(struct ddp_policy *p, const char *key, size_t len,
                     double value)
{
    bool timm = p->kind == DDP_TIMM_AUGMENT, mixes = p->kind == DDP_AUGMIX;
    bool numbered = timm || mixes || p->kind == DDP_RAND_AUGMENT;
    const struct {
        const char *key;
        bool has;
        double *to;
        int *whole;
    } row[] = {
        {"m", numbered, &p->magnitude, NULL},
        {"n", numbered && !mixes, NULL, &p->ops},
        {"mstd", ddp__policy_is_timm(p->kind), &p->deviation, NULL},
        {"p", timm, &p->probability, NULL},
        {"w", mixes, NULL, &p->chains},
        {"d", mixes, NULL, &p->ops},
        {"a", mixes, &p->alpha, NULL},
    };

    if (timm && len == 3 && !strncmp(key, "inc", len)) {
        p->increasing = value != 0;
        return true;
    }
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
        if (row[i].has && strlen(row[i].key) == len &&
            !strncmp(row[i].key, key, len)) {
            if (row[i].to)
                *row[i].to = value;
            else if (value >= 0 && value <= 100 && value == floor(value))
                *row[i].whole = (int)value;
            else
                return false;
            return true;
        }
    return false;
}

static int fail_part(const char *text, const char *part)
{
    return ddp__fail(DDP_EINVAL,
                     "augmentation policy '%s': cannot read '%.*s': expected "
                     "parts as in rand-m9-n2-mstd0.5-p0.5-inc1, ra-m9-n2 or "
                     "augmix-m3-w3-d2-a1",
                     text, (int)strcspn(part, "-"), part);
}

static int parse_parts(const char *text, const char *at, struct ddp_policy *p)
{
    while (*at == '-') {
        const char *part = ++at;
        size_t len = strcspn(part, "0123456789.-");
        char *end;
        double value = strtod(part + len, &end);

        if (end == part + len || (*end && *end != '-') || part[len] == '-' ||
            !set_part(p, part, len, value))
            return fail_part(text, part);
        at = end;
    }
    return 0;
}

int ddp_policy_parse(const char *text, struct ddp_policy *out)
{
    size_t len = text ? strcspn(text, "-") : 0;
    struct ddp_policy p;
    int rc;

    if (!text || !out)
        return ddp__fail_null(!text ? "text" : "policy");
    for (int i = 0; i < WORDS; i++) {
        if (strlen(words[i].name) != len || strncmp(words[i].name, text, len))
            continue;
        p = words[i].policy;
        if ((rc = parse_parts(text, text + len, &p)) == 0 &&
            (rc = ddp__policy_check(&p)) == 0)
            *out = p;
        return rc;
    }
    return ddp__fail(DDP_EINVAL,
                     "unknown augmentation policy '%s'; available: none, "
                     "imagenet, ra, ta_wide, augmix, and timm's rand-..., "
                     "original, originalr, v0, v0r",
                     text);
}
