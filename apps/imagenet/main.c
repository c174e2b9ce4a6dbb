/* main.c - train and evaluate networks on images, from the command line
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <string.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_peer.h"
#include "common/app_command.h"
#include "common/app_log.h"
#include "common/app_words.h"
#include "common/opt_nearest.h"
#include "common/opt_program.h"
#include "common/start_clock.h"
#include "check.h"
#include "convert.h"
#include "doctor.h"
#include "eval.h"
#include "export.h"
#include "image_cache.h"
#include "infer.h"
#include "inspect.h"
#include "options.h"
#include "options_files.h"
#include "pack.h"
#include "progress.h"
#include "report.h"
#include "setup.h"
#include "setup_data.h"
#include "synth.h"
#include "train.h"

static const struct command {
    const char *word, *second; /* "data", "check" */
    const struct opt_command *options;
    int (*run)(struct opts *o, struct settings *s);
    const char *about;
} commands[] = {
    {"train", NULL, &train_command, train_run, "train a network"},
    {"eval", NULL, &eval_command, eval_run, "evaluate weights"},
    {"export", NULL, &export_command, export_run,
     "write a network as an ONNX model"},
    {"infer", NULL, &infer_command, infer_run, "classify images"},
    {"convert", NULL, &convert_command, convert_run,
     "convert the type and names of weights"},
    {"inspect", NULL, &inspect_command, inspect_run,
     "show layers, parameters, FLOPs and memory of a network"},
    {"doctor", NULL, &doctor_command, doctor_run,
     "check whether training will work on this machine"},
    {"report", NULL, &report_command, report_run,
     "write a page about a run, or compare several"},
    {"data", "check", &check_command, check_run,
     "find unreadable images before a run"},
    {"data", "pack", &pack_command, pack_run,
     "write images into tar files with an index"},
    {"data", "unpack", &unpack_command, unpack_run,
     "write them into a folder for each class"},
    {"data", "synth", &synth_command, synth_run,
     "create a small data set of JPEG files"},
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

/* Settings that messages of the library name. */
static const struct app_word option_of[] = {
    {"sub_batch", "--sub-batch"},
    {"max_bad", "--max-bad"},
    {"max_nan_steps", "--max-nan-steps"},
    {"clip_norm", "--clip-grad"},
    {"weight_decay", "--weight-decay"},
    {"ema_decay", "--model-ema-decay"},
    {"label_smoothing", "--label-smoothing"},
    {"class_weights", "--class-weights"},
    {"pos_weight", "--pos-weight"},
    {"distill_weight", "--distill-weight"},
    {"distill_temperature", "--distill-temperature"},
    {"target_threshold", "--bce-target-thresh"},
    {"mixup", "--mixup"},
    {"cutmix", "--cutmix"},
    {"mix_prob", "--mixup-prob"},
    {"mix_switch_prob", "--mixup-switch-prob"},
    {"mix_off_epoch", "--mixup-off-epoch"},
    {"loss", "--loss"},
    {"focal_gamma", "--focal-gamma"},
    {"focal_alpha", "--focal-alpha"},
    {"optimizer.lr", "--lr"},
    {"optimizer.momentum", "--momentum"},
    {"optimizer.eps", "--opt-eps"},
    {"optimizer.weight_decay", "--weight-decay"},
    {"optimizer.decay_all", "--decay-all"},
    {"optimizer.clip_norm", "--clip-grad"},
    {"optimizer.clip_value", "--clip-grad"},
    {"optimizer.clip_unit", "--clip-grad"},
    {"optimizer.lookahead", "--lookahead"},
    {"optimizer.kind", "--opt"},
    {"schedule.kind", "--sched"},
    {"small_stem", "--small-stem"},
    {"zero_init_residual", "--zero-init-residual"},
    {NULL, NULL},
};

/* The same for the manual and for completions. */
static const struct opt_program program = {
    .name = "imagenet",
    .brief = "train and evaluate networks on images",
    .about = "Train networks on folders of images, evaluate and use them.\n"
             "\n"
             "A network is trained on all devices of a machine or of several "
             "machines. Its weights are the same to the last bit for any "
             "number of devices of a kind, and after a restart.\n"
             "Each command has a manual page, such as imagenet-train(1).",
    .command =
        (const struct opt_command *const[]){
            &train_command, &eval_command, &export_command, &infer_command,
            &convert_command, &inspect_command, &doctor_command,
            &report_command, &check_command, &pack_command, &unpack_command,
            &synth_command, NULL},
};

static void print_command(FILE *f, const struct command *c)
{
    int n = fprintf(f, "  %s%s%s", c->word, c->second ? " " : "",
                    c->second ? c->second : "");

    fprintf(f, "%*s%s\n", 16 - n, "", c->about);
}

/* Of all commands, or of those that begin with a word. */
static void usage(FILE *f, const char *word)
{
    fprintf(f, "Usage: imagenet %s [options]\n\n",
            word ? "data COMMAND" : "COMMAND");
    for (int i = 0; i < COMMANDS; i++)
        if (!word || !strcmp(word, commands[i].word))
            print_command(f, &commands[i]);
    fprintf(f, "\n  imagenet COMMAND --help lists its options; "
               "imagenet --version shows the version.\n");
}

static const char *command_word(const void *arg, int i)
{
    (void)arg;
    return i < COMMANDS ? commands[i].word : NULL;
}

static int fail_unknown(const char *word)
{
    const char *near = opt_nearest(word, command_word, NULL);

    if (near)
        app_say("unknown command '%s'; did you mean '%s'?", word, near);
    else
        app_say("unknown command '%s'; see imagenet --help", word);
    return EXIT_USAGE;
}

/* The command of the first one or two words. */
static const struct command *find_command(int argc, char **argv)
{
    for (int i = 0; i < COMMANDS; i++) {
        const struct command *c = &commands[i];

        if (argc > 1 && !strcmp(argv[1], c->word) &&
            (!c->second || (argc > 2 && !strcmp(argv[2], c->second))))
            return c;
    }
    return NULL;
}

static int run_command(const struct command *c, int argc, char **argv)
{
    int skip = c->second ? 2 : 1, rc;
    struct settings s = {0};
    struct opts o;

    app_start(c->options->name);
    rc = opts_parse(&o, c->options, &s, argc - skip, argv + skip);
    app_log_only(s.quiet);
    if (s.quiet)
        progress_never();
    if (rc == OPTS_GO)
        rc = setup_config(&o, &s);
    if (rc == OPTS_GO)
        rc = setup_storage(&s);
    if (rc == OPTS_GO)
        rc = image_cache_setup(&o, &s);
    if (rc == OPTS_GO)
        rc = setup_named(&s);
    if (rc == OPTS_GO)
        rc = c->run(&o, &s);
    opts_free(&o);
    return rc;
}

static bool asks_for_help(const char *word)
{
    return !strcmp(word, "--help") || !strcmp(word, "-h") ||
           !strcmp(word, "help");
}

/* imagenet data, without the name of a command that follows. */
static int run_data(int argc, char **argv)
{
    if (argc < 3 || asks_for_help(argv[2])) {
        usage(argc < 3 ? stderr : stdout, "data");
        return argc < 3 ? EXIT_USAGE : 0;
    }
    app_say("unknown command 'data %s'; available: data check, data pack, data "
            "unpack, data synth",
            argv[2]);
    return EXIT_USAGE;
}

static int run(int argc, char **argv);

/* imagenet help [COMMAND]: what COMMAND --help prints. */
static int run_help(int argc, char **argv)
{
    static char help[] = "--help";
    char *words[] = {argv[0], NULL, NULL, NULL, NULL};
    int n = argc - 2 < 2 ? argc - 2 : 2;

    if (n == 0) {
        usage(stdout, NULL);
        return 0;
    }
    memcpy(words + 1, argv + 2, (size_t)n * sizeof(*argv));
    words[n + 1] = help;
    return run(n + 2, words);
}

static int run(int argc, char **argv)
{
    const struct command *c = find_command(argc, argv);
    int rc;

    app_start("imagenet");
    if (opt_program_asked(&program, argc, argv, &rc))
        return rc;
    if (c)
        return run_command(c, argc, argv);
    if (argc < 2) {
        usage(stderr, NULL);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("imagenet of %s\n", ddp_version());
        return 0;
    }
    if (asks_for_help(argv[1]))
        return run_help(argc, argv);
    if (!strcmp(argv[1], "data"))
        return run_data(argc, argv);
    return fail_unknown(argv[1]);
}

int main(int argc, char **argv)
{
    int rc;

    start_mark("libraries");
    app_set_words(option_of);
    app_set_command(argc, argv);
    rc = run(argc, argv);
    return app_end(rc == 0 && app_peer_is_lost() ? EXIT_PEER : rc);
}
