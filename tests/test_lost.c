/* test_lost.c - a rank that dies or hangs in any phase
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The others name it and end, and the run that resumes has the same weights as
 * one that is undisturbed, the oracle.  With DDP_LONG a rank also dies
 * before each message that it would send.
 */
#include "config.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "copy_layer.h"
#include "ddp.h"
#include "ranks_fork.h"
#include "scratch.h"

enum { RANKS = 3, IN = 4, WIDTH = 520, CLASSES = 3, COUNT = 40, EPOCHS = 10 };

/* Where a rank may be; each is reached many times. */
enum phase {
    NOWHERE,
    JOINING,
    READING,
    FORWARD,
    BACKWARD,
    UPDATE,
    STEPPED,
    EVALUATION,
    SAVING,
    TRAINED,
};

/* What becomes of a rank the n-th time that it is there, or when it is about to
 * send its n-th message. */
struct fault {
    const char *what;
    int rank;
    enum phase phase;
    int times, message; /* CLOSING: when all have ended */
    const char *doing;  /* what the others say that it was doing */
    bool wide;          /* the network has three buckets of weights */
};
enum { CLOSING = -1 };
static const struct fault *fault; /* NULL: none */
static bool hangs, fails;         /* it does not end; its kernel fails */
static double timeout;            /* of silence and of hanging ranks */
static const char *run_dir;

/* What a rank leaves; shared. */
static struct outcome {
    char why[512];
    bool lost;    /* another rank, as far as it knows */
    bool torn;    /* some weights had been updated */
    double since; /* when it hung, or heard of one that did */
    uint32_t weights;
    int64_t resumed; /* the step */
} * outcome;

static int this_rank;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the fault ---------------------------------------------------------- */

/* Returns whether a kernel is to fail. */
static bool reach(enum phase phase)
{
    static atomic_int times;

    if (!fault || fault->rank != this_rank || fault->phase != phase ||
        atomic_fetch_add(&times, 1) + 1 != fault->times)
        return false;
    if (fails)
        return true;
    if (!hangs)
        raise(SIGKILL);
    outcome[this_rank].since = now();
    for (;;)
        pause();
}

/* In place of the system's: a checkpoint calls it after each of its files. */
int fsync(int file)
{
    reach(SAVING);
    return (int)syscall(SYS_fsync, file);
}

/* ---- the network -------------------------------------------------------- */

static atomic_bool evaluating;

static int reach_kernel(bool backward)
{
    if (!backward)
        return reach(atomic_load(&evaluating) ? EVALUATION : FORWARD)
                   ? DDP_EDATA
                   : 0;
    reach(BACKWARD);
    return 0;
}

static bool wide; /* see struct fault */

/* The hook is between the gradients of its first bucket and of its second. */
static ddp_chain_t *wide_network(void)
{
    return ddp_chain_new(ddp_dense_new(IN, WIDTH, NULL),
                         ddp_dense_new(WIDTH, WIDTH, NULL), copy_layer_new(),
                         ddp_dense_new(WIDTH, WIDTH, NULL),
                         ddp_dense_new(WIDTH, CLASSES, NULL), DDP_END);
}

static ddp_chain_t *network(void)
{
    copy_hook = reach_kernel;
    if (wide)
        return wide_network();
    return ddp_chain_new(ddp_dense_new(IN, IN, NULL), copy_layer_new(),
                         ddp_dense_new(IN, CLASSES, NULL), DDP_END);
}

/* ---- the run ------------------------------------------------------------ */

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    (void)key;
    if (reach(READING))
        return DDP_ENOMEM;
    if (fails && fault && this_rank != fault->rank)
        usleep(20000); /* so that it fails while others still read */
    for (int i = 0; i < IN; i++)
        x[i] = (float)((index * (i + 3)) % 7);
    s->label = (int32_t)(index % CLASSES);
    return 0;
}

static ddp_dataset_t *samples(int64_t count)
{
    return ddp_dataset_callback(&(struct ddp_source){
        .count = count, .shape = {1, 1, IN}, .classes = CLASSES, .get = get});
}

static void descend(const struct ddp_update *u, void *arg)
{
    (void)arg;
    reach(UPDATE);
    for (size_t i = 0; i < u->len; i++) {
        u->state[0][i] = 0.9f * u->state[0][i] + u->g[i];
        u->w[i] -= u->lr * u->state[0][i];
    }
}

static ddp_trainer_t *trainer;
static ddp_dataset_t *eval_data;

static int note_step(const struct ddp_progress *p, void *arg)
{
    (void)p;
    (void)arg;
    reach(STEPPED);
    return 0;
}

static int evaluate(const struct ddp_progress *p, void *arg)
{
    struct ddp_metrics m;
    int rc;

    (void)p;
    (void)arg;
    atomic_store(&evaluating, true);
    rc = ddp_trainer_evaluate(trainer, eval_data, &m);
    atomic_store(&evaluating, false);
    return rc;
}

static struct ddp_train_config config(void)
{
    struct ddp_train_config cfg;

    ddp_train_config_init(&cfg);
    cfg.optimizer = (struct ddp_optimizer){.kind = DDP_CUSTOM_OPTIMIZER,
                                           .lr = 0.01f,
                                           .update = descend,
                                           .update_states = 1};
    cfg.batch = 8;
    cfg.sub_batch = 2;
    cfg.lanes = 4;
    cfg.epochs = EPOCHS;
    cfg.checkpoint.dir = run_dir;
    cfg.checkpoint.steps = 2;
    cfg.on_step = note_step;
    cfg.on_epoch = evaluate;
    return cfg;
}

static int train(ddp_t *ddp, struct outcome *out)
{
    struct ddp_train_config cfg = config();
    ddp_dataset_t *data = samples(COUNT);
    ddp_chain_t *c = network();
    struct ddp_checkpoint from = {.step = 0};
    int rc;

    eval_data = samples(COUNT / 4);
    trainer = ddp_trainer_new(ddp, c, data, &cfg);
    rc = trainer ? ddp_trainer_resume(trainer, NULL, &from) : ddp_errcode();
    out->resumed = from.step;
    if (rc >= 0)
        rc = ddp_trainer_train(trainer);
    reach(TRAINED);
    if (rc == 0)
        rc = ddp_chain_checksum(c, &out->weights);
    ddp_trainer_free(trainer);
    ddp_dataset_free(data);
    ddp_dataset_free(eval_data);
    ddp_chain_free(c);
    return rc;
}

/* The module of tests/wire counts them. */
static void limit_messages(void)
{
    char number[16];

    if (!fault || fault->rank != this_rank || !fault->message)
        return;
    snprintf(number, sizeof(number), "%d", fault->message);
    setenv("TEST_WIRE_DIE", number, 1);
}

static void note_error(struct outcome *out, const char *why)
{
    snprintf(out->why, sizeof(out->why), "%s", why);
}

static void note_lost(const char *why, void *arg)
{
    struct outcome *out = arg;

    if (!out->why[0])
        note_error(out, why);
    out->lost = true;
    out->since = now();
}

/* As programs do: 76 when another rank is lost. */
static int run_rank(int rank)
{
    struct ddp_config cfg;
    bool failed;
    ddp_t *ddp;
    int rc;

    this_rank = rank;
    limit_messages();
    ddp_config_init(&cfg);
    cfg.peer_timeout = timeout;
    cfg.on_peer_lost = note_lost;
    cfg.arg = &outcome[rank];
    reach(JOINING);
    ddp = ddp_init(&cfg);
    rc = ddp ? train(ddp, &outcome[rank]) : ddp_errcode();
    outcome[rank].torn =
        rc < 0 && strstr(ddp_errmsg(), "some weights had been updated");
    failed = rc < 0 && rc != DDP_EPEER;
    if (failed)
        note_error(&outcome[rank], ddp_errmsg());
    ddp_finish(ddp);
    return failed ? 1 : outcome[rank].lost ? 76 : 0;
}

/* ---- who dies ----------------------------------------------------------- */

static const struct fault deaths[] = {
    {"before it joins", .rank = 1, .phase = JOINING, .times = 1},
    {"before its first message", .rank = 2, .message = 1},
    {"when one rank has its first message", .rank = 2, .message = 2},
    {"when one rank knows its cores", .rank = 0, .message = 4},
    {"while it reads input", .rank = 1, .phase = READING, .times = 9},
    {"in the forward pass", .rank = 1, .phase = FORWARD, .times = 9},
    {"in the backward pass", .rank = 2, .phase = BACKWARD, .times = 9},
    {"while gradients are summed", .rank = 1, .message = 44},
    {"after a step's gradients", .rank = 2, .message = 45},
    {"before it has reported a step", .rank = 0, .message = 46},
    {"in the update", .rank = 1, .phase = UPDATE, .times = 5},
    {"between steps", .rank = 0, .phase = STEPPED, .times = 4},
    {"while it evaluates", .rank = 2, .phase = EVALUATION, .times = 1},
    {"while it writes a checkpoint", .rank = 0, .phase = SAVING, .times = 3},
    {"at the end of the run", .rank = 1, .phase = TRAINED, .times = 1},
};
enum { DEATHS = sizeof(deaths) / sizeof(deaths[0]) };

/* Whether a rank has ended by itself, with a code of its own, and says who was
 * lost, where, and what that did. */
static bool names(int rank, int code, const struct fault *who)
{
    char name[32];
    const char *why = outcome[rank].why;

    snprintf(name, sizeof(name), "rank %d (host%d) ", who->rank, who->rank);
    return code == 76 && strstr(why, name) &&
           (!who->doing || strstr(why, who->doing));
}

/* From the moment at which a rank hung to that at which the last one heard. */
static double heard_after(const struct fault *who)
{
    double last = 0;

    for (int r = 0; r < RANKS; r++)
        if (r != who->rank && outcome[r].since > last)
            last = outcome[r].since;
    return last - outcome[who->rank].since;
}

/* Ranks start, one is lost, and the others end.  Returns the seconds from then,
 * or until they have heard of one that hangs; a negative number if one of them
 * did not do so as it should. */
static double lose(const struct fault *who)
{
    struct fork_ranks f;
    double begin, seconds;
    bool good = true;

    fault = who;
    memset(outcome, 0, RANKS * sizeof(*outcome));
    fork_start(&f, RANKS, run_rank);
    if (!hangs)
        good = fork_code(&f, who->rank) == 128 + SIGKILL;
    begin = now();
    for (int r = 0; r < RANKS; r++)
        if (r != who->rank)
            good &= names(r, fork_code(&f, r), who);
    seconds = now() - begin;
    if (hangs) {
        kill(f.process[who->rank], SIGKILL);
        fork_code(&f, who->rank);
        seconds = heard_after(who);
    }
    fault = NULL;
    for (int r = 0; r < RANKS; r++)
        if (r != who->rank)
            diag("rank %d of a run from step %d: %s", r,
                 (int)outcome[r].resumed, outcome[r].why);
    return good ? seconds : -1;
}

/* Whether all ranks end well, with the same weights. */
static bool end_well(uint32_t *weights)
{
    struct fork_ranks f;
    bool good = true;

    memset(outcome, 0, RANKS * sizeof(*outcome));
    fork_start(&f, RANKS, run_rank);
    for (int r = 0; r < RANKS; r++)
        good &= fork_code(&f, r) == 0 && outcome[r].weights == outcome->weights;
    *weights = outcome->weights;
    if (!good)
        diag("%s", outcome->why);
    return good;
}

static const struct fault failures[] = {
    {"a kernel", .rank = 1, .phase = FORWARD, .times = 9, .doing = "copy"},
    /* Two samples a step: the first of the third, which is read ahead. */
    {"reading", .rank = 1, .phase = READING, .times = 5,
     .doing = "step 2, reading input"},
};
enum { FAILURES = sizeof(failures) / sizeof(failures[0]) };

/* All have the same error, and no rank seems lost to another. */
static bool all_fail(const struct fault *f)
{
    struct fork_ranks ranks;
    bool good = true;

    fault = f;
    fails = true;
    memset(outcome, 0, RANKS * sizeof(*outcome));
    fork_start(&ranks, RANKS, run_rank);
    for (int r = 0; r < RANKS; r++) {
        good &= fork_code(&ranks, r) == 1 && !outcome[r].lost &&
                strstr(outcome[r].why, f->doing) &&
                (r == 1 || !strncmp(outcome[r].why, "rank 1 (host1): ", 16));
        diag("%s%s", outcome[r].lost ? "lost, " : "", outcome[r].why);
    }
    fault = NULL;
    fails = false;
    return good;
}

/* The run ends on all, and can go on. */
static void test_failures(uint32_t want)
{
    uint32_t weights = 0;

    for (int i = 0; i < FAILURES; i++) {
        char dir[32];

        snprintf(dir, sizeof(dir), "failure-%d", i);
        run_dir = at(dir);
        ok(all_fail(&failures[i]), "%s fails on one rank: all say so, and end",
           failures[i].what);
        ok(end_well(&weights) && weights == want, "and the run can be resumed");
    }
}

/* The same run continues after each death. */
static void test_deaths(uint32_t want)
{
    uint32_t weights;

    timeout = 30;
    run_dir = at("deaths");
    for (int i = 0; i < DEATHS; i++) {
        double seconds = lose(&deaths[i]);

        ok(seconds >= 0 && seconds < 10,
           "rank %d dies %s: the others say so and end (%.1f s)",
           deaths[i].rank, deaths[i].what, seconds);
    }
    ok(end_well(&weights), "and the run can still be resumed");
    is_int(weights, want, "to the weights of one that was not disturbed");
}

/* Ranks update a bucket when they have all of it, so they may have updated
 * some when another rank dies.  A checkpoint of that would show in the weights:
 * every second step has one that is whole.  Ranks of a host have all of all
 * buckets before they update one. */
static void test_torn(bool hosts)
{
    /* Of 14 messages a step, every second. */
    struct fault f = {.rank = 1, .message = 64};
    uint32_t want, weights;
    bool good = true;
    int torn = 0;

    wide = true;
    if (hosts)
        setenv("TEST_WIRE_HOSTS", "1", 1);
    run_dir = at(hosts ? "wide-hosts" : "wide");
    good = end_well(&want);
    run_dir = at(hosts ? "torn-hosts" : "torn");
    for (int i = 0; i < 7; i++, f.message += 2) {
        good &= lose(&f) >= 0;
        torn += outcome[0].torn || outcome[2].torn;
    }
    ok(good, "a rank dies at each moment of an exchange of three buckets");
    ok(hosts ? torn > 0 : torn == 0,
       "others on %s have then updated some weights: %d times of 7",
       hosts ? "other hosts" : "its host", torn);
    ok(end_well(&weights) && weights == want,
       "no checkpoint has such weights, and the run can be resumed");
    unsetenv("TEST_WIRE_HOSTS");
    wide = false;
}

/* A rank dies when all have sent that they are at their end. */
static void test_closing(uint32_t want)
{
    static const struct fault f = {.rank = 1, .message = CLOSING};
    struct fork_ranks ranks;
    bool good = true;

    run_dir = at("closing");
    fault = &f;
    memset(outcome, 0, RANKS * sizeof(*outcome));
    fork_start(&ranks, RANKS, run_rank);
    for (int r = 0; r < RANKS; r++)
        good &= fork_code(&ranks, r) == (r == f.rank ? 128 + SIGKILL : 0) &&
                outcome[r].weights == want;
    fault = NULL;
    ok(good, "a rank that dies after the end disturbs no other");
}

/* ---- who hangs ---------------------------------------------------------- */

static const struct fault stuck[] = {
    {"a rank reads input", .rank = 1, .phase = READING, .times = 9,
     .doing = "has been reading input for"},
    {"a rank trains", .rank = 2, .phase = FORWARD, .times = 9,
     .doing = "has been training for"},
    {"a rank evaluates", .rank = 1, .phase = EVALUATION, .times = 1,
     .doing = "has been evaluating for"},
    {"a rank is between two exchanges", .rank = 1, .phase = BACKWARD,
     .times = 9, .doing = "has been training for", .wide = true},
    {"a rank is in the program", .rank = 0, .phase = STEPPED, .times = 4,
     .doing = "has been in the program for"},
    {"rank 0 writes a checkpoint", .rank = 0, .phase = SAVING, .times = 3,
     .doing = "has been saving a checkpoint for"},
};
enum { STUCK = sizeof(stuck) / sizeof(stuck[0]) };

static void test_hangs(void)
{
    timeout = 2;
    hangs = true;
    for (int i = 0; i < STUCK; i++) {
        char dir[32];
        double seconds;

        snprintf(dir, sizeof(dir), "hang-%d", i);
        run_dir = at(dir);
        wide = stuck[i].wide;
        seconds = lose(&stuck[i]);
        /* Beats come twice a second, and the last may be from before. */
        ok(seconds > timeout - 0.5 && seconds < timeout + 2,
           "%s for ever: the others say so in time (%.1f s) and end",
           stuck[i].what, seconds);
    }
    hangs = wide = false;
}

/* Each message is a moment of its own. */
static void test_messages(uint32_t want)
{
    struct fault f = {.rank = 1, .message = 2};
    uint32_t weights;
    bool good = true;

    run_dir = at("messages");
    for (; good && outcome[1].resumed < EPOCHS * COUNT / 8 - 2; f.message++)
        good = lose(&f) >= 0;
    ok(good, "a rank dies before each of %d messages", f.message);
    ok(end_well(&weights) && weights == want, "and the run ends as it should");
}

int main(void)
{
    uint32_t want;

    scratch_make();
    outcome = fork_memory(RANKS * sizeof(*outcome));
    timeout = 30;
    run_dir = at("undisturbed");
    ok(end_well(&want), "a run that is not disturbed ends well");
    test_failures(want);
    test_deaths(want);
    test_torn(true);
    test_torn(false);
    test_closing(want);
    if (getenv("DDP_LONG"))
        test_messages(want);
    test_hangs();
    return done_testing();
}
