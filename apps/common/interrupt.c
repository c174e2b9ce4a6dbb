/* interrupt.c - why a run should end early: a signal, or a time limit
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "common/app.h"
#include "common/app_peer.h"
#include "common/interrupt.h"

static volatile sig_atomic_t noted;

static const struct {
    int number;
    const char *name;
} signals[] = {{SIGINT, "SIGINT"},
               {SIGTERM, "SIGTERM"},
               {SIGHUP, "SIGHUP"},
               {SIGUSR1, "SIGUSR1"},
               {SIGUSR2, "SIGUSR2"}};
enum { SIGNALS = sizeof(signals) / sizeof(signals[0]) };

static struct {
    double end; /* by app_now(); 0: no limit */
    double save_s, step_s;
    bool reached;
} limit;

static unsigned grace; /* seconds; 0: no end */

static void (*_Atomic on_signal)(void *arg);
static void *signal_arg; /* not owned */

static void note_signal(int sig)
{
    if (noted) {
        signal(sig, SIG_DFL);
        raise(sig); /* delivered when this returns */
    }
    noted = sig;
    if (on_signal)
        on_signal(signal_arg);
    if (!app_peer_is_lost())
        alarm(grace);
}

void interrupt_catch(unsigned grace_s, void (*call)(void *arg), void *arg)
{
    struct sigaction a = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
    struct sigaction before;

    grace = grace_s;
    signal_arg = arg;
    on_signal = call;
    signal(SIGALRM, SIG_DFL);
    sigemptyset(&a.sa_mask);
    for (int i = 0; i < SIGNALS; i++)
        if (signals[i].number != SIGHUP ||
            sigaction(SIGHUP, NULL, &before) < 0 ||
            before.sa_handler != SIG_IGN) /* nohup */
            sigaction(signals[i].number, &a, NULL);
}

void interrupt_finish(void)
{
    on_signal = NULL;
    signal(SIGTERM, SIG_IGN);
}

void interrupt_limit(double limit_s, double save_s)
{
    limit.end = limit_s > 0 ? app_started() + limit_s : 0;
    limit.save_s = save_s;
}

/* The longest recent step: older ones count less and less. */
void interrupt_stepped(double seconds)
{
    limit.step_s *= 0.9;
    if (seconds > limit.step_s)
        limit.step_s = seconds;
}

/* Two more steps may be in flight when one ends; saving may take twice as long
 * as expected. */
static bool time_is_up(void)
{
    double room = 1 + 2 * limit.step_s + 2 * limit.save_s;

    return limit.end > 0 && app_now() + room >= limit.end;
}

bool interrupt_wanted(void)
{
    if (!noted && !limit.reached)
        limit.reached = time_is_up();
    return noted || limit.reached;
}

const char *interrupt_reason(void)
{
    for (int i = 0; i < SIGNALS; i++)
        if (noted == signals[i].number)
            return signals[i].name;
    return limit.reached ? "--time-limit" : "another rank";
}
