/* test_drop_last.c - short last steps: trained on, left out, or refused
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "defaults.h"
#include "tap.h"
#include "train/loader.h"

enum { COUNT = 9, BATCH = 4, CHANNELS = 3 };

static int seen[COUNT]; /* how often */

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    (void)key;
    for (int i = 0; i < CHANNELS; i++)
        x[i] = (float)((index * 5 + i * 3) % 7);
    s->label = (int32_t)(index % 2);
    __atomic_add_fetch(&seen[index], 1, __ATOMIC_RELAXED);
    return 0;
}

static ddp_dataset_t *samples(int64_t count)
{
    return ddp_dataset_callback(&(struct ddp_source){.count = count,
                                                     .shape = {1, 1, CHANNELS},
                                                     .type = DDP_F32,
                                                     .classes = 2,
                                                     .get = get});
}

static ddp_chain_t *net(bool norm)
{
    ddp_chain_t *c = ddp_chain_new(ddp_dense_new(CHANNELS, 4, NULL), DDP_END);

    if (norm)
        ddp_chain_add(c, ddp_batch_norm_new(4, NULL));
    ddp_chain_add(c, ddp_dense_new(4, 2, NULL));
    return c;
}

static struct ddp_train_config config(int batch, bool drop)
{
    return (struct ddp_train_config){
        TRAIN_DEFAULTS,   .optimizer = ddp_sgd(0.01f),
        .batch = batch,   .sub_batch = 2,
        .lanes = 2,       .epochs = 3,
        .drop_last = drop};
}

/* ---- which samples ------------------------------------------------------ */

static int64_t samples_seen;

static int count_samples(const struct ddp_progress *p, void *arg)
{
    (void)arg;
    samples_seen += p->now.samples;
    return 0;
}

static void test_samples(ddp_t *ddp, bool drop)
{
    struct ddp_train_config cfg = config(BATCH, drop);
    ddp_dataset_t *d = samples(COUNT);
    ddp_chain_t *c = net(false);
    ddp_trainer_t *t;
    int most = 0;

    cfg.on_step = count_samples;
    samples_seen = 0;
    t = ddp_trainer_new(ddp, c, d, &cfg);
    is_int(ddp_trainer_epoch_steps(t), drop ? 2 : 3, "%s: steps of an epoch",
           drop ? "drop_last" : "all samples");
    memset(seen, 0, sizeof(seen));
    ok(ddp_trainer_train(t) == 0, "three epochs of them");
    for (int i = 0; i < COUNT; i++)
        most = seen[i] > most ? seen[i] : most;
    is_int(samples_seen, 3 * (drop ? 8 : COUNT), "have so many samples");
    ok(most <= 3, "none more than once an epoch");
    ddp_trainer_free(t);
    ddp_chain_free(c);
    ddp_dataset_free(d);
}

static void test_steps(const ddp_t *ddp)
{
    struct ddp_train_config cfg = config(BATCH, true);
    ddp_dataset_t *d = samples(COUNT);

    cfg.steps = 5;
    ddp_train_config_resolve(&cfg, ddp, d);
    is_int(cfg.epochs, 3, "five steps, two an epoch, are three epochs");
    ddp_dataset_free(d);
}

/* ---- batch norm --------------------------------------------------------- */

/* The message, or "" if there is a trainer. */
static const char *refusal(ddp_t *ddp, int64_t count, int batch, bool drop)
{
    struct ddp_train_config cfg = config(batch, drop);
    ddp_dataset_t *d = samples(count);
    ddp_chain_t *c = net(true);
    ddp_trainer_t *t = ddp_trainer_new(ddp, c, d, &cfg);
    const char *why = t ? "" : ddp_errmsg();

    ddp_trainer_free(t);
    ddp_chain_free(c);
    ddp_dataset_free(d);
    return why;
}

static void test_norm(ddp_t *ddp)
{
    ok(strstr(refusal(ddp, 9, BATCH, false), "batch norm 1: one value"),
       "a norm of one value is refused, and named: %s", ddp_errmsg());
    is_str(refusal(ddp, 9, BATCH, true), "", "not where it is left out");
    is_str(refusal(ddp, 8, BATCH, false), "", "nor where there is none");
    is_str(refusal(ddp, 10, BATCH, false), "", "nor where it has two values");
    ok(strstr(refusal(ddp, 9, 3, true), "batch norm 1: one value"),
       "every step may have it: %s", ddp_errmsg());
    ok(strstr(refusal(ddp, 1, 1, false), "batch norm 1: one value"),
       "and the only one");
}

/* ---- sizes of sub-batches ----------------------------------------------- */

enum { MOST = 14 };

/* Which sizes there are, by looking at each step. */
static void list_sizes(const struct ddp__loader *l, bool there[MOST])
{
    int n[MOST];

    memset(there, 0, MOST * sizeof(*there));
    for (int64_t step = 0; step < l->steps; step++)
        for (int subs = ddp__loader_sizes(l, step, n); subs > 0; subs--)
            there[n[subs - 1]] = true;
}

/* Plans are made for these, and for sub_batch. */
static bool names_all(const struct ddp__loader *l)
{
    bool there[MOST], named[MOST] = {false};
    int fewer[DDP__FEWER];

    list_sizes(l, there);
    ddp__loader_fewer(l, fewer);
    for (int i = 0; i < DDP__FEWER; i++)
        if (fewer[i])
            named[fewer[i]] = true;
    there[l->sub_batch] = named[l->sub_batch] = false;
    return memcmp(there, named, sizeof(there)) == 0;
}

static void test_sizes(void)
{
    int wrong = 0, all = 0;

    for (int count = 1; count < MOST; count++)
        for (int batch = 1; batch <= count; batch++)
            for (int sub = 1; sub <= batch; sub++)
                for (int drop = 0; drop < 2; drop++, all++) {
                    ddp_dataset_t *d = samples(count);
                    struct ddp__loader l = ddp__loader(d, batch, sub);

                    if (drop)
                        ddp__loader_drop_last(&l);
                    wrong += !names_all(&l);
                    ddp_dataset_free(d);
                }
    is_int(wrong, 0, "%d runs: sizes of short sub-batches are known", all);
}

int main(void)
{
    ddp_t *ddp = ddp_init(NULL);

    if (!ddp)
        bail_out("%s", ddp_errmsg());
    test_sizes();
    test_samples(ddp, false);
    test_samples(ddp, true);
    test_steps(ddp);
    test_norm(ddp);
    ddp_finish(ddp);
    return done_testing();
}
