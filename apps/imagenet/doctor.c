/* doctor.c - "imagenet doctor": whether training will work here, and how
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "common/app_peer.h"
#include "common/cores.h"
#include "doctor.h"
#include "doctor_limits.h"
#include "doctor_machine.h"
#include "doctor_ranks.h"
#include "doctor_report.h"
#include "doctor_test.h"
#include "options.h"
#include "split.h"

/* What is left of a context once it is closed. */
struct devices {
    int workers, gpu_workers, gpus, ranks;
    char why_not[512]; /* GPUs that are not used */
};

static void print_versions(void)
{
    report_line("version", "%s", ddp_version());
#ifndef HAVE_ONEDNN
    report_line("oneDNN", "not in this build: plain C is much slower");
#endif
#ifdef HAVE_CUDA
    report_line("CUDA", "kernels for CUDA %s and cuDNN %s", DDP_CUDA_MAJOR_TEXT,
                DDP_CUDNN_MAJOR_TEXT);
#else
    report_line("CUDA", "not in this build");
#endif
    if (*BUILT_WITH_MPI)
        report_line("MPI", "module built with version %s", BUILT_WITH_MPI);
    else
        report_line("MPI", "not in this build: one process only");
}

/* ---- devices ------------------------------------------------------------ */

/* The machine as libddp sees it, and what the user has chosen, are no faults.
 */
static bool is_fact(const char *note)
{
    return isdigit((unsigned char)*note) || !strncmp(note, "STARPU_", 7);
}

/* The line on the devices, of which every part is one of ours: what is used,
 * then notes on what is not. */
static void print_devices(struct report *r, const ddp_t *ddp, struct devices *d)
{
    static const char no_gpus[] = "GPUs not used: ";
    char *text = strdup(ddp_describe(ddp)), *end;
    bool first = true;

    for (char *s = text; s; s = end, first = false) {
        if ((end = strstr(s, "; "))) {
            *end = '\0';
            end += 2;
        }
        if (first)
            report_line("devices", "%s", s);
        else if (!strncmp(s, no_gpus, strlen(no_gpus)))
            snprintf(d->why_not, sizeof(d->why_not), "%s", s + strlen(no_gpus));
        else if (is_fact(s))
            report_line("note", "%s", s);
        else
            report_warning(r, "%s", s);
    }
    free(text);
}

static void print_gpu(const ddp_t *ddp)
{
    struct ddp_gpu_info g;

    if (ddp_gpu_count(ddp, &g) > 0)
        report_line("first gpu", "%s, architecture %d, %d units", g.name,
                    g.architecture, g.units);
}

static const char *backend_of(const struct settings *s)
{
    return s->backend ? "ref" : "cpu";
}

static ddp_t *open_devices(struct report *r, const struct settings *s)
{
    struct ddp_config cfg;
    ddp_t *ddp;

    ddp_config_init(&cfg);
    if (s->workers)
        cfg.cpus = (int)s->workers;
    cfg.backend = backend_of(s);
    cfg.peer_timeout = (double)s->peer_timeout;
    cfg.on_peer_lost = app_peer_lost;
    if (!(ddp = ddp_init(&cfg)))
        report_problem(r, app_exit_code(ddp_errcode()), "%s", ddp_errmsg());
    return ddp;
}

/* Start the devices and train on them.  Every rank takes part. */
static void check_devices(struct report *r, const struct settings *s,
                          struct devices *d, struct doctor_weights *w)
{
    ddp_t *ddp = open_devices(r, s);
    int rc;

    if (!ddp)
        return;
    d->workers = ddp_worker_count(ddp);
    d->gpu_workers = ddp_gpu_worker_count(ddp);
    d->gpus = ddp_gpu_count(ddp, NULL);
    d->ranks = ddp_rank_count(ddp);
    print_devices(r, ddp, d);
    print_gpu(ddp);
    doctor_ranks(r, ddp);
    rc = doctor_train(ddp, w);
    if (rc < 0)
        report_problem(r, app_exit_code(rc), "self-test on all devices: %s",
                       ddp_errmsg());
    else
        report_line("self-test on all devices",
                    "weights crc32c:%08x, %.2f seconds", w->crc, w->seconds);
    ddp_finish(ddp);
}

/* ---- advice ------------------------------------------------------------- */

static void advise(struct report *r, const struct settings *s,
                   const struct devices *d, bool bf16)
{
    int devices = d->workers * d->ranks;
    struct split split = {0};

    split_choose(&split, devices, INT64_MAX, false);
    report_line("advice",
                "train chooses --batch-size %lld --sub-batch %lld --lanes %lld "
                "for %d device%s",
                (long long)split.batch, (long long)split.sub_batch,
                (long long)split.lanes, devices, devices == 1 ? "" : "s");
    if (d->ranks > 1)
        doctor_lanes((int)split.lanes, d->ranks);
    if (d->gpu_workers)
        report_line("advice", "--dtype bf16 or f16 is faster on GPUs");
    else if (bf16)
        report_line("advice", "--dtype bf16 is faster on this processor");
    if (!d->gpu_workers && d->ranks == 1 && d->workers < app_cores())
        report_warning(r, "%d worker%s use%s %d of %d cores; %s", d->workers,
                       d->workers == 1 ? "" : "s", d->workers == 1 ? "s" : "",
                       d->workers, app_cores(),
                       s->workers ? "--workers sets that"
                                  : "STARPU_NCPU or StarPU's limit sets that");
}

static int conclude(const struct report *r)
{
    if (r->problems)
        report_line("result", "training will not work here: %d problem%s",
                    r->problems, r->problems == 1 ? "" : "s");
    else if (r->warnings)
        report_line("result", "training will work, with %d warning%s",
                    r->warnings, r->warnings == 1 ? "" : "s");
    else
        report_line("result", "training will work");
    return r->rc;
}

int doctor_run(struct opts *o, struct settings *s)
{
    struct devices d = {.ranks = 1};
    struct doctor_weights w = {0};
    struct report r = {0};
    bool bf16;

    (void)o;
    print_versions();
    doctor_machine(&r);
    bf16 = doctor_bf16();
    doctor_limits(&r);
    doctor_folders(&r, s->output);
    doctor_environment();
    check_devices(&r, s, &d, &w);
    doctor_gpus(&r, d.gpus, d.why_not);
    if (w.after && d.ranks == 1)
        doctor_compare(&r, &w, backend_of(s), d.workers, d.gpu_workers);
    if (d.workers)
        advise(&r, s, &d, bf16);
    doctor_weights_free(&w);
    return conclude(&r);
}
