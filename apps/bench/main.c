/* main.c - the speed of training and input, as one line of JSON
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdlib.h>
#include <string.h>

#include "ddp.h"
#include "common/app.h"
#include "common/opt_program.h"
#include "calibrate.h"
#include "load.h"
#include "operations.h"
#include "report.h"
#include "sweep.h"
#include "train.h"

static void usage(FILE *f)
{
    fprintf(
        f, "Usage: ddp-bench COMMAND [options]\n\n"
           "  train      training on images generated in advance\n"
           "  load       reading and decoding images\n"
           "  roof       operations of a step on a GPU, as CSV\n"
           "  sweep      training over sizes of images and sub-batches\n"
           "  report     speed of usual networks, as a table\n"
           "  calibrate  times of operations for ddp-predict, as CSV\n\n"
           "  train and load print one line of JSON.  ddp-bench COMMAND --help "
           "lists its options.\n");
}

static const struct command {
    const char *word;
    const struct opt_command *options;
    int (*run)(struct opts *o, struct bench_settings *s);
} commands[] = {
    {"train", &bench_train_command, bench_train_run},
    {"load", &bench_load_command, bench_load_run},
    {"roof", &bench_roof_command, bench_roof_run},
    {"calibrate", &bench_calibrate_command, bench_calibrate_run},
    {"sweep", &bench_sweep_command, bench_sweep_run},
    {"report", &bench_report_command, bench_report_run},
};

static const struct opt_program program = {
    .name = "ddp-bench",
    .brief = "measure the speed of training and input",
    .command =
        (const struct opt_command *const[]){
            &bench_train_command, &bench_load_command, &bench_roof_command,
            &bench_calibrate_command, &bench_sweep_command,
            &bench_report_command, NULL},
};

static const struct command *find_command(const char *word)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (!strcmp(word, commands[i].word))
            return &commands[i];
    return NULL;
}

/* A word that is no command: a request for help or the version, or a mistake.
 */
static int run_word(const char *word)
{
    bool help = !strcmp(word, "--help") || !strcmp(word, "-h");

    if (!strcmp(word, "--version")) {
        printf("ddp-bench of %s\n", ddp_version());
        return 0;
    }
    usage(help ? stdout : stderr);
    return help ? 0 : EXIT_USAGE;
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    const struct command *cmd = find_command(word);
    struct bench_settings s = {0};
    struct opts o;
    int rc;

    app_start("ddp-bench");
    if (opt_program_asked(&program, argc, argv, &rc))
        return app_end(rc);
    if (!cmd)
        return app_end(run_word(word));
    app_start(cmd->options->name);
    rc = opts_parse(&o, cmd->options, &s, argc - 1, argv + 1);
    if (rc == OPTS_GO)
        rc = cmd->run(&o, &s);
    opts_free(&o);
    return app_end(rc);
}
