/* status.c - what this process is doing, for the other ranks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/clock.h"
#include "runtime/status.h"

/* Reading a sample for longer, in seconds, is a phase of its own. */
#define LONG_READ 1.0

const char *ddp_phase_name(enum ddp_phase phase)
{
    static const char *const name[] = {
        [DDP_PHASE_PROGRAM] = "in the program",
        [DDP_PHASE_TRAINING] = "training",
        [DDP_PHASE_READING] = "reading input",
        [DDP_PHASE_EVALUATING] = "evaluating",
        [DDP_PHASE_SAVING] = "saving a checkpoint",
        [DDP_PHASE_ENDED] = "ended",
    };

    return (unsigned)phase < sizeof(name) / sizeof(*name) ? name[phase] : "";
}

void ddp__status_init(struct ddp__status *s)
{
    *s = (struct ddp__status){.since = ddp__clock()};
    pthread_mutex_init(&s->lock, NULL);
}

void ddp__status_fini(struct ddp__status *s)
{
    pthread_mutex_destroy(&s->lock);
}

enum ddp_phase ddp__status_enter(struct ddp__status *s, enum ddp_phase phase)
{
    enum ddp_phase before;

    pthread_mutex_lock(&s->lock);
    before = s->phase;
    s->phase = phase;
    s->since = ddp__clock();
    if (phase == DDP_PHASE_TRAINING && s->begun == 0)
        s->begun = s->stepped = s->since;
    pthread_mutex_unlock(&s->lock);
    return before;
}

void ddp__status_step(struct ddp__status *s, int64_t step, double loss)
{
    double now = ddp__clock();

    pthread_mutex_lock(&s->lock);
    s->step = step;
    s->loss = loss;
    s->step_s = now - s->stepped;
    s->since = s->stepped = now;
    pthread_mutex_unlock(&s->lock);
}

void ddp__status_wait(struct ddp__status *s, double seconds)
{
    pthread_mutex_lock(&s->lock);
    s->waited_s += seconds;
    pthread_mutex_unlock(&s->lock);
}

void ddp__status_read(struct ddp__status *s, int readers)
{
    atomic_store(&s->read_at, ddp__clock());
    atomic_fetch_add(&s->readers, readers);
}

void ddp__status_get(struct ddp__status *s, struct ddp_rank_status *out)
{
    double now = ddp__clock(), reading = now - atomic_load(&s->read_at);

    pthread_mutex_lock(&s->lock);
    *out = (struct ddp_rank_status){
        .phase = s->phase,
        .phase_s = now - s->since,
        .step = s->step,
        .loss = s->loss,
        .step_s = s->step_s,
        .wait_share = s->begun > 0 ? s->waited_s / (now - s->begun) : 0,
    };
    pthread_mutex_unlock(&s->lock);
    if (atomic_load(&s->readers) > 0 && reading > LONG_READ) {
        out->phase = DDP_PHASE_READING;
        out->phase_s = reading;
    }
}
