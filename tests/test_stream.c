/* test_stream.c - samples that come one after the other, until there are no
 * more SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * In its own order a stream trains to the same bits as data of a known length
 * with the same samples, which reads them one by one.
 */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include "base/philox.h"
#include "data/dataset.h"
#include "data/stream.h"
#include "defaults.h"
#include "tap.h"

/* Three steps an epoch, the last one smaller. */
enum { COUNT = 21, BATCH = 8, LEN = 3, CLASSES = 2, EPOCHS = 3, STEPS = 9 };

static ddp_t *ddp;
static char dir[64] = "/tmp/test_stream.XXXXXX";

/* ---- samples ------------------------------------------------------------ */

/* What the program has, and what was asked of it. */
struct source {
    int64_t count[8]; /* samples of each epoch */
    int64_t asked;    /* calls so far */
    int64_t fail_at;  /* the call that fails once; 0: none */
    int64_t epochs;   /* begun */
    bool wrong;       /* a number was not the next one */
    int64_t next;     /* number expected */
};

static void fill(int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    s->label = (int32_t)(index % CLASSES);
    s->weight = index % 4 ? 1 : 0.5f;
    for (int i = 0; i < LEN; i++)
        x[i] =
            ddp__uniform(ddp__philox(key, (uint64_t)index, (uint64_t)i).v[0]) +
            (i == s->label);
}

static int next(void *arg, int64_t epoch, int64_t index, uint64_t key,
                struct ddp_sample *s)
{
    struct source *src = arg;

    if (++src->asked == src->fail_at)
        return DDP_EIO;
    if (index == 0) {
        src->epochs++;
        src->next = 0;
    }
    src->wrong |= index != src->next;
    if (index == src->count[epoch])
        return DDP_STREAM_END;
    src->next++;
    fill(index, key, s);
    return 0;
}

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    (void)arg;
    fill(index, key, s);
    return 0;
}

static struct source usual(void)
{
    struct source s = {0};

    for (int i = 0; i < 8; i++)
        s.count[i] = COUNT;
    return s;
}

static struct ddp_stream stream_of(struct source *src, int window)
{
    struct ddp_stream s;

    ddp_stream_init(&s);
    s.shape = (struct ddp_shape){1, 1, LEN};
    s.classes = CLASSES;
    s.next = next;
    s.arg = src;
    s.window = window;
    return s;
}

static ddp_dataset_t *stream(struct source *src, int window)
{
    struct ddp_stream s = stream_of(src, window);

    return ddp_dataset_stream(&s);
}

static ddp_dataset_t *known(void)
{
    return ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                     .shape = {1, 1, LEN},
                                                     .type = DDP_F32,
                                                     .classes = CLASSES,
                                                     .get = get});
}

/* ---- runs --------------------------------------------------------------- */

/* How a run went. */
struct run {
    int rc;
    uint32_t weights;
    int64_t steps, samples, epochs; /* epochs: calls of on_epoch */
    double share;                   /* of the epoch, after the last step */
    int64_t stop_at;
    int64_t from; /* the step that it resumed from */
};

static int on_step(const struct ddp_progress *p, void *arg)
{
    struct run *r = arg;

    r->samples += p->now.samples;
    r->steps = p->step;
    r->share = p->epoch_share;
    return r->stop_at && p->step >= r->stop_at;
}

static int on_epoch(const struct ddp_progress *p, void *arg)
{
    ((struct run *)arg)->epochs = p->epoch + 1;
    return 0;
}

static struct ddp_train_config config(void)
{
    return (struct ddp_train_config){TRAIN_DEFAULTS,
                                     .optimizer = ddp_momentum(0.1f, 0.9f),
                                     .batch = BATCH,
                                     .sub_batch = 3,
                                     .lanes = 2,
                                     .epochs = EPOCHS,
                                     .seed = 7,
                                     .on_step = on_step,
                                     .order = DDP_IN_ORDER,
                                     .on_epoch = on_epoch};
}

static ddp_chain_t *network(void)
{
    return ddp_chain_new(ddp_dense_new(LEN, 6, NULL), ddp_tanh_new(),
                         ddp_dropout_new(0.2f), ddp_dense_new(6, CLASSES, NULL),
                         DDP_END);
}

/* Train on data, which it frees; with resume, from the checkpoints. */
static struct run train(ddp_dataset_t *d, struct ddp_train_config cfg,
                        int64_t stop_at, bool resume)
{
    struct run r = {.stop_at = stop_at};
    ddp_chain_t *c = network();
    ddp_trainer_t *t;

    cfg.arg = &r;
    t = ddp_trainer_new(ddp, c, d, &cfg);
    r.rc = !t ? ddp_errcode() : resume ? ddp_trainer_resume(t, NULL, NULL) : 0;
    r.from = t ? ddp_trainer_steps(t) : 0;
    if (r.rc >= 0)
        r.rc = ddp_trainer_train(t);
    if (r.rc < 0 && r.rc != DDP_ESTOPPED)
        diag("%s", ddp_errmsg());
    ddp_chain_checksum(c, &r.weights);
    ddp_trainer_free(t);
    ddp_chain_free(c);
    ddp_dataset_free(d);
    return r;
}

/* ---- order -------------------------------------------------------------- */

static void test_same(void)
{
    struct ddp_train_config cfg = config();
    struct source src = usual();
    struct run want = train(known(), cfg, 0, false), r;

    r = train(stream(&src, 0), cfg, 0, false);
    ok(r.rc == 0 && want.rc == 0 && r.weights == want.weights,
       "a stream trains to the bits of data of a known length");
    is_int(r.samples, EPOCHS * COUNT, "all samples of each epoch");
    is_int(r.steps, STEPS, "in as many steps");
    is_int(r.epochs, EPOCHS, "epochs end where the stream does");
    ok(r.share == 1, "and are over then");
    ok(!src.wrong && src.asked == EPOCHS * (COUNT + 1),
       "each sample is asked for once, and the end");
    cfg.run_ahead = 4;
    cfg.lanes = 1;
    cfg.steps = 7;
    src = usual();
    r = train(stream(&src, 5), cfg, 0, false);
    want = train(known(), cfg, 0, false);
    ok(r.rc == 0 && r.weights == want.weights && r.steps == 7,
       "some steps of it too, and a window has no effect in order");
}

/* Which samples an epoch has, in which order, by their labels' places in x. */
static int64_t take_epoch(ddp_dataset_t *d, uint64_t seed, int run_ahead,
                          float *x)
{
    const struct ddp__reader r = {BATCH, run_ahead, seed, true};
    int64_t n = 0, step = 0;
    bool last = false;

    if (ddp__stream_begin(d, &r) < 0)
        return -1;
    for (; !last && ddp__stream_take(d, step) == 0; step++) {
        const struct ddp__place *p = ddp__stream_place(d, step);
        float one[LEN];
        struct ddp_sample s = {.x = one};

        for (int i = 0; i < p->n; i++) {
            ddp__stream_get(d, p->at + i, &s);
            x[n++] = one[2];
        }
        last = p->last;
    }
    ddp__stream_end(d);
    return n;
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static void test_window(void)
{
    enum { WINDOW = 6 };
    struct source src = usual();
    ddp_dataset_t *plain = stream(&src, 0), *mixed = stream(&src, WINDOW);
    float a[COUNT + 1], b[COUNT + 1], c[COUNT + 1];
    bool near = true;

    is_int(take_epoch(plain, 1, 2, a), COUNT, "an epoch in order");
    is_int(take_epoch(mixed, 1, 2, b), COUNT, "an epoch with a window");
    is_int(take_epoch(mixed, 1, 7, c), COUNT, "and more steps at a time");
    ok(!memcmp(b, c, COUNT * sizeof(*b)), "the order is the same");
    for (int i = 0; i < COUNT; i++)
        for (int k = i + WINDOW; k < COUNT; k++)
            near &= b[i] != a[k];
    ok(near, "none is drawn before it is in the window");
    ok(memcmp(a, b, COUNT * sizeof(*a)), "it is another order");
    take_epoch(mixed, 2, 2, c);
    ok(memcmp(b, c, COUNT * sizeof(*b)), "and one for each seed");
    qsort(a, COUNT, sizeof(*a), by_value);
    qsort(b, COUNT, sizeof(*b), by_value);
    ok(!memcmp(a, b, COUNT * sizeof(*a)), "each sample exactly once");
    ddp_dataset_free(plain);
    ddp_dataset_free(mixed);
}

/* ---- ends --------------------------------------------------------------- */

static void test_ends(void)
{
    struct ddp_train_config cfg = config();
    struct source src = usual();
    struct run r;

    cfg.epochs = 4;
    src.count[1] = 2 * BATCH;
    src.count[2] = 1;
    r = train(stream(&src, 4), cfg, 0, false);
    is_int(r.samples, 2 * COUNT + 2 * BATCH + 1,
           "epochs of other lengths: %d steps", (int)r.steps);
    is_int(r.steps, 3 + 2 + 1 + 3, "as many steps as each needs");
    src = usual();
    src.count[2] = 0;
    r = train(stream(&src, 0), cfg, 0, false);
    ok(r.rc == 0 && r.steps == 6, "an epoch without samples ends the run");
    cfg.steps = 100;
    cfg.schedule.kind = DDP_COSINE;
    src = usual();
    src.count[1] = 0;
    r = train(stream(&src, 0), cfg, 0, false);
    ok(r.rc == 0 && r.steps == 3 && r.epochs == 1, "even where it has steps");
}

/* ---- resuming ----------------------------------------------------------- */

/* Away with the checkpoints. */
static void sweep(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s/*", dir);
    if (system(command) != 0)
        diag("%s failed", command);
}

static void test_resume(int window, int64_t at)
{
    struct ddp_train_config cfg = config();
    struct source src = usual();
    struct run want, r;

    cfg.order = DDP_SHUFFLE;
    want = train(stream(&src, window), cfg, 0, false);
    cfg.checkpoint =
        (struct ddp_checkpoint_config){.dir = dir, .keep = 2, .steps = at};
    src = usual();
    r = train(stream(&src, window), cfg, at + 1, false);
    is_int(r.rc, DDP_ESTOPPED, "window %d: a checkpoint of step %d", window,
           (int)at);
    src = usual();
    r = train(stream(&src, window), cfg, 0, true);
    ok(r.rc == 0 && r.from == at && r.steps == STEPS, "it resumes");
    ok(r.weights == want.weights, "with the weights of a run in one piece");
    src = usual();
    r = train(stream(&src, window), cfg, 0, true);
    ok(r.rc == 0 && r.from == STEPS && src.asked == 0,
       "what is over does not begin again");
    sweep();
}

/* Where there are fewer samples than before. */
static void test_shorter(void)
{
    struct ddp_train_config cfg = config();
    struct source src = usual();
    struct run r;

    cfg.checkpoint =
        (struct ddp_checkpoint_config){.dir = dir, .keep = 2, .steps = 2};
    train(stream(&src, 0), cfg, 3, false);
    src = usual();
    src.count[0] = BATCH;
    r = train(stream(&src, 0), cfg, 0, true);
    ok(r.rc == DDP_EDATA && strstr(ddp_errmsg(), "ended before the 16 samples"),
       "a stream that is shorter now: %s", ddp_errmsg());
    sweep();
}

/* ---- errors ------------------------------------------------------------- */

static void test_again(void)
{
    struct source src = usual();
    struct ddp_train_config cfg = config();
    ddp_dataset_t *d = stream(&src, 0);
    ddp_chain_t *c = network();
    struct run want = train(known(), cfg, 0, false), r = {0};
    uint32_t crc;
    ddp_trainer_t *t;

    src.fail_at = 12;
    cfg.arg = &r;
    t = ddp_trainer_new(ddp, c, d, &cfg);
    is_int(ddp_trainer_train(t), DDP_EIO, "next() fails: %s", ddp_errmsg());
    ok(ddp_trainer_train(t) == 0 && ddp_chain_checksum(c, &crc) == 0 &&
           crc == want.weights,
       "a second try continues where it was");
    ok(!ddp_trainer_new(ddp, c, d, &cfg) &&
           strstr(ddp_errmsg(), "another trainer"),
       "one trainer at a time: %s", ddp_errmsg());
    ok(ddp_trainer_step(t, NULL) == 0, "steps may go on in a new epoch");
    ddp_trainer_free(t);
    ddp_chain_free(c);
    ddp_dataset_free(d);
}

/* The message for a run with this configuration. */
static bool refused(struct ddp_train_config cfg, const char *part)
{
    struct source src = usual();
    struct run r = train(stream(&src, 0), cfg, 0, false);

    return r.rc == DDP_EINVAL && strstr(ddp_errmsg(), part);
}

static void test_config(void)
{
    struct ddp_train_config cfg = config();

    cfg.drop_last = true;
    ok(refused(cfg, "drop_last needs"), "drop_last: %s", ddp_errmsg());
    cfg = config();
    cfg.order = DDP_SHUFFLE;
    cfg.repeats = 2;
    ok(refused(cfg, "repeats needs"), "repeats: %s", ddp_errmsg());
    cfg = config();
    cfg.schedule.kind = DDP_COSINE;
    ok(refused(cfg, "set steps"), "a schedule: %s", ddp_errmsg());
    cfg = config();
    cfg.checkpoint.keep_epochs = 1;
    ok(refused(cfg, "keep_epochs needs"), "keep_epochs: %s", ddp_errmsg());
}

/* A stream, made again since these free theirs. */
static ddp_dataset_t *another(void)
{
    static struct source src;

    src = usual();
    return stream(&src, 0);
}

static bool says(const void *result, const char *part)
{
    return !result && strstr(ddp_errmsg(), part);
}

static void test_uses(void)
{
    ddp_dataset_t *two[] = {known(), another()};
    ddp_dataset_t *d = another();
    ddp_chain_t *c = network();
    struct ddp_metrics m;
    float x[LEN];

    ok(says(ddp_dataset_shard(another(), 0, 2), "no length"), "a part");
    ok(says(ddp_dataset_concat(two, 2), "no length"), "a concatenation");
    ok(ddp_dataset_get(d, 0, 0, x, NULL) == DDP_EINVAL, "a sample");
    ok(ddp_chain_init(c, 1) == 0 &&
           ddp_chain_evaluate(ddp, c, d, NULL, &m) == DDP_EINVAL,
       "an evaluation: %s", ddp_errmsg());
    is_int(ddp_dataset_count(d), 0, "its count is 0");
    ddp_chain_free(c);
    ddp_dataset_free(d);
}

static void test_making(void)
{
    struct source src = usual();
    struct ddp_stream s = stream_of(&src, 0);

    s.next = NULL;
    ok(says(ddp_dataset_stream(&s), "needs a next()"), "no function");
    s = stream_of(&src, -1);
    ok(says(ddp_dataset_stream(&s), "window of -1"), "a negative window");
    s = stream_of(&src, 0);
    s.classes = 0;
    ok(says(ddp_dataset_stream(&s), "either"), "neither classes nor targets");
    ok(says(ddp_dataset_stream(NULL), "needs a next()"), "no stream");
}

int main(void)
{
    ddp = ddp_init(NULL);
    if (!ddp || !mkdtemp(dir))
        bail_out("%s", ddp_errmsg());
    test_same();
    test_window();
    test_ends();
    test_resume(0, 4);
    test_resume(5, 4);
    test_resume(5, 3);
    test_shorter();
    test_again();
    test_config();
    test_uses();
    test_making();
    ddp_finish(ddp);
    rmdir(dir);
    return done_testing();
}
