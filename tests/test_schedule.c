/* test_schedule.c - learning rates over a run, and the optimizers' defaults
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdbool.h>

#include "ddp.h"
#include "tap.h"
#include "train/plateau.h"

/* Values here are of order 1 and computed in double: rounding is below 1e-14.
 */
#define EPS 1e-12

static double factor(const struct ddp_schedule *s, double epoch)
{
    return ddp_schedule_factor(s, 0, epoch, 90);
}

/* The defaults of a kind, for the 90 epochs of factor(). */
static struct ddp_schedule usual(enum ddp_schedule_kind kind)
{
    struct ddp_schedule s;

    ddp_schedule_init(&s, kind, 90);
    return s;
}

static void test_constant(void)
{
    struct ddp_schedule s = {0};

    is_near(ddp_schedule_factor(NULL, 0, 3, 90), 1, 0, "no schedule: 1");
    is_near(factor(&s, 0), 1, 0, "constant: 1 at the start");
    is_near(factor(&s, 90), 1, 0, "and at the end");
    s.warmup = 5;
    is_near(factor(&s, 0), 0, EPS, "warm-up from 0 begins at 0");
    is_near(factor(&s, 2.5), 0.5, EPS, "and rises in a line");
    s = usual(DDP_CONSTANT);
    is_near(factor(&s, 0), 1, 0, "the defaults have no warm-up");
    s.warmup = 5;
    is_near(factor(&s, 0), 0.01, EPS, "their warm-up begins at 0.01");
    is_near(factor(&s, 2.5), 0.505, EPS, "is half way after half its time");
    is_near(factor(&s, 5), 1, EPS, "and is over at its end");
    s.warmup_factor = 0.25;
    is_near(factor(&s, 0), 0.25, EPS, "it begins at the given rate");
    s.warmup = 200;
    is_near(factor(&s, 90), 0.25 + 0.75 * 90 / 200, EPS,
            "a warm-up longer than the run remains one");
}

static void test_stepped(void)
{
    struct ddp_schedule s = {
        .kind = DDP_STEPPED, .warmup_factor = 0.01, .every = 30, .gamma = 0.1};

    is_near(factor(&s, 29.999), 1, EPS, "stepped: 1 until the first step");
    is_near(factor(&s, 30), 0.1, EPS, "then gamma");
    is_near(factor(&s, 89.9), 0.01, EPS, "then its square");
    s.warmup = 5;
    is_near(factor(&s, 30), 0.1, EPS, "epochs of warm-up count");
    s.warmup = 40;
    is_near(factor(&s, 35), (0.01 + 0.99 * 35 / 40) * 0.1, EPS,
            "a step within the warm-up multiplies");
    s = usual(DDP_STEPPED);
    is_near(factor(&s, 61), 0.01, EPS, "by default: a tenth every 30 epochs");
}

/* What timm 1.0.31's CosineLRScheduler and PolyLRScheduler give by epoch, for a
 * rate of 0.1, lr_min 0.001, 90 epochs and a warm-up of 5 from 1e-5. */
static void test_inside(void)
{
    static const struct {
        double epoch, cosine, square;
    } row[] = {
        {0, 0.0001, 0.0001},
        {3, 0.60004000000000002, 0.60004000000000002},
        {5, 0.99247983774104298, 0.89305555555555549},
        {6, 0.98918306236323383, 0.87240000000000006},
        {30, 0.75250000000000006, 0.45000000000000012},
        {45, 0.505, 0.25750000000000001},
        {89, 0.010301540625547596, 0.01012222222222222},
        {90, 0.01, 0.01},
    };
    struct ddp_schedule s = {.warmup = 5,
                             .warmup_factor = 1e-4,
                             .final_factor = 0.01,
                             .power = 2,
                             .warmup_inside = true};

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        s.kind = DDP_COSINE;
        is_near(factor(&s, row[i].epoch), row[i].cosine, EPS,
                "timm's cosine in epoch %g", row[i].epoch);
        s.kind = DDP_POLYNOMIAL;
        is_near(factor(&s, row[i].epoch), row[i].square, EPS,
                "and its polynomial");
    }
}

static void test_down(void)
{
    struct ddp_schedule s = {.kind = DDP_COSINE};

    is_near(factor(&s, 0), 1, EPS, "cosine: 1 at the start");
    is_near(factor(&s, 30), 0.75, EPS, "3/4 after a third");
    is_near(factor(&s, 45), 0.5, EPS, "1/2 half way");
    is_near(factor(&s, 90), 0, EPS, "0 at the end");
    is_near(factor(&s, 95), 0, EPS, "and after it");
    s.final_factor = 0.1;
    is_near(factor(&s, 45), 0.55, EPS, "or the given rate");
    s.warmup = 10;
    is_near(factor(&s, 10), 1, EPS, "after a warm-up it starts there");
    is_near(factor(&s, 50), 0.55, EPS, "and has the rest of the time");
    test_inside();

    s = (struct ddp_schedule){.kind = DDP_LINEAR, .final_factor = 0.2};
    is_near(factor(&s, 0), 1, EPS, "linear: 1 at the start");
    is_near(factor(&s, 45), 0.6, EPS, "half way");
    is_near(factor(&s, 90), 0.2, EPS, "its end");
}

static double momentum(const struct ddp_schedule *s, double epoch)
{
    return ddp_schedule_momentum(s, 0, epoch, 90);
}

static void test_one_cycle(void)
{
    struct ddp_schedule s = usual(DDP_ONE_CYCLE);

    is_near(factor(&s, 0), 0.04, EPS, "one cycle: begins at 1/25");
    is_near(factor(&s, 13.5), 0.52, EPS, "rises in a wave");
    is_near(factor(&s, 9), 0.28, EPS, "a quarter after a third");
    is_near(factor(&s, 27), 1, EPS, "for 3/10 of the run");
    is_near(factor(&s, 58.5), (1 + 4e-6) / 2, EPS, "then falls in a wave");
    is_near(factor(&s, 90), 4e-6, EPS, "to 1/250000");
    is_near(momentum(&s, 0), 0.95, EPS, "momentum begins at 0.95");
    is_near(momentum(&s, 27), 0.85, EPS, "falls to 0.85");
    is_near(momentum(&s, 58.5), 0.9, EPS, "and rises");
    is_near(momentum(&s, 95), 0.95, EPS, "to where it began");
    s.warmup = 9;
    s.warmup_factor = 0.5;
    s.final_factor = 0.2;
    is_near(factor(&s, 4.5), 0.75, EPS, "with a given warm-up");
    is_near(factor(&s, 90), 0.2, EPS, "and end");
    s.warmup = s.final_factor = 0;
    is_near(factor(&s, 0), 1, EPS, "0 epochs of warm-up are none");
    is_near(factor(&s, 90), 0, EPS, "and an end of 0 is 0");
    s.max_momentum = s.base_momentum = 0;
    is_near(momentum(&s, 45), 0, 0, "momentum can be left alone");
    s = usual(DDP_COSINE);
    is_near(momentum(&s, 45), 0, 0, "as other schedules do");
}

static void test_multistep(void)
{
    struct ddp_schedule s = usual(DDP_MULTISTEP);

    is_near(factor(&s, 29.9), 1, EPS, "multistep: 1 up to a third of the run");
    is_near(factor(&s, 30), 0.1, EPS, "then a tenth by default");
    is_near(factor(&s, 60), 0.01, EPS, "then a hundredth");
    s.milestones[1] = 0;
    is_near(factor(&s, 60), 0.1, EPS, "0 ends the milestones");
    for (int i = 0; i < DDP_MILESTONES; i++)
        s.milestones[i] = i + 1;
    s.gamma = 0.5;
    is_near(factor(&s, 80), pow(0.5, DDP_MILESTONES), EPS, "or there are 16");
    s.warmup = 2;
    s.warmup_prefix = true;
    is_near(factor(&s, 3.5), 0.5, EPS, "counted from the end of the warm-up");
    is_near(factor(&s, 1), 0.505, EPS, "in which there are none then");
}

static void test_others(void)
{
    struct ddp_schedule s = usual(DDP_EXPONENTIAL);

    is_near(factor(&s, 45), pow(0.1, 1.5), EPS,
            "exponential: by default, a "
            "tenth every 30 epochs");
    s = usual(DDP_POLYNOMIAL);
    is_near(factor(&s, 60), 1.0 / 3, EPS, "polynomial: by default a line");
    s.power = 2;
    s.final_factor = 0.5;
    is_near(factor(&s, 60), 0.5 + 0.5 / 9, EPS, "the power of what is left");
    s.warmup = 30;
    is_near(factor(&s, 60), 0.5 + 0.5 / 4, EPS, "after the warm-up");
    s = usual(DDP_RESTARTS);
    is_near(factor(&s, 5), 0.5, 1e-9, "restarts: half way in a cycle");
    is_near(factor(&s, 40), 1, 1e-9, "1 where one begins");
    s.stretch = 2; /* 10, 20 and 40 epochs */
    is_near(factor(&s, 40), 0.5 + sqrt(0.5) / 2, 1e-9,
            "a quarter of a cycle "
            "that is longer");
    s = usual(DDP_PLATEAU);
    s.warmup = 10;
    s.warmup_steady = true;
    is_near(factor(&s, 9.9), 0.01, EPS, "a steady warm-up");
    is_near(factor(&s, 10), 1, EPS, "ends at once");
}

static double own(int64_t step, double epoch, double epochs, void *arg)
{
    return (double)step + epoch / epochs + *(double *)arg;
}

static void test_own(void)
{
    double more = 1000;
    struct ddp_schedule s = {
        .kind = DDP_CUSTOM_SCHEDULE, .fn = own, .arg = &more, .warmup = 50};

    is_near(ddp_schedule_factor(&s, 7, 45, 90), 1007.5, EPS,
            "a custom function gets step, epoch, epochs and its argument");
    s.fn = NULL;
    is_near(ddp_schedule_factor(&s, 7, 45, 90), 1, 0, "without one: 1");
}

/* Rates around every edge are finite and not negative, and where the schedule
 * has no steps they do not jump: 1e-3 epochs change them by less than 1e-2. */
static void test_smooth(void)
{
    int jumps = 0, wrong = 0;

    for (int kind = DDP_CONSTANT; kind <= DDP_ONE_CYCLE; kind++)
        for (double warmup = 0; warmup < 7; warmup += 1.5)
            for (double epochs = 1; epochs < 8; epochs += 3) {
                struct ddp_schedule s = usual((enum ddp_schedule_kind)kind);
                double last;

                s.warmup = warmup;
                last = ddp_schedule_factor(&s, 0, 0, epochs);

                for (double e = 0; e < epochs; e += 1e-3) {
                    double f = ddp_schedule_factor(&s, 0, e, epochs);

                    wrong += !(f >= 0 && f <= 1);
                    jumps += fabs(f - last) > 1e-2;
                    last = f;
                }
            }
    is_int(wrong, 0, "factors are within 0..1");
    is_int(jumps, 0, "and do not jump");
}

/* timm's noise of a limit of 0.67 over 20000 epochs: deviation 0.3755, 0.528
 * of it below half the limit; over 4800 here these deviate by 0.003, 0.007. */
static void test_noise(void)
{
    struct ddp_schedule s = usual(DDP_COSINE), plain = s;
    double sum = 0, square = 0, most = 0;
    int wrong = 0, small = 0, other = 0, n = 4800;

    s.noise_from = 4200;
    s.noise_to = 9000;
    for (double e = 0; e < 10000; e += 0.5) {
        double f = ddp_schedule_factor(&s, 0, e, 20000);
        double x = f / ddp_schedule_factor(&plain, 0, e, 20000) - 1;

        wrong += e >= 4200 && e < 9000 ? fabs(x) < 1e-9 : fabs(x) > 1e-12;
        wrong += e > floor(e) && f / ddp_schedule_factor(&plain, 0, e, 20000) <
                                     1 - s.noise_limit;
        if (e > floor(e) || e < 4200 || e >= 9000)
            continue;
        sum += x;
        square += x * x;
        most = fmax(most, fabs(x));
        small += fabs(x) < 0.335;
        s.noise_seed = 1;
        other += fabs(ddp_schedule_factor(&s, 0, e, 20000) - f) > 1e-9;
        s.noise_seed = 0;
    }
    is_int(wrong, 0, "noise: in its epochs, and in no others");
    is_near(sum / n, 0, 0.025, "of mean 0");
    is_near(sqrt(square / n), 0.3755, 0.014, "and timm's deviation");
    is_near(small / (double)n, 0.5279, 0.03, "of timm's shape");
    ok(most < 0.67 && most > 0.66, "up to its limit: %g", most);
    is_int(other, n, "another seed gives another");
    is_near(ddp_schedule_factor(&s, 0, 4200.1, 20000) /
                ddp_schedule_factor(&plain, 0, 4200.1, 20000),
            ddp_schedule_factor(&s, 0, 4200.9, 20000) /
                ddp_schedule_factor(&plain, 0, 4200.9, 20000),
            EPS, "one number for an epoch");
    /* A step's epoch is a quotient that may be too small by a rounding. */
    is_near(ddp_schedule_factor(&s, 0, nextafter(4200, 0), 20000),
            ddp_schedule_factor(&s, 0, 4200, 20000), EPS,
            "from the first step of an epoch on");
    is_near(ddp_schedule_factor(&s, 0, nextafter(4300, 0), 20000),
            ddp_schedule_factor(&s, 0, 4300, 20000), EPS, "of each epoch");
    is_near(ddp_schedule_factor(&s, 0, nextafter(9000, 0), 20000),
            ddp_schedule_factor(&plain, 0, 9000, 20000), EPS,
            "to that of the last");
}

/* ---- against PyTorch ---------------------------------------------------- */

/* Prints the factors of 20 epochs, or of 20 steps that are 5 epochs, and the
 * momentum. */
static const char program[] =
    "import warnings; warnings.simplefilter('ignore')\n"
    "import torch\n"
    "from torch.optim.lr_scheduler import *\n"
    "def run(name, make, n):\n"
    "    o = torch.optim.SGD([torch.zeros(1)], lr=1.0)\n"
    "    s = make(o)\n"
    "    for i in range(n):\n"
    "        g = o.param_groups[0]\n"
    "        print(name, i, '%.17g %.17g' % (g['lr'], g['momentum']))\n"
    "        o.step()\n"
    "        s.step()\n"
    "run('warmup', lambda o: LinearLR(o, 0.01, total_iters=5), 8)\n"
    "run('step', lambda o: StepLR(o, 6, 0.3), 20)\n"
    "run('cosine', lambda o: CosineAnnealingLR(o, 20, 0.05), 20)\n"
    "run('linear', lambda o: LinearLR(o, 1.0, 0.125, 20), 20)\n"
    "run('cycle', lambda o: OneCycleLR(o, 1.0, 20), 20)\n"
    "run('multi', lambda o: MultiStepLR(o, [3, 7, 15], 0.3), 20)\n"
    "run('exp', lambda o: ExponentialLR(o, 0.9), 20)\n"
    "run('poly', lambda o: PolynomialLR(o, 20, 0.9), 20)\n"
    "run('again', lambda o: CosineAnnealingWarmRestarts(o, 5, 1, 0.01), 20)\n"
    "run('longer', lambda o: CosineAnnealingWarmRestarts(o, 3, 2), 20)\n"
    "run('flat', lambda o: SequentialLR(o, [ConstantLR(o, 0.25, 4),\n"
    "    CosineAnnealingLR(o, 16)], [4]), 20)\n"
    "run('prefix', lambda o: SequentialLR(o, [LinearLR(o, 0.01,\n"
    "    total_iters=5), StepLR(o, 6, 0.3)], [5]), 20)\n"
    "o = torch.optim.SGD([torch.zeros(1)], lr=1.0)\n"
    "p = [ReduceLROnPlateau(o, 'max', 0.5, 2, cooldown=1, min_lr=0.01),\n"
    "    ReduceLROnPlateau(torch.optim.SGD([torch.zeros(1)], lr=1.0),\n"
    "        'min', 0.1, 1, threshold=0.2)]\n"
    "for i in range(60):\n"
    "    v = (i * 37 % 23) / 23 + 0.25\n"
    "    p[0].step(v)\n"
    "    p[1].step(v / (1 + i))\n"
    "    print('plateau', i, '%.17g %.17g' % tuple(\n"
    "        s.optimizer.param_groups[0]['lr'] for s in p))\n"
    "run('short', lambda o: OneCycleLR(o, 1.0, epochs=5, steps_per_epoch=4,\n"
    "    pct_start=0.5, div_factor=10, final_div_factor=5,\n"
    "    base_momentum=0.7, max_momentum=0.8), 20)\n";

static const struct {
    const char *name;
    struct ddp_schedule s;
    double epochs;
} torch[] = {
    {"warmup", {.kind = DDP_CONSTANT, .warmup = 5, .warmup_factor = 0.01}, 20},
    {"step", {.kind = DDP_STEPPED, .every = 6, .gamma = 0.3}, 20},
    {"cosine", {.kind = DDP_COSINE, .final_factor = 0.05}, 20},
    {"linear", {.kind = DDP_LINEAR, .final_factor = 0.125}, 20},
    {"multi",
     {.kind = DDP_MULTISTEP, .milestones = {3, 7, 15}, .gamma = 0.3},
     20},
    {"exp", {.kind = DDP_EXPONENTIAL, .gamma = 0.9}, 20},
    {"poly", {.kind = DDP_POLYNOMIAL, .power = 0.9}, 20},
    {"again",
     {.kind = DDP_RESTARTS, .every = 5, .stretch = 1, .final_factor = 0.01},
     20},
    {"longer", {.kind = DDP_RESTARTS, .every = 3, .stretch = 2}, 20},
    {"flat",
     {.kind = DDP_COSINE,
      .warmup = 4,
      .warmup_factor = 0.25,
      .warmup_steady = true},
     20},
    {"prefix",
     {.kind = DDP_STEPPED,
      .warmup = 5,
      .warmup_factor = 0.01,
      .every = 6,
      .gamma = 0.3,
      .warmup_prefix = true},
     20},
    {"cycle",
     {.kind = DDP_ONE_CYCLE,
      .warmup = 6,
      .warmup_factor = 0.04,
      .final_factor = 4e-6,
      .max_momentum = 0.95,
      .base_momentum = 0.85},
     20},
    {"short",
     {.kind = DDP_ONE_CYCLE,
      .warmup = 2.5,
      .warmup_factor = 0.1,
      .final_factor = 0.02,
      .max_momentum = 0.8,
      .base_momentum = 0.7},
     5},
};
enum { TORCH = sizeof(torch) / sizeof(torch[0]) };

/* Two plateaus, of a measure that is to grow and of one that is to fall, and
 * falls by less than the threshold as well. */
struct plateaus {
    struct ddp__plateau up, down;
    int seen, far;
};

static void note_plateaus(struct plateaus *p, int i, double up, double down)
{
    const struct ddp_schedule a = {.gamma = 0.5,
                                   .patience = 2,
                                   .cooldown = 1,
                                   .threshold = 1e-4,
                                   .final_factor = 0.01};
    const struct ddp_schedule b = {
        .gamma = 0.1, .patience = 1, .threshold = 0.2};
    double value = (i * 37 % 23) / 23.0 + 0.25;

    ddp__plateau_note(&p->up, &a, 1, value, true);
    ddp__plateau_note(&p->down, &b, 1, value / (1 + i), false);
    p->seen++;
    p->far += fabs(ddp__plateau_factor(&p->up) - up) > 1e-12 ||
              fabs(ddp__plateau_factor(&p->down) - down) > 1e-12;
}

/* PyTorch multiplies its rates from step to step: 20 roundings of 1e-16; those
 * of cycles differ by the share of a step that hides roundings, 1e-9 of an
 * epoch, whose effect on half a wave is below 1e-9. */
static bool agrees(int k, int step, double lr, double m)
{
    const struct ddp_schedule *s = &torch[k].s;
    double epochs = torch[k].epochs, epoch = step * epochs / 20;

    double most = s->kind == DDP_RESTARTS ? 1e-9 : 1e-12;

    return fabs(ddp_schedule_factor(s, step, epoch, epochs) - lr) < most &&
           fabs(ddp_schedule_momentum(s, step, epoch, epochs) - m) < 1e-12;
}

static void test_torch(void)
{
    char command[8192], name[16];
    struct plateaus plateaus = {.seen = 0};
    int i, seen[TORCH] = {0}, far[TORCH] = {0};
    double lr, m;
    FILE *p;

    if (system("/usr/bin/python3 -c 'import torch' 2>/dev/null")) {
        skip(TORCH + 1, "no PyTorch for /usr/bin/python3");
        return;
    }
    snprintf(command, sizeof(command), "/usr/bin/python3 -c \"%s\"", program);
    if (!(p = popen(command, "r")))
        bail_out("popen");
    while (fscanf(p, "%15s %d %lf %lf", name, &i, &lr, &m) == 4) {
        if (!strcmp(name, "plateau"))
            note_plateaus(&plateaus, i, lr, m);
        for (int k = 0; k < TORCH; k++)
            if (!strcmp(name, torch[k].name)) {
                seen[k]++;
                far[k] += !agrees(k, i, lr, m);
            }
    }
    pclose(p);
    for (int k = 0; k < TORCH; k++)
        ok(seen[k] > 0 && far[k] == 0, "%s: %d steps as PyTorch's",
           torch[k].name, seen[k]);
    ok(plateaus.seen == 60 && plateaus.far == 0,
       "plateau: 60 evaluations as PyTorch's");
}

static void test_optimizers(void)
{
    struct ddp_optimizer o = ddp_sgd(0.5f);

    ok(o.kind == DDP_SGD && o.lr == 0.5f && o.momentum == 0 &&
           o.weight_decay == 0 && !o.decay_all && o.clip_norm == 0,
       "sgd");
    o = ddp_momentum(0.1f, 0.8f);
    ok(o.kind == DDP_MOMENTUM && o.lr == 0.1f && o.momentum == 0.8f,
       "momentum");
    o = ddp_nesterov(0.1f, 0);
    ok(o.kind == DDP_NESTEROV && o.lr == 0.1f && o.momentum == 0, "nesterov");
    o = ddp_adam(1e-3f);
    ok(o.kind == DDP_ADAM && o.lr == 1e-3f && o.beta1 == 0.9f &&
           o.beta2 == 0.999f && o.eps == 1e-8f && o.weight_decay == 0,
       "adam");
    o = ddp_adamw(1e-3f, 0.01f);
    ok(o.kind == DDP_ADAMW && o.beta1 == 0.9f && o.beta2 == 0.999f &&
           o.eps == 1e-8f && o.weight_decay == 0.01f,
       "adamw");
    o = ddp_rmsprop(0.01f);
    ok(o.kind == DDP_RMSPROP && o.lr == 0.01f && o.beta2 == 0.99f &&
           o.eps == 1e-8f && o.momentum == 0,
       "rmsprop");
}

int main(void)
{
    test_constant();
    test_stepped();
    test_down();
    test_one_cycle();
    test_multistep();
    test_others();
    test_own();
    test_smooth();
    test_noise();
    test_optimizers();
    test_torch();
    return done_testing();
}
