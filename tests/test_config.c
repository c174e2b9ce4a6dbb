/* test_config.c - options: their defaults, sizes, and what they resolve to
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "defaults.h"
#include "tap.h"

/* ---- defaults ----------------------------------------------------------- */

static void test_defaults(void)
{
    const float mean[] = {0.485f, 0.456f, 0.406f};
    const float std[] = {0.229f, 0.224f, 0.225f};
    struct ddp_config a;
    struct ddp_image_options b;
    struct ddp_train_config c;

    ddp_config_init(&a);
    ok(a.struct_size == sizeof(a) && a.cpus == DDP_ALL && a.gpus == DDP_ALL &&
           !a.backend && a.peer_timeout == 300 && !a.on_peer_lost,
       "ddp_config_init() sets the documented defaults");
    ddp_image_options_init(&b);
    ok(b.struct_size == sizeof(b) && b.size == 0 && b.resize == 0 &&
           b.min_area == 0.08f && b.shift == 4 &&
           !memcmp(b.mean, mean, sizeof(mean)) &&
           !memcmp(b.std, std, sizeof(std)) && b.max_pixels == 178956970 &&
           b.max_bad == 0.001,
       "so does ddp_image_options_init()");
    ddp_train_config_init(&c);
    ok(c.struct_size == sizeof(c) && c.sub_batch == 32 && c.batch == 0 &&
           c.lanes == 0 && c.epochs == 1 && c.run_ahead == 2 &&
           c.max_nan_steps == 10 && c.checkpoint.keep == 3 &&
           c.optimizer.lr == -1 && c.steps == 0 && c.checkpoint_failures == 0 &&
           !c.eval_data,
       "and ddp_train_config_init()");
}

/* Each initialiser against the documented values: padding is 0 on both sides,
 * for both structs begin as zeros. */
#define INITIALISED(name, ...)                                                 \
    do {                                                                       \
        static const struct name documented = {                                \
            .struct_size = sizeof(struct name), __VA_ARGS__};                  \
        static struct name filled;                                             \
                                                                               \
        name##_init(&filled);                                                  \
        ok(!memcmp(&filled, &documented, sizeof(filled)), "%s_init()", #name); \
    } while (0)

static void test_option_defaults(void)
{
    INITIALISED(ddp_model_options, .classes = 1000, .in_channels = 3,
                .width = 64, .dropout = DDP_MODEL_RATE,
                .stochastic_depth = DDP_MODEL_RATE);
    INITIALISED(ddp_storage_config, .timeout = 300, .requests = 256,
                .cache_size = (int64_t)50 << 30);
    INITIALISED(ddp_pack_options, .shard_samples = 1000, .threads = 1,
                .quality = 90);
    INITIALISED(ddp_dense_options, .pixels = 1);
    INITIALISED(ddp_conv_options, .kernel_w = DDP_SAME, .stride = 1,
                .stride_w = DDP_SAME, .dilation = 1, .dilation_w = DDP_SAME,
                .pad_w = DDP_SAME,
                .pads = {DDP_SAME, DDP_SAME, DDP_SAME, DDP_SAME}, .groups = 1);
    INITIALISED(ddp_batch_norm_options, .eps = 1e-5f, .momentum = 0.1f);
    INITIALISED(ddp_pool_options, .kernel_w = DDP_SAME, .stride = DDP_SAME,
                .stride_w = DDP_SAME, .pad_w = DDP_SAME);
    INITIALISED(ddp_save_options);
    INITIALISED(ddp_load_options);
    INITIALISED(ddp_convert_options);
    INITIALISED(ddp_compiled_options);
    INITIALISED(ddp_evaluate_config, .sub_batch = 32, .focal_gamma = 2,
                .focal_alpha = 0.25f);
    INITIALISED(ddp_resume_options);
}

/* ---- sizes -------------------------------------------------------------- */

/* Layers whose options were not initialised, or are of a newer libddp. */
static void test_layer_sizes(void)
{
    struct ddp_dense_options dense = {0};
    struct ddp_conv_options conv = {0};
    struct ddp_batch_norm_options norm = {0};
    struct ddp_pool_options pool = {0};
    struct ddp_model_options model = {0};

    ok(!ddp_dense_new(2, 2, &dense) &&
           strstr(ddp_errmsg(), "ddp_dense_options_init()"),
       "options without a size are refused: %s", ddp_errmsg());
    ok(!ddp_conv_new(2, 2, 3, &conv) &&
           strstr(ddp_errmsg(), "ddp_conv_options_init()"),
       "of convolutions too: %s", ddp_errmsg());
    ok(!ddp_batch_norm_new(2, &norm) &&
           strstr(ddp_errmsg(), "ddp_batch_norm_options_init()"),
       "of batch norms: %s", ddp_errmsg());
    ok(!ddp_max_pool_new(2, &pool) &&
           strstr(ddp_errmsg(), "ddp_pool_options_init()"),
       "of pools: %s", ddp_errmsg());
    ok(!ddp_model_new("mlp", &model) &&
           strstr(ddp_errmsg(), "ddp_model_options_init()"),
       "of models: %s", ddp_errmsg());
    pool.struct_size = sizeof(pool) + 1;
    ok(!ddp_mean_pool_new(2, &pool) && strstr(ddp_errmsg(), "newer libddp"),
       "options of a newer libddp: %s", ddp_errmsg());
}

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    (void)key;
    x[0] = (float)index;
    s->label = (int32_t)(index & 1);
    return 0;
}

static ddp_dataset_t *samples(int64_t count)
{
    return ddp_dataset_callback(&(struct ddp_source){.count = count,
                                                     .shape = {1, 1, 1},
                                                     .type = DDP_F32,
                                                     .classes = 2,
                                                     .get = get});
}

/* A program built before the last fields were there passes a shorter struct:
 * the library must neither read nor write past its end. */
static void test_older(const ddp_t *ddp, const ddp_dataset_t *d)
{
    size_t size = offsetof(struct ddp_train_config, max_nan_steps);
    struct ddp_train_config c;
    const unsigned char *byte = (const unsigned char *)&c;
    size_t touched = 0;

    memset(&c, 0xff, sizeof(c));
    ddp_train_config_init_sized(&c, size);
    c.sub_batch = 4;
    is_int(ddp_train_config_resolve(&c, ddp, d), 0,
           "a shorter struct is that of an older program");
    ok(c.struct_size == size && c.batch == 8 * 4,
       "it is resolved in its own length");
    for (size_t i = size; i < sizeof(c); i++)
        touched += byte[i] != 0xff;
    ok(touched == 0, "and nothing is written past its end");
}

static void test_call_sizes(ddp_t *ddp, ddp_dataset_t *d)
{
    ddp_chain_t *c = ddp_chain_new(ddp_dense_new(1, 2, NULL), DDP_END);
    struct ddp_save_options save = {.dtype = DDP_BF16};
    struct ddp_load_options load = {.partial = true};
    struct ddp_convert_options convert = {.dtype = DDP_BF16};
    struct ddp_compiled_options compiled = {.requests = 1};
    struct ddp_evaluate_config evaluate = {.sub_batch = 4};

    ok(ddp_chain_save(c, "/dev/null", &save) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "ddp_save_options_init()"),
       "saving: %s", ddp_errmsg());
    ok(ddp_chain_load(c, "/dev/null", &load, NULL) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "ddp_load_options_init()"),
       "loading: %s", ddp_errmsg());
    ok(ddp_weights_convert("/", "/", &convert, NULL) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "ddp_convert_options_init()"),
       "converting: %s", ddp_errmsg());
    ok(!ddp_compiled_new(ddp, c, (struct ddp_shape){1, 1, 1}, 1, &compiled) &&
           strstr(ddp_errmsg(), "ddp_compiled_options_init()"),
       "compiling: %s", ddp_errmsg());
    ok(ddp_chain_evaluate(ddp, c, d, &evaluate, NULL) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "ddp_evaluate_config_init()"),
       "evaluating: %s", ddp_errmsg());
    evaluate = (struct ddp_evaluate_config){EVALUATE_DEFAULTS, .sub_batch = 0};
    ok(ddp_chain_evaluate(ddp, c, d, &evaluate, NULL) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "sub_batch is 0, expected 1 or more"),
       "and 0 is 0: %s", ddp_errmsg());
    ddp_chain_free(c);
}

static void test_sizes(const ddp_t *ddp, const ddp_dataset_t *d)
{
    struct {
        struct ddp_train_config c;
        char more[64];
    } newer;
    struct ddp_train_config none = {.sub_batch = 4};

    ok(ddp_train_config_resolve(&none, ddp, d) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "ddp_train_config_init()"),
       "a struct without a size is refused: %s", ddp_errmsg());
    ddp_train_config_init_sized(&newer.c, sizeof(newer));
    ok(ddp_train_config_resolve(&newer.c, ddp, d) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "newer libddp"),
       "so is one that is larger than known: %s", ddp_errmsg());
    ok(ddp_storage_configure(&(struct ddp_storage_config){
           STORAGE_DEFAULTS, .timeout = 0}) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "timeout 0, expected above 0"),
       "servers have some time to answer");
    ok(ddp_storage_configure(&(struct ddp_storage_config){
           STORAGE_DEFAULTS, .requests = 2000}) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "2000 requests, expected 1 to 1024"),
       "requests to them are bounded");
    ok(ddp_storage_configure(&(struct ddp_storage_config){
           STORAGE_DEFAULTS, .cache_size = 0}) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "cache_size 0, expected 1 or more"),
       "a cache has some room");
    ok(ddp_storage_configure(&(struct ddp_storage_config){
           STORAGE_DEFAULTS, .cache_dir = "/proc/x/y"}) == DDP_EIO &&
           strstr(ddp_errmsg(), "/proc/x/y: cannot be created"),
       "and a folder");
    ok(!ddp_init(&(struct ddp_config){START_DEFAULTS, .peer_timeout = -1}) &&
           strstr(ddp_errmsg(), "peer_timeout -1 must not be negative"),
       "no wait for other ranks is negative");
    ok(!ddp_init(&(struct ddp_config){.cpus = 1}) &&
           strstr(ddp_errmsg(), "ddp_config_init()"),
       "ddp_init() does the same: %s", ddp_errmsg());
    ok(!ddp_dataset_folder("/", &(struct ddp_image_options){.size = 8}) &&
           strstr(ddp_errmsg(), "ddp_image_options_init()"),
       "and data sets: %s", ddp_errmsg());
}

/* ---- what is resolved --------------------------------------------------- */

static void test_resolve(const ddp_t *ddp, const ddp_dataset_t *d)
{
    struct ddp_train_config c = {TRAIN_DEFAULTS, .sub_batch = 30, .batch = 1000,
                                 .steps = 7};

    is_int(ddp_train_config_resolve(&c, ddp, d), 0,
           "a configuration is resolved");
    ok(c.batch == 100 && c.lanes == 4 && c.epochs == 7,
       "100 samples: a batch of %d in %d lanes, 7 steps are %d epochs", c.batch,
       c.lanes, (int)c.epochs);
    c.sub_batch = 0;
    ok(ddp_train_config_resolve(&c, ddp, d) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "sub_batch is 0, expected 1 or more"),
       "0 is 0, not a default: %s", ddp_errmsg());
}

/* What ddp_schedule_factor() could not compute with. */
static void test_schedules(const ddp_t *ddp, const ddp_dataset_t *d)
{
    struct ddp_train_config c = {TRAIN_DEFAULTS,
                                 .schedule = {.kind = DDP_STEPPED}};

    ok(ddp_train_config_resolve(&c, ddp, d) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "every is 0"),
       "a stepped schedule without steps is refused: %s", ddp_errmsg());
    ddp_schedule_init(&c.schedule, DDP_STEPPED, 1);
    is_int(ddp_train_config_resolve(&c, ddp, d), 0, "its defaults are not");
    c.schedule.warmup = -1;
    ok(ddp_train_config_resolve(&c, ddp, d) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "warmup -1"),
       "a negative warm-up is: %s", ddp_errmsg());
    c.schedule.warmup = 0;
    c.schedule.kind = DDP_MULTISTEP;
    c.schedule.milestones[1] = 0.1;
    ok(ddp_train_config_resolve(&c, ddp, d) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "milestone 1 is 0.1"),
       "so are milestones that do not rise: %s", ddp_errmsg());
    ddp_schedule_init(&c.schedule, DDP_RESTARTS, 1);
    c.schedule.stretch = 0.5;
    ok(ddp_train_config_resolve(&c, ddp, d) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "stretch is 0.5"),
       "cycles that become shorter: %s", ddp_errmsg());
    ddp_schedule_init(&c.schedule, DDP_PLATEAU, 1);
    c.schedule.gamma = 1;
    ok(ddp_train_config_resolve(&c, ddp, d) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "gamma 1, patience 10"),
       "a plateau that changes nothing: %s", ddp_errmsg());
    c.schedule.kind = (enum ddp_schedule_kind)17;
    ok(ddp_train_config_resolve(&c, ddp, d) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "schedule 17"),
       "and so is an unknown kind: %s", ddp_errmsg());
}

/* Enumerators and numbers that no code has a case for. */
static void test_ranges(const ddp_t *ddp, const ddp_dataset_t *d)
{
    const struct ddp_train_config good = {TRAIN_DEFAULTS,
                                          .optimizer = ddp_adam(0.1f)};
    const char *says[] = {"optimizer 99",
                          "loss 77",
                          "order is 9",
                          "clip_norm -1",
                          "clip_norm nan",
                          "beta1 1,",
                          "eps 0",
                          "weight_decay -1",
                          "rate inf",
                          "smoothing nan",
                          "target_threshold 1,",
                          "focal_gamma -1",
                          "clip_norm inf",
                          "clip_value inf",
                          "weight_decay inf",
                          "focal_alpha -inf",
                          "warmup inf",
                          "final_factor inf",
                          "needs update",
                          "3 weights, expected 2",
                          "-1 for class 1",
                          "pos_weight: only for the loss binary_cross_entropy",
                          "clip_unit nan",
                          "lookahead -1",
                          "lamb scales the step of each parameter"};
    static const float weight[] = {1, -1};
    enum { BAD = sizeof(says) / sizeof(*says) };
    struct ddp_train_config bad[BAD];

    for (int i = 0; i < BAD; i++)
        bad[i] = good;
    bad[0].optimizer.kind = (enum ddp_optimizer_kind)99;
    bad[1].loss = (enum ddp_loss_kind)77;
    bad[2].order = (enum ddp_order)9;
    bad[3].optimizer.clip_norm = -1;
    bad[4].optimizer.clip_norm = NAN;
    bad[5].optimizer.beta1 = 1;
    bad[6].optimizer.eps = 0;
    bad[7].optimizer.weight_decay = -1;
    bad[8].optimizer.lr = INFINITY;
    bad[9].label_smoothing = NAN;
    bad[10].target_threshold = 1;
    bad[11].focal_gamma = -1;
    bad[12].optimizer.clip_norm = INFINITY;
    bad[13].optimizer.clip_value = INFINITY;
    bad[14].optimizer.weight_decay = INFINITY;
    bad[15].focal_alpha = -INFINITY;
    bad[16].schedule.warmup = INFINITY;
    bad[17].schedule.final_factor = INFINITY;
    bad[18].optimizer.kind = DDP_CUSTOM_OPTIMIZER;
    for (int i = 19; i < 21; i++)
        bad[i].class_weights = weight;
    bad[19].class_weight_count = 3;
    bad[20].class_weight_count = 2;
    bad[21].pos_weight = weight;
    bad[21].pos_weight_count = 2;
    bad[22].optimizer.clip_unit = NAN;
    bad[23].optimizer.lookahead = -1;
    bad[24].optimizer.kind = DDP_LAMB;
    bad[24].optimizer.clip_unit = 0.01f;
    for (int i = 0; i < BAD; i++)
        ok(ddp_train_config_resolve(&bad[i], ddp, d) == DDP_EINVAL &&
               strstr(ddp_errmsg(), says[i]),
           "%s is refused: %s", says[i], ddp_errmsg());
}

static void test_getter(ddp_t *ddp, ddp_dataset_t *d)
{
    ddp_chain_t *chain = ddp_chain_new(ddp_dense_new(1, 2, NULL), DDP_END);
    struct ddp_train_config c = {TRAIN_DEFAULTS, .optimizer = ddp_sgd(0.5f)};
    ddp_trainer_t *t = ddp_trainer_new(ddp, chain, d, &c);
    const struct ddp_train_config *used = ddp_trainer_config(t);

    ok(used && used->batch == 100 && used->sub_batch == 32 &&
           used->lanes == 4 && used->optimizer.lr == 0.5f,
       "a trainer shows the configuration that it uses");
    ok(c.batch == 0, "and leaves the program's alone");
    is_int((int)ddp_trainer_epoch_steps(t), 1, "100 samples are one step");
    ddp_trainer_free(t);
    c.batch = 32;
    t = ddp_trainer_new(ddp, chain, d, &c);
    is_int((int)ddp_trainer_epoch_steps(t), 4, "or 32 + 32 + 32 + 4");
    is_int((int)ddp_dataset_bad_limit(d, 0.001), 1,
           "one thousandth of 100 samples is rounded up");
    is_int((int)ddp_dataset_bad_limit(d, 0), 0, "and none is none");
    ddp_trainer_free(t);
    ddp_chain_free(chain);
    ok(!ddp_trainer_config(NULL), "without a trainer there is none");
}

/* A trainer initialises what nobody has set, as ddp_chain_init() does. */
static void test_kept_weights(ddp_t *ddp, ddp_dataset_t *d)
{
    struct ddp_train_config cfg = {TRAIN_DEFAULTS, .optimizer = ddp_sgd(0.5f),
                                   .seed = 5};
    ddp_chain_t *c = ddp_chain_new(ddp_dense_new(1, 3, NULL),
                                   ddp_dense_new(3, 2, NULL), DDP_END);
    ddp_chain_t *same = ddp_chain_new(ddp_dense_new(1, 3, NULL),
                                      ddp_dense_new(3, 2, NULL), DDP_END);
    const float mine[] = {1, 2, 3};
    float got[3], a[6], b[6];

    ddp_chain_set(c, "0.weight", mine, 3);
    ddp_trainer_free(ddp_trainer_new(ddp, c, d, &cfg));
    ok(ddp_chain_get(c, "0.weight", got, 3) == 0 &&
           !memcmp(got, mine, sizeof(got)),
       "weights that were set are not initialised");
    ok(ddp_chain_init(same, 5) == 0 &&
           ddp_chain_get(c, "1.weight", a, 6) == 0 &&
           ddp_chain_get(same, "1.weight", b, 6) == 0 &&
           !memcmp(a, b, sizeof(a)),
       "the others are, with the seed of the run");
    ddp_chain_init(c, 7);
    ddp_trainer_free(ddp_trainer_new(ddp, c, d, &cfg));
    ok(ddp_chain_get(c, "0.weight", got, 3) == 0 &&
           ddp_chain_get(same, "0.weight", a, 3) == 0 &&
           !memcmp(got, a, sizeof(got)),
       "nor are those any longer that ddp_chain_init() replaced");
    ddp_chain_free(c);
    ddp_chain_free(same);
}

/* Several threads make many values, and one thread makes few. */
static void test_many_weights(void)
{
    enum { IN = 1024, FEW = 900, MANY = 4096 };
    float *a = calloc(IN * FEW, sizeof(*a));
    float *b = calloc((size_t)IN * MANY, sizeof(*b));
    ddp_chain_t *few = ddp_chain_new(ddp_dense_new(IN, FEW, NULL), DDP_END);
    ddp_chain_t *many = ddp_chain_new(ddp_dense_new(IN, MANY, NULL), DDP_END);

    ok(a && b && ddp_chain_init(few, 9) == 0 && ddp_chain_init(many, 9) == 0 &&
           ddp_chain_get(few, "0.weight", a, IN * FEW) == 0 &&
           ddp_chain_get(many, "0.weight", b, (size_t)IN * MANY) == 0 &&
           !memcmp(a, b, IN * FEW * sizeof(*a)),
       "a value depends on its place, not on how many there are");
    ddp_chain_free(few);
    ddp_chain_free(many);
    free(a);
    free(b);
}

static void test_no_optimizer(ddp_t *ddp, ddp_dataset_t *d)
{
    ddp_chain_t *c = ddp_chain_new(ddp_dense_new(1, 2, NULL), DDP_END);
    struct ddp_train_config cfg = {TRAIN_DEFAULTS};
    ddp_trainer_t *t = ddp_trainer_new(ddp, c, d, &cfg);
    struct ddp_metrics m;

    ok(t && ddp_trainer_train(t) == DDP_EINVAL &&
           ddp_trainer_step(t, &m) == DDP_EINVAL,
       "without an optimizer there is no training: %s", ddp_errmsg());
    ok(t && ddp_trainer_gradients(t, &m) == 0 && m.samples == 100,
       "but there are gradients");
    ok(t && ddp_trainer_update(t) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "there is no optimizer"),
       "and no update with them");
    ddp_trainer_free(t);
    ddp_chain_free(c);
}

/* Cross entropy of one class is 0 for any weights. */
static void test_one_class(ddp_t *ddp)
{
    const struct ddp_source one = {
        .count = 4, .shape = {1, 1, 1}, .classes = 1, .get = get};
    struct ddp_train_config c = {TRAIN_DEFAULTS, .optimizer = ddp_sgd(0.5f)};
    ddp_chain_t *chain = ddp_chain_new(ddp_dense_new(1, 1, NULL), DDP_END);
    ddp_dataset_t *d = ddp_dataset_callback(&one);

    ok(d && !ddp_trainer_new(ddp, chain, d, &c) &&
           strstr(ddp_errmsg(), "one class"),
       "data of one class are refused: %s", ddp_errmsg());
    ddp_dataset_free(d);
    ddp_chain_free(chain);
}

/* ---- constructors from arrays ------------------------------------------- */

static ddp_chain_t *from_array(void)
{
    ddp_layer_t *branch[] = {ddp_dense_new(3, 2, NULL),
                             ddp_dense_new(3, 4, NULL)};
    ddp_layer_t *layer[] = {ddp_parallel_of(DDP_CONCAT, 2, branch),
                            ddp_relu_new(), ddp_dense_new(6, 2, NULL)};

    return ddp_chain_of(3, layer);
}

static void test_arrays(void)
{
    ddp_layer_t *many[9];
    ddp_chain_t *a = from_array();
    ddp_chain_t *b =
        ddp_chain_new(ddp_parallel_new(DDP_CONCAT, ddp_dense_new(3, 2, NULL),
                                       ddp_dense_new(3, 4, NULL), DDP_END),
                      ddp_relu_new(), ddp_dense_new(6, 2, NULL), DDP_END);
    uint32_t crc[2] = {1, 2};

    ok(a && b && ddp_chain_init(a, 3) == 0 && ddp_chain_init(b, 3) == 0 &&
           ddp_chain_checksum(a, &crc[0]) == 0 &&
           ddp_chain_checksum(b, &crc[1]) == 0 && crc[0] == crc[1],
       "arrays make the chain that lists make");
    ddp_chain_free(a);
    ddp_chain_free(b);
    for (int i = 0; i < 9; i++)
        many[i] = ddp_relu_new();
    ok(!ddp_parallel_of(DDP_ADD, 9, many) && strstr(ddp_errmsg(), "9 branches"),
       "too many branches are refused: %s", ddp_errmsg());
    many[0] = ddp_relu_new();
    many[1] = ddp_dense_new(-1, 2, NULL);
    ok(!ddp_chain_of(2, many), "a chain of a failed layer fails: %s",
       ddp_errmsg());
    a = ddp_chain_of(0, NULL);
    ok(a != NULL, "a chain of no layers can be added to");
    ddp_chain_free(a);
}

int main(void)
{
    struct ddp_config start = {START_DEFAULTS, .cpus = 1, .gpus = 0};
    ddp_dataset_t *d = samples(100);
    ddp_dataset_t *large = samples(1000);
    ddp_t *ddp;

    unsetenv("STARPU_NCPU"); /* it would win */
    ddp = ddp_init(&start);
    if (!ddp || !d || !large)
        bail_out("%s", ddp_errmsg());
    is_int(ddp_worker_count(ddp), 1, "one worker was asked for");
    test_defaults();
    test_option_defaults();
    test_layer_sizes();
    test_call_sizes(ddp, d);
    test_older(ddp, large);
    test_sizes(ddp, d);
    test_resolve(ddp, d);
    test_schedules(ddp, d);
    test_ranges(ddp, d);
    test_getter(ddp, d);
    test_one_class(ddp);
    test_kept_weights(ddp, d);
    test_many_weights();
    test_no_optimizer(ddp, d);
    test_arrays();
    ddp_dataset_free(large);
    ddp_dataset_free(d);
    ddp_finish(ddp);
    return done_testing();
}
