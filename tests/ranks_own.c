/* ranks_own.c - ranks that train on data of their own, for app_ranks.sh
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Compared with gradient descent by its definition, in double precision, and
 * where all ranks have equally much, with the bits of ranks that share data.
 */
#include "config.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/engine.h"
#include "ranks_check.h"
#include "runtime/missing.h"
#include "train/trainer.h"

enum { IN = 4, OUT = 2, BATCH = 4, EPOCHS = 3, WEIGHTS = OUT * (IN + 1) };
static const double rate = 0.05;

/* ---- data --------------------------------------------------------------- */

static void make_sample(int r, int64_t i, float *x, float *target)
{
    for (int k = 0; k < IN; k++)
        x[k] = (float)((i * (k + 3) + 5 * r) % 11) / 11;
    for (int k = 0; k < OUT; k++)
        target[k] = (float)((i + 2 * r + k) % 5);
}

static _Atomic uint64_t key_of_first; /* what augments sample 0 */

/* Of rank *arg. */
static int get_own(void *arg, int64_t i, uint64_t key, struct ddp_sample *s)
{
    if (i == 0)
        key_of_first = key;
    make_sample(*(int *)arg, i, s->x, s->target);
    return 0;
}

/* A batch of each rank in turn. */
static int get_shared(void *arg, int64_t i, uint64_t key, struct ddp_sample *s)
{
    int r = (int)(i / BATCH % ranks);

    (void)arg;
    (void)key;
    make_sample(r, i / (BATCH * ranks) * BATCH + i % BATCH, s->x, s->target);
    return 0;
}

static ddp_dataset_t *own_data(int64_t count)
{
    return ddp_dataset_callback(&(struct ddp_source){.count = count,
                                                     .shape = {1, 1, IN},
                                                     .target_len = OUT,
                                                     .get = get_own,
                                                     .arg = &rank});
}

/* Not equally many, and mostly no whole batches: the last rank has 5 samples,
 * those before it 12, 19, ... */
static int64_t count_of(int r)
{
    return 5 + 7 * (int64_t)((r + 1) % ranks);
}

static int64_t most_steps(void)
{
    return (5 + 7 * (int64_t)(ranks - 1) + BATCH - 1) / BATCH;
}

/* ---- trainers ----------------------------------------------------------- */

static struct ddp_train_config config(void)
{
    struct ddp_train_config cfg;

    ddp_train_config_init(&cfg);
    cfg.loss = DDP_MSE;
    cfg.optimizer = ddp_sgd((float)rate);
    cfg.batch = BATCH;
    cfg.sub_batch = BATCH / 2;
    cfg.epochs = EPOCHS;
    cfg.order = DDP_IN_ORDER;
    cfg.keep_weights = true;
    cfg.own_data = true;
    return cfg;
}

static bool normed; /* the network has a batch norm */

static ddp_chain_t *make_chain(void)
{
    ddp_chain_t *c = ddp_chain_new(
        ddp_dense_new(IN, OUT, NULL),
        normed ? ddp_batch_norm_new(OUT, NULL) : ddp_flatten_new(), DDP_END);

    ddp_chain_init(c, 7);
    return c;
}

static bool get_weights(ddp_chain_t *c, float *w)
{
    return ddp_chain_get(c, "0.weight", w, OUT * IN) == 0 &&
           ddp_chain_get(c, "0.bias", w + OUT * IN, OUT) == 0;
}

/* The same weights on all ranks. */
static bool are_equal(const float *w)
{
    float first[WEIGHTS];

    memcpy(first, w, sizeof(first));
    return ddp_bcast(ddp, first, sizeof(first), 0) == 0 &&
           memcmp(first, w, sizeof(first)) == 0;
}

/* Train on d, which is freed; the weights. */
static int train(ddp_dataset_t *d, const struct ddp_train_config *cfg,
                 const char *dir, float *w)
{
    ddp_chain_t *c = make_chain();
    ddp_trainer_t *t = ddp_trainer_new(ddp, c, d, cfg);
    int rc = t ? 0 : ddp_errcode();

    if (rc == 0 && dir)
        rc = ddp_trainer_resume(t, dir, NULL);
    if (rc >= 0)
        rc = ddp_trainer_train(t);
    if (rc == 0 && !get_weights(c, w))
        rc = ddp_errcode();
    ddp_trainer_free(t);
    ddp_chain_free(c);
    ddp_dataset_free(d);
    return rc;
}

/* ---- against the definition --------------------------------------------- */

/* Add the gradient of a sample's mean of squares. */
static void add_gradient(const double *w, int r, int64_t i, double *g)
{
    float x[IN], target[OUT];

    make_sample(r, i, x, target);
    for (int o = 0; o < OUT; o++) {
        double y = w[OUT * IN + o], dy;

        for (int k = 0; k < IN; k++)
            y += w[o * IN + k] * x[k];
        dy = 2 * (y - target[o]) / OUT;
        for (int k = 0; k < IN; k++)
            g[o * IN + k] += dy * x[k];
        g[OUT * IN + o] += dy;
    }
}

static void descend(double *w, int64_t step)
{
    double g[WEIGHTS] = {0};
    int n = 0;

    for (int r = 0; r < ranks; r++)
        for (int64_t i = step * BATCH;
             i < (step + 1) * BATCH && i < count_of(r); i++, n++)
            add_gradient(w, r, i, g);
    for (int k = 0; k < WEIGHTS; k++)
        w[k] -= rate * g[k] / n;
}

/* The ranks end one after another.  The tolerance is some 10 roundings of f32
 * in each step. */
static void test_definition(void)
{
    struct ddp_train_config cfg = config();
    float w[WEIGHTS] = {0};
    double want[WEIGHTS];
    ddp_chain_t *c = make_chain();
    bool good = get_weights(c, w);

    for (int k = 0; k < WEIGHTS; k++)
        want[k] = w[k];
    for (int64_t i = 0; i < EPOCHS * most_steps(); i++)
        descend(want, i % most_steps());
    good &= train(own_data(count_of(rank)), &cfg, NULL, w) == 0;
    for (int k = 0; k < WEIGHTS; k++)
        good &= fabs(w[k] - want[k]) < 1e-5;
    check(good, "unequal data do what the definition says");
    check(are_equal(w), "and leave equal weights");
    ddp_chain_free(c);
}

/* ---- evaluation --------------------------------------------------------- */

enum { KINDS = 3, LAST = 20 };

/* Each rank has samples of one class alone, near a corner of its own. */
static void make_flower(int class, int64_t i, float *x)
{
    for (int k = 0; k < IN; k++)
        x[k] = (float)(k == class) + (float)((i * (k + 3)) % 11) / 40;
}

static int get_flower(void *arg, int64_t i, uint64_t key, struct ddp_sample *s)
{
    (void)arg;
    (void)key;
    s->label = rank % KINDS;
    make_flower(s->label, i, s->x);
    return 0;
}

/* Batches of all classes in turn, with the labels of the batch that is so many
 * after. */
static int get_garden(void *after, int64_t i, uint64_t key,
                      struct ddp_sample *s)
{
    (void)key;
    make_flower((int)(i / BATCH % KINDS), i, s->x);
    s->label = (int)((i / BATCH + *(int *)after) % KINDS);
    return 0;
}

static ddp_dataset_t *
flowers(int (*get)(void *, int64_t, uint64_t, struct ddp_sample *), int *arg)
{
    return ddp_dataset_callback(&(struct ddp_source){.count = KINDS * BATCH,
                                                     .shape = {1, 1, IN},
                                                     .classes = KINDS,
                                                     .get = get,
                                                     .arg = arg});
}

static double last_loss[LAST]; /* of steps, by number */

static int note_loss(const struct ddp_progress *p, void *arg)
{
    (void)arg;
    last_loss[p->step % LAST] = p->now.loss;
    return 0;
}

/* The mean of the last losses, and three times their deviation. */
static double most_loss(void)
{
    double mean = 0, square = 0;

    for (int i = 0; i < LAST; i++)
        mean += last_loss[i] / LAST;
    for (int i = 0; i < LAST; i++)
        square += (last_loss[i] - mean) * (last_loss[i] - mean) / LAST;
    return mean + 3 * sqrt(square);
}

/* Labels in another order fit the samples no more. */
static void test_evaluation(void)
{
    struct ddp_train_config cfg = config();
    ddp_chain_t *c = ddp_chain_new(ddp_dense_new(IN, KINDS, NULL), DDP_END);
    ddp_dataset_t *own = flowers(get_flower, NULL), *right, *turned;
    struct ddp_metrics fits = {.loss = 0}, no_fit = {.loss = 0};
    ddp_trainer_t *t;

    cfg.loss = DDP_LOGIT_CROSS_ENTROPY;
    cfg.optimizer = ddp_adam(0.05f);
    cfg.keep_weights = false;
    cfg.epochs = 30;
    cfg.on_step = note_loss;
    right = flowers(get_garden, &(int){0});
    turned = flowers(get_garden, &(int){1});
    t = ddp_trainer_new(ddp, c, own, &cfg);
    check(t && ddp_trainer_train(t) == 0 &&
              ddp_trainer_evaluate(t, right, &fits) == 0 &&
              ddp_trainer_evaluate(t, turned, &no_fit) == 0 &&
              (ranks < KINDS || fits.loss < most_loss()),
          "what was trained on each rank's class knows all classes");
    check(ranks < KINDS || no_fit.loss > 2 * fits.loss,
          "and no others' labels");
    ddp_trainer_free(t);
    ddp_chain_free(c);
    ddp_dataset_free(own);
    ddp_dataset_free(right);
    ddp_dataset_free(turned);
}

/* ---- against shared data ------------------------------------------------ */

static void compare_shared(struct ddp_train_config cfg, const char *what)
{
    struct ddp_source shared = {.count = 3 * BATCH * ranks,
                                .shape = {1, 1, IN},
                                .target_len = OUT,
                                .get = get_shared};
    float own[WEIGHTS] = {0}, want[WEIGHTS] = {1};
    bool good;

    cfg.sub_batch = BATCH;
    cfg.optimizer = ddp_momentum((float)rate, 0.9f);
    good = train(own_data(3 * BATCH), &cfg, NULL, own) == 0;
    cfg.own_data = false;
    cfg.batch = BATCH * ranks;
    cfg.lanes = ranks;
    good &= train(ddp_dataset_callback(&shared), &cfg, NULL, want) == 0;
    check(good && memcmp(own, want, sizeof(own)) == 0, what);
}

static void test_shared(void)
{
    struct ddp_train_config cfg = config();
    float own[WEIGHTS] = {0}, want[WEIGHTS] = {1};
    bool good;

    compare_shared(cfg, "equal data give the bits of ranks that share them");
    cfg.shard_optimizer = cfg.drop_last = true;
    cfg.optimizer = ddp_adam(0.01f);
    good = train(own_data(count_of(rank)), &cfg, NULL, own) == 0;
    cfg.shard_optimizer = false;
    good &= train(own_data(count_of(rank)), &cfg, NULL, want) == 0;
    check(good && memcmp(own, want, sizeof(own)) == 0,
          "so does the optimizer's state when it is divided");
}

/* Statistics of the samples of all ranks, and of those that have some left. */
static void test_sync_bn(void)
{
    struct ddp_train_config cfg = config();
    float w[WEIGHTS] = {0};

    normed = cfg.sync_bn = true;
    compare_shared(cfg, "equal data and a batch norm over all ranks do, too");
    check(ranks == 1 || (train(own_data(count_of(rank)), &cfg, NULL, w) == 0 &&
                         are_equal(w)),
          "unequal data with such a norm leave equal weights");
    normed = false;
}

/* Sample 0 of a rank is not that of another, nor is its augmentation. */
static void test_keys(void)
{
    struct ddp_train_config cfg = config();
    uint64_t theirs;
    float w[WEIGHTS];
    bool good;

    cfg.epochs = 1;
    good = train(own_data(BATCH), &cfg, NULL, w) == 0;
    theirs = key_of_first;
    good &= ddp_bcast(ddp, &theirs, sizeof(theirs), 0) == 0;
    check(good && (rank == 0 || theirs != key_of_first),
          "ranks augment by keys of their own");
}

/* ---- checkpoints -------------------------------------------------------- */

static void remove_folder(const char *dir)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    if (rank == 0 && system(command) != 0)
        perror(dir);
}

static void test_checkpoint(void)
{
    struct ddp_train_config cfg = config();
    char dir[64] = "/tmp/ranks_own_XXXXXX";
    float whole[WEIGHTS] = {0}, parts[WEIGHTS] = {1};
    int64_t other = count_of(rank) + (rank == ranks - 1);
    bool good =
        (rank > 0 || mkdtemp(dir)) && ddp_bcast(ddp, dir, sizeof(dir), 0) == 0;

    cfg.optimizer = ddp_momentum((float)rate, 0.9f);
    cfg.order = DDP_SHUFFLE;
    good &= train(own_data(count_of(rank)), &cfg, NULL, whole) == 0;
    cfg.checkpoint.dir = dir;
    cfg.steps = most_steps() + 1;
    good &= train(own_data(count_of(rank)), &cfg, NULL, parts) == 0;
    cfg.steps = 0;
    check(good && train(own_data(other), &cfg, dir, parts) == DDP_EINVAL &&
              strstr(ddp_errmsg(), ranks > 1 ? "data.own" : "data."),
          "a checkpoint of other data is refused");
    check(train(own_data(count_of(rank)), &cfg, dir, parts) == 0 &&
              memcmp(whole, parts, sizeof(whole)) == 0,
          "a run that resumes with the same data has the same bits");
    remove_folder(dir);
}

/* No file of rank 0 may grow beyond this. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    if (rank == 0)
        setrlimit(RLIMIT_FSIZE, &limit);
}

static void test_unwritable(void)
{
    struct ddp_train_config cfg = config();
    char dir[64] = "/tmp/ranks_own_XXXXXX";
    float w[WEIGHTS];
    bool good =
        (rank > 0 || mkdtemp(dir)) && ddp_bcast(ddp, dir, sizeof(dir), 0) == 0;

    cfg.checkpoint.dir = dir;
    signal(SIGXFSZ, SIG_IGN);
    limit_files(256);
    check(good && train(own_data(BATCH), &cfg, NULL, w) == DDP_EIO &&
              (rank == 0 || strstr(ddp_errmsg(), "rank 0 (")),
          "rank 0 cannot write its checkpoint: all fail");
    limit_files(RLIM_INFINITY);
    remove_folder(dir);
}

/* ---- memory ------------------------------------------------------------- */

/* Each rank has one of the lanes; the sum comes into that of rank 0.  Each adds
 * a slice of it, for which it receives those of the others. */
static void test_memory(void)
{
    struct ddp_train_config cfg = config();
    ddp_chain_t *c = make_chain();
    ddp_dataset_t *d = own_data(BATCH * ranks);
    struct ddp_memory_plan p = {0};
    double lanes = rank > 0 ? 2 : 1, slices = (double)(ranks - 1) / ranks;
    ddp_trainer_t *t;

    cfg.own_data = false;
    cfg.batch = BATCH * ranks;
    cfg.sub_batch = BATCH;
    cfg.lanes = ranks;
    t = ddp_trainer_new(ddp, c, d, &cfg);
    check(t && ddp_trainer_memory(t, &p) == 0 &&
              fabs(p.gradients - p.weights * (lanes + slices)) < 1,
          "the memory plan has the gradients of this rank's lanes alone");
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
}

/* ---- a rank that cannot read its state ---------------------------------- */

/* Rank 0 keeps the state of the only bucket, and seems to have had no memory
 * for it. */
static int sync_without_state(ddp_trainer_t *t)
{
    struct starpu_variable_interface *v;
    uintptr_t state;
    int rc;

    if (rank > 0)
        return ddp_trainer_sync(t, ranks - 1);
    v = starpu_data_get_interface_on_node(t->engine->state[0].h,
                                          STARPU_MAIN_RAM);
    state = v->ptr;
    v->ptr = (uintptr_t)ddp__missing_take(0, false);
    rc = ddp_trainer_sync(t, ranks - 1);
    ddp__missing_give((void *)v->ptr);
    v->ptr = state;
    return rc;
}

static void test_unreadable(void)
{
    struct ddp_train_config cfg = config();
    ddp_chain_t *c = make_chain();
    ddp_dataset_t *d = own_data(BATCH);
    ddp_trainer_t *t;

    cfg.optimizer = ddp_adam(0.01f);
    cfg.shard_optimizer = true;
    t = ddp_trainer_new(ddp, c, d, &cfg);
    check(t && ddp_trainer_train(t) == 0, "a divided optimizer");
    check(sync_without_state(t) == DDP_ENOMEM &&
              (rank == 0 || strstr(ddp_errmsg(), "rank 0 (")),
          "all ranks hear of the one that cannot read its part");
    check(ddp_trainer_sync(t, ranks - 1) == 0, "and it can try again");
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
}

/* ---- what cannot be ----------------------------------------------------- */

static void test_refused(void)
{
    struct ddp_train_config cfg = config();
    float w[WEIGHTS];

    cfg.own_data = rank == 0;
    check(ranks == 1 || (train(own_data(BATCH), &cfg, NULL, w) == DDP_EINVAL &&
                         strstr(ddp_errmsg(), "only one of them has own_data")),
          "a rank that shares while others do not");
    cfg.own_data = cfg.drop_last = true;
    check(ranks == 1 ||
              (train(own_data(BATCH - 1), &cfg, NULL, w) == DDP_EINVAL &&
               strstr(ddp_errmsg(), "no rank has the 4 samples of a step")),
          "no step at all");
}

int main(void)
{
    if (!begin_ranks(NULL))
        return 1;
    test_definition();
    test_evaluation();
    test_shared();
    test_sync_bn();
    test_keys();
    test_checkpoint();
    test_unwritable();
    if (ranks > 1)
        test_unreadable();
    test_memory();
    test_refused();
    return end_ranks();
}
