/* opt_program.h - what is made from the options of a whole program: manual
 * pages and completions SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef OPT_PROGRAM_H
#define OPT_PROGRAM_H

#include "common/opt.h"

/* A program with commands, whose names begin with its own; or with one command
 * of the same name as the program. */
struct opt_program {
    const char *name;                         /* "imagenet" */
    const char *brief;                        /* "train networks on images" */
    const char *about;                        /* paragraphs, or NULL */
    const struct opt_command *const *command; /* ended by NULL */
};

/* The words of a command after the program's name: "data check", or "". */
const char *opt_words(const struct opt_program *p, const struct opt_command *c);

/* Two commands for the build, which --help does not list:
 *     PROGRAM manual [COMMAND]            a manual page, man(7)
 *     PROGRAM completion bash|zsh|fish    a completion for that shell
 * Whether argv is one of them; then *rc is the exit code. */
bool opt_program_asked(const struct opt_program *p, int argc, char **argv,
                       int *rc);

#endif
