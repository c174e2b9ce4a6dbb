/* run_file.c - run.json: what made a run, and how it ended
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "common/app.h"
#include "common/app_command.h"
#include "common/opt_value.h"
#include "revision.h"
#include "output.h"
#include "run_file.h"
#include "setup_network.h"

/* A run of more has the last ones. */
enum { SEGMENTS = 1000 };

static const char name[] = "run.json";

/* ---- values ------------------------------------------------------------- */

static void set_text(json_t *o, const char *key, const char *text)
{
    json_t *v = text ? json_string(text) : NULL;

    json_object_set_new(o, key, v ? v : json_null());
}

static void set_now(json_t *o, const char *key)
{
    time_t now = time(NULL);
    char text[32] = "";
    struct tm tm;

    if (gmtime_r(&now, &tm))
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    set_text(o, key, text);
}

/* The type that the row's text has. */
static json_t *typed(const struct opt *r, const char *text)
{
    char *clean;
    json_t *v;

    switch (r->kind) {
    case OPT_FLAG:
        return json_boolean(!strcmp(text, "true"));
    case OPT_INT:
        return json_integer(strtoll(text, NULL, 10));
    case OPT_FLOAT:
    case OPT_SHARE:
    case OPT_TIME:
        return json_real(strtod(text, NULL));
    default:
        clean = *text ? app_redact(text) : NULL;
        v = clean ? json_string(clean) : NULL;
        free(clean);
        return v ? v : json_null();
    }
}

static json_t *settings_of(const struct opts *opts)
{
    json_t *all = json_object();
    const struct opt *r;

    for (int i = 0; (r = opt_at(opts->cmd, i)); i++) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        if (!f)
            continue;
        opt_print_value(r, opts->values, f);
        if (fclose(f) == 0)
            json_object_set_new(all, r->name, typed(r, text));
        free(text);
    }
    return all;
}

/* ---- the machine -------------------------------------------------------- */

const char *run_file_revision(void)
{
    return DDP_REVISION;
}

/* "oneDNN 2.6.3" in a sentence: its version. */
static void set_version(json_t *o, const char *what, const char *text)
{
    const char *at = strstr(text, what);
    char version[64];

    if (!at || at[strlen(what)] != ' ')
        return;
    at += strlen(what) + 1;
    snprintf(version, sizeof(version), "%.*s", (int)strcspn(at, " ,;()"), at);
    set_text(o, what, version);
}

static json_t *versions(const ddp_t *ddp)
{
    static const char *const in_devices[] = {"oneDNN", "CUDA", "cuDNN"};
    json_t *o = json_object();

    set_version(o, "libddp", ddp_version());
    set_version(o, "StarPU", ddp_version());
    for (size_t i = 0; i < sizeof(in_devices) / sizeof(*in_devices); i++)
        set_version(o, in_devices[i], ddp_describe(ddp));
    if (*BUILT_WITH_MPI)
        set_text(o, "MPI", BUILT_WITH_MPI);
    set_text(o, "compiler", __VERSION__);
    if (*DDP_REVISION)
        set_text(o, "revision", DDP_REVISION);
    return o;
}

static void set_processor(json_t *o)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[512], *value;

    while (f && fgets(line, sizeof(line), f))
        if (!strncmp(line, "model name", 10) && (value = strchr(line, ':'))) {
            value += 1 + strspn(value + 1, " ");
            value[strcspn(value, "\n")] = '\0';
            set_text(o, "processor", value);
            break;
        }
    if (f)
        fclose(f);
}

static json_t *workers(const ddp_t *ddp)
{
    json_t *list = json_array();
    char text[128];

    for (int i = 0; ddp_worker_name(ddp, i, text, sizeof(text)) == 0; i++)
        json_array_append_new(list, json_string(text));
    return list;
}

static json_t *machine(const ddp_t *ddp)
{
    json_t *o = json_object();
    char host[256] = "";
    struct ddp_gpu_info gpu;
    struct utsname u;

    gethostname(host, sizeof(host) - 1);
    set_text(o, "host", host);
    if (uname(&u) == 0)
        json_object_set_new(
            o, "system",
            json_sprintf("%s %s %s", u.sysname, u.release, u.machine));
    set_processor(o);
    json_object_set_new(o, "cores", json_integer(ddp_core_count()));
    json_object_set_new(o, "memory_mib",
                        json_integer((json_int_t)sysconf(_SC_PHYS_PAGES) *
                                         sysconf(_SC_PAGE_SIZE) >>
                                     20));
    json_object_set_new(o, "gpus", json_integer(ddp_gpu_count(ddp, &gpu)));
    if (ddp_gpu_count(ddp, NULL) > 0)
        set_text(o, "gpu", gpu.name);
    json_object_set_new(o, "ranks", json_integer(ddp_rank_count(ddp)));
    set_text(o, "devices", ddp_describe(ddp));
    json_object_set_new(o, "workers", workers(ddp));
    return o;
}

/* ---- the document ------------------------------------------------------- */

static json_t *command(void)
{
    json_t *list = json_array();

    for (int i = 0; i < app_command_words(); i++) {
        char *word = app_command_word(i);
        json_t *v = word ? json_string(word) : NULL;

        json_array_append_new(list, v ? v : json_string("?"));
        free(word);
    }
    return list;
}

static json_t *segment(const struct run_facts *f)
{
    json_t *o = json_object();
    char *dir = getcwd(NULL, 0);

    json_object_set_new(o, "command", command());
    set_text(o, "directory", dir);
    free(dir);
    set_now(o, "start");
    json_object_set_new(o, "from_step",
                        json_integer(ddp_trainer_steps(f->trainer)));
    json_object_set_new(o, "process", json_integer(getpid()));
    json_object_set_new(o, "machine", machine(f->ddp));
    json_object_set_new(o, "versions", versions(f->ddp));
    set_text(o, "end", NULL);
    return o;
}

static json_t *network(const struct run_facts *f)
{
    const struct ddp_train_config *c = ddp_trainer_config(f->trainer);
    json_t *o = json_object();

    json_object_set_new(o, "parameters",
                        json_integer((json_int_t)setup_params(f->chain)));
    json_object_set_new(o, "classes",
                        json_integer(ddp_dataset_classes(f->data)));
    set_text(o, "data", ddp_dataset_describe(f->data));
    set_text(o, "validation", f->val ? ddp_dataset_describe(f->val) : NULL);
    json_object_set_new(o, "epoch_steps",
                        json_integer(ddp_trainer_epoch_steps(f->trainer)));
    json_object_set_new(o, "batch", json_integer(c->batch));
    json_object_set_new(o, "seed", json_integer((json_int_t)c->seed));
    return o;
}

/* The segments of earlier processes. */
static json_t *earlier(const char *dir)
{
    char *path = app_path(dir, name);
    json_t *old = path ? json_load_file(path, 0, NULL) : NULL;
    json_t *list = json_object_get(old, "segments");

    list = json_is_array(list) ? json_incref(list) : json_array();
    while (json_array_size(list) >= SEGMENTS)
        json_array_remove(list, 0);
    json_decref(old);
    free(path);
    return list;
}

static void print(const void *root, FILE *f)
{
    json_dumpf(root, f, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    fputc('\n', f);
}

int run_file_begin(struct run_file *f, const char *dir,
                   const struct run_facts *facts)
{
    json_t *root = json_object(), *segments;

    segments = facts->resumed ? earlier(dir) : json_array();
    json_array_append_new(segments, segment(facts));
    json_object_set_new(root, "format", json_integer(1));
    set_text(root, "program", facts->opts->cmd->name);
    json_object_set_new(root, "run", network(facts));
    json_object_set_new(root, "settings", settings_of(facts->opts));
    json_object_set_new(root, "segments", segments);
    *f = (struct run_file){dir, root, app_now(),
                           ddp_trainer_steps(facts->trainer)};
    return output_write(dir, name, print, root);
}

void run_file_end(struct run_file *f, int code, const char *reason,
                  int64_t steps, const char *weights)
{
    json_t *segments = json_object_get(f->root, "segments"), *o;

    if (!f->dir)
        return;
    o = json_array_get(segments, json_array_size(segments) - 1);
    set_now(o, "end");
    json_object_set_new(o, "seconds", json_real(app_now() - f->begin));
    json_object_set_new(o, "to_step", json_integer(steps));
    json_object_set_new(o, "code", json_integer(code));
    set_text(o, "reason", reason);
    if (weights)
        set_text(f->root, "weights", weights);
    if (output_write(f->dir, name, print, f->root) != OPTS_GO)
        app_say("%s/%s does not have the end of the run", f->dir, name);
    json_decref(f->root);
    *f = (struct run_file){0};
}
