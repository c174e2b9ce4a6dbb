/* evaluate.c - loss and top-k on a data set, every sample once */
#include "config.h"

#include <stdlib.h>

#include "trainer.h"

/* Sub-batches of a lane in a step of evaluation. */
enum { EVAL_ROUNDS = 4 };

static int make_eval(struct ddp_trainer *t, ddp_dataset_t *data)
{
    int batch = t->cfg.sub_batch * t->cfg.lanes * EVAL_ROUNDS;
    struct ddp__engine_spec spec;

    if (t->eval && t->eval_data == data)
        return 0;
    ddp__engine_free(t->eval);
    t->eval = NULL;
    t->eval_data = data;
    t->eval_loader = ddp__loader(data, batch, t->cfg.sub_batch);
    spec = ddp__trainer_spec(t, &t->eval_loader, DDP__EVAL);
    return ddp__engine_new(&t->eval, t->ddp, t->chain, &spec);
}

static int eval_step(struct ddp_trainer *t, int64_t step, int *sizes)
{
    struct ddp__step s = {
        .number = step,
        .subs = ddp__loader_sizes(&t->eval_loader, step, sizes),
        .n = sizes,
        .first = (uint64_t)step * (uint64_t)t->eval_loader.subs,
    };

    return ddp__engine_step(t->eval, &s);
}

static int eval_all(struct ddp_trainer *t, int *sizes, double *sum)
{
    int64_t base = t->eval->submitted, steps = t->eval_loader.steps;
    int64_t ahead = t->cfg.run_ahead, done = 0;
    struct ddp__result r;
    int rc;

    for (int64_t k = 0; k < steps + ahead; k++) {
        if (k >= ahead && done < steps) {
            if ((rc = ddp__engine_wait(t->eval, base + done++, &r)) < 0)
                return rc;
            for (int i = 0; i < DDP__STATS; i++)
                sum[i] += r.stats[i];
        }
        if (k < steps && (rc = eval_step(t, k, sizes)) < 0)
            return rc;
    }
    return 0;
}

int ddp_evaluate(ddp_trainer_t *t, ddp_dataset_t *data, struct ddp_metrics *m)
{
    double sum[DDP__STATS] = {0};
    int *sizes, rc;

    if (!t || !data)
        return DDP_EINVAL; /* their constructors said why */
    if ((rc = make_eval(t, data)) < 0)
        return rc;
    sizes = calloc((size_t)t->eval_loader.subs, sizeof(*sizes));
    if (!sizes)
        return ddp__fail(DDP_ENOMEM, "no memory to evaluate");
    rc = eval_all(t, sizes, sum);
    free(sizes);
    if (rc == 0)
        *m = ddp__metrics(sum);
    return rc;
}
