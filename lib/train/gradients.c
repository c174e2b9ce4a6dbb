/* gradients.c - a step in two halves: its gradients, then its update
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"
#include "train/metrics.h"
#include "train/steps.h"

static int run_gradients(struct ddp_trainer *t, struct ddp_metrics *m)
{
    struct ddp__result r = {.step = -1};
    int rc;

    if ((rc = ddp__trainer_drain(t, &r)) == 0 &&
        (rc = ddp__trainer_submit_next(t, false)) == 0)
        rc = ddp__trainer_drain(t, &r);
    if (rc < 0) {
        t->gradients = false;
        return rc;
    }
    if (m)
        *m = ddp__metrics(r.stats);
    return 0;
}

int ddp_trainer_gradients(ddp_trainer_t *t, struct ddp_metrics *m)
{
    int rc = ddp__trainer_check(t);

    if (rc < 0)
        return rc;
    ddp__status_enter(&t->ddp->status, DDP_PHASE_TRAINING);
    rc = run_gradients(t, m);
    ddp__status_enter(&t->ddp->status, DDP_PHASE_PROGRAM);
    return rc;
}

static int need_gradients(const struct ddp_trainer *t)
{
    int rc = ddp__trainer_check(t);

    return rc < 0 || t->gradients
               ? rc
               : ddp__fail(DDP_EINVAL, "there are no gradients: call "
                                       "ddp_trainer_gradients() first");
}

/* Of a step that waits for its update, or was made and has kept them. */
static int need_sums(const struct ddp_trainer *t)
{
    int rc = ddp__trainer_check(t);

    if (rc == 0 && t->cfg.keep_gradients && t->reported > t->begun &&
        t->reported == t->submitted)
        return 0;
    return need_gradients(t);
}

/* With gradients, of such a step. */
static int need_divisor(const struct ddp_trainer *t, int rc)
{
    if (rc < 0 || t->divisor != 0)
        return rc;
    return ddp__fail(DDP_EINVAL, "the step had no samples, so it has no "
                                 "gradients");
}

int ddp_trainer_get_gradient(ddp_trainer_t *t, const char *name, float *out,
                             size_t len)
{
    int rc = need_divisor(t, need_sums(t));

    return rc < 0 ? rc
                  : ddp__engine_gradient(t->engine, name, out, len, t->divisor);
}

int ddp_trainer_set_gradient(ddp_trainer_t *t, const char *name,
                             const float *in, size_t len)
{
    int rc = need_divisor(t, need_gradients(t));

    return rc < 0
               ? rc
               : ddp__engine_set_gradient(t->engine, name, in, len, t->divisor);
}

int ddp_trainer_update(ddp_trainer_t *t)
{
    struct ddp__result r;
    struct ddp__step s;
    int rc = need_gradients(t);

    if (rc < 0 || (rc = ddp__trainer_need_optimizer(t)) < 0)
        return rc;
    s = ddp__step_of(t, t->submitted - 1, true);
    t->gradients = false;
    if ((rc = ddp__engine_update(t->engine, &s)) < 0 ||
        (rc = ddp__engine_wait(t->engine, s.number, &r)) < 0)
        return ddp__trainer_settle(t, rc);
    return ddp__trainer_note_skips(t, &r);
}
