/* main.c - train and evaluate networks on images, from the command line
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <string.h>

#include "ddp.h"

#include "common/app.h"
#include "common/opt_nearest.h"
#include "check.h"
#include "convert.h"
#include "eval.h"
#include "export.h"
#include "infer.h"
#include "inspect.h"
#include "options.h"
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
    {"data", "check", &check_command, check_run,
     "find unreadable images before a run"},
    {"data", "synth", &synth_command, synth_run,
     "create a small data set of JPEG files"},
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void usage(FILE *f)
{
    fprintf(f, "Usage: imagenet COMMAND [options]\n\n");
    for (int i = 0; i < COMMANDS; i++) {
        const struct command *c = &commands[i];
        int n = fprintf(f, "  %s%s%s", c->word, c->second ? " " : "",
                        c->second ? c->second : "");

        fprintf(f, "%*s%s\n", 16 - n, "", c->about);
    }
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
    if (rc == OPTS_GO)
        rc = c->run(&o, &s);
    opts_free(&o);
    return rc;
}

static int run(int argc, char **argv)
{
    const struct command *c = find_command(argc, argv);

    app_start("imagenet");
    if (c)
        return run_command(c, argc, argv);
    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("imagenet of %s\n", ddp_version());
        return 0;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        usage(stdout);
        return 0;
    }
    if (!strcmp(argv[1], "data")) {
        app_say("data: expected check or synth");
        return EXIT_USAGE;
    }
    return fail_unknown(argv[1]);
}

int main(int argc, char **argv)
{
    return app_end(run(argc, argv));
}
