/* operations.c - "bench roof": what each operation takes, and could take
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdlib.h>
#include <string.h>

#include "ddp.h"
#include "common/app.h"
#include "common/app_fail.h"
#include "bench.h"
#include "operations.h"
#include "profile.h"
#include "roof.h"
#include "rows.h"
#include "runs.h"

static const char *const gpus[] = {"h200", "h100", "a100", NULL};

/* As their drivers describe them. */
static const struct ddp_gpu_info described[] = {
    {"NVIDIA H200", 90, 132, 1.98e9, 4.9e12},
    {"NVIDIA H100 80GB HBM3", 90, 132, 1.98e9, 3.35e12},
    {"NVIDIA A100-SXM4-80GB", 80, 108, 1.41e9, 2.04e12},
};

static const struct opt_group options = {
    "Options",
    (const struct opt[]){
        NETWORK_ROWS("resnet50"),
        SHAPE_ROWS,
        DTYPE_ROW("bf16", dtypes),
        SUB_BATCH_ROW("256"),
        INT("steps", steps, "5", 1, 1000, "steps to measure on a GPU"),
        INT("skip", skip, "1", 1, 1000, "warm-up steps before them"),
        CHOICE("gpu", gpu, "NAME", "h200", gpus,
               "the GPU of the limits, where there is none"),
        END,
    },
};

const struct opt_command bench_roof_command = {
    .name = "ddp-bench roof",
    .about =
        "Print the operations of a training step on a GPU as CSV, those that "
        "take longest first.\n"
        "\n"
        "times is how often an operation is in a step; mib and gflop are what "
        "one of them moves and computes, limit which of the two determines the "
        "least time, and limit_us that time. us is the median time on a GPU, "
        "and reached the limit relative to it; both are empty without a GPU. "
        "The last line, all, is the sum of the step.",
    .group = (const struct opt_group *const[]){&options, NULL},
};

/* ---- the table ---------------------------------------------------------- */

struct row {
    char name[160]; /* as in a profile */
    double times, flops, bytes;
    double limit_us, us; /* us 0: not measured */
};

struct table {
    struct row *row; /* owned */
    int rows, room;
    struct roof roof;
    bool no_memory;
};

static struct row *get_row(struct table *t, const char *name)
{
    for (int i = 0; i < t->rows; i++)
        if (strcmp(t->row[i].name, name) == 0)
            return &t->row[i];
    if (t->rows == t->room) {
        int room = t->room ? 2 * t->room : 64;
        struct row *more = realloc(t->row, (size_t)room * sizeof(*more));

        if (!more)
            return NULL;
        t->row = more;
        t->room = room;
    }
    t->row[t->rows] = (struct row){.times = 0};
    snprintf(t->row[t->rows].name, sizeof(t->row[0].name), "%s", name);
    return &t->row[t->rows++];
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static int add_operation(const struct ddp_operation *o, void *arg)
{
    struct table *t = arg;
    char name[sizeof(t->row->name)];
    struct row *r;

    snprintf(name, sizeof(name), "%s,%d,%s,%s", o->name, o->samples, o->type,
             o->shapes);
    if (!(r = get_row(t, name)))
        return t->no_memory = true;
    r->times++;
    r->flops = o->flops;
    r->bytes = o->bytes;
    r->limit_us =
        1e6 * larger(o->flops / t->roof.flops, o->bytes / t->roof.bytes);
    return 0;
}

/* Times of a GPU, also of operations that the model does not have. */
static int add_profile(struct table *t, const struct profile *p)
{
    for (int i = 0; i < p->rows; i++) {
        struct row *r = get_row(t, p->row[i].name);

        if (!r)
            return app_exit_code(DDP_ENOMEM);
        r->us = p->row[i].us;
        if (r->times == 0)
            r->times = p->row[i].times;
    }
    return OPTS_GO;
}

/* ---- printing ----------------------------------------------------------- */

static double all_us(const struct row *r)
{
    return r->times * (r->us > 0 ? r->us : r->limit_us);
}

static int compare_rows(const void *a, const void *b)
{
    double x = all_us(a), y = all_us(b);

    return (x < y) - (x > y);
}

/* Times and what they reach, or nothing. */
static void print_times(double limit_us, double us)
{
    printf("%.2f,", limit_us);
    if (us > 0)
        printf("%.2f,%.3f\n", us, limit_us / us);
    else
        printf(",\n");
}

static void print_row(const struct table *t, const struct row *r)
{
    bool by_flops = r->flops / t->roof.flops > r->bytes / t->roof.bytes;
    const char *shapes = r->name;

    for (int commas = 0; *shapes && commas < 3; shapes++)
        commas += *shapes == ',';
    printf("%.*s\"%s\",%g,%.6g,%.3f,%s,", (int)(shapes - r->name), r->name,
           shapes, r->times, r->bytes / (1 << 20), r->flops * 1e-9,
           by_flops ? "flops" : "bytes");
    print_times(r->limit_us, r->us);
}

static void print_table(struct table *t)
{
    struct row all = {.times = 0};

    qsort(t->row, (size_t)t->rows, sizeof(*t->row), compare_rows);
    printf("operation,samples,type,shapes,times,mib,gflop,limit,limit_us,us,"
           "reached\n");
    for (int i = 0; i < t->rows; i++) {
        const struct row *r = &t->row[i];

        print_row(t, r);
        all.times += r->times;
        all.bytes += r->times * r->bytes;
        all.flops += r->times * r->flops;
        all.limit_us += r->times * r->limit_us;
        all.us += r->times * r->us;
    }
    printf("all,,,\"%s\",%g,%.6g,%.3f,,", t->roof.base, all.times,
           all.bytes / (1 << 20), all.flops * 1e-9);
    print_times(all.limit_us, all.us);
}

/* ---- all of it ---------------------------------------------------------- */

static int make_table(const struct bench_settings *s, struct table *t)
{
    struct ddp_shape shape = {(int)s->img_size, (int)s->img_size, 3};
    struct ddp_optimizer o = ddp_momentum(0.01f, 0.9f);
    ddp_chain_t *model = bench_model(s);
    int rc;

    if (!model)
        return app_fail(ddp_errcode());
    rc = ddp_chain_operations(model, shape, bench_dtype(s), (int)s->sub_batch,
                              &o, add_operation, t);
    ddp_chain_free(model);
    if (t->no_memory)
        return app_exit_code(DDP_ENOMEM);
    return rc < 0 ? app_fail(rc) : OPTS_GO;
}

static int measure_table(const struct bench_settings *s, struct table *t)
{
    struct ddp_gpu_info gpu = described[s->gpu];
    struct profile p;
    int rc = bench_profile(s, &p, &gpu, NULL);

    if (rc == OPTS_GO) {
        roof_of(&t->roof, &gpu, 1, bench_dtype(s));
        rc = make_table(s, t);
    }
    if (rc == OPTS_GO)
        rc = add_profile(t, &p);
    profile_free(&p);
    return rc;
}

int bench_roof_run(struct opts *o, struct bench_settings *s)
{
    struct table t = {.row = NULL};
    int rc;

    (void)o;
    s->lanes = 1;
    s->batch = s->sub_batch;
    if ((rc = measure_table(s, &t)) == OPTS_GO) {
        print_table(&t);
        rc = 0;
    }
    free(t.row);
    return rc;
}
