/* report.c - "ddp-bench report": the speed of usual networks, as a table
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdlib.h>
#include <string.h>

#include "ddp.h"
#include "common/app.h"
#include "common/app_fail.h"
#include "measure.h"
#include "peer.h"
#include "report.h"
#include "rounds.h"

#define OPT_STRUCT struct bench_settings
#include "common/opt_rows.h"

static const struct opt_group options = {
    "Options",
    (const struct opt[]){
        TEXTS("model", models, "NAME",
              "the lines of this network, again for each further one [all]"),
        TEXT("peer", peer, "COMMAND", NULL, PEER_HELP),
        INT("rounds", rounds, "3", 1, ROUNDS_MAX,
            "times to measure a line, in turns with the peer; medians count"),
        NUM("point-seconds", point_seconds, "3", 0.01, 1e6,
            "time to measure a line in a round; it takes one step at least"),
        INT("workers", workers, NULL, 1, 4096,
            "CPU workers [one per core, or STARPU_NCPU]", .letter = 'j'),
        END,
    },
};

const struct opt_command bench_report_command = {
    .name = "ddp-bench report",
    .about =
        "Train usual networks on images generated in advance and print a table "
        "of their speed in Markdown.\n"
        "\n"
        "peak is the share of the cores' peak FLOP/s, as ddp-bench train "
        "counts them. floor is the share of what arithmetic and memory allow "
        "if each operation reads its operands from memory and writes its "
        "results there, as a copy does it, and no faster than the cores read: "
        "above 100 % where caches hold them. oneDNN is the "
        "share of what its convolutions and dense layers alone would allow, "
        "measured without our Winograd convolutions. With --peer, the "
        "last columns are its images per second and ours relative to these.\n"
        "\n"
        "Each round measures the cores and memory, then our speed, then "
        "the peer's, and shares and ratios are those of a round: a machine "
        "whose speed changes from minute to minute is compared with itself. "
        "The last line says what it reached in all rounds. Compare on a "
        "machine on which nothing else runs.",
    .group = (const struct opt_group *const[]){&options, NULL},
};

/* ---- lines -------------------------------------------------------------- */

static const struct line {
    const char *model;
    int size, sub_batch;
    enum ddp_dtype type;
    int lanes; /* 0: one per worker; 1 where it is the cost of a step that
                  counts */
    int classes;
} lines[] = {
    {"resnet18", 224, 16, DDP_F32, 0, 1000},
    {"resnet18", 224, 16, DDP_BF16, 0, 1000},
    {"resnet18", 32, 128, DDP_F32, 0, 1000},
    {"resnet50", 224, 8, DDP_F32, 0, 1000},
    {"resnet50", 224, 8, DDP_BF16, 0, 1000},
    {"vgg16", 224, 8, DDP_F32, 0, 1000},
    {"densenet121", 224, 8, DDP_F32, 0, 1000},
    {"inception_v3", 299, 8, DDP_F32, 0, 1000},
    {"mobilenet_v2", 224, 16, DDP_F32, 0, 1000},
    {"efficientnet_b0", 224, 16, DDP_F32, 0, 1000},
    {"efficientnet_b0", 224, 16, DDP_BF16, 0, 1000},
    {"efficientnet_v2_s", 224, 16, DDP_F32, 0, 1000},
    {"resnet9", 32, 64, DDP_F32, 0, 10},
    {"resnet9", 32, 64, DDP_BF16, 0, 10},
    {"airbench", 32, 64, DDP_F32, 0, 10},
    {"airbench", 32, 64, DDP_BF16, 0, 10},
    {"mlp", 16, 1, DDP_F32, 1, 10},
};

enum { LINES = sizeof(lines) / sizeof(lines[0]), STEPS = 200 };

static bool is_wanted(char *const *models, const char *name)
{
    if (!models)
        return true;
    while (*models && strcmp(*models, name) != 0)
        models++;
    return *models;
}

/* ---- printing ----------------------------------------------------------- */

static void print_head(const struct bench_settings *s)
{
    printf("| network | pixels | sub-batch | type | img/s | peak | floor | "
           "oneDNN |%s\n",
           s->peer ? " peer img/s | ratio |" : "");
    printf("| --- | --- | --- | --- | --- | --- | --- | --- |%s\n",
           s->peer ? " --- | --- |" : "");
}

static void print_share(double share)
{
    if (share > 0)
        printf(" %.0f %% |", 100 * share);
    else
        printf(" - |");
}

static void print_line(const struct bench_settings *s, const struct rounds *r)
{
    printf("| %s | %lld | %lld | %s | %.1f |", s->model, (long long)s->img_size,
           (long long)s->sub_batch, dtypes[s->dtype], r->img_per_s);
    print_share(r->of_peak);
    print_share(r->of_limit);
    print_share(r->of_layers);
    if (s->peer && r->peer > 0)
        printf(" %.1f | %.2f |", r->peer, r->of_peer);
    else if (s->peer)
        printf(" - | - |");
    printf("\n");
    fflush(stdout);
}

static void print_foot(const struct reached *all, int workers)
{
    printf("\n%d workers: %.0f to %.0f GFLOP/s in %s, %.0f to %.0f in %s; %.1f "
           "to %.1f GB/s of memory read and written by copies, %.1f to %.1f "
           "only read\n",
           workers, all->peak[0].least * 1e-9, all->peak[0].most * 1e-9,
           all->base[0], all->peak[1].least * 1e-9, all->peak[1].most * 1e-9,
           all->base[1], all->copy.least * 1e-9, all->copy.most * 1e-9,
           all->only_read.least * 1e-9, all->only_read.most * 1e-9);
}

/* ---- all of it ---------------------------------------------------------- */

static struct bench_settings settings_of(const struct bench_settings *all,
                                         const struct line *l)
{
    struct bench_settings s = *all;

    s.model = (char *)(uintptr_t)l->model;
    s.img_size = l->size;
    s.sub_batch = l->sub_batch;
    s.dtype = l->type == DDP_BF16;
    s.lanes = l->lanes;
    s.classes = l->classes;
    s.steps = STEPS;
    s.skip = 1;
    return s;
}

static int report_line(const struct bench_settings *all, const struct line *l,
                       struct reached *reached)
{
    struct bench_settings s = settings_of(all, l);
    struct rounds r;
    int rc = rounds_measure(&s, &r, reached);

    if (rc == app_exit_code(DDP_ENODEV) && l->type == DDP_BF16)
        return OPTS_GO; /* other lines need no bf16 */
    if (rc == OPTS_GO)
        print_line(&s, &r);
    return rc;
}

int bench_report_run(struct opts *o, struct bench_settings *s)
{
    struct reached reached = {0};
    int rc = OPTS_GO, found = 0;

    (void)o;
    for (int i = 0; i < LINES && rc == OPTS_GO; i++)
        if (is_wanted(s->models, lines[i].model)) {
            if (found++ == 0)
                print_head(s);
            rc = report_line(s, &lines[i], &reached);
        }
    if (!found) {
        app_say("--model: there is no line of such a network");
        return EXIT_USAGE;
    }
    if (rc == OPTS_GO && reached.base[0])
        print_foot(&reached, bench_workers(s->workers));
    return rc == OPTS_GO ? 0 : rc;
}
