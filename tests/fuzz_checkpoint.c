/* fuzz_checkpoint.c - any bytes in a checkpoint, or in a log: refused, or
 * resumed from
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The manifest has the size and the CRC of the other files.  Here it is made
 * to fit their damaged copies, so that what reads them gets to see them.
 */
#include "config.h"

#include <jansson.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "defaults.h"
#include "fuzz.h"

#define RUN "run/"
#define CHECKPOINT RUN "step-000000000002/"

enum { COUNT = 12, BATCH = 4 };

/* ---- a small run -------------------------------------------------------- */

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    (void)key;
    x[0] = (float)index;
    x[1] = 1;
    s->label = (int32_t)(index % 3);
    return 0;
}

static struct run {
    ddp_t *ddp;
    ddp_dataset_t *data;
    ddp_chain_t *chain;
    ddp_trainer_t *trainer;
} run;

static void renew_trainer(const char *dir)
{
    ddp_trainer_free(run.trainer);
    run.trainer = ddp_trainer_new(
        run.ddp, run.chain, run.data,
        &(struct ddp_train_config){TRAIN_DEFAULTS,
                                   .optimizer = ddp_adamw(0.01f, 0.01f),
                                   .sub_batch = 2, .batch = BATCH, .epochs = 2,
                                   .ema_decay = 0.9, .checkpoint.dir = dir});
    if (!run.trainer)
        bail_out("%s", ddp_errmsg());
}

/* Write a checkpoint of two steps. */
static void begin(void)
{
    struct ddp_metrics m;

    run.ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .backend = "ref"});
    run.data = ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                         .shape = {1, 1, 2},
                                                         .type = DDP_F32,
                                                         .classes = 3,
                                                         .get = get});
    run.chain = ddp_chain_new(ddp_dense_new(2, 3, NULL),
                              ddp_batch_norm_new(3, NULL), DDP_END);
    renew_trainer(fuzz_path(RUN));
    for (int i = 0; i < 2; i++)
        if (ddp_trainer_step(run.trainer, &m) < 0)
            bail_out("%s", ddp_errmsg());
    if (ddp_trainer_evaluate(run.trainer, run.data, &m) < 0 ||
        ddp_trainer_checkpoint(run.trainer) < 0)
        bail_out("%s", ddp_errmsg());
    renew_trainer(NULL);
}

static void end(void)
{
    ddp_trainer_free(run.trainer);
    ddp_dataset_free(run.data);
    ddp_chain_free(run.chain);
    ddp_finish(run.ddp);
}

/* ---- readers ------------------------------------------------------------ */

/* A run that resumes continues. */
static int resume(void)
{
    int rc = ddp_trainer_resume(run.trainer, fuzz_path(CHECKPOINT), NULL);
    struct ddp_metrics m;

    if (rc < 0)
        return rc;
    if (ddp_trainer_steps(run.trainer) < 6 &&
        ddp_trainer_step(run.trainer, &m) < 0)
        bail_out("a run that resumed: %s", ddp_errmsg());
    renew_trainer(NULL);
    return 0;
}

static int read_manifest(const char *path, const uint8_t *data, size_t len)
{
    (void)path;
    (void)data;
    (void)len;
    return resume();
}

/* Resume after the manifest has been made to list these bytes as `name`. */
static int resume_listed(const char *name, const uint8_t *data, size_t len)
{
    json_t *manifest =
        json_load_file(fuzz_path(CHECKPOINT "MANIFEST.json"), 0, NULL);
    char crc[16], *text;

    snprintf(crc, sizeof(crc), "%08x", ddp__crc32c(0, data, len));
    json_object_set_new(
        json_object_get(manifest, "files"), name,
        json_pack("{s:I, s:s}", "size", (json_int_t)len, "crc32c", crc));
    text = json_dumps(manifest, 0);
    fuzz_write(CHECKPOINT "MANIFEST.json", text, strlen(text));
    free(text);
    json_decref(manifest);
    return resume();
}

static int read_state(const char *path, const uint8_t *data, size_t len)
{
    (void)path;
    return resume_listed("trainer.json", data, len);
}

static int read_optim(const char *path, const uint8_t *data, size_t len)
{
    (void)path;
    return resume_listed("optim.safetensors", data, len);
}

/* ---- tests -------------------------------------------------------------- */

static const char *const word[] = {"{",
                                   "}",
                                   "[",
                                   "]",
                                   ",",
                                   ":",
                                   "\"",
                                   "null",
                                   "true",
                                   "-1",
                                   "0",
                                   "1e999",
                                   "9223372036854775807",
                                   "-9223372036854775808",
                                   "0.5",
                                   "\\u0000",
                                   "\"step\":",
                                   "\"format\":",
                                   NULL};

static const struct fuzz_reader reader[] = {
    {"trainer.json", CHECKPOINT "trainer.json", 1, read_state, word},
    {"optim.safetensors", CHECKPOINT "optim.safetensors", 1, read_optim, word},
    {"MANIFEST.json", CHECKPOINT "MANIFEST.json", 1, read_manifest, word},
};

/* ---- logs --------------------------------------------------------------- */

#define LOG "wandb/offline-run-20260101_000000-abcdefgh/run-abcdefgh.wandb"

enum { LOG_HEAD = 14 }; /* of a file, and of a record that is in one piece */

/* Continue the log after five steps. */
static int resume_log(void)
{
    ddp_log_t *l = ddp_log_new(DDP_LOG_WANDB, fuzz_path("wandb"));
    int rc = ddp_log_scalar(l, "v", 5, 1);

    ddp_log_free(l);
    return rc;
}

static int read_log(const char *path, const uint8_t *data, size_t len)
{
    (void)path;
    (void)data;
    (void)len;
    return resume_log();
}

/* The bytes as a record, whose checksum is right. */
static int read_record(const char *path, const uint8_t *data, size_t len)
{
    uint8_t file[1024] = {':', 'W', '&', 'B', 0xe1, 0xbe};
    uint32_t crc = ~0u;

    (void)path;
    if (len > sizeof(file) - LOG_HEAD)
        len = sizeof(file) - LOG_HEAD;
    file[11] = (uint8_t)len;
    file[12] = (uint8_t)(len >> 8);
    file[13] = 1;
    memcpy(file + LOG_HEAD, data, len);
    for (size_t i = 13; i < LOG_HEAD + len; i++) { /* CRC-32, bit by bit */
        crc ^= file[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    for (int i = 0; i < 4; i++)
        file[7 + i] = (uint8_t)(~crc >> 8 * i);
    fuzz_write(LOG, file, LOG_HEAD + len);
    return resume_log();
}

/* The record of a run that began at second 1, and a row of step 7 in it. */
static void fuzz_logs(void)
{
    static const uint8_t record[] = {8, 2, 0x8a, 1, 5,  0x8a, 1, 2,
                                     8, 1, 18,   4, 18, 2,    8, 5};
    static const struct fuzz_reader r = {"wandb-record", NULL, 1, read_record,
                                         NULL};
    static const struct fuzz_reader file = {"wandb", LOG, 1, read_log, NULL};
    struct ddp__bytes b = {0};

    fuzz(&r, "that of a run", record, sizeof(record));
    read_record(NULL, record, sizeof(record));
    if (ddp__file_load(fuzz_path(LOG), 1 << 20, &b) < 0)
        bail_out("%s", ddp_errmsg());
    fuzz(&file, "that of a run", b.data, b.len);
    free(b.data);
}

int main(void)
{
    fuzz_logs();
    begin();
    for (size_t i = 0; i < sizeof(reader) / sizeof(reader[0]); i++) {
        const char *file = reader[i].file;
        struct ddp__bytes b = {0};

        if (ddp__file_load(fuzz_path(file), 1 << 20, &b) < 0)
            bail_out("%s", ddp_errmsg());
        fuzz(&reader[i], "that of a run", b.data, b.len);
        fuzz_read(&reader[i], b.data, b.len, &(int){0});
        free(b.data);
    }
    end();
    return done_testing();
}
