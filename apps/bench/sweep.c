/* sweep.c - "ddp-bench sweep": the speed of training over sizes of images
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ddp.h"
#include "common/app.h"
#include "common/app_fail.h"
#include "limits.h"
#include "measure.h"
#include "peer.h"
#include "runs.h"
#include "sweep.h"

#define OPT_STRUCT struct bench_settings
#include "common/opt_rows.h"

static const struct opt_group options = {
    "Options",
    (const struct opt[]){
        TEXTS("model", models, "NAME",
              "network, again for each further one [resnet18, resnet50, "
              "mobilenet_v2, vgg11, densenet121, resnet9]"),
        WIDTHS("img-sizes", sizes, "N,N,...", "16,32,48,64,96,128,224,320",
               "sides of the square images, in pixels, in ascending order"),
        WIDTHS("sub-batches", sub_batches, "N,N,...", "1,4,16,64,256",
               "images processed together, in ascending order"),
        INT("classes", classes, "1000", 2, 1 << 24, "outputs of the networks",
            .alias = "num-classes"),
        CHOICE("dtype", dtype, "TYPE", "f32", dtypes,
               "type of the activations"),
        INT("workers", workers, NULL, 1, 4096,
            "CPU workers; STARPU_NCPU overrides it [one per core]",
            .letter = 'j'),
        TIME("seconds", seconds, "15:00", "time limit of all points"),
        NUM("point-seconds", point_seconds, "2", 0.01, 1e6,
            "time to measure a point; it takes one step at least, but is left "
            "out if that would take more than four times this"),
        TEXT("peer", peer, "COMMAND", NULL, PEER_HELP),
        TEXT("output", output, "FILE", NULL,
             "write the points to a CSV file, too"),
        END,
    },
};

const struct opt_command bench_sweep_command = {
    .name = "ddp-bench sweep",
    .about =
        "Train on images generated in advance, of several sizes and in "
        "several sub-batches; print a table for each network.\n"
        "\n"
        "A cell has the images per second, the GFLOP/s as ddp-bench train "
        "counts them for its peak_share, and the share of the floor as "
        "ddp-bench report counts it: what arithmetic and memory allow. An "
        "asterisk marks a cliff: both below half of the median of the cells "
        "next to it. (A small sub-batch has few GFLOP/s because it reads all "
        "weights for few images: the floor counts that.) With --peer, each "
        "cell has our speed relative to that program's at the same point, too, "
        "and a < marks what is below 1.2. A step has a sub-batch for each "
        "worker, and the first one of a point does not count. A point takes "
        "about one second more than --point-seconds, and with --peer as long "
        "again and what it needs to start. Where there is no figure, the last "
        "column of the CSV says why: "
        "the network does not take such images, the memory or the time does "
        "not suffice.",
    .group = (const struct opt_group *const[]){&options, NULL},
};

/* ---- points ------------------------------------------------------------- */

enum {
    SIDE = OPT_WIDTHS_MAX,
    STEPS = 20,
    LONGEST = 4, /* times point_seconds: a step */
    MOST_PIXELS = 4096
};

struct point {
    double img, flops; /* a second; 0: not measured */
    double floor;      /* the share of what the cores and memory allow */
    double peer;       /* images a second of --peer; 0: not measured */
    const char *note;  /* why we have no figure */
};

#define WANTED 1.2 /* times the peer's speed */

struct sweep {
    const char *model;
    int sizes, batches;
    const int *size, *batch;
    struct point point[SIDE][SIDE]; /* [size][batch] */
    double end;                     /* of app_now(): no further points */
    double point_seconds;
    struct limits limits;
    bool has_peer;
    int cliffs, behind; /* so far */
    FILE *csv;          /* NULL: none */
};

static int count_values(const int *list)
{
    int n = 0;

    while (list[n])
        n++;
    return n;
}

/* Of half the median of its neighbours or more it is as fast as they are. */
static bool is_low(const struct sweep *w, int i, int j,
                   double (*of)(const struct point *p))
{
    static const int step[][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};
    double next[4];
    int n = 0;

    for (int k = 0; k < 4; k++) {
        int y = i + step[k][0], x = j + step[k][1];

        if (y >= 0 && y < w->sizes && x >= 0 && x < w->batches &&
            w->point[y][x].flops > 0)
            next[n++] = of(&w->point[y][x]);
    }
    return of(&w->point[i][j]) < bench_median(next, n) / 2;
}

static double flops_of(const struct point *p)
{
    return p->flops;
}

static double floor_of(const struct point *p)
{
    return p->floor;
}

static bool is_cliff(const struct sweep *w, int i, int j)
{
    return w->point[i][j].flops > 0 && is_low(w, i, j, flops_of) &&
           is_low(w, i, j, floor_of);
}

/* Our speed relative to the peer's; 0: not known. */
static double ratio_of(const struct point *p)
{
    return p->peer > 0 ? p->img / p->peer : 0;
}

static bool is_behind(const struct point *p)
{
    return ratio_of(p) > 0 && ratio_of(p) < WANTED;
}

static const char refused[] = "the network does not take such images";

static const char *note_of(int code)
{
    if (code == DDP_EINVAL || code == DDP_ESHAPE)
        return refused;
    return code == DDP_ENOMEM ? "not enough memory" : "it failed";
}

/* What predicts a step's time: it is assumed to reach the same share of its
 * floor as the point before.  GFLOP/s would not do: they rise with the
 * sub-batch where weights are many. */
struct work {
    double lanes, share; /* of the point before; 0: none */
};

static double predict_seconds(const struct work *k, double limit, int sub_batch)
{
    double img_per_s = k->share * limit;

    return img_per_s > 0 ? k->lanes * sub_batch / img_per_s : 0;
}

static struct point measure(const struct sweep *w, struct bench_settings s,
                            struct work *k, int size, int sub_batch)
{
    struct bench_speed v;
    struct point p;
    double limit;
    int rc;

    if (app_now() > w->end)
        return (struct point){.note = "the time limit was reached"};
    s.model = (char *)w->model;
    s.img_size = size;
    s.sub_batch = sub_batch;
    if ((rc = limits_speed(&w->limits, &s, &limit)) < 0)
        return (struct point){.note = note_of(rc)};
    if (predict_seconds(k, limit, sub_batch) > LONGEST * w->point_seconds)
        return (struct point){.note = "a step would take too long"};
    if ((rc = bench_speed(&s, w->point_seconds, &v)) < 0)
        return (struct point){.note = note_of(rc)};
    p = (struct point){.img = v.img_per_s,
                       .flops = v.img_per_s * v.flops_per_img,
                       .floor = limit > 0 ? v.img_per_s / limit : 0};
    *k = (struct work){(double)v.batch / sub_batch, p.floor};
    if (s.peer)
        p.peer = peer_speed(&s, v.batch);
    return p;
}

/* What takes too much for one number of images will for more of them; but
 * batch norm may take several images where it does not take one. */
static void measure_points(struct sweep *w, const struct bench_settings *s)
{
    struct work k = {0, 0};

    for (int i = 0; i < w->sizes; i++) {
        bool full = false;

        for (int j = 0; j < w->batches; j++) {
            struct point *p = &w->point[i][j];

            *p = full ? p[-1] : measure(w, *s, &k, w->size[i], w->batch[j]);
            full = p->note && p->note != refused;
        }
    }
}

/* ---- printing ----------------------------------------------------------- */

static void print_cell(const struct sweep *w, int i, int j)
{
    const struct point *p = &w->point[i][j];

    if (p->flops > 0)
        printf("  %9.1f %7.1f %3.0f %%%c", p->img, p->flops * 1e-9,
               100 * p->floor, is_cliff(w, i, j) ? '*' : ' ');
    else
        printf("  %9s %7s %5s ", "-", "-", "-");
    if (w->has_peer && p->peer > 0)
        printf(" %5.2f%c", ratio_of(p), is_behind(p) ? '<' : ' ');
    else if (w->has_peer)
        printf(" %5s ", "-");
}

static void print_table(const struct sweep *w)
{
    printf("%s: img/s, GFLOP/s, floor%s\n%8s", w->model,
           w->has_peer ? ", times the peer's" : "", "");
    for (int j = 0; j < w->batches; j++)
        printf(" %*s%-2d", w->has_peer ? 30 : 23, "x", w->batch[j]);
    printf("\n");
    for (int i = 0; i < w->sizes; i++) {
        printf("%8d", w->size[i]);
        for (int j = 0; j < w->batches; j++)
            print_cell(w, i, j);
        printf("\n");
    }
    printf("\n");
    fflush(stdout);
}

static void print_csv(const struct sweep *w)
{
    for (int i = 0; i < w->sizes; i++)
        for (int j = 0; j < w->batches; j++) {
            const struct point *p = &w->point[i][j];

            fprintf(w->csv, "%s,%d,%d,", w->model, w->size[i], w->batch[j]);
            if (p->flops > 0)
                fprintf(w->csv, "%.2f,%.3f,%.3f,%d,", p->img, p->flops * 1e-9,
                        p->floor, is_cliff(w, i, j));
            else
                fprintf(w->csv, ",,,,%s", p->note);
            if (w->has_peer && p->peer > 0)
                fprintf(w->csv, ",%.2f", p->peer);
            else if (w->has_peer)
                fprintf(w->csv, ",");
            fprintf(w->csv, "\n");
        }
}

static void count_marks(struct sweep *w)
{
    for (int i = 0; i < w->sizes; i++)
        for (int j = 0; j < w->batches; j++) {
            w->cliffs += is_cliff(w, i, j);
            w->behind += is_behind(&w->point[i][j]);
        }
}

/* ---- all of it ---------------------------------------------------------- */

static int sweep_models(struct sweep *w, const struct bench_settings *s)
{
    static const char *const usual[] = {
        "resnet18", "resnet50", "mobilenet_v2", "vgg11", "densenet121",
        "resnet9",  NULL};
    const char *const *model =
        s->models ? (const char *const *)s->models : usual;

    for (; *model; model++) {
        w->model = *model;
        measure_points(w, s);
        print_table(w);
        if (w->csv)
            print_csv(w);
        count_marks(w);
    }
    printf("cliffs: %d\n", w->cliffs);
    if (w->has_peer)
        printf("below %.1f times the peer: %d\n", WANTED, w->behind);
    return 0;
}

/* What is wrong everywhere would fail at every point. */
static int check_settings(const struct bench_settings *s)
{
    for (const int *size = s->sizes; *size; size++)
        if (*size > MOST_PIXELS) {
            app_say("--img-sizes: %d: at most %d", *size, MOST_PIXELS);
            return EXIT_USAGE;
        }
    for (char **m = s->models; m && *m; m++) {
        struct ddp_image_options unused;

        ddp_image_options_init(&unused);
        if (ddp_model_image_options(*m, &unused) < 0) {
            app_fail(DDP_EINVAL);
            return EXIT_USAGE;
        }
    }
    return OPTS_GO;
}

static int close_csv(struct sweep *w, const char *path, int rc)
{
    bool bad = ferror(w->csv);

    if (fclose(w->csv) || bad) {
        app_say("%s: cannot be written: %s", path, strerror(errno));
        return EXIT_WRITE;
    }
    return rc;
}

int bench_sweep_run(struct opts *o, struct bench_settings *s)
{
    struct sweep w = {.sizes = count_values(s->sizes),
                      .batches = count_values(s->sub_batches),
                      .size = s->sizes,
                      .batch = s->sub_batches,
                      .end = app_now() + s->seconds,
                      .point_seconds = s->point_seconds,
                      .has_peer = s->peer};
    int rc = check_settings(s);

    (void)o;
    if (rc != OPTS_GO ||
        (rc = limits_measure(&w.limits, bench_workers(s->workers))) != OPTS_GO)
        return rc;
    if (s->output && !(w.csv = fopen(s->output, "w"))) {
        app_say("%s: %s", s->output, strerror(errno));
        return EXIT_WRITE;
    }
    if (w.csv)
        fprintf(w.csv,
                "model,img_size,sub_batch,img_per_s,gflop_per_s,floor,"
                "cliff,note%s\n",
                w.has_peer ? ",peer_img_per_s" : "");
    s->steps = STEPS;
    s->skip = 1;
    rc = sweep_models(&w, s);
    return w.csv ? close_csv(&w, s->output, rc) : rc;
}
