/* load.c - "bench load": images read per second and core
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "ddp.h"
#include "common/app.h"
#include "common/cores.h"
#include "common/app_fail.h"
#include "load.h"
#include "measure.h"

#define OPT_STRUCT struct bench_settings
#include "common/opt_rows.h"

static const char *const splits[] = {"train", "val", "test", NULL};
static const char *const augments[] = {"none", "random", "shift", NULL};

static const struct opt_group options = {
    "Options",
    (const struct opt[]){
        TEXT("data", data, "DIR", NULL, "folder of images",
             .alias = "data-dir"),
        CHOICE("split", split, "NAME", "train", splits, "split of the data"),
        INT("img-size", img_size, "224", 1, 4096,
            "side of the square output, in pixels"),
        CHOICE("augment", augment, "HOW", "random", augments,
               "centre crop, random resized crop, or shifted crop"),
        TEXT("aa", policy, "POLICY", NULL,
             "random operations on the images, as imagenet train has them: "
             "ta_wide, ra, imagenet, augmix, rand-m9-mstd0.5-inc1"),
        NUM("seconds", seconds, "10", 0.1, 1e6, "minimum duration in seconds"),
        INT("threads", threads, "1", 1, 4096,
            "number of threads, each pinned to its own core"),
        END,
    },
};

const struct opt_command bench_load_command = {
    .name = "ddp-bench load",
    .about = "Read and decode images as training does; print one line of "
             "JSON.\n"
             "\n"
             "The files are read once beforehand, so that they come from "
             "memory. img_per_s_per_core is by CPU time of the threads, "
             "img_per_s by wall time; step_ms is the median time per image.",
    .plain = "data",
    .group = (const struct opt_group *const[]){&options, NULL},
};

enum { TIMES = 1 << 16 };

struct loader {
    ddp_dataset_t *data; /* not owned */
    pthread_t thread;
    double seconds, cpu_s, wall_s;
    int nth, of;
    int64_t images, bad;
    double *time; /* of the first TIMES images; owned */
    int rc;
};

/* Bring the files into the page cache. */
static void read_into_page_cache(const ddp_dataset_t *d)
{
    static char buf[1 << 16];

    for (int64_t i = 0; i < ddp_dataset_count(d); i++) {
        const char *path = ddp_dataset_path(d, i);
        FILE *f = path ? app_open_text(path) : NULL;

        while (f && fread(buf, 1, sizeof(buf), f) > 0)
            ;
        if (f)
            fclose(f);
    }
}

/* Whole passes over this thread's share of the images, so that each counts as
 * often as any other. */
static void load_pass(struct loader *l, void *x, uint64_t pass)
{
    int64_t count = ddp_dataset_count(l->data);

    for (int64_t i = l->nth; i < count && !l->rc; i += l->of) {
        uint64_t key = (pass + 1) * 0x9e3779b97f4a7c15u ^ (uint64_t)i;
        double t = app_thread_time();
        int32_t label;
        int rc = ddp_dataset_get(l->data, i, key, x, &label);

        if (l->images < TIMES)
            l->time[l->images] = app_thread_time() - t;
        if (rc == 0)
            l->images++;
        else if (rc == DDP_EDATA)
            l->bad++;
        else
            l->rc = app_fail(rc);
    }
}

static void *load_thread(void *arg)
{
    struct loader *l = arg;
    struct ddp_shape s = ddp_dataset_shape(l->data);
    void *x = malloc((size_t)s.h * (size_t)s.w * (size_t)s.c);
    double start = app_now(), cpu = app_thread_time();

    if (!x)
        l->rc = EXIT_MEMORY;
    app_pin(l->nth);
    for (uint64_t pass = 0; !l->rc && app_now() - start < l->seconds; pass++) {
        load_pass(l, x, pass);
        if (!l->images)
            break; /* all images are unreadable */
    }
    l->cpu_s = app_thread_time() - cpu;
    l->wall_s = app_now() - start;
    free(x);
    return NULL;
}

/* One line with the keys of ddp-bench train too, null where loading has no
 * such value, so that one reader can take both. */
static void print_json(const struct bench_settings *s, struct loader *l, int n)
{
    double per_core = 0, per_s = 0;
    int64_t images = 0, bad = 0;

    for (int i = 0; i < n; i++) {
        images += l[i].images;
        bad += l[i].bad;
        per_core += (double)l[i].images / l[i].cpu_s / n;
        per_s += (double)l[i].images / l[i].wall_s;
    }
    printf("{\"bench\":\"load\",\"data\":");
    app_json_text(stdout, s->data);
    printf(",\"img_size\":%lld,\"augment\":\"%s\",\"threads\":%d,"
           "\"images\":%lld,\"bad\":%lld,\"aa\":",
           (long long)s->img_size, augments[s->augment], n, (long long)images,
           (long long)bad);
    app_json_text(stdout, s->policy ? s->policy : "none");
    putchar(',');
    printf("\"img_per_s\":%.2f,\"img_per_s_per_core\":%.2f,\"step_ms\":%.4f,",
           per_s, per_core,
           1e3 * bench_median(l->time, l->images < TIMES ? l->images : TIMES));
    printf("\"start_s\":null,\"peak_share\":null,\"tasks\":null,\"sched_"
           "share\":null,"
           "\"peak_rss_mib\":%.1f,\"version\":",
           bench_peak_rss_mib());
    app_json_text(stdout, ddp_version());
    printf("}\n");
}

static int run_threads(const struct bench_settings *s, ddp_dataset_t *d,
                       struct loader *l, int n)
{
    int started = 0, rc = 0;

    for (int i = 0; i < n; i++) {
        l[i] = (struct loader){
            .data = d, .seconds = s->seconds, .nth = i, .of = n};
        if (!(l[i].time = calloc(TIMES, sizeof(double))))
            break;
        if (pthread_create(&l[i].thread, NULL, load_thread, &l[i]))
            break;
        started++;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(l[i].thread, NULL);
        rc = l[i].rc ? l[i].rc : rc;
    }
    if (started < n) {
        app_say("cannot start %d threads", n);
        return EXIT_MEMORY;
    }
    return rc;
}

static int measure_loading(const struct bench_settings *s, ddp_dataset_t *d)
{
    int n = (int)s->threads, rc;
    struct loader *l;

    if (n > ddp_dataset_count(d)) {
        app_say("--threads %d: there are fewer images", n);
        return EXIT_USAGE;
    }
    if (!(l = calloc((size_t)n, sizeof(*l))))
        return app_exit_code(DDP_ENOMEM);
    read_into_page_cache(d);
    if ((rc = run_threads(s, d, l, n)) == 0)
        print_json(s, l, n);
    for (int i = 0; i < n; i++)
        free(l[i].time);
    free(l);
    return rc;
}

static int check_data(const struct bench_settings *s)
{
    if (!s->data)
        app_say("--data DIR is missing");
    else if (!app_is_dir(s->data))
        app_say("--data: %s is not a folder", s->data);
    else
        return OPTS_GO;
    return EXIT_USAGE;
}

int bench_load_run(struct opts *o, struct bench_settings *s)
{
    static const enum ddp_split split[] = {DDP_TRAIN, DDP_VAL, DDP_TEST};
    static const enum ddp_augment augment[] = {
        DDP_AUGMENT_NONE, DDP_AUGMENT_RANDOM, DDP_AUGMENT_SHIFT};
    struct ddp_image_options images;
    ddp_dataset_t *d;
    int rc;

    if ((rc = check_data(s)) != OPTS_GO)
        return rc;
    (void)o;
    ddp_image_options_init(&images);
    images.size = (int)s->img_size;
    images.augment = augment[s->augment];
    images.max_bad = 1;
    if (s->policy && images.augment == DDP_AUGMENT_NONE) {
        app_say("--aa: --augment none changes nothing");
        return EXIT_USAGE;
    }
    if (s->policy && ddp_policy_parse(s->policy, &images.policy) < 0) {
        app_say("--aa: %s", ddp_errmsg());
        return EXIT_USAGE;
    }
    d = ddp_dataset_open(s->data, split[s->split], &images);
    if (!d)
        return app_fail(DDP_EDATA);
    rc = measure_loading(s, d);
    ddp_dataset_free(d);
    return rc;
}
