/* test_host.c - ranks of a host share packed weights, and gradients
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What one process computes alone is the oracle of weights.  Whether memory is
 * shared, and used, is what the system says of this process.
 */
#include "config.h"

#include <sys/resource.h>

#include "copy_layer.h"
#include "ddp.h"
#include "ranks_fork.h"

enum { RANKS = 3, SIDE = 12, CLASSES = 5, COUNT = 48, STEPS = 8 };

/* A run: what is odd in it. */
struct row {
    const char *what;
    int ranks;
    int poor;     /* a rank that cannot open a file to share; -1: none */
    bool set;     /* one weight is set between steps, by all ranks */
    int dies;     /* a rank, in a forward pass; -1: none */
    int share;    /* ranks that share packed weights */
    int add;      /* ranks that add gradients where they are: all or none */
    bool divided; /* the state of the optimizer */
    int unlike;   /* a rank with another processor; 0: none */
};
static const struct row *row;

/* What a rank leaves; shared. */
static struct outcome {
    int code, kilobytes, left; /* mapped while it trains, and afterwards */
    int gradients;             /* mapped while it trains */
    char why[512];
    uint32_t weights;
} * outcome;

static int this_rank;
static ddp_chain_t *chain;

/* Resident; -1: nothing is mapped. */
static int shared_kilobytes(const char *name)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    unsigned long from, to;
    bool ours = false;
    int size = -1, part;

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "%lx-%lx", &from, &to) == 2)
            ours = strstr(line, name) != NULL;
        else if (ours && sscanf(line, "Rss: %d", &part) == 1)
            size = (size < 0 ? 0 : size) + part;
    if (f)
        fclose(f);
    return size;
}

/* ---- the processor ------------------------------------------------------ */

#ifdef HAVE_ONEDNN
const char *__wrap_ddp__dnn_isa(void);
const char *__real_ddp__dnn_isa(void);

/* The odd rank has the same kernels, and so the same weights, but describes
 * its processor as another one. */
const char *__wrap_ddp__dnn_isa(void)
{
    return row->unlike && row->unlike == this_rank ? "another processor"
                                                   : __real_ddp__dnn_isa();
}
#endif

/* ---- the network -------------------------------------------------------- */

static int hook(bool backward)
{
    static int times;

    if (row->dies == this_rank && !backward && ++times == 9)
        raise(SIGKILL);
    return 0;
}

/* The second and the third have the sizes that are computed by Winograd's
 * method, the fourth by products, forward and back, of packed weights. */
static ddp_chain_t *network(void)
{
    copy_hook = hook;
    return ddp_chain_new(ddp_conv_new(3, 16, 3, NULL), ddp_relu_new(),
                         ddp_conv_new(16, 16, 3, NULL), ddp_relu_new(),
                         ddp_conv_new(16, 32, 3, NULL), ddp_relu_new(),
                         ddp_conv_new(32, 48, 1, NULL), ddp_relu_new(),
                         ddp_flatten_new(), copy_layer_new(),
                         ddp_dense_new(48 * 6 * 6, CLASSES, NULL), DDP_END);
}

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    (void)key;
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        x[i] = (float)((index * (i % 11 + 3) + i) % 7) - 3;
    s->label = (int32_t)(index % CLASSES);
    return 0;
}

/* A number that no key has: the first and every 144th of 2304, or every 96th of
 * 1536, are in it. */
static int set_one(void)
{
    static const struct {
        const char *name;
        size_t len;
    } of[] = {{"2.weight", 16 * 16 * 9}, {"6.weight", 48 * 32}};
    enum { AT = 7 };
    float w[16 * 16 * 9];
    int rc = 0;

    for (int i = 0; i < 2 && rc >= 0; i++)
        if ((rc = ddp_chain_get(chain, of[i].name, w, of[i].len)) >= 0) {
            w[AT] += 0.5f;
            rc = ddp_chain_set(chain, of[i].name, w, of[i].len);
        }
    return rc;
}

/* ---- a run -------------------------------------------------------------- */

static struct ddp_train_config config(void)
{
    struct ddp_train_config cfg;

    ddp_train_config_init(&cfg);
    cfg.optimizer = ddp_momentum(0.01f, 0.9f);
    cfg.batch = 12;
    cfg.sub_batch = 2;
    cfg.lanes = 6;
    cfg.shard_optimizer = row->divided;
    return cfg;
}

static ddp_trainer_t *make_trainer(ddp_t *ddp, ddp_dataset_t *data)
{
    struct ddp_train_config cfg = config();
    struct rlimit before, few;
    ddp_trainer_t *t;

    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = 3;
    if (this_rank == row->poor)
        setrlimit(RLIMIT_NOFILE, &few);
    t = ddp_trainer_new(ddp, chain, data, &cfg);
    setrlimit(RLIMIT_NOFILE, &before);
    return t;
}

/* After a forward pass of its own, which packs what is there. */
static int set_thrice(ddp_trainer_t *t)
{
    int rc = 0;

    for (int i = 0; i < 3 && rc >= 0; i++)
        if ((rc = ddp_trainer_gradients(t, NULL)) >= 0)
            rc = set_one();
    return rc;
}

static int train(ddp_t *ddp, ddp_dataset_t *data, struct outcome *out)
{
    ddp_trainer_t *t = make_trainer(ddp, data);
    int rc = t ? 0 : ddp_errcode();

    for (int i = 0; i < STEPS && rc >= 0; i++) {
        rc = ddp_trainer_step(t, NULL);
        if (rc >= 0 && row->set && i == STEPS / 2)
            rc = set_thrice(t);
    }
    out->kilobytes = shared_kilobytes("memfd:ddp-weights");
    out->gradients = shared_kilobytes("memfd:ddp-gradients");
    ddp_trainer_free(t);
    return rc;
}

static int run_rank(int rank)
{
    struct outcome *out = &outcome[rank];
    ddp_dataset_t *data;
    ddp_t *ddp;

    this_rank = rank;
    if (row->unlike)
        setenv("DDP_UNLIKE_GPUS", "1", 1);
    ddp = ddp_init(NULL);
    chain = network();
    data = ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                     .shape = {SIDE, SIDE, 3},
                                                     .classes = CLASSES,
                                                     .get = get});
    out->code = ddp ? train(ddp, data, out) : ddp_errcode();
    if (out->code < 0)
        snprintf(out->why, sizeof(out->why), "%s", ddp_errmsg());
    else
        out->code = ddp_chain_checksum(chain, &out->weights);
    out->left = shared_kilobytes("memfd:ddp-");
    ddp_dataset_free(data);
    ddp_chain_free(chain);
    ddp_finish(ddp);
    return 0;
}

/* ---- all runs ----------------------------------------------------------- */

static void run(const struct row *r, int count)
{
    struct fork_ranks f;

    row = r;
    memset(outcome, 0, RANKS * sizeof(*outcome));
    fork_start(&f, count, run_rank);
    for (int i = 0; i < count; i++)
        fork_code(&f, i);
}

static void test_row(const struct row *r)
{
    uint32_t want;
    int good = 0, share = 0, add = 0;

    run(r, 1);
    want = outcome[0].weights;
    run(r, r->ranks);
    for (int i = 0; i < r->ranks; i++) {
        const struct outcome *o = &outcome[i];

        diag("rank %d: code %d, weights %08x, %d and %d KB, then %d %s", i,
             o->code, o->weights, o->kilobytes, o->gradients, o->left, o->why);
        good += o->code == 0 && o->left < 0 && o->weights == want;
        share += o->kilobytes > 0;
        add += o->gradients > 0;
    }
    is_int(good, r->ranks, "%s: equal weights, and nothing is left", r->what);
    is_int(share, r->share, "%s: so many ranks share weights", r->what);
    is_int(add, r->add, "%s: so many ranks share gradients", r->what);
}

/* The others may just be waiting for its part of a copy. */
static void test_death(void)
{
    static const struct row death = {"a rank dies", 2, -1, false, 1, 1, 1,
                                     false,         0};

    run(&death, death.ranks);
    is_int(outcome[0].code, DDP_EPEER, "the other of two ranks notices that");
    diag("%s", outcome[0].why);
}

int main(void)
{
    static const struct row rows[] = {
        {"2 ranks", 2, -1, false, -1, 2, 2, false, 0},
        {"3 ranks", 3, -1, false, -1, 3, 3, false, 0},
        {"a weight is set", 2, -1, true, -1, 2, 2, false, 0},
        {"one of 3 cannot open it", 3, 1, false, -1, 2, 0, false, 0},
        {"the first of 3 cannot make it", 3, 0, false, -1, 0, 0, false, 0},
        {"a divided optimizer", 3, -1, false, -1, 3, 3, true, 0},
        {"the last has another processor", 3, -1, false, -1, 2, 3, false, 2},
        {"the second has, and a weight is set", 3, -1, true, -1, 2, 3, false,
         1},
        {"two processors", 2, -1, false, -1, 1, 2, false, 1},
    };

    outcome = fork_memory(RANKS * sizeof(*outcome));
#if defined(HAVE_ONEDNN) && defined(__x86_64__)
    if (!__builtin_cpu_supports("avx512f") ||
        !__builtin_cpu_supports("avx512dq"))
        skip_all("this processor has no AVX-512");
#else
    skip_all("built without oneDNN, or not for x86-64");
#endif
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        test_row(&rows[i]);
    test_death();
    return done_testing();
}
