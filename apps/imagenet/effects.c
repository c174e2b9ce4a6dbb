/* effects.c - options that have no effect with the others
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>
#include <string.h>

#include "ddp.h"

#include "common/app.h"
#include "effects.h"
#include "setup_data.h"

static int check_policy(const struct opts *o, const struct settings *s)
{
    struct ddp_policy p;

    if (setup_policy(s, &p) == 0)
        return OPTS_GO;
    opt_complain(o, "--aa: %s", ddp_errmsg());
    return EXIT_USAGE;
}

#define ONLY(x) (1u << SCHED_##x)

/* Each row: an option, the schedules that it has an effect on, their names. */
static int check_schedule(const struct opts *o, const struct settings *s)
{
    const struct {
        const char *name;
        unsigned with;
        const char *why;
    } row[] = {
        {"decay-epochs", ONLY(STEP) | ONLY(RESTARTS), "step, restarts"},
        {"decay-milestones", ONLY(MULTISTEP), "multistep"},
        {"decay-rate",
         ONLY(STEP) | ONLY(MULTISTEP) | ONLY(PLATEAU) | ONLY(EXPONENTIAL),
         "step, multistep, plateau, exponential"},
        {"lr-power", ONLY(POLYNOMIAL), "polynomial"},
        {"lr-cycle-mul", ONLY(RESTARTS), "restarts"},
        {"patience-epochs", ONLY(PLATEAU), "plateau"},
        {"cooldown-epochs", ONLY(PLATEAU), "plateau"},
        {"plateau-threshold", ONLY(PLATEAU), "plateau"},
        {"max-momentum", ONLY(ONECYCLE), "onecycle"},
        {"base-momentum", ONLY(ONECYCLE), "onecycle"},
        {"min-lr",
         ONLY(COSINE) | ONLY(LINEAR) | ONLY(ONECYCLE) | ONLY(POLYNOMIAL) |
             ONLY(RESTARTS) | ONLY(PLATEAU),
         "cosine, linear, onecycle, polynomial, restarts, plateau"},
        {"warmup-prefix",
         ONLY(STEP) | ONLY(MULTISTEP) | ONLY(EXPONENTIAL) | ONLY(RESTARTS),
         "step, multistep, exponential, restarts"},
        {"warmup-inside", ONLY(COSINE) | ONLY(LINEAR) | ONLY(POLYNOMIAL),
         "cosine, linear, polynomial"},
        {"lr-warmup-method", ~ONLY(ONECYCLE), "others than onecycle"},
    };
    char why[128];
    int rc = OPTS_GO;

    for (size_t i = 0; rc == OPTS_GO && i < sizeof(row) / sizeof(row[0]); i++) {
        snprintf(why, sizeof(why), "only with --sched %s", row[i].why);
        rc = opts_only(o, row[i].name, row[i].with >> s->sched & 1, why);
    }
    if (rc != OPTS_GO || s->sched != SCHED_PLATEAU || !s->no_val)
        return rc;
    opt_complain(o, "--sched plateau needs evaluations: leave out --no-val");
    return EXIT_USAGE;
}

/* An option, whether it has an effect, and why not. */
struct effect {
    const char *name;
    bool holds;
    const char *why;
};

static int check_rows(const struct opts *o, const struct effect *row, size_t n)
{
    int rc = OPTS_GO;

    for (size_t i = 0; rc == OPTS_GO && i < n; i++)
        rc = opts_only(o, row[i].name, row[i].holds, row[i].why);
    return rc;
}

static int check_optimizer(const struct opts *o, const struct settings *s)
{
    bool mixes = s->mixup > 0 || s->cutmix > 0;
    unsigned uses = ddp_optimizer_info((enum ddp_optimizer_kind)s->opt)->uses;
    const struct effect row[] = {
        {"momentum", uses & DDP_USES_MOMENTUM, "see --opt"},
        {"opt-betas", uses & (DDP_USES_BETA1 | DDP_USES_BETA2),
         "the optimizer has no betas"},
        {"opt-eps", uses & DDP_USES_EPS, "the optimizer has no epsilon"},
        {"decay-all", s->weight_decay > 0, "--weight-decay is 0"},
        {"clip-mode", opts_given(o, "clip-grad"), "there is no --clip-grad"},
        {"mixup-prob", mixes, "there is no --mixup, --cutmix"},
        {"mixup-off-epoch", mixes, "there is no --mixup, --cutmix"},
        {"mixup-switch-prob", s->mixup > 0 && s->cutmix > 0,
         "only with --mixup and --cutmix"},
        {"class-weights", s->loss == LOSS_CE, "only with --loss ce"},
        {"pos-weight", s->loss == LOSS_BCE, "only with --loss bce"},
        {"distill-weight", s->teacher, "there is no --teacher"},
        {"distill-temperature", s->teacher, "there is no --teacher"},
        {"bce-target-thresh", s->loss == LOSS_BCE, "only with --loss bce"},
        {"focal-gamma", s->loss == LOSS_FOCAL, "only with --loss focal"},
        {"focal-alpha", s->loss == LOSS_FOCAL, "only with --loss focal"},
    };

    return check_rows(o, row, sizeof(row) / sizeof(row[0]));
}

static int check_rate(const struct opts *o, const struct settings *s)
{
    bool warm = s->warmup_epochs > 0 || s->sched == SCHED_ONECYCLE;
    const struct effect row[] = {
        {"warmup-lr", warm, "there are no --warmup-epochs"},
        {"lr-warmup-decay", warm, "there are no --warmup-epochs"},
        {"lr-warmup-decay", !opts_given(o, "warmup-lr"),
         "--warmup-lr is given"},
        {"lr-warmup-method", s->warmup_epochs > 0,
         "there are no --warmup-epochs"},
        {"lr-noise-pct", s->noise[0] < s->noise[1], "there is no --lr-noise"},
        {"lr-noise-std", s->noise[0] < s->noise[1], "there is no --lr-noise"},
        {"warmup-prefix", s->warmup_epochs > 0, "there are no --warmup-epochs"},
        {"warmup-inside", s->warmup_epochs > 0, "there are no --warmup-epochs"},
        {"lr-base", !opts_given(o, "lr"), "--lr is given"},
        {"lr-base-size", !opts_given(o, "lr"), "--lr is given"},
        {"batch-per-device", !opts_given(o, "batch-size"),
         "--batch-size is given"},
    };

    return check_rows(o, row, sizeof(row) / sizeof(row[0]));
}

static int check_augmentation(const struct opts *o, const struct settings *s)
{
    const struct effect row[] = {
        {"scale", s->augment == 1, "only with --augment random"},
        {"ratio", s->augment == 1, "only with --augment random"},
        {"train-interpolation", s->augment != 0,
         "--augment none has --interpolation"},
        {"vflip", s->augment != 0, "--augment none turns nothing"},
        {"aa", s->augment != 0, "--augment none changes nothing"},
        {"ra-magnitude", s->policy && !strcmp(s->policy, "ra"),
         "only with --aa ra"},
        {"augmix-severity", s->policy && !strcmp(s->policy, "augmix"),
         "only with --aa augmix"},
        {"color-jitter", s->augment != 0, "--augment none changes no colours"},
        {"color-jitter-prob", opts_given(o, "color-jitter") && s->augment != 0,
         "there is no --color-jitter"},
        {"grayscale-prob", s->augment != 0,
         "--augment none changes no colours"},
        {"gaussian-blur-prob", s->augment != 0, "--augment none blurs nothing"},
        {"val-resize-size", !opts_given(o, "crop-pct"), "--crop-pct is given"},
        {"aug-repeats", s->augment != 0,
         "--augment none repeats the same image"},
        {"shift", s->augment == 2, "only with --augment shift"},
        {"hflip", s->augment != 0, "--augment none mirrors nothing"},
        {"random-erase", s->augment != 0, "--augment none erases nothing"},
        {"remode", s->erase > 0, "there is no --random-erase"},
        {"recount", s->erase > 0, "there is no --random-erase"},
    };

    return check_rows(o, row, sizeof(row) / sizeof(row[0]));
}

static int check_run(const struct opts *o, const struct settings *s)
{
    bool averages = s->ema || s->ema_decay > 0;
    const struct effect row[] = {
        {"val", !s->no_val, "--no-val is given"},
        {"val-split", !s->no_val, "--no-val is given"},
        {"val-split", !s->val_data, "--val is given"},
        {"eval-every", !s->no_val, "--no-val is given"},
        {"eval-steps", !s->no_val, "--no-val is given"},
        {"patience", !s->no_val, "--no-val is given"},
        {"model-ema-warmup", averages, "there is no --model-ema"},
        {"model-ema-steps", averages, "there is no --model-ema"},
        {"world-size", s->batch > 0, "there is no --batch-size"},
        {"tta", !s->no_val, "--no-val is given"},
        {"epochs", !s->steps, "--steps is given"},
        {"find-lr-steps", s->find_lr, "there is no --find-lr"},
        {"lr", !s->find_lr, "--find-lr looks for it"},
        {"zero-init-residual", !s->weights, "--weights is given"},
        {"whiten", !s->weights, "--weights is given"},
        {"resume-with", strcmp(s->resume, "none") != 0,
         "--resume none starts a new run"},
    };

    return check_rows(o, row, sizeof(row) / sizeof(row[0]));
}

int effects_check(const struct opts *o, const struct settings *s)
{
    int rc;

    if ((rc = check_optimizer(o, s)) != OPTS_GO ||
        (rc = check_rate(o, s)) != OPTS_GO ||
        (rc = check_augmentation(o, s)) != OPTS_GO ||
        (rc = check_run(o, s)) != OPTS_GO ||
        (rc = check_policy(o, s)) != OPTS_GO)
        return rc;
    return check_schedule(o, s);
}
