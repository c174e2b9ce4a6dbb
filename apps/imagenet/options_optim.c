/* options_optim.c - the options of optimizers and schedules
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "ddp.h"

#include "foreign.h"
#include "options.h"
#include "options_optim.h"
#include "options_rows.h"

/* ---- optimizers --------------------------------------------------------- */

const char *options_optimizer(int i)
{
    const struct ddp_optimizer_info *o =
        ddp_optimizer_info((enum ddp_optimizer_kind)i);

    return o ? o->name : NULL;
}

/* Append "a, b and c": the optimizers that use any of `uses`, or if lr is above
 * 0 those with this usual learning rate. */
static void put_optimizers(char *text, size_t size, unsigned uses, double lr)
{
    const struct ddp_optimizer_info *o;
    const char *held = NULL;
    size_t n;

    for (int i = 0, put = 0;; i++) {
        o = ddp_optimizer_info((enum ddp_optimizer_kind)i);
        if (o && !(lr > 0 ? o->lr == lr : (o->uses & uses) != 0))
            continue;
        n = strlen(text);
        if (held)
            snprintf(text + n, size - n, "%s%s",
                     !put++ ? ""
                     : o    ? ", "
                            : " and ",
                     held);
        if (!o)
            return;
        held = o->name;
    }
}

void options_momentum_users(char *text, size_t size)
{
    text[0] = '\0';
    put_optimizers(text, size, DDP_USES_MOMENTUM, 0);
}

void options_beta_users(char *text, size_t size)
{
    text[0] = '\0';
    put_optimizers(text, size, DDP_USES_BETA1 | DDP_USES_BETA2, 0);
}

void options_eps_users(char *text, size_t size)
{
    text[0] = '\0';
    put_optimizers(text, size, DDP_USES_EPS, 0);
}

/* Whether no optimizer before the i-th has its usual learning rate. */
static bool is_new_rate(int i)
{
    double lr = ddp_optimizer_info((enum ddp_optimizer_kind)i)->lr;

    while (--i >= 0)
        if (ddp_optimizer_info((enum ddp_optimizer_kind)i)->lr == lr)
            return false;
    return true;
}

/* Whose rate grows with the root of the batch, and the usual rates: that of the
 * first optimizer without names. */
void options_lr_base_users(char *text, size_t size)
{
    const struct ddp_optimizer_info *o;
    size_t n;

    text[0] = '\0';
    put_optimizers(text, size, DDP_USES_BETA2 | DDP_USES_EPS, 0);
    for (int i = 0; (o = ddp_optimizer_info((enum ddp_optimizer_kind)i)); i++) {
        if (!is_new_rate(i))
            continue;
        n = strlen(text);
        snprintf(text + n, size - n, i ? "; " : " [");
        if (i)
            put_optimizers(text, size, 0, o->lr);
        n = strlen(text);
        snprintf(text + n, size - n, "%s%g", i ? " " : "", o->lr);
    }
    n = strlen(text);
    snprintf(text + n, size - n, "]");
}

/* ---- tables ------------------------------------------------------------- */

static const struct opt_word optimizer_words[] = {{"sgd_nesterov", "nesterov"},
                                                  {NULL, NULL}};
static const struct opt_foreign optimizer_prefix = {"lookahead_", "lookahead",
                                                    "6", NULL};
static const char *const schedules[] = {
    "constant",    "step",       "cosine",   "linear",  "onecycle", "multistep",
    "exponential", "polynomial", "restarts", "plateau", NULL};
/* Names of PyTorch's classes and timm's words. */
static const struct opt_word schedule_words[] = {
    {"none", "constant"},
    {"constantlr", "constant"},
    {"steplr", "step"},
    {"cosineannealinglr", "cosine"},
    {"linearlr", "linear"},
    {"onecyclelr", "onecycle"},
    {"multisteplr", "multistep"},
    {"exponentiallr", "exponential"},
    {"polynomiallr", "polynomial"},
    {"poly", "polynomial"},
    {"cosineannealingwarmrestarts", "restarts"},
    {"reducelronplateau", "plateau"},
    {NULL, NULL}};
static const char *const warmups[] = {"linear", "constant", NULL};
static const char *const losses[] = {"ce", "bce", "focal", NULL};
static const char *const clips[] = {"norm", "value", "agc", NULL};

const struct opt_group options_optimizer_group = {
    "Optimizer",
    (const struct opt[]){
        CHOICE_OF("opt", opt, "NAME", "momentum", options_optimizer,
                  "update rule; sgd with a --momentum is momentum",
                  .also = optimizer_words, .prefix = &optimizer_prefix),
        NUM("lr", lr, NULL, 1e-30, 1e6,
            "learning rate [--lr-base for the batch size]"),
        FLAG("find-lr", find_lr,
             "train for some steps with rates that rise from 1e-8 to 10, draw "
             "the loss, print the rate at which it fell most, and end; with "
             "--output, lr_find.csv in that folder",
             .of_run = true),
        INT("find-lr-steps", find_lr_steps, "100", 20, 100000,
            "how many, unless the loss explodes before"),
        NUM("lr-base", lr_base, NULL, 1e-30, 1e6,
            "learning rate for a batch of --lr-base-size, scaled with the "
            "batch size, or with its square root for",
            .more = options_lr_base_users),
        NUM("lr-base-size", lr_base_size, "256", 1, 1e9,
            "batch size that --lr-base is for"),
        NUM("momentum", momentum, "0.9", 0, 1, "momentum of",
            .more = options_momentum_users),
        LIST("opt-betas", betas, 2, "X,X", NULL, 1e-9, 1,
             "betas [the optimizer's own], of which rmsprop, rmsproptf and "
             "adadelta use the second, of",
             .more = options_beta_users),
        NUM("opt-eps", eps, NULL, 1e-30, 1, "epsilon [the optimizer's own] of",
            .more = options_eps_users),
        INT("lookahead", lookahead, "0", 0, 1e6,
            "every so many updates weights go half the way back to where they "
            "were the last time (Lookahead); --opt lookahead_NAME means 6"),
        NUM("drop", drop, "-1", -1, 0.99,
            "dropout probability; -1 means the network's default"),
        NUM("drop-path", drop_path, "-1", -1, 0.99,
            "probability of skipping an EfficientNet's last block (stochastic "
            "depth); -1 means the network's default"),
        NUM("weight-decay", weight_decay, "1e-4", 0, 1e3,
            "weight decay, not applied to normalisation parameters and biases",
            .alias = "wd"),
        FLAG("decay-all", decay_all,
             "apply weight decay to normalisation parameters and biases too"),
        NUM("clip-grad", clip_grad, NULL, 1e-30, 1e30,
            "clip gradients to this global norm"),
        CHOICE("clip-mode", clip_mode, "NAME", "norm", clips,
               "value: --clip-grad limits each value of the gradients instead; "
               "agc: the norm of the gradient of each output, as a share of "
               "that of its weights, but for the last layer (adaptive "
               "clipping)"),
        INT("max-nan-steps", max_nan_steps, "10", 0, 1e9,
            "consecutive steps that may be skipped because the loss or "
            "gradients are not finite; more end the run with exit code 1"),
        FLAG("model-ema", ema,
             "keep an exponential moving average of the weights with the "
             "decay that timm has where none is given, 0.9998; with "
             "--model-ema-steps torchvision's, 0.99998"),
        NUM("model-ema-decay", ema_decay, "0", 0, 0.9999999,
            "keep an exponential moving average of the weights with this decay "
            "and save it as weights-ema.safetensors; 0 keeps none"),
        INT("model-ema-steps", ema_steps, "0", 0, 1e6,
            "take the decay as torchvision does, for averages that move every "
            "N steps, and for one image and one epoch: 1 less it is multiplied "
            "by N, the batch size and 1 / --epochs. Averages move at every "
            "step, at the same speed. 0: it is that of a step"),
        FLAG("model-ema-warmup", ema_warmup,
             "let averages move faster in the beginning, as timm does"),
        NUM("label-smoothing", smoothing, "0", 0, 0.999,
            "fraction of the target spread over all classes",
            .alias = "smoothing"),
        TEXT("class-weights", class_weights, "FILE", NULL,
             "weight of each class in the loss: a file of a number for each, "
             "or balanced: the fewer images a class has, the more they count"),
        TEXT("pos-weight", pos_weight, "FILE", NULL,
             "--loss bce: what the positive part of each class counts: a file "
             "of a number for each, or balanced: images without the class over "
             "those with it"),
        TEXT("teacher", teacher, "FILE", NULL,
             "also learn the outputs of the network whose weights these are, "
             "as imagenet train wrote them (distillation)",
             .alias = "teacher-path"),
        NUM("distill-weight", distill_weight, "0.5", 0, 1,
            "--teacher: its share of the loss", .alias = "distillation-alpha"),
        NUM("distill-temperature", distill_temperature, "1", 0.01, 1000,
            "--teacher: what outputs are divided by before both are compared",
            .alias = "distillation-tau"),
        NUM("mixup", mixup, "0", 0, 1000,
            "mix pairs of images, with shares from a Beta distribution of this "
            "alpha; 0 does not",
            .alias = "mixup-alpha"),
        NUM("cutmix", cutmix, "0", 0, 1000,
            "exchange a box of pairs of images, with areas from a Beta "
            "distribution of this alpha; 0 does not",
            .alias = "cutmix-alpha"),
        NUM("mixup-prob", mixup_prob, "1", 0, 1,
            "probability that a sub-batch is mixed"),
        NUM("mixup-switch-prob", mixup_switch_prob, "0.5", 0, 1,
            "with --mixup and --cutmix, probability of --cutmix"),
        INT("mixup-off-epoch", mixup_off_epoch, "0", 0, 1e9,
            "from this epoch on, images are not mixed; 0: never"),
        CHOICE("loss", loss, "NAME", "ce", losses,
               "ce: cross entropy; bce: binary cross entropy of each class, "
               "for itself; focal: the same, where classes that are nearly "
               "right count less"),
        NUM("bce-target-thresh", bce_threshold, "0", 0, 0.999,
            "--loss bce: targets above this, after smoothing, count as 1 and "
            "others as 0; 0: they count as they are"),
        NUM("focal-gamma", focal_gamma, "2", 0, 100,
            "--loss focal: the power by which right classes count less"),
        NUM("focal-alpha", focal_alpha, "0.25", -1, 1,
            "--loss focal: what the positive part of a class counts, of 1; "
            "below 0: as much as the negative one"),
        END,
    },
};

const struct opt_group options_schedule_group = {
    "Schedule",
    (const struct opt[]){
        CHOICE("sched", sched, "NAME", "cosine", schedules,
               "learning rate schedule after the warm-up",
               .alias = "lr-scheduler", .also = schedule_words),
        NUM("warmup-epochs", warmup_epochs, NULL, 0, 1e9,
            "epochs of linear warm-up, for onecycle of the rise [0; onecycle "
            "30% of the run]",
            .alias = "lr-warmup-epochs"),
        NUM("warmup-lr", warmup_lr, NULL, 1e-30, 1e6,
            "learning rate at the start of the warm-up [1% of --lr; onecycle "
            "4%]"),
        NUM("lr-warmup-decay", warmup_decay, NULL, 1e-30, 1,
            "the same as a share of --lr, instead of --warmup-lr"),
        CHOICE("lr-warmup-method", warmup_method, "NAME", "linear", warmups,
               "constant: the warm-up keeps its first rate"),
        FLAG("warmup-prefix", warmup_prefix,
             "--sched step, multistep, exponential, restarts: count epochs "
             "from the end of the warm-up"),
        FLAG("warmup-inside", warmup_inside,
             "--sched cosine, linear, polynomial: span the whole run, of which "
             "the warm-up hides the beginning, as timm's do"),
        NUM("decay-epochs", decay_epochs, NULL, 1e-6, 1e9,
            "--sched step: epochs between decays [30]; restarts: of the first "
            "cycle [10]",
            .alias = "lr-step-size"),
        WIDTHS("decay-milestones", milestones, "N,...", NULL,
               "--sched multistep: epochs with a decay, up to 15 [1/3 and 2/3 "
               "of the run]",
               .alias = "milestones"),
        NUM("decay-rate", decay_rate, NULL, 1e-9, 1e9,
            "--sched step, multistep, plateau: factor of each decay [0.1]; "
            "exponential: of an epoch [0.926, a tenth in 30 epochs]",
            .alias = "lr-gamma"),
        LIST("lr-noise", noise, 2, "FROM,TO", "1,1", 0, 1,
             "multiply the learning rate in each epoch between these shares of "
             "the run by a random number; TO may be left out",
             .least = 1),
        NUM("lr-noise-pct", noise_limit, "0.67", 1e-9, 1,
            "--lr-noise: the most that it differs from 1"),
        NUM("lr-noise-std", noise_deviation, "1", 1e-9, 1e6,
            "--lr-noise: deviation of the normal distribution that it is from"),
        NUM("lr-power", power, NULL, 1e-6, 1e6,
            "--sched polynomial: the exponent [1]"),
        NUM("lr-cycle-mul", stretch, NULL, 1, 1e6,
            "--sched restarts: what each cycle is longer than the one before "
            "[1]"),
        INT("patience-epochs", plateau_patience, NULL, 0, 1e9,
            "--sched plateau: evaluations without an improvement before a "
            "decay [10]"),
        INT("cooldown-epochs", cooldown, NULL, 0, 1e9,
            "--sched plateau: evaluations after a decay that do not count [0]"),
        NUM("plateau-threshold", plateau_threshold, NULL, 0, 1e6,
            "--sched plateau: share of the best top-1 accuracy that an "
            "improvement has to exceed [0.0001]"),
        NUM("max-momentum", max_momentum, NULL, 0, 0.999999,
            "--sched onecycle: momentum at the lowest rates [0.95]; 0: "
            "--momentum all the time"),
        NUM("base-momentum", base_momentum, NULL, 0, 0.999999,
            "--sched onecycle: momentum at the highest rate [0.85]"),
        NUM("min-lr", min_lr, NULL, 0, 1e6,
            "learning rate at the end of --sched cosine, linear, polynomial, "
            "of a cycle of restarts, and the least of plateau [0]; of onecycle "
            "[0.000004 of --lr]",
            .alias = "lr-min"),
        END,
    },
};
