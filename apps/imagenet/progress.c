/* progress.c - the progress line of a training run, and of other long work
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "common/app.h"
#include "common/app_log.h"
#include "common/app_rank.h"
#include "progress.h"

static const double draw_s = 0.1, line_s = 10, work_s = 1;

/* Above this share of the workers' time, a hint about the input is printed. */
static const double much_data = 0.15;
enum { HINT_STEP = 20 };

static bool never;

void progress_never(void)
{
    never = true;
}

static bool can_draw(void)
{
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

    return !never && isatty(STDERR_FILENO) && term && strcmp(term, "dumb") &&
           !(no && *no);
}

void progress_begin(struct progress *p, int64_t log_every, int64_t epoch_steps,
                    bool lines)
{
    *p = (struct progress){
        .draw = can_draw(),
        .log_every = log_every,
        .epoch_steps = epoch_steps,
    };
    p->lines = lines || !p->draw || !isatty(STDOUT_FILENO);
}

/* Epoch of the last step done, from 1, and how much of it is done. */
static int64_t epoch_of(int64_t step, int64_t epoch_steps, double *share)
{
    int64_t whole = step > 0 ? (step - 1) / epoch_steps : 0;

    *share = (double)(step - whole * epoch_steps) / (double)epoch_steps;
    return whole + 1;
}

/* ---- the drawn line ----------------------------------------------------- */

/* Append a field if it fits; after one that did not fit, none is appended. */
static void append_field(char *buf, size_t size, int width, bool *full,
                         const char *text)
{
    size_t n = strlen(buf), gap = n ? 2 : 0;

    if (*full || (int)(n + gap + strlen(text)) > width ||
        n + gap + strlen(text) + 1 > size) {
        *full = true;
        return;
    }
    snprintf(buf + n, size - n, "%s%s", gap ? "  " : "", text);
}

static void bar(char *text, size_t size, double share)
{
    enum { CELLS = 10 };
    int done = (int)(share * CELLS + 1e-9), n;

    n = snprintf(text, size, "%3d%% |", (int)(share * 100 + 1e-9));
    for (int i = 0; i < CELLS; i++)
        n += snprintf(text + n, size - (size_t)n, i < done ? "#" : "-");
    snprintf(text + n, size - (size_t)n, "|");
}

/* The most important fields come first: where the terminal is narrow, the
 * last ones are left out. */
void progress_format(char *buf, size_t size, int width, int64_t epoch_steps,
                     const struct ddp_progress *now)
{
    char text[64], eta[32];
    bool full = false;
    double share;
    long long epoch = epoch_of(now->step, epoch_steps, &share);

    *buf = 0;
    snprintf(text, sizeof(text), "epoch %lld/%lld", epoch,
             (long long)now->epochs);
    append_field(buf, size, width, &full, text);
    bar(text, sizeof(text), share);
    append_field(buf, size, width, &full, text);
    snprintf(text, sizeof(text), "loss %.3f", now->epoch_mean.loss);
    append_field(buf, size, width, &full, text);
    snprintf(text, sizeof(text), "top1 %.1f", 100 * now->epoch_mean.top1);
    append_field(buf, size, width, &full, text);
    snprintf(text, sizeof(text), "%.0f img/s", now->samples_per_s);
    append_field(buf, size, width, &full, text);
    snprintf(text, sizeof(text), "eta %s",
             app_duration(now->eta_s, eta, sizeof(eta)));
    append_field(buf, size, width, &full, text);
    snprintf(text, sizeof(text), "lr %.3g", now->lr);
    append_field(buf, size, width, &full, text);
    snprintf(text, sizeof(text), "data %.0f%%", 100 * now->data_share);
    append_field(buf, size, width, &full, text);
}

static int screen_width(void)
{
    struct winsize w;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0)
        return w.ws_col - 1; /* the last column may wrap */
    return 79;
}

static void draw_line(struct progress *p, const struct ddp_progress *now)
{
    char buf[256];

    progress_format(buf, sizeof(buf), screen_width(), p->epoch_steps, now);
    fprintf(stderr, "\r%s\033[K", buf);
    fflush(stderr);
    p->drawn = app_now();
    p->on_screen = true;
}

void progress_clear(struct progress *p)
{
    if (!p->on_screen)
        return;
    fprintf(stderr, "\r\033[K");
    fflush(stderr);
    p->on_screen = false;
}

/* ---- plain lines -------------------------------------------------------- */

void progress_line(char *buf, size_t size, int64_t epoch_steps, double loss,
                   double top1, const struct ddp_progress *now)
{
    char eta[32], clock[32] = "";
    double share;
    long long epoch = epoch_of(now->step, epoch_steps, &share);
    time_t t = time(NULL);
    struct tm tm;

    if (localtime_r(&t, &tm))
        strftime(clock, sizeof(clock), "%Y-%m-%dT%H:%M:%S%z", &tm);
    snprintf(buf, size,
             "step=%lld loss=%.4f img/s=%.1f data=%.1f%% epoch=%lld/%lld "
             "top1=%.2f lr=%.6g eta=%s time=%s",
             (long long)now->step, loss, now->samples_per_s,
             100 * now->data_share, epoch, (long long)now->epochs, 100 * top1,
             now->lr, app_duration(now->eta_s, eta, sizeof(eta)), clock);
}

void progress_flush(struct progress *p, const struct ddp_progress *now)
{
    struct ddp_progress smooth = *now;
    double n = (double)p->samples;
    char buf[320];

    if (!p->samples)
        return;
    smooth.data_share = p->data_share;
    progress_line(buf, sizeof(buf), p->epoch_steps, p->sum_loss / n,
                  p->sum_top1 / n, &smooth);
    if (p->lines) {
        progress_clear(p);
        app_print("%s\n", buf);
    } else {
        app_log(buf);
    }
    p->sum_loss = p->sum_top1 = 0;
    p->samples = 0;
    p->printed = app_now();
    p->printed_step = now->step;
}

static void print_hint(struct progress *p, const struct ddp_progress *now)
{
    if (p->hinted || now->step < HINT_STEP || p->data_share < much_data)
        return;
    p->hinted = true;
    progress_clear(p);
    app_say("reading and decoding images takes %.0f%% of the workers' time; "
            "image files close to --img-size would reduce it",
            100 * p->data_share);
}

void progress_step(struct progress *p, const struct ddp_progress *step)
{
    double t = app_now(), n = (double)step->now.samples;
    struct ddp_progress smooth = *step, *now = &smooth;
    bool due;

    p->data_share += (now->data_share - p->data_share) *
                     (now->step > 10 ? 0.1 : 1 / (double)now->step);
    now->data_share = p->data_share;
    if (!now->now.skipped) {
        p->sum_loss += n * now->now.loss;
        p->sum_top1 += n * now->now.top1;
        p->samples += now->now.samples;
    }
    print_hint(p, now);
    due = p->log_every ? now->step - p->printed_step >= p->log_every
                       : now->step == 1 || t - p->printed >= line_s;
    if (due)
        progress_flush(p, now);
    if (p->draw && t - p->drawn >= draw_s)
        draw_line(p, now);
}

/* ---- other work --------------------------------------------------------- */

void work_begin(struct work *w, const char *what, bool busy)
{
    *w = (struct work){
        .what = what,
        .unit = "images",
        .draw =
            can_draw() && app_rank() == 0 && !(busy && isatty(STDOUT_FILENO)),
        .begin = app_now(),
    };
}

void work_format(char *buf, size_t size, int width, const struct work *w,
                 int64_t done, int64_t count, double seconds)
{
    double rate = seconds > 0 ? (double)done / seconds : 0;
    char text[96], eta[32];
    bool full = false;

    *buf = 0;
    append_field(buf, size, width, &full, w->what);
    bar(text, sizeof(text), count ? (double)done / (double)count : 1);
    append_field(buf, size, width, &full, text);
    snprintf(text, sizeof(text), "eta %s",
             rate > 0
                 ? app_duration((double)(count - done) / rate, eta, sizeof(eta))
                 : "?");
    append_field(buf, size, width, &full, text);
    snprintf(text, sizeof(text), "%lld/%lld %s", (long long)done,
             (long long)count, w->unit);
    append_field(buf, size, width, &full, text);
    snprintf(text, sizeof(text), "%.0f %s/s", rate, w->unit);
    append_field(buf, size, width, &full, text);
}

void work_count(int64_t done, int64_t count, void *work)
{
    struct work *w = work;
    double now = app_now();
    char buf[256];

    if (!w->draw || now - w->begin < work_s || now - w->drawn < draw_s)
        return;
    work_format(buf, sizeof(buf), screen_width(), w, done, count,
                now - w->begin);
    fprintf(stderr, "\r%s\033[K", buf);
    fflush(stderr);
    w->drawn = now;
    w->on_screen = true;
}

void work_clear(struct work *w)
{
    if (!w->on_screen)
        return;
    fprintf(stderr, "\r\033[K");
    fflush(stderr);
    w->on_screen = false;
}
