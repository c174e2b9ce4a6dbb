/* test_errmsg.c - calls that succeed leave ddp_errmsg() as it was, and calls
 * without an object set it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A table of all functions of ddp.h, in an order in which each of them
 * succeeds, and one of those that take an object, each called with NULL.  A
 * function that is missing fails the test.
 */
#include "config.h"

#include <ctype.h>
#include <sys/wait.h>

#include "defaults.h"
#include "scratch.h"

enum { LEN = 4, CLASSES = 3, COUNT = 24, RECORD = 3073 };

/* ---- files -------------------------------------------------------------- */

static void put_photo(const char *name)
{
    struct bytes b = make_photo(20, 18, 1);

    put(name, b.data, b.len);
    free(b.data);
}

/* A hundred lines. */
static const char *hundred(void)
{
    static char text[201];

    for (int i = 0; i < 200; i++)
        text[i] = i % 2 ? '\n' : 'x';
    return text;
}

/* Two samples, as GNU tar writes them. */
static void put_tar(const char *name)
{
    char command[2000];

    put_photo("wds/1.jpg");
    put_photo("wds/2.jpg");
    put_text("wds/1.cls", "0");
    put_text("wds/2.cls", "1");
    snprintf(command, sizeof(command), "tar -C %s --sort=name -cf %s .",
             at("wds"), at(name));
    if (system(command) != 0)
        bail_out("tar failed");
}

static void put_files(void)
{
    static const uint8_t record[RECORD], record_100[RECORD + 1];
    static const uint8_t digit[16 + 28 * 28] = {0, 0, 8, 3,  0, 0, 0, 1,
                                                0, 0, 0, 28, 0, 0, 0, 28};
    char name[64];

    put_text("t.csv", "x,class\n1,a\n2,b\n");
    put_text("l.csv", "path,label\nf/a/1.jpg,a\nf/b/2.jpg,b\n");
    put_text("c100/fine_label_names.txt", hundred());
    put_tar("w.tar");
    put("c100/train.bin", record_100, sizeof(record_100));
    put("m/train-images-idx3-ubyte", digit, sizeof(digit));
    put("m/train-labels-idx1-ubyte", "\0\0\10\1\0\0\0\1\7", 9);
    put_photo("f/a/1.jpg");
    put_photo("f/b/2.jpg");
    put_text("f/b/3.jpg", "not an image");
    put_text("i/LOC_synset_mapping.txt", "n01 tench\nn02 goldfish\n");
    put_text("Data.toml",
             "data_config_version = 1\n[[datasets]]\nname = \"f\"\n"
             "uuid = \"b498f769-a7f6-4f67-8d74-40b770398f26\"\nstorage = "
             "{driver = \"FileSystem\", path = \"@__DIR__/f\"}\n");
    put_text("p/classes.txt", "a\nb\n");
    put_text("p/index.csv", "shard,offset,size,label,crc32c,name\n"
                            "0.tar,512,9,1,00000000,a\n");
    put_photo("i/ILSVRC/Data/CLS-LOC/train/n01/n01_1.JPEG");
    for (int i = 1; i <= 5; i++) {
        snprintf(name, sizeof(name), "c/data_batch_%d.bin", i);
        put(name, record, sizeof(record));
    }
}

/* ---- what the calls use and make ---------------------------------------- */

static const struct ddp_shape vector = {1, 1, LEN};
static ddp_request_t *reduction;
static bool over;
static int part;
static struct ddp_rank_status of_rank;
static struct ddp_storage_stats asked;
static struct ddp_image_cache_stats cached;
static char where[1024];
static struct ddp_memory_plan memory;
static struct ddp_time_plan time_plan;
static const struct ddp_gpu_info gpu = {.name = "none"};
static struct ddp_device_speed gpu_speed;
static const struct ddp_operation operation = {
    .name = "none", .type = "f32", .shapes = "1x1x1", .samples = 1};
static struct ddp_policy policy;
static const struct ddp_image_options small = {IMAGE_DEFAULTS, .size = 8,
                                               .max_bad = 0.5};
static ddp_t *ddp;
static ddp_layer_t *layer;
static ddp_chain_t *net;
static ddp_dataset_t *data, *folder;
static ddp_trainer_t *trainer;
static ddp_compiled_t *compiled;
static ddp_pullback_t *pullback;
static struct ddp_image_options images;
static struct ddp_train_config cfg;
static struct ddp_metrics metrics;
static struct ddp_evaluation evaluation;
static ddp_log_t *board;
static char control[] = "a\n";
static int64_t request;
static float x[COUNT * LEN], y[COUNT * CLASSES], w[LEN * CLASSES];

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    (void)arg;
    (void)key;
    for (int i = 0; i < LEN; i++)
        ((float *)s->x)[i] = (float)((index * 7 + i * 3) % 5) - 2;
    s->label = (int32_t)(index % CLASSES);
    return 0;
}

static const struct ddp_source source = {.count = COUNT,
                                         .shape = {1, 1, LEN},
                                         .type = DDP_F32,
                                         .classes = CLASSES,
                                         .get = get};

/* Of the first output; the CPU's backend leaves it to ref. */
static int32_t labels[COUNT];
static double first_output(const float *out, const void *target,
                           const float *weight, int n, int len, float *dx,
                           void *arg)
{
    double sum = 0;

    (void)target;
    (void)arg;
    for (int i = 0; i < n * len; i++) {
        float factor = i % len ? 0 : weight[i / len];

        sum += (double)(factor * out[i]);
        if (dx)
            dx[i] = factor;
    }
    return sum;
}

static bool configure(void)
{
    static char runs[64];

    snprintf(runs, sizeof(runs), "%s/runs", scratch_top);
    ddp_train_config_init_sized(&cfg, sizeof(cfg));
    cfg.optimizer = ddp_sgd(0.1f);
    cfg.sub_batch = 4;
    cfg.batch = 8;
    cfg.ema_decay = 0.9;
    cfg.loss = DDP_CUSTOM_LOSS;
    cfg.loss_fn = first_output;
    cfg.checkpoint.dir = runs;
    return true;
}

static int accept(const char *key, const char *value, void *arg)
{
    (void)arg;
    return !(*key && *value);
}

static int ignore(const struct ddp_layer_info *info, void *arg)
{
    (void)info;
    (void)arg;
    return 0;
}

static const struct ddp_optimizer sgd = {.lr = 0.1f};

static int overlook(const struct ddp_operation *o, void *arg)
{
    (void)o;
    (void)arg;
    return 0;
}

static bool made(ddp_layer_t *l)
{
    ddp_layer_free(l);
    return l != NULL;
}

/* Two samples of two classes. */
static ddp_dataset_t *arrays(void)
{
    static const float numbers[2 * LEN];
    static const int32_t label[] = {0, 1};
    struct ddp_arrays a;

    ddp_arrays_init(&a);
    a.count = 2;
    a.shape = vector;
    a.x = numbers;
    a.classes = 2;
    a.label = label;
    return ddp_dataset_arrays(&a);
}

static int nothing(void *arg, int64_t epoch, int64_t index, uint64_t key,
                   struct ddp_sample *s)
{
    (void)arg;
    (void)epoch;
    (void)index;
    (void)key;
    (void)s;
    return DDP_STREAM_END;
}

static bool opened(ddp_dataset_t *d)
{
    ddp_dataset_free(d);
    return d != NULL;
}

/* The class folders have a file that is no image: it is replaced. */
static bool read_all(ddp_dataset_t *d)
{
    ddp_chain_t *c = ddp_chain_new(ddp_global_mean_pool_new(),
                                   ddp_dense_new(3, 2, NULL), DDP_END);
    struct ddp_metrics m;
    bool good = c && ddp_chain_init(c, 1) == 0 &&
                ddp_chain_evaluate(ddp, c, d, NULL, &m) == 0 &&
                ddp_dataset_bad_count(d) == 1;

    ddp_chain_free(c);
    return good;
}

static bool whitened(void)
{
    ddp_chain_t *c = ddp_chain_new(ddp_conv_new(LEN, 2, 1, NULL), DDP_END);
    ddp_dataset_t *d = arrays();
    bool good = ddp_chain_whiten(c, d, 2, 1) == 0;

    ddp_dataset_free(d);
    ddp_chain_free(c);
    return good;
}

static bool resumed(bool with)
{
    ddp_trainer_t *t = ddp_trainer_new(ddp, net, data, &cfg);
    bool good = t && (with ? ddp_trainer_resume_with(t, NULL, NULL, NULL)
                           : ddp_trainer_resume(t, NULL, NULL)) == 1;

    ddp_trainer_free(t);
    return good;
}

/* ---- the table ---------------------------------------------------------- */

/* Fill in one struct of options. */
#define INIT(type)                                                             \
    (type##_init_sized(&(struct type){.struct_size = 0}, sizeof(struct type)), \
     true)
#define DONE(call) ((call), true)

/* X (function, whether it succeeds) */
/* clang-format off */
#ifdef HAVE_ONNX
#define ONNX_CALLS(X)                                                          \
    X(ddp_chain_export_onnx,                                                   \
      ddp_chain_export_onnx(net, vector, at("o"), NULL, NULL) == 0)
#else
#define ONNX_CALLS(X)
#endif
#ifdef HAVE_ARCHIVE
#define PACK_CALLS(X)                                                          \
    X(ddp_dataset_pack, ddp_dataset_pack(folder, at("packed"), NULL) == 0)
#else
#define PACK_CALLS(X)
#endif
#define CALLS(X)                                                               \
    X(ddp_printable, (ddp_printable(control), !strcmp(control, "a?")))         \
    X(ddp_strerror, *ddp_strerror(DDP_EIO))                                    \
    X(ddp_version_number, ddp_version_number() == DDP_VERSION_NUMBER)          \
    X(ddp_version, *ddp_version())                                             \
    X(ddp_config_init_sized, INIT(ddp_config))                                 \
    X(ddp_dense_options_init_sized, INIT(ddp_dense_options))                   \
    X(ddp_conv_options_init_sized, INIT(ddp_conv_options))                     \
    X(ddp_batch_norm_options_init_sized, INIT(ddp_batch_norm_options))         \
    X(ddp_pool_options_init_sized, INIT(ddp_pool_options))                     \
    X(ddp_model_options_init_sized, INIT(ddp_model_options))                   \
    X(ddp_save_options_init_sized, INIT(ddp_save_options))                     \
    X(ddp_load_options_init_sized, INIT(ddp_load_options))                     \
    X(ddp_convert_options_init_sized, INIT(ddp_convert_options))               \
    X(ddp_image_options_init_sized, INIT(ddp_image_options))                   \
    X(ddp_pack_options_init_sized, INIT(ddp_pack_options))                     \
    X(ddp_storage_config_init_sized, INIT(ddp_storage_config))                 \
    X(ddp_storage_configure, ddp_storage_configure(NULL) == 0)                 \
    X(ddp_storage_stats, DONE(ddp_storage_stats(&asked)))                      \
    X(ddp_image_cache_configure, ddp_image_cache_configure(0) == 0)            \
    X(ddp_image_cache_folder, ddp_image_cache_folder(NULL, 0) == 0)            \
    X(ddp_image_cache_stats, DONE(ddp_image_cache_stats(&cached)))             \
    X(ddp_compiled_options_init_sized, INIT(ddp_compiled_options))             \
    X(ddp_evaluate_config_init_sized, INIT(ddp_evaluate_config))               \
    X(ddp_resume_options_init_sized, INIT(ddp_resume_options))                 \
    X(ddp_train_config_init_sized, configure())                                \
    X(ddp_policy_parse, ddp_policy_parse("ta_wide", &policy) == 0)       \
    X(ddp_schedule_init, DONE(ddp_schedule_init(&cfg.schedule,                 \
                                              DDP_COSINE, 1)))                 \
    X(ddp_schedule_factor, ddp_schedule_factor(&cfg.schedule, 1, 0.5, 1) > 0)  \
    X(ddp_schedule_momentum,                                                   \
      ddp_schedule_momentum(&cfg.schedule, 1, 0.5, 1) == 0)                    \
    X(ddp_optimizer_info, ddp_optimizer_info(DDP_ADAM))                        \
    X(ddp_sgd, ddp_sgd(1).lr == 1)                                             \
    X(ddp_momentum, ddp_momentum(1, 0.9f).lr == 1)                             \
    X(ddp_nesterov, ddp_nesterov(1, 0.9f).lr == 1)                             \
    X(ddp_adam, ddp_adam(1).lr == 1)                                           \
    X(ddp_adamw, ddp_adamw(1, 0).lr == 1)                                      \
    X(ddp_rmsprop, ddp_rmsprop(1).lr == 1)                                     \
    X(ddp_init, (ddp = ddp_init(NULL)))                                        \
    X(ddp_describe, *ddp_describe(ddp))                                        \
    X(ddp_worker_count, ddp_worker_count(ddp) > 0)                             \
    X(ddp_worker_name, !ddp_worker_name(ddp, 0, (char[64]){""}, 64))           \
    X(ddp_core_count, ddp_core_count() > 0)                                    \
    X(ddp_gpu_worker_count, ddp_gpu_worker_count(ddp) >= 0)                    \
    X(ddp_rank, ddp_rank(ddp) == 0)                                            \
    X(ddp_rank_count, ddp_rank_count(ddp) == 1)                                \
    X(ddp_local_rank, ddp_local_rank(ddp) == 0)                                \
    X(ddp_phase_name, *ddp_phase_name(DDP_PHASE_TRAINING))                     \
    X(ddp_ranks_status, ddp_ranks_status(ddp, 0, &of_rank) == 0)               \
    X(ddp_ranks_hurry, ddp_ranks_hurry(ddp, 1) == 0)                           \
    X(ddp_ranks_describe, *ddp_ranks_describe(ddp) == 0)                       \
    X(ddp_ranks_measure, ddp_ranks_measure(ddp, 1, 1, &(double){0}) == 0)           \
    X(ddp_barrier, ddp_barrier(ddp) == 0)                                      \
    X(ddp_bcast, ddp_bcast(ddp, w, 4, 0) == 0)                                 \
    X(ddp_bcast_begin,                                                         \
      ddp_request_wait(ddp_bcast_begin(ddp, w, 4, 0)) == 0)                    \
    X(ddp_allreduce, ddp_allreduce(ddp, w, 1, DDP_F32, DDP_SUM) == 0)          \
    X(ddp_reduce, ddp_reduce(ddp, w, 1, DDP_F32, DDP_MAX, 0) == 0)             \
    X(ddp_bcast_to, ddp_bcast_to(ddp, w, w, 4, 0) == 0)                        \
    X(ddp_allreduce_to,                                                        \
      ddp_allreduce_to(ddp, w, w, 1, DDP_F32, DDP_SUM) == 0)                   \
    X(ddp_reduce_to, ddp_reduce_to(ddp, w, w, 1, DDP_F32, DDP_MAX, 0) == 0)    \
    X(ddp_allreduce_optional,                                                  \
      ddp_allreduce_optional(ddp, w, 1, DDP_F32, DDP_MEAN, true, &part) == 0)  \
    X(ddp_allreduce_begin,                                                     \
      (reduction = ddp_allreduce_begin(ddp, w, 1, DDP_F32, DDP_SUM)))          \
    X(ddp_request_test, ddp_request_test(reduction, &over) == 0 && over)       \
    X(ddp_request_wait, ddp_request_wait(reduction) == 0)                      \
    X(ddp_gpu_count, ddp_gpu_count(ddp, NULL) >= 0)                            \
    X(ddp_gpu_speed, ddp_gpu_speed(&gpu, DDP_F32, &gpu_speed) == 0)            \
    X(ddp_dense_new, (layer = ddp_dense_new(LEN, CLASSES, NULL)))              \
    X(ddp_layer_set_name, ddp_layer_set_name(layer, "head"))                   \
    X(ddp_chain_new, (net = ddp_chain_new(layer, DDP_END)))                    \
    X(ddp_chain_add, ddp_chain_add(net, ddp_act_new(DDP_IDENTITY)) == 0)       \
    X(ddp_chain_of, made(ddp_chain_of(0, NULL)))                               \
    X(ddp_conv_new, made(ddp_conv_new(1, 1, 1, NULL)))                         \
    X(ddp_batch_norm_new, made(ddp_batch_norm_new(1, NULL)))                   \
    X(ddp_act_new, made(ddp_act_new(DDP_RELU)))                                \
    X(ddp_max_pool_new, made(ddp_max_pool_new(2, NULL)))                       \
    X(ddp_mean_pool_new, made(ddp_mean_pool_new(2, NULL)))                     \
    X(ddp_adaptive_mean_pool_new, made(ddp_adaptive_mean_pool_new(1, 1)))      \
    X(ddp_global_mean_pool_new, made(ddp_global_mean_pool_new()))              \
    X(ddp_dropout_new, made(ddp_dropout_new(0.5f)))                            \
    X(ddp_stochastic_depth_new, made(ddp_stochastic_depth_new(0.5f)))          \
    X(ddp_flatten_new, made(ddp_flatten_new()))                                \
    X(ddp_skip_new, made(ddp_skip_new(ddp_flatten_new(), DDP_END)))            \
    X(ddp_parallel_new,                                                        \
      made(ddp_parallel_new(DDP_ADD, ddp_flatten_new(), DDP_END)))             \
    X(ddp_parallel_of, made(ddp_parallel_of(DDP_ADD, 1,                        \
                            (ddp_layer_t *[]){ddp_flatten_new()})))            \
    X(ddp_channel_scale_new, made(ddp_channel_scale_new(ddp_flatten_new())))   \
    X(ddp_aux_new, made(ddp_aux_new(ddp_flatten_new(), 1)))                    \
    X(ddp_layer_free, made(ddp_flatten_new()))                                 \
    X(ddp_model_new, made(ddp_model_new("resnet9", NULL)))                     \
    X(ddp_model_name, ddp_model_name(0) && !ddp_model_name(10000))             \
    X(ddp_model_size, ddp_model_size("resnet18") && !ddp_model_size("none"))   \
    X(ddp_model_image_options,                                                 \
      ddp_model_image_options("resnet18", &images) == 0)                       \
    X(ddp_chain_init, ddp_chain_init(net, 1) == 0)                             \
    X(ddp_chain_param,                                                         \
      ddp_chain_param(net, 0, &(struct ddp_param_info){.ndim = 0}) == 0)       \
    X(ddp_chain_get, ddp_chain_get(net, "head.weight", w, LEN * CLASSES) == 0) \
    X(ddp_chain_set, ddp_chain_set(net, "head.weight", w, LEN * CLASSES) == 0) \
    X(ddp_chain_set_metadata, ddp_chain_set_metadata(net, "a", "b") == 0)      \
    X(ddp_chain_save, ddp_chain_save(net, at("w"), NULL) == 0)                 \
    X(ddp_chain_load, ddp_chain_load(net, at("w"), NULL, NULL) == 0)           \
    X(ddp_weights_convert,                                                     \
      ddp_weights_convert(at("w"), at("v"), NULL, NULL) == 0)                  \
    X(ddp_weights_metadata,                                                    \
      ddp_weights_metadata(at("v"), accept, NULL) == 0)                        \
    X(ddp_weights_model,                                                       \
      ddp_weights_model(at("v"), &(const char *){NULL}) == 0)                  \
    X(ddp_chain_sync, ddp_chain_sync(ddp, net, 0) == 0)                        \
    X(ddp_chain_checksum, ddp_chain_checksum(net, &(uint32_t){0}) == 0)        \
    X(ddp_chain_norm, ddp_chain_norm(net, &(double){0}) == 0)                  \
    X(ddp_chain_inspect,                                                       \
      ddp_chain_inspect(net, vector, DDP_F32, ignore, NULL) == 0)              \
    X(ddp_chain_operations,                                                    \
      ddp_chain_operations(net, vector, DDP_F32, 2, &sgd, overlook, NULL) ==   \
          0)                                                                   \
    ONNX_CALLS(X)                                                              \
    X(ddp_dataset_csv, opened(ddp_dataset_csv(at("t.csv"), "class")))          \
    X(ddp_dataset_part,                                                        \
      opened(ddp_dataset_part(ddp_dataset_csv(at("t.csv"), "class"),           \
                              DDP_TRAIN, 0.5, 1)))                             \
    X(ddp_dataset_shard,                                                       \
      opened(ddp_dataset_shard(ddp_dataset_csv(at("t.csv"), "class"), 1, 2)))  \
    X(ddp_dataset_imagenet,                                                    \
      opened(ddp_dataset_imagenet(at("i"), DDP_TRAIN, &small)))                \
    X(ddp_dataset_cifar10,                                                     \
      opened(ddp_dataset_cifar10(at("c"), DDP_TRAIN, NULL)))                   \
    X(ddp_dataset_cifar100,                                                    \
      opened(ddp_dataset_cifar100(at("c100"), DDP_TRAIN, NULL)))               \
    X(ddp_dataset_mnist, opened(ddp_dataset_mnist(at("m"), DDP_TRAIN, NULL)))  \
    X(ddp_dataset_list, opened(ddp_dataset_list(at("l.csv"), &small)))         \
    X(ddp_arrays_init_sized, INIT(ddp_arrays))                                 \
    X(ddp_dataset_arrays, opened(arrays()))                                    \
    X(ddp_stream_init_sized, INIT(ddp_stream))                                 \
    X(ddp_dataset_stream,                                                      \
      opened(ddp_dataset_stream(&(struct ddp_stream){                          \
          .struct_size = sizeof(struct ddp_stream),                            \
          .shape = vector,                                                     \
          .type = DDP_F32,                                                     \
          .classes = 2,                                                        \
          .next = nothing})))                                                  \
    X(ddp_dataset_subset,                                                      \
      opened(ddp_dataset_subset(arrays(), (const int64_t[]){1}, 1)))           \
    X(ddp_dataset_concat, opened(ddp_dataset_concat(                           \
                              (ddp_dataset_t *[]){arrays(), arrays()}, 2)))    \
    X(ddp_dataset_map, opened(ddp_dataset_map(                                 \
                           arrays(), (const int32_t[]){1, 0}, 2, NULL)))       \
    X(ddp_dataset_images, opened(ddp_dataset_images(                           \
                              (const char *[]){at("f/a")}, 1, &small)))        \
    X(ddp_dataset_folder, opened(ddp_dataset_folder(at("f"), &small)))         \
    X(ddp_dataset_open, (folder = ddp_dataset_open(at("f"), DDP_TRAIN,         \
                                                   &small)))                   \
    X(ddp_dataset_unpack,                                                      \
      ddp_dataset_unpack(folder, at("unpacked"), NULL, NULL) == 0)             \
    PACK_CALLS(X)                                                              \
    X(ddp_dataset_tars, opened(ddp_dataset_tars(at("p"), &small)))             \
    X(ddp_dataset_webdataset,                                                  \
      opened(ddp_dataset_webdataset(at("w.tar"), &small)))                     \
    X(ddp_dataset_find,                                                        \
      ddp_dataset_find(at("Data.toml"), "f", where, sizeof(where)) == 0)       \
    X(ddp_dataset_named,                                                       \
      opened(ddp_dataset_named(at("Data.toml"), "f", DDP_TRAIN, &small)))      \
    X(ddp_dataset_splits, ddp_dataset_splits(at("f")) == 0)                    \
    X(ddp_dataset_native_size, ddp_dataset_native_size(at("f")) == 0)          \
    X(ddp_dataset_class_counts,                                                \
      ddp_dataset_class_counts(folder, (int64_t[2]){0}) == 0)                  \
    X(ddp_dataset_set_classes,                                                 \
      ddp_dataset_set_classes(folder, 2, (const char *[]){"b", "a"}) == 0)     \
    X(ddp_chain_whiten, whitened())                                            \
    X(ddp_chain_evaluate, read_all(folder))                                    \
    X(ddp_dataset_bad_count, ddp_dataset_bad_count(folder) == 1)               \
    X(ddp_dataset_bad,                                                         \
      ddp_dataset_bad(folder, 0, &(struct ddp_bad_sample){NULL, NULL}) == 0)   \
    X(ddp_dataset_retries, ddp_dataset_retries(folder) == 0)                   \
    X(ddp_dataset_resize, ddp_dataset_resize(folder) > 0)                      \
    X(ddp_dataset_bad_limit, ddp_dataset_bad_limit(folder, 0.5) == 2)          \
    X(ddp_dataset_path, ddp_dataset_path(folder, 0))                           \
    X(ddp_dataset_class_name, *ddp_dataset_class_name(folder, 0))              \
    X(ddp_dataset_free, DONE(ddp_dataset_free(folder)))                        \
    X(ddp_dataset_callback, (data = ddp_dataset_callback(&source)))            \
    X(ddp_dataset_count, ddp_dataset_count(data) == COUNT)                     \
    X(ddp_dataset_classes, ddp_dataset_classes(data) == CLASSES)               \
    X(ddp_dataset_target_len, ddp_dataset_target_len(data) == 0)               \
    X(ddp_dataset_shape, ddp_dataset_shape(data).c == LEN)                     \
    X(ddp_dataset_describe, *ddp_dataset_describe(data))                       \
    X(ddp_dataset_get, ddp_dataset_get(data, 0, 0, x, NULL) == 0)              \
    X(ddp_chain_forward,                                                       \
      ddp_chain_forward(ddp, net, x, DDP_F32, vector, 2, 0, y) == 0)           \
    X(ddp_compiled_new,                                                        \
      (compiled = ddp_compiled_new(ddp, net, vector, 2, NULL)))                \
    X(ddp_compiled_shape, ddp_compiled_shape(compiled).c == CLASSES)           \
    X(ddp_compiled_run, ddp_compiled_run(compiled, x, 1, y) == 0)              \
    X(ddp_compiled_submit,                                                     \
      ddp_compiled_submit(compiled, x, 1, y, &request) == 0)                   \
    X(ddp_compiled_wait, ddp_compiled_wait(compiled, request) == 0)            \
    X(ddp_compiled_free, DONE(ddp_compiled_free(compiled)))                    \
    X(ddp_pullback_new,                                                        \
      (pullback = ddp_pullback_new(ddp, net, x, vector, 2, 0, y)))             \
    X(ddp_pullback_forward, ddp_pullback_forward(pullback, x, y) == 0)         \
    X(ddp_pullback_backward, ddp_pullback_backward(pullback, y, x) == 0)       \
    X(ddp_pullback_submit_forward,                                             \
      ddp_pullback_submit_forward(pullback, x, y) == 0)                        \
    X(ddp_pullback_wait, ddp_pullback_wait(pullback) == 0)                     \
    X(ddp_pullback_submit_backward,                                            \
      ddp_pullback_submit_backward(pullback, y, x) == 0 &&                     \
      ddp_pullback_wait(pullback) == 0)                                        \
    X(ddp_pullback_get_gradient,                                               \
      ddp_pullback_get_gradient(pullback, "head.weight", w,                    \
                                LEN * CLASSES) == 0)                           \
    X(ddp_pullback_free, DONE(ddp_pullback_free(pullback)))                    \
    X(ddp_train_config_resolve,                                                \
      ddp_train_config_resolve(&cfg, ddp, data) == 0)                          \
    X(ddp_trainer_new, (trainer = ddp_trainer_new(ddp, net, data, &cfg)))      \
    X(ddp_trainer_config, ddp_trainer_config(trainer)->batch == 8)             \
    X(ddp_trainer_epoch_steps, ddp_trainer_epoch_steps(trainer) == 3)          \
    X(ddp_trainer_memory, ddp_trainer_memory(trainer, &memory) == 0)           \
    X(ddp_trainer_time, ddp_trainer_time(trainer, &time_plan) == 0)            \
    X(ddp_operation_set_time, ddp_operation_set_time(&operation, 1) == 0)      \
    X(ddp_trainer_batch, ddp_trainer_batch(trainer, 0, x, labels) == 4)        \
    X(ddp_trainer_step, ddp_trainer_step(trainer, &metrics) == 0)              \
    X(ddp_trainer_gradients, ddp_trainer_gradients(trainer, NULL) == 0)        \
    X(ddp_trainer_get_gradient,                                                \
      ddp_trainer_get_gradient(trainer, "head.weight", w,                      \
                               LEN * CLASSES) == 0)                            \
    X(ddp_trainer_set_gradient,                                                \
      ddp_trainer_set_gradient(trainer, "head.weight", w,                      \
                               LEN * CLASSES) == 0)                            \
    X(ddp_trainer_update, ddp_trainer_update(trainer) == 0)                    \
    X(ddp_trainer_apply, ddp_trainer_apply(trainer, NULL, NULL, 0) == 0)       \
    X(ddp_trainer_sync, ddp_trainer_sync(trainer, 0) == 0)                     \
    X(ddp_trainer_wait, ddp_trainer_wait(trainer) == 0)                        \
    X(ddp_trainer_steps, ddp_trainer_steps(trainer) == 2)                      \
    X(ddp_trainer_skips,                                                       \
      ddp_trainer_skips(trainer, &(struct ddp_skips){.steps = 0}) == 0)        \
    X(ddp_trainer_stats,                                                       \
      ddp_trainer_stats(trainer, &(struct ddp_stats){.steps = 0}) == 0)        \
    X(ddp_trainer_evaluate, ddp_trainer_evaluate(trainer, data, &metrics) == 0) \
    X(ddp_trainer_best, ddp_trainer_best(trainer, &evaluation) == 1)           \
    X(ddp_trainer_evaluate_ema,                                                \
      ddp_trainer_evaluate_ema(trainer, data, &metrics) == 0)                  \
    X(ddp_trainer_ema_get,                                                     \
      ddp_trainer_ema_get(trainer, "head.weight", w, LEN * CLASSES) == 0)      \
    X(ddp_trainer_ema_set,                                                     \
      ddp_trainer_ema_set(trainer, "head.weight", w, LEN * CLASSES) == 0)      \
    X(ddp_trainer_ema_save, ddp_trainer_ema_save(trainer, at("e"), NULL) == 0) \
    X(ddp_trainer_checkpoint, ddp_trainer_checkpoint(trainer) == 0)            \
    X(ddp_trainer_checkpoint_failures,                                         \
      ddp_trainer_checkpoint_failures(                                         \
          trainer, &(struct ddp_checkpoint_failures){.count = 0}) == 0)        \
    X(ddp_trainer_train, ddp_trainer_train(trainer) == 0)                      \
    X(ddp_trainer_free, DONE(ddp_trainer_free(trainer)))                       \
    X(ddp_log_name, ddp_log_name(DDP_LOG_TENSORBOARD))                         \
    X(ddp_log_new, (board = ddp_log_new(DDP_LOG_TENSORBOARD, at("tb"))))       \
    X(ddp_log_set, ddp_log_set(board, "lr", "0.1") == 0)                       \
    X(ddp_log_describe, ddp_log_describe(board, DDP_LOG_NAME, "a") == 0)       \
    X(ddp_log_sink, ddp_log_sink(board).on_step)                               \
    X(ddp_log_scalar, ddp_log_scalar(board, "v", 1, 2) == 0)                   \
    X(ddp_log_histogram, ddp_log_histogram(board, "h", 1, x, 1) == 0)       \
    X(ddp_log_image,                                                           \
      ddp_log_image(board, "i", 1, (struct ddp_shape){1, 1, 1},                \
                    (const uint8_t *)"x") == 0)                                \
    X(ddp_log_graph, ddp_log_graph(board, 1, net, vector) == 0)                \
    X(ddp_log_status, ddp_log_status(board) == 0)                              \
    X(ddp_log_free, DONE(ddp_log_free(board)))                                 \
    X(ddp_trainer_resume, resumed(false))                                      \
    X(ddp_trainer_resume_with, resumed(true))                                  \
    X(ddp_chain_free, DONE(ddp_chain_free(net)))                               \
    X(ddp_finish, DONE(ddp_finish(ddp)))
/* clang-format on */

#define X(name, ...)                                                           \
    static bool call_##name(void)                                              \
    {                                                                          \
        return __VA_ARGS__;                                                    \
    }
CALLS(X)
#undef X

static const struct {
    const char *name;
    bool (*call)(void);
} row[] = {
#define X(name, ...) {#name, call_##name},
    CALLS(X)
#undef X
};
enum { ROWS = sizeof(row) / sizeof(row[0]) };

static void test_calls(void)
{
    char before[256];

    for (int i = 0; i < ROWS; i++) {
        ddp_dataset_callback(NULL);
        snprintf(before, sizeof(before), "%s", ddp_errmsg());
        if (!row[i].call())
            bail_out("%s(): %s", row[i].name, ddp_errmsg());
        ok(strcmp(ddp_errmsg(), before) == 0 && ddp_errcode() == DDP_EINVAL,
           "%s(): %s", row[i].name,
           strcmp(ddp_errmsg(), before) ? ddp_errmsg() : "unchanged");
    }
}

/* ---- no object ---------------------------------------------------------- */

/* A constructor fails, say; the rest of the program does not look. */
#define NONE(call) ((call) == DDP_EINVAL)
/* Freeing nothing is no error. */
#define FREES(call) (DONE(call) && ddp_dataset_callback(NULL) == NULL)

/* X (function, whether it refuses) */
/* clang-format off */
#ifdef HAVE_ONNX
#define ONNX_NULLS(X)                                                          \
    X(ddp_chain_export_onnx,                                                   \
      NONE(ddp_chain_export_onnx(NULL, vector, at("o"), NULL, NULL)))
#else
#define ONNX_NULLS(X)
#endif
#define NULLS(X)                                                               \
    X(ddp_finish, FREES(ddp_finish(NULL)))                                     \
    X(ddp_describe, !*ddp_describe(NULL))                                      \
    X(ddp_worker_count, NONE(ddp_worker_count(NULL)))                          \
    X(ddp_worker_name, NONE(ddp_worker_name(NULL, 0, (char[64]){""}, 64)))     \
    X(ddp_gpu_worker_count, NONE(ddp_gpu_worker_count(NULL)))                  \
    X(ddp_rank, NONE(ddp_rank(NULL)))                                          \
    X(ddp_rank_count, NONE(ddp_rank_count(NULL)))                              \
    X(ddp_local_rank, NONE(ddp_local_rank(NULL)))                              \
    X(ddp_ranks_status, NONE(ddp_ranks_status(NULL, 0, &of_rank)))             \
    X(ddp_ranks_hurry, NONE(ddp_ranks_hurry(NULL, 1)))                         \
    X(ddp_ranks_describe, *ddp_ranks_describe(NULL) == 0)                      \
    X(ddp_ranks_measure, NONE(ddp_ranks_measure(NULL, 1, 1, &(double){0})))         \
    X(ddp_barrier, NONE(ddp_barrier(NULL)))                                    \
    X(ddp_bcast, NONE(ddp_bcast(NULL, w, 4, 0)))                               \
    X(ddp_bcast_begin, !ddp_bcast_begin(NULL, w, 4, 0))                        \
    X(ddp_allreduce, NONE(ddp_allreduce(NULL, w, 1, DDP_F32, DDP_SUM)))        \
    X(ddp_reduce, NONE(ddp_reduce(NULL, w, 1, DDP_F32, DDP_SUM, 0)))           \
    X(ddp_bcast_to, NONE(ddp_bcast_to(NULL, w, w, 4, 0)))                      \
    X(ddp_allreduce_to,                                                        \
      NONE(ddp_allreduce_to(NULL, w, w, 1, DDP_F32, DDP_SUM)))                 \
    X(ddp_reduce_to,                                                           \
      NONE(ddp_reduce_to(NULL, w, w, 1, DDP_F32, DDP_SUM, 0)))                 \
    X(ddp_allreduce_optional,                                                  \
      NONE(ddp_allreduce_optional(NULL, w, 1, DDP_F32, DDP_SUM, true, &part))) \
    X(ddp_allreduce_begin,                                                     \
      !ddp_allreduce_begin(NULL, w, 1, DDP_F32, DDP_SUM))                      \
    X(ddp_request_test, NONE(ddp_request_test(NULL, &over)))                   \
    X(ddp_request_wait, NONE(ddp_request_wait(NULL)))                          \
    X(ddp_chain_sync, NONE(ddp_chain_sync(NULL, NULL, 0)))                     \
    X(ddp_gpu_count, NONE(ddp_gpu_count(NULL, NULL)))                          \
    X(ddp_chain_new, !ddp_chain_new((ddp_layer_t *)NULL, DDP_END))             \
    X(ddp_chain_of, !ddp_chain_of(1, (ddp_layer_t *[]){NULL}))                 \
    X(ddp_chain_add, NONE(ddp_chain_add(NULL, ddp_flatten_new())))             \
    X(ddp_layer_free, FREES(ddp_layer_free(NULL)))                             \
    X(ddp_chain_free, FREES(ddp_chain_free(NULL)))                             \
    X(ddp_layer_set_name, !ddp_layer_set_name(NULL, "a"))                      \
    X(ddp_skip_new, !ddp_skip_new(NULL, DDP_END))                              \
    X(ddp_parallel_new,                                                        \
      !ddp_parallel_new(DDP_ADD, (ddp_layer_t *)NULL, DDP_END))                \
    X(ddp_parallel_of,                                                         \
      !ddp_parallel_of(DDP_ADD, 1, (ddp_layer_t *[]){NULL}))                   \
    X(ddp_channel_scale_new, !ddp_channel_scale_new(NULL))                     \
    X(ddp_aux_new, !ddp_aux_new(NULL, 1))                                      \
    X(ddp_chain_param, NONE(ddp_chain_param(NULL, 0,                           \
                                 &(struct ddp_param_info){.ndim = 0})))        \
    X(ddp_chain_get, NONE(ddp_chain_get(NULL, "a", w, 1)))                     \
    X(ddp_chain_set, NONE(ddp_chain_set(NULL, "a", w, 1)))                     \
    X(ddp_chain_init, NONE(ddp_chain_init(NULL, 1)))                           \
    X(ddp_chain_save, NONE(ddp_chain_save(NULL, at("w"), NULL)))               \
    X(ddp_chain_set_metadata, NONE(ddp_chain_set_metadata(NULL, "a", "b")))    \
    X(ddp_chain_load, NONE(ddp_chain_load(NULL, at("w"), NULL, NULL)))         \
    X(ddp_chain_checksum, NONE(ddp_chain_checksum(NULL, &(uint32_t){0})))      \
    X(ddp_chain_norm, NONE(ddp_chain_norm(NULL, &(double){0})))                \
    X(ddp_chain_whiten, NONE(ddp_chain_whiten(NULL, data, 1, 1)))              \
    X(ddp_chain_inspect,                                                       \
      NONE(ddp_chain_inspect(NULL, vector, DDP_F32, ignore, NULL)))            \
    X(ddp_chain_operations,                                                    \
      NONE(ddp_chain_operations(NULL, vector, DDP_F32, 2, &sgd, overlook,      \
                                NULL)))                                        \
    ONNX_NULLS(X)                                                              \
    X(ddp_dataset_free, FREES(ddp_dataset_free(NULL)))                         \
    X(ddp_dataset_part, !ddp_dataset_part(NULL, DDP_VAL, 0.5, 1))              \
    X(ddp_dataset_shard, !ddp_dataset_shard(NULL, 0, 1))                       \
    X(ddp_dataset_unpack, NONE(ddp_dataset_unpack(NULL, "x", NULL, NULL)))     \
    X(ddp_dataset_pack, NONE(ddp_dataset_pack(NULL, "x", NULL)))               \
    X(ddp_dataset_count, NONE(ddp_dataset_count(NULL)))                        \
    X(ddp_dataset_classes, NONE(ddp_dataset_classes(NULL)))                    \
    X(ddp_dataset_target_len, NONE(ddp_dataset_target_len(NULL)))              \
    X(ddp_dataset_subset, !ddp_dataset_subset(NULL, &(int64_t){0}, 1))         \
    X(ddp_dataset_concat,                                                      \
      !ddp_dataset_concat((ddp_dataset_t *[]){NULL}, 1))                       \
    X(ddp_dataset_map, !ddp_dataset_map(NULL, &(int32_t){0}, 1, NULL))         \
    X(ddp_dataset_shape, !ddp_dataset_shape(NULL).c)                           \
    X(ddp_dataset_resize, NONE(ddp_dataset_resize(NULL)))                      \
    X(ddp_dataset_class_name, !ddp_dataset_class_name(NULL, 0))                \
    X(ddp_dataset_class_counts,                                                \
      NONE(ddp_dataset_class_counts(NULL, (int64_t[2]){0})))                   \
    X(ddp_dataset_set_classes,                                                 \
      NONE(ddp_dataset_set_classes(NULL, 1, (const char *[]){"a"})))           \
    X(ddp_dataset_describe, !*ddp_dataset_describe(NULL))                      \
    X(ddp_dataset_path, !ddp_dataset_path(NULL, 0))                            \
    X(ddp_dataset_get, NONE(ddp_dataset_get(NULL, 0, 0, x, NULL)))             \
    X(ddp_dataset_bad_count, NONE(ddp_dataset_bad_count(NULL)))                \
    X(ddp_dataset_retries, NONE(ddp_dataset_retries(NULL)))                    \
    X(ddp_dataset_bad_limit, NONE(ddp_dataset_bad_limit(NULL, 0.5)))           \
    X(ddp_dataset_bad, NONE(ddp_dataset_bad(NULL, 0,                           \
                                 &(struct ddp_bad_sample){NULL, NULL})))       \
    X(ddp_trainer_new, !ddp_trainer_new(NULL, NULL, NULL, NULL))               \
    X(ddp_trainer_free, FREES(ddp_trainer_free(NULL)))                         \
    X(ddp_trainer_config, !ddp_trainer_config(NULL))                           \
    X(ddp_train_config_resolve,                                                \
      NONE(ddp_train_config_resolve(&cfg, NULL, NULL)))                        \
    X(ddp_trainer_epoch_steps, NONE(ddp_trainer_epoch_steps(NULL)))            \
    X(ddp_trainer_memory, NONE(ddp_trainer_memory(NULL, &memory)))             \
    X(ddp_trainer_time, NONE(ddp_trainer_time(NULL, &time_plan)))              \
    X(ddp_trainer_train, NONE(ddp_trainer_train(NULL)))                        \
    X(ddp_trainer_step, NONE(ddp_trainer_step(NULL, &metrics)))                \
    X(ddp_trainer_gradients, NONE(ddp_trainer_gradients(NULL, NULL)))          \
    X(ddp_trainer_get_gradient,                                                \
      NONE(ddp_trainer_get_gradient(NULL, "a", w, 1)))                         \
    X(ddp_trainer_set_gradient,                                                \
      NONE(ddp_trainer_set_gradient(NULL, "a", w, 1)))                         \
    X(ddp_trainer_update, NONE(ddp_trainer_update(NULL)))                      \
    X(ddp_trainer_batch, NONE(ddp_trainer_batch(NULL, 0, x, labels)))          \
    X(ddp_trainer_apply, NONE(ddp_trainer_apply(NULL, NULL, NULL, 1)))         \
    X(ddp_trainer_sync, NONE(ddp_trainer_sync(NULL, 0)))                       \
    X(ddp_trainer_wait, NONE(ddp_trainer_wait(NULL)))                          \
    X(ddp_trainer_skips,                                                       \
      NONE(ddp_trainer_skips(NULL, &(struct ddp_skips){.steps = 0})))          \
    X(ddp_trainer_evaluate,                                                    \
      NONE(ddp_trainer_evaluate(NULL, NULL, &metrics)))                        \
    X(ddp_trainer_evaluate_ema,                                                \
      NONE(ddp_trainer_evaluate_ema(NULL, NULL, &metrics)))                    \
    X(ddp_trainer_ema_get, NONE(ddp_trainer_ema_get(NULL, "a", w, 1)))         \
    X(ddp_trainer_ema_set, NONE(ddp_trainer_ema_set(NULL, "a", w, 1)))         \
    X(ddp_trainer_ema_save, NONE(ddp_trainer_ema_save(NULL, at("e"), NULL)))   \
    X(ddp_chain_evaluate,                                                      \
      NONE(ddp_chain_evaluate(NULL, NULL, NULL, NULL, &metrics)))              \
    X(ddp_trainer_steps, NONE(ddp_trainer_steps(NULL)))                        \
    X(ddp_trainer_stats,                                                       \
      NONE(ddp_trainer_stats(NULL, &(struct ddp_stats){.steps = 0})))          \
    X(ddp_trainer_best, NONE(ddp_trainer_best(NULL, &evaluation)))             \
    X(ddp_log_free, FREES(ddp_log_free(NULL)))                                 \
    X(ddp_log_sink, !ddp_log_sink(NULL).on_step)                               \
    X(ddp_log_set, NONE(ddp_log_set(NULL, "lr", "0.1")))                       \
    X(ddp_log_describe, NONE(ddp_log_describe(NULL, DDP_LOG_NAME, "a")))       \
    X(ddp_log_scalar, NONE(ddp_log_scalar(NULL, "v", 1, 2)))                   \
    X(ddp_log_histogram, NONE(ddp_log_histogram(NULL, "h", 1, x, 1)))       \
    X(ddp_log_image, NONE(ddp_log_image(NULL, "i", 1,                          \
                                        (struct ddp_shape){1, 1, 1},           \
                                        (const uint8_t *)"x")))                \
    X(ddp_log_graph, NONE(ddp_log_graph(NULL, 1, net, vector)))                \
    X(ddp_log_status, NONE(ddp_log_status(NULL)))                              \
    X(ddp_trainer_checkpoint, NONE(ddp_trainer_checkpoint(NULL)))              \
    X(ddp_trainer_checkpoint_failures,                                         \
      NONE(ddp_trainer_checkpoint_failures(                                    \
          NULL, &(struct ddp_checkpoint_failures){.count = 0})))               \
    X(ddp_trainer_resume, NONE(ddp_trainer_resume(NULL, NULL, NULL)))          \
    X(ddp_trainer_resume_with,                                                 \
      NONE(ddp_trainer_resume_with(NULL, NULL, NULL, NULL)))                   \
    X(ddp_compiled_new, !ddp_compiled_new(NULL, NULL, vector, 2, NULL))        \
    X(ddp_compiled_free, FREES(ddp_compiled_free(NULL)))                       \
    X(ddp_compiled_shape, !ddp_compiled_shape(NULL).c)                         \
    X(ddp_compiled_submit,                                                     \
      NONE(ddp_compiled_submit(NULL, x, 1, y, &request)))                      \
    X(ddp_compiled_wait, NONE(ddp_compiled_wait(NULL, 0)))                     \
    X(ddp_compiled_run, NONE(ddp_compiled_run(NULL, x, 1, y)))                 \
    X(ddp_chain_forward,                                                       \
      NONE(ddp_chain_forward(NULL, NULL, x, DDP_F32, vector, 2, 0, y)))        \
    X(ddp_pullback_new, !ddp_pullback_new(NULL, NULL, x, vector, 2, 0, y))     \
    X(ddp_pullback_forward, NONE(ddp_pullback_forward(NULL, x, y)))            \
    X(ddp_pullback_backward, NONE(ddp_pullback_backward(NULL, y, x)))          \
    X(ddp_pullback_submit_forward,                                             \
      NONE(ddp_pullback_submit_forward(NULL, x, y)))                           \
    X(ddp_pullback_submit_backward,                                            \
      NONE(ddp_pullback_submit_backward(NULL, y, x)))                          \
    X(ddp_pullback_wait, NONE(ddp_pullback_wait(NULL)))                        \
    X(ddp_pullback_get_gradient,                                               \
      NONE(ddp_pullback_get_gradient(NULL, "a", w, 1)))                        \
    X(ddp_pullback_free, FREES(ddp_pullback_free(NULL)))
/* clang-format on */

#define X(name, ...)                                                           \
    static bool null_##name(void)                                              \
    {                                                                          \
        return __VA_ARGS__;                                                    \
    }
NULLS(X)
#undef X

static const struct {
    const char *name;
    bool (*refuses)(void);
} null_row[] = {
#define X(name, ...) {#name, null_##name},
    NULLS(X)
#undef X
};
enum { NULL_ROWS = sizeof(null_row) / sizeof(null_row[0]) };

/* In a process of its own, which may die of it and has no message yet. */
static void test_nulls(void)
{
    int status;
    pid_t child;

    for (int i = 0; i < NULL_ROWS; i++) {
        fflush(stdout);
        if ((child = fork()) == 0)
            _exit(!null_row[i].refuses() ? 1 : !*ddp_errmsg() ? 2 : 0);
        if (child < 0 || waitpid(child, &status, 0) < 0)
            bail_out("cannot start a process");
        ok(status == 0, "%s(NULL): %s", null_row[i].name,
           WIFSIGNALED(status)        ? strsignal(WTERMSIG(status))
           : WEXITSTATUS(status) == 1 ? "accepted"
           : WEXITSTATUS(status) == 2 ? "no message"
                                      : "an error with a message");
    }
}

/* What else may be NULL by mistake: names, paths, places for results. */
static void test_null_arguments(void)
{
    ddp_chain_t *c = ddp_chain_new(ddp_dense_new(LEN, CLASSES, NULL), DDP_END);
    float values[LEN * CLASSES] = {0};
    int n = LEN * CLASSES;

    ok(!ddp_model_new(NULL, NULL), "a model without a name: %s", ddp_errmsg());
    is_int(ddp_model_size(NULL), 0, "its size");
    is_int(ddp_chain_get(c, NULL, values, n), DDP_EINVAL, "get without a name");
    is_int(ddp_chain_get(c, "0.weight", NULL, n), DDP_EINVAL,
           "without a place for the values: %s", ddp_errmsg());
    is_int(ddp_chain_set(c, NULL, values, n), DDP_EINVAL, "set without a name");
    is_int(ddp_chain_set(c, "0.weight", NULL, n), DDP_EINVAL,
           "without values: %s", ddp_errmsg());
    is_int(ddp_chain_checksum(c, NULL), DDP_EINVAL, "a checksum: %s",
           ddp_errmsg());
    is_int(ddp_chain_load(c, NULL, NULL, NULL), DDP_EINVAL,
           "load without a path: %s", ddp_errmsg());
    is_int(ddp_weights_model("/nowhere", NULL), DDP_EINVAL, "a name: %s",
           ddp_errmsg());
    ok(!ddp_dataset_images(NULL, 3, NULL), "no list of images: %s",
       ddp_errmsg());
    ddp_chain_free(c);
}

/* ---- whether the tables are complete --------------------------------------
 */

/* Those that read the message, and those that not every build can do. */
static const char *const others[] = {
    "ddp_errmsg",
    "ddp_errcode",
    "ddp_last_copy",
    "ddp_simulation_set_speed",
    "ddp_simulation_set_slowness",
    "ddp_simulation_stall",
    "ddp_simulation_set_nodes",
    "ddp_simulation_set_numa",
    "ddp_simulation_read",
    "ddp_chain_export_onnx",
};

static bool in_nulls(const char *name)
{
    for (int i = 0; i < NULL_ROWS; i++)
        if (strcmp(null_row[i].name, name) == 0)
            return true;
    return strcmp(name, "ddp_chain_export_onnx") == 0; /* not every build */
}

/* Whether the parameters after '(' have a pointer to an object, of a type
 * ddp_x_t. */
static bool takes_object(const char *s)
{
    for (int depth = 0; *s && depth >= 0; s++) {
        depth += (*s == '(') - (*s == ')');
        if (strncmp(s, "_t *", 4) == 0) {
            const char *type = s;

            while (isalnum((unsigned char)type[-1]) || type[-1] == '_')
                type--;
            if (strncmp(type, "ddp_", 4) == 0)
                return true;
        }
    }
    return false;
}

static bool in_table(const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(row[i].name, name) == 0)
            return true;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcmp(others[i], name) == 0)
            return true;
    return false;
}

static char *read_header(void)
{
    const char *src = getenv("srcdir");
    char path[600], *text = calloc(1, 1 << 20);
    FILE *f;

    snprintf(path, sizeof(path), "%s/lib/ddp.h", src ? src : "..");
    if (!text || !(f = fopen(path, "r")))
        bail_out("cannot read %s", path);
    if (!fread(text, 1, (1 << 20) - 1, f))
        bail_out("%s is empty", path);
    fclose(f);
    return text;
}

/* Overwrite comments and macros by blanks. */
static void blank_comments(char *s)
{
    bool comment = false, macro = false, start = true;

    for (; *s; s++) {
        if (comment && s[0] == '*' && s[1] == '/') {
            comment = false;
            *s++ = ' ';
            *s = ' ';
        } else if (s[0] == '/' && s[1] == '*') {
            comment = true;
        }
        macro = (macro && !(s[0] == '\n' && s[-1] != '\\')) ||
                (start && !comment && *s == '#');
        start = *s == '\n';
        if ((comment || macro) && *s != '\n' && *s != '\\')
            *s = ' ';
    }
}

static void test_complete(void)
{
    char *text = read_header(), name[128];
    int found = 0, missing = 0, objects = 0;

    blank_comments(text);
    for (char *s = text; (s = strstr(s, "ddp_")); s++) {
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_");

        if (s[n] != '(' || n >= sizeof(name) || isalnum((unsigned char)s[-1]))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)n, s);
        found++;
        if (!in_table(name) || (takes_object(s + n + 1) && !in_nulls(name))) {
            diag("%s() is not in the table%s", name,
                 in_table(name) ? " of those with an object" : "");
            missing++;
        }
        objects += takes_object(s + n + 1);
    }
    ok(found >= ROWS && objects >= NULL_ROWS && missing == 0,
       "the tables have all functions of ddp.h");
    free(text);
}

int main(void)
{
    scratch_make();
    put_files();
    test_complete();
    test_nulls();
    test_calls();
    test_null_arguments();
    return done_testing();
}
