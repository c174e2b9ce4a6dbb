/* test_checkpoint.c - a run that resumes from a checkpoint is the same run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_run.h"
#include "defaults.h"
#include "graph/graph.h"
#include "runtime/context.h"
#include "tap.h"
#include "train/trainer.h"

/* ---- resuming ----------------------------------------------------------- */

/* Stopped at the given steps, one run each. */
static void test_bits(struct ddp_optimizer o, const char *name, int stops,
                      const int *at)
{
    struct run r = usual();
    struct ddp_checkpoint c;
    uint32_t want;

    r.cfg.optimizer = o;
    want = undisturbed(r);
    r.cfg.checkpoint.dir = dir;
    for (int i = 0; i < stops; i++) {
        struct run cut = r;

        clean();
        cut.stop_at = at[i];
        ok(begin(&cut) && ddp_trainer_train(cut.trainer) == DDP_ESTOPPED &&
               ddp_trainer_checkpoint(cut.trainer) == 0,
           "%s: stopped at step %d, with a checkpoint", name, at[i]);
        end(&cut);
        is_int(resume(r, &c), want, "%s: the weights are those of one run",
               name);
        ok(c.step >= at[i] && c.step < STEPS, "%s: it resumed from step %d",
           name, (int)c.step);
    }
}

/* A third state; a product over all steps, which the step number must give. */
static void test_adam_variants(void)
{
    struct ddp_optimizer o = ddp_adam(0.01f);
    const int stop = 5;

    o.kind = DDP_AMSGRAD;
    test_bits(o, "amsgrad", 1, &stop);
    o.kind = DDP_NADAM;
    test_bits(o, "nadam", 1, &stop);
    o.lookahead = 4;
    o.clip_unit = 0.02f;
    test_bits(o, "nadam, lookahead, outputs clipped", 1, &stop);
}

/* Byte by byte: state of the optimizer, and the metrics of the epoch. */
static void test_state(void)
{
    struct run whole = usual(), part = usual();
    char once[512];

    clean();
    whole.cfg.checkpoint.dir = part.cfg.checkpoint.dir = dir;
    begin(&whole);
    ddp_trainer_train(whole.trainer);
    end(&whole);
    snprintf(once, sizeof(once), "%s/once", top);
    shell("rm -rf '%s'; mv '%s' '%s'", once, dir, once);
    part.stop_at = 7;
    begin(&part);
    ddp_trainer_train(part.trainer);
    ddp_trainer_checkpoint(part.trainer);
    end(&part);
    part.stop_at = 0;
    begin(&part);
    is_int(ddp_trainer_resume(part.trainer, NULL, NULL), 1, "it resumes");
    is_int(ddp_trainer_resume(part.trainer, NULL, NULL), DDP_EINVAL,
           "a trainer under way cannot resume from elsewhere");
    ddp_trainer_train(part.trainer);
    is_int(part.epochs_reported, EPOCHS, "each epoch is reported once");
    ok(part.epoch_loss == whole.epoch_loss,
       "the mean of an epoch has the steps before and after");
    end(&part);
    for (int i = 0; i < 2; i++) {
        const char *file = i ? "optim.safetensors" : "model.safetensors";
        char cmd[1200];

        snprintf(cmd, sizeof(cmd), "cmp -s '%s/latest/%s' '%s/latest/%s'", dir,
                 file, once, file);
        is_int(system(cmd), 0, "the same bytes in %s", file);
    }
    shell("rm -rf '%s'", once);
}

/* A stop between the last step of an epoch and its callback. */
static void test_epoch_told_once(void)
{
    struct run r = usual();

    clean();
    r.cfg.checkpoint.dir = dir;
    r.stop_at = 6;
    begin(&r);
    is_int(ddp_trainer_train(r.trainer), DDP_ESTOPPED,
           "stopped as an epoch ends");
    is_int(r.epochs_reported, 1, "its callback was not called");
    ddp_trainer_checkpoint(r.trainer);
    end(&r);
    r.stop_at = 0;
    r.epochs_reported = 0;
    begin(&r);
    ddp_trainer_resume(r.trainer, NULL, NULL);
    finish(&r);
    is_int(r.epochs_reported, 3, "it is called when the run resumes");
}

static void test_own_loop(void)
{
    struct run r = usual();
    uint32_t want = undisturbed(r);
    struct ddp_checkpoint c;

    clean();
    r.cfg.checkpoint.dir = dir;
    begin(&r);
    for (int i = 0; i < 4; i++)
        ddp_trainer_step(r.trainer, NULL);
    is_int(ddp_trainer_checkpoint(r.trainer), 0, "a checkpoint in one's loop");
    end(&r);
    is_int(resume(r, &c), want, "ddp_trainer_train() continues from it");
    is_int(c.step, 4, "from the step submitted last");
}

/* ---- which there are ---------------------------------------------------- */

static void test_kept(void)
{
    struct run r = usual();
    uint32_t want = undisturbed(r);
    struct ddp_checkpoint c;

    clean();
    r.cfg.checkpoint =
        (struct ddp_checkpoint_config){.dir = dir, .steps = 1, .keep = 2};
    begin(&r);
    is_int(finish(&r), want, "checkpoints change no weight");
    ok(there("step-000000000011") && there("step-000000000012") &&
           !there("step-000000000010"),
       "the newest are kept");
    ok(there("latest/model.safetensors") && !there("best"),
       "latest leads to one of them; nothing was evaluated");
    clean();
    r.cfg.checkpoint.keep_epochs = 2;
    r.cfg.checkpoint.steps = 0;
    r.evaluates = true;
    begin(&r);
    finish(&r);
    ok(there("step-000000000006") && there("step-000000000012"),
       "those of every other epoch are kept");
    ok(there("best/model.safetensors"), "best leads to the best one");
    begin(&r);
    is_int(ddp_trainer_resume(r.trainer, NULL, &c), 1, "a run that is over");
    ok(c.step == STEPS && c.best > 0 && c.best % 3 == 0 &&
           c.evaluated == STEPS && c.evaluation.samples == COUNT &&
           c.best_evaluation.top1 >= c.evaluation.top1,
       "remembers its evaluations");
    is_int(finish(&r), want, "and has nothing left to do");
    begin(&r);
    is_int(ddp_trainer_train(r.trainer), DDP_EINVAL,
           "another run is not mixed in");
    end(&r);
    clean();
    r = usual();
    r.cfg.checkpoint.dir = dir;
    r.ask_at = 5;
    begin(&r);
    is_int(finish(&r), want, "a callback may ask for one");
    ok(there("step-000000000006") || there("step-000000000005"),
       "it is of the steps under way then");
}

/* ---- other devices ------------------------------------------------------ */

/* Channels that the images of a run have when they go into its network. */
static int image_channels(const struct run *r)
{
    const ddp_graph_t *g = r->trainer->engine->graph;

    for (int i = 0; i < g->nodes; i++)
        if (g->node[i]->call.op == DDP__OP_INPUT_F32)
            return g->node[i]->buf[1]->shape.c;
    return 0;
}

/* On GPUs images of f16 get eight channels; ref, which computes the same bits
 * then, has CPUs do as GPUs. */
static void test_widened(void)
{
    struct run r = usual(), cut;
    struct ddp_checkpoint c;
    uint32_t want;

    r.cfg.dtype = DDP_F16;
    want = undisturbed(r);
    for (int i = 0; i < 2; i++) {
        cut = r;
        clean();
        cut.cfg.checkpoint.dir = dir;
        ddp->channels = i ? 0 : 8;
        begin(&cut);
        is_int(image_channels(&cut), i ? 1 : 8, "images as %s have them",
               i ? "CPUs" : "GPUs");
        for (int s = 0; s < 5; s++)
            ddp_trainer_step(cut.trainer, NULL);
        is_int(ddp_trainer_checkpoint(cut.trainer), 0, "a checkpoint");
        end(&cut);
        ddp->channels = i ? 8 : 0;
        cut.stop_at = 0;
        is_int(resume(cut, &c), want, "resumed with the others: the same bits");
        ok(c.step == 5 && !*c.notice, "at step 5, without a notice: %s",
           c.notice);
    }
    ddp->channels = 0;
}

/* Where the schedule does not span the run, the run may become longer. */
static void test_longer(void)
{
    struct run r = usual(), more;
    struct ddp_checkpoint c;

    clean();
    r.cfg.schedule.kind = DDP_CONSTANT;
    more = r;
    more.cfg.epochs = EPOCHS + 2;
    r.cfg.checkpoint.dir = dir;
    begin(&r);
    finish(&r);
    r.cfg.epochs = EPOCHS + 2;
    is_int(resume(r, &c), undisturbed(more), "a run that is made longer");
    is_int(c.step, STEPS, "continues where it ended");
}

int main(void)
{
    static const int stop[] = {5, 6, 1}; /* in an epoch, at its end */

    begin_program();
    test_bits(ddp_sgd(0.1f), "sgd", 1, stop);
    test_bits(ddp_momentum(0.1f, 0.9f), "momentum", 3, stop);
    test_bits(ddp_adamw(0.01f, 0.01f), "adamw", 1, stop);
    test_adam_variants();
    test_bits((struct ddp_optimizer){.kind = DDP_RMSPROP,
                                     .lr = 0.01f,
                                     .beta2 = 0.9f,
                                     .eps = 1e-8f,
                                     .momentum = 0.9f},
              "rmsprop", 1, stop);
    test_state();
    test_epoch_told_once();
    test_own_loop();
    test_kept();
    test_longer();
    ddp_finish(ddp);
    if (!(ddp =
              ddp_init(&(struct ddp_config){START_DEFAULTS, .backend = "ref"})))
        bail_out("%s", ddp_errmsg());
    test_widened();
    end_program();
    return done_testing();
}
