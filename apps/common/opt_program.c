/* opt_program.c - the commands that print manual pages and completions
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>
#include <string.h>

#include "common/app.h"
#include "common/opt_complete.h"
#include "common/opt_man.h"
#include "common/opt_program.h"

const char *opt_words(const struct opt_program *p, const struct opt_command *c)
{
    size_t len = strlen(p->name);

    return c->name[len] ? c->name + len + 1 : "";
}

/* The command of the words in argv, or NULL. */
static const struct opt_command *find_command(const struct opt_program *p,
                                              int argc, char **argv)
{
    char words[64] = "";
    size_t n = 0;

    for (int i = 0; i < argc && n < sizeof(words); i++)
        n += (size_t)snprintf(words + n, sizeof(words) - n, "%s%s",
                              i ? " " : "", argv[i]);
    for (int i = 0; p->command[i]; i++)
        if (!strcmp(words, opt_words(p, p->command[i])))
            return p->command[i];
    return NULL;
}

static int print_manual(const struct opt_program *p, int argc, char **argv)
{
    const struct opt_command *c = find_command(p, argc, argv);

    if (!c && argc > 0) {
        app_say("there is no manual page of '%s'", argv[0]);
        return EXIT_USAGE;
    }
    if (c)
        opt_man(p, c, stdout);
    else
        opt_man_program(p, stdout);
    return 0;
}

static int print_completion(const struct opt_program *p, int argc, char **argv)
{
    if (argc == 1 && opt_complete(p, argv[0], stdout) == 0)
        return 0;
    app_say("completion: expected bash, zsh or fish");
    return EXIT_USAGE;
}

bool opt_program_asked(const struct opt_program *p, int argc, char **argv,
                       int *rc)
{
    if (argc > 1 && !strcmp(argv[1], "manual"))
        *rc = print_manual(p, argc - 2, argv + 2);
    else if (argc > 1 && !strcmp(argv[1], "completion"))
        *rc = print_completion(p, argc - 2, argv + 2);
    else
        return false;
    return true;
}
