/* test_trace.c - steps of training, side by side with PyTorch on one device
 *
 * On a GPU if libddp uses one, and then PyTorch has to have it too; else on
 * CPUs.  f32 in both, without TF32.
 *
 * Training is chaotic: what is off by a rounding is off by more after each
 * step.  The script has PyTorch's own f32 and three runs in f64 from weights
 * that are off by 1e-6; the farthest any of them has been from the run in f64
 * is what two ways to compute the same may differ by.  Ours is compared with
 * PyTorch's f32, both of which are off, and differ in each operation, not only
 * at the start: four times that.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdlib.h>
#include "defaults.h"
#include "oracle.h"
#include "tap.h"
#include "torch_part.h"

enum { STEPS = 20, BATCH = 16, CLASSES = 10 };

static bool torch_has_cuda(const char *python)
{
    char command[1024];

    snprintf(command, sizeof(command),
             "'%s' -c 'import sys, torch; "
             "sys.exit(not torch.cuda.is_available())'",
             python);
    return system(command) == 0;
}

/* Whether all steps run; how many losses are PyTorch's. */
static bool train(ddp_trainer_t *t, const struct oracle *o, int *good)
{
    const struct oracle_tensor *want = oracle_find(o, "trace/loss");
    const struct oracle_tensor *off = oracle_find(o, "trace/off");
    double most = 0;

    *good = 0;
    for (int k = 0; k < STEPS; k++) {
        struct ddp_metrics m;
        double d;

        if (ddp_trainer_step(t, &m) < 0) {
            diag("step %d: %s", k, ddp_errmsg());
            return false;
        }
        most = fmax(most, (double)off->data[k]);
        d = fabs(m.loss - (double)want->data[k]);
        diag("step %d: loss %.7f, PyTorch's %.7f, off by %.2g of %.2g", k,
             m.loss, (double)want->data[k], d, 4 * most + 1e-5);
        *good += d <= 4 * most + 1e-5;
    }
    return true;
}

static ddp_trainer_t *trainer(ddp_t *ddp, ddp_chain_t *c, ddp_dataset_t *d)
{
    struct ddp_optimizer momentum = ddp_momentum(0.003f, 0.9f);

    momentum.weight_decay = 1e-4f;
    momentum.decay_all = true;
    return ddp_trainer_new(ddp, c, d,
                           &(struct ddp_train_config){
                               TRAIN_DEFAULTS, .loss = DDP_LOGIT_CROSS_ENTROPY,
                               .label_smoothing = 0.1f, .optimizer = momentum,
                               .sub_batch = BATCH, .batch = BATCH,
                               .order = DDP_IN_ORDER, .keep_weights = true});
}

static void test_trace(ddp_t *ddp, const struct oracle *o)
{
    const struct torch_samples samples = {o, "trace", CLASSES};
    ddp_chain_t *c = ddp_model_new(
        "resnet18",
        &(struct ddp_model_options){MODEL_DEFAULTS, .classes = CLASSES,
                                    .width = 8, .small_stem = true});
    ddp_dataset_t *d = torch_samples(&samples);
    ddp_trainer_t *t = torch_set(o, "trace", c) ? trainer(ddp, c, d) : NULL;
    int good = 0;

    ok(t && train(t, o, &good), "%d steps of training", STEPS);
    is_int(good, STEPS, "each loss is PyTorch's");
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
}

int main(void)
{
    const char *python = oracle_python("torch"), *device = "cpu";
    struct oracle *o;
    ddp_t *ddp;

    if (!python)
        skip_all("no python3 with torch (DDP_PYTHON names one)");
    if (!(ddp = ddp_init(NULL)))
        bail_out("%s", ddp_errmsg());
    diag("%s", ddp_describe(ddp));
    if (ddp_gpu_worker_count(ddp) > 0) {
        device = "cuda";
        if (!torch_has_cuda(python)) {
            ddp_finish(ddp);
            skip_all("%s's torch has no GPU", python);
        }
    }
    if (!(o = oracle_new_by(python, "oracle_trace.py", device)))
        bail_out("oracle_trace.py failed");
    test_trace(ddp, o);
    ddp_finish(ddp);
    oracle_free(o);
    return done_testing();
}
