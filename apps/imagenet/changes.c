/* changes.c - --resume-with: options that a resumed run may change
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>
#include <string.h>

#include "common/app.h"
#include "changes.h"

/* What the library takes as a fraction of the rate. */
#define OF_RATE "schedule.warmup_factor,schedule.final_factor"
#define CLIPS "optimizer.clip_norm,optimizer.clip_value,optimizer.clip_unit"
/* What the length of the run decides. */
#define LENGTH                                                                 \
    "schedule.steps,schedule.warmup,schedule.noise_from,schedule.noise_to,"    \
    "ema_decay"

/* An option, the library's setting for it, and those that follow from it. */
static const struct {
    const char *option, *setting, *also;
    bool scales_lr; /* without --lr */
} row[] = {
    {"epochs", "schedule.steps", LENGTH, false},
    {"steps", "schedule.steps", LENGTH, false},
    {"batch-size", "batch", "sub_batch,lanes," LENGTH, true},
    {"world-size", "batch", "sub_batch,lanes," LENGTH, true},
    {"batch-per-device", "batch", "sub_batch,lanes," LENGTH, true},
    {"sub-batch", "sub_batch", "lanes", false},
    {"lanes", "lanes", "", false},
    {"sync-bn", "sync_bn", "lanes", false},
    {"seed", "seed", "schedule.noise_seed", false},
    {"data", "data", "eval_data," LENGTH, false},
    {"val", "eval_data", "", false},
    {"augmentation", "augmentation", "", false},
    {"lr", "optimizer.lr", OF_RATE, false},
    {"lr-base", "optimizer.lr", OF_RATE, false},
    {"lr-base-size", "optimizer.lr", OF_RATE, false},
    {"momentum", "optimizer.momentum", "", false},
    {"opt-betas", "optimizer.beta1,optimizer.beta2", "", false},
    {"opt-eps", "optimizer.eps", "", false},
    {"lookahead", "optimizer.lookahead", "", false},
    {"weight-decay", "optimizer.weight_decay", "", false},
    {"decay-all", "optimizer.decay_all", "", false},
    {"clip-grad", CLIPS, "", false},
    {"clip-mode", CLIPS, "", false},
    {"label-smoothing", "label_smoothing", "", false},
    {"class-weights", "class_weights", "", false},
    {"pos-weight", "pos_weight", "", false},
    {"teacher", "teacher", "", false},
    {"distill-weight", "distill_weight", "", false},
    {"distill-temperature", "distill_temperature", "", false},
    {"mixup", "mixup", "mix_prob,mix_switch_prob,mix_off_epoch", false},
    {"cutmix", "cutmix", "mix_prob,mix_switch_prob,mix_off_epoch", false},
    {"mixup-prob", "mix_prob", "", false},
    {"mixup-switch-prob", "mix_switch_prob", "", false},
    {"mixup-off-epoch", "mix_off_epoch", "", false},
    {"bce-target-thresh", "target_threshold", "", false},
    {"focal-gamma", "focal_gamma", "", false},
    {"focal-alpha", "focal_alpha", "", false},
    {"model-ema", "ema_decay", "", false},
    {"model-ema-decay", "ema_decay", "", false},
    {"model-ema-steps", "ema_decay", "", false},
    {"freeze", "groups", "", false},
    {"freeze-to", "groups", "", false},
    {"freeze-bn", "groups", "", false},
    {"head-only", "groups", "", false},
    {"group-lr", "groups", "", false},
    {"group-weight-decay", "groups", "", false},
    {"norm-weight-decay", "groups", "", false},
    {"bias-weight-decay", "groups", "", false},
    {"layer-decay", "layer_decay", "", false},
    {"model-ema-warmup", "ema_warmup", "", false},
    {"sched", "schedule.kind", "schedule", false},
    {"warmup-epochs", "schedule.warmup", "schedule.warmup_factor", false},
    {"warmup-lr", "schedule.warmup_factor", "", false},
    {"min-lr", "schedule.final_factor", "", false},
    {"decay-epochs", "schedule.every", "", false},
    {"decay-rate", "schedule.gamma", "", false},
    {"decay-milestones", "schedule.milestones", "", false},
    {"lr-warmup-decay", "schedule.warmup_factor", "", false},
    {"lr-warmup-method", "schedule.warmup_steady", "", false},
    {"warmup-prefix", "schedule.warmup_prefix", "", false},
    {"warmup-inside", "schedule.warmup_inside", "", false},
    {"lr-noise", "schedule.noise_from,schedule.noise_to",
     "schedule.noise_limit,schedule.noise_deviation,schedule.noise_seed",
     false},
    {"lr-noise-pct", "schedule.noise_limit", "", false},
    {"lr-noise-std", "schedule.noise_deviation", "", false},
    {"lr-power", "schedule.power", "", false},
    {"lr-cycle-mul", "schedule.stretch", "", false},
    {"patience-epochs", "schedule.patience", "", false},
    {"cooldown-epochs", "schedule.cooldown", "", false},
    {"plateau-threshold", "schedule.threshold", "", false},
    {"max-momentum", "schedule.max_momentum,schedule.base_momentum", "", false},
    {"base-momentum", "schedule.base_momentum", "", false},
};
enum { ROWS = sizeof(row) / sizeof(row[0]) };

/* The next name of a list separated by commas, of *len bytes; NULL: none. */
static const char *next_name(const char **list, size_t *len)
{
    const char *name = *list + strspn(*list, ",");

    *len = strcspn(name, ",");
    *list = name + *len;
    return *len ? name : NULL;
}

static void append(char *text, size_t size, const char *word)
{
    size_t n = strlen(text);

    snprintf(text + n, size - n, "%s%s", n && *word ? "," : "", word);
}

/* The settings that the i-th option may change. */
static void append_row(const struct opts *o, char *text, size_t size, int i)
{
    append(text, size, row[i].setting);
    append(text, size, row[i].also);
    if (row[i].scales_lr && !opts_given(o, "lr"))
        append(text, size, "optimizer.lr," OF_RATE);
}

/* The row of an option; "batch" is the batch size. */
static int find_row(const char *name, size_t len)
{
    if (len == strlen("batch") && !strncmp(name, "batch", len)) {
        name = "batch-size";
        len = strlen(name);
    }
    for (int i = 0; i < ROWS; i++)
        if (strlen(row[i].option) == len && !strncmp(row[i].option, name, len))
            return i;
    return -1;
}

static int fail_name(const struct opts *o, const char *name, size_t len)
{
    char all[1024] = "";
    size_t n = 0;

    for (int i = 0; i < ROWS && n < sizeof(all); i++)
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "",
                              row[i].option);
    opt_complain(o,
                 "--resume-with: '%.*s' cannot change when a run resumes; "
                 "available: %s",
                 (int)len, name, all);
    return EXIT_USAGE;
}

int changes_allowed(const struct opts *o, const struct settings *s, char *text,
                    size_t size)
{
    const char *list = s->resume_with ? s->resume_with : "", *name;
    size_t len;
    int i;

    *text = 0;
    while ((name = next_name(&list, &len))) {
        if ((i = find_row(name, len)) < 0)
            return fail_name(o, name, len);
        append_row(o, text, size, i);
    }
    return OPTS_GO;
}

/* Whether a setting (of len bytes) is one of a list, or part of one. */
static bool is_listed(const char *list, const char *setting, size_t len)
{
    const char *name;
    size_t n;

    while ((name = next_name(&list, &n)))
        if (n <= len && !strncmp(name, setting, n) &&
            (n == len || setting[n] == '.'))
            return true;
    return false;
}

/* Of several, the one that is given. */
static int row_to_suggest(const struct opts *o, const char *setting, size_t len)
{
    int first = -1;

    for (int i = 0; i < ROWS; i++) {
        if (!is_listed(row[i].setting, setting, len))
            continue;
        if (opts_given(o, row[i].option))
            return i;
        first = first < 0 ? i : first;
    }
    return first;
}

void changes_wanted(const struct opts *o, const char *settings, char *text,
                    size_t size)
{
    char covered[1024] = "";
    const char *name;
    size_t len;
    int i;

    *text = 0;
    while ((name = next_name(&settings, &len))) {
        if (is_listed(covered, name, len))
            continue;
        if ((i = row_to_suggest(o, name, len)) < 0) {
            *text = 0;
            return;
        }
        append(text, size, row[i].option);
        append_row(o, covered, sizeof(covered), i);
    }
}
