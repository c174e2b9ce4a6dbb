/* test_data_bad.c - samples that cannot be read, also by many threads
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <pthread.h>

#include "data/dataset.h"
#include "data_files.h"

/* ---- bad samples -------------------------------------------------------- */

struct source {
    int64_t bad_every; /* 0: none */
    int code;
};

static int source_get(void *arg, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    const struct source *src = arg;

    (void)key;
    if (src->bad_every && index % src->bad_every == 0)
        return src->code;
    *(float *)s->x = (float)index;
    s->label = (int32_t)(index % 3);
    return 0;
}

static ddp_dataset_t *source(struct source *src, int64_t count, double max_bad)
{
    struct ddp_source s = {.count = count,
                           .shape = {1, 1, 1},
                           .classes = 3,
                           .get = source_get,
                           .arg = src};
    ddp_dataset_t *d = ddp_dataset_callback(&s);

    d->max_bad = max_bad;
    return d;
}

static int64_t read_one(ddp_dataset_t *d, const struct ddp__order *o,
                        int64_t pos, bool replace)
{
    float x = -1;
    struct ddp_sample s = {.x = &x};
    int rc = ddp__dataset_read(d, o, pos, replace, &s);

    return rc ? -100 - rc : (int64_t)x;
}

static void test_replace(void)
{
    struct source src = {.bad_every = 10, .code = DDP_EDATA};
    ddp_dataset_t *d = source(&src, 100, 0.2);
    struct ddp__order o = {.seed = 1, .epoch = 4, .shuffle = true};
    int wrong = 0;

    for (int64_t pos = 0; pos < 100; pos++) {
        int64_t want, p = pos;

        do
            want = ddp__permute(1, 4, 100, p++ % 100);
        while (want % 10 == 0);
        wrong += read_one(d, &o, pos, true) != want;
    }
    is_int(wrong, 0, "a bad sample is replaced by the next of the order");
    is_int(ddp_dataset_bad_count(d), 10, "each bad one counts once");
    for (int64_t pos = 0; pos < 100; pos++)
        wrong += read_one(d, &o, pos, true) < 0;
    is_int(ddp_dataset_bad_count(d), 10, "also when it is met again");
    ddp_dataset_free(d);
}

static void test_budget(void)
{
    struct source src = {.bad_every = 50, .code = DDP_EDATA};
    ddp_dataset_t *d = source(&src, 200, 0.001);
    struct ddp__order o = {0};
    struct ddp_bad_sample bad;

    is_int(read_one(d, &o, 0, true), 1, "one bad sample is always tolerated");
    is_int(ddp_dataset_bad(d, 0, &bad), 0, "it is known");
    is_str(bad.path, "sample 0", "by its name");
    ok(strstr(bad.why, "get() returned -5"), "and the reason");
    is_int(ddp_dataset_bad(d, 1, &bad), DDP_EINVAL, "there is no second");
    is_int(read_one(d, &o, 50, true), -100 - DDP_EDATA,
           "two of 200 are too many for a budget of 0.001");
    ok(strstr(ddp_errmsg(), "2 of 200 samples are bad") &&
           strstr(ddp_errmsg(), "sample 50"),
       "the message names them");
    ddp_dataset_free(d);

    d = source(&src, 200, 0);
    is_int(read_one(d, &o, 0, true), -100 - DDP_EDATA,
           "a negative budget bears none");
    ddp_dataset_free(d);
    src.bad_every = 1;
    d = source(&src, 20, 1);
    is_int(read_one(d, &o, 3, true), -100 - DDP_EDATA,
           "all samples bad: an error with any budget");
    ddp_dataset_free(d);
}

static void test_evaluation(void)
{
    struct source src = {.bad_every = 10, .code = DDP_EDATA};
    ddp_dataset_t *d = source(&src, 100, 0.5);
    struct ddp__order o = {0};

    is_int(read_one(d, &o, 20, false), -100 - DDP__BAD,
           "evaluation: a bad sample is not replaced");
    is_int(read_one(d, &o, 21, false), 21, "a good one is read");
    is_int(ddp_dataset_bad_count(d), 1, "the bad one is counted");
    src.code = DDP_ENOMEM;
    is_int(read_one(d, &o, 30, true), -100 - DDP_ENOMEM,
           "an error that is not the sample's is passed on");
    src.code = 7;
    is_int(read_one(d, &o, 30, false), -100 - DDP__BAD,
           "a positive code of a program's get() is a bad sample");
    ddp_dataset_free(d);
}

static void test_many_bad(void)
{
    struct source src = {.bad_every = 2, .code = DDP_EDATA};
    ddp_dataset_t *d = source(&src, 6000, 1);
    struct ddp__order o = {.seed = 2, .shuffle = true};
    struct ddp_bad_sample bad;

    for (int64_t pos = 0; pos < 6000; pos++)
        read_one(d, &o, pos, true);
    is_int(ddp_dataset_bad_count(d), 3000, "3000 bad samples are counted");
    ok(ddp_dataset_bad(d, 999, &bad) == 0 &&
           ddp_dataset_bad(d, 1000, &bad) == DDP_EINVAL,
       "and the first 1000 are kept");
    ddp_dataset_free(d);
}

static void test_callback(void)
{
    struct ddp_source s = {
        .count = 5, .shape = {1, 1, 1}, .classes = 2, .get = source_get};

    s.count = 0;
    refused(ddp_dataset_callback(&s), "0 samples", "no samples");
    s.count = 5;
    s.get = NULL;
    refused(ddp_dataset_callback(&s), "needs a get()", "no function");
    s.get = source_get;
    s.type = DDP_I64;
    refused(ddp_dataset_callback(&s), "type", "a strange type");
    s.type = DDP_F32;
    s.target_len = 3;
    refused(ddp_dataset_callback(&s), "either", "classes and targets");
    s.target_len = 0;
    s.shape.h = 0;
    refused(ddp_dataset_callback(&s), "shape (0, 1, 1)", "no values");
    refused(ddp_dataset_callback(NULL), "needs a get()", "no source");
}

/* ---- many threads ------------------------------------------------------- */

enum { THREADS = 4, SIZE = 16 * 16 * 3 };
static ddp_dataset_t *shared;
static uint8_t seen[THREADS][40][SIZE];

static void *read_all(void *arg)
{
    int t = (int)(intptr_t)arg;
    struct ddp__order o = {.seed = 8, .shuffle = true};

    for (int i = 0; i < 40; i++) {
        int pos = (i + 10 * t) % 40;
        struct ddp_sample s = {.x = seen[t][pos]};

        if (ddp__dataset_read(shared, &o, pos, true, &s) < 0)
            memset(seen[t][pos], t, SIZE);
    }
    return NULL;
}

/* Files, one of them bad, read by several threads in different orders. */
static void test_threads(void)
{
    struct ddp_image_options o = {IMAGE_DEFAULTS, .size = 16, .max_bad = 0.1,
                                  .augment = DDP_AUGMENT_RANDOM};
    pthread_t thread[THREADS];
    char name[64];
    int same = 0;

    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "t/class%d/%02d.jpg", i % 3, i);
        if (i % 20 == 7)
            put_text(name, "this is no image");
        else
            put_image(name, (uint32_t)i);
    }
    shared = ddp_dataset_folder(at("t"), &o);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, read_all, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 1; i < THREADS; i++)
        same += !memcmp(seen[0], seen[i], sizeof(seen[0]));
    is_int(same, THREADS - 1, "four threads read the same samples");
    is_int(ddp_dataset_bad_count(shared), 2, "and count two bad files");
    ddp_dataset_free(shared);
}

int main(void)
{
    scratch_make();
    test_replace();
    test_budget();
    test_evaluation();
    test_many_bad();
    test_callback();
    test_threads();
    return done_testing();
}
