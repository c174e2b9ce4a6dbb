/* opt.h - the options of a command as one table: parsing, checks, help
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A command is a list of groups of rows.  From the same rows come what is
 * parsed and checked, --help, and the record of a run (opts_save()).  Values
 * land in a struct of the program at the row's offset.
 */
#ifndef OPT_H
#define OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kind of a value, and the C type at its offset. */
enum opt_kind {
    OPT_FLAG,   /* bool; takes no value */
    OPT_INT,    /* int64_t, within min..max */
    OPT_FLOAT,  /* double, within min..max */
    OPT_SHARE,  /* double in 0..1, also written as a percentage */
    OPT_TIME,   /* double: seconds, also written H:MM:SS or D-HH:MM:SS */
    OPT_FLOATS, /* double[count], separated by commas, within min..max */
    OPT_WIDTHS, /* int[OPT_WIDTHS_MAX + 1], ended by 0 */
    OPT_TEXT,   /* char *, owned by the struct: opts_free() */
    OPT_TEXTS,  /* char **, ended by NULL, owned likewise: one each time */
    OPT_CHOICE, /* int, the index of a word: choice or word */
};

enum { OPT_WIDTHS_MAX = 15, OPT_MAX = 160 };

/* Another name, and what it stands for. */
struct opt_word {
    const char *name, *means;
};

struct opt_foreign;

struct opt {
    const char *name;  /* "batch-size" */
    const char *alias; /* another name of it, or NULL */
    char letter;       /* 'b', or 0 */
    enum opt_kind kind;
    size_t at;          /* offset in the struct of values */
    const char *value;  /* what help calls the value */
    const char *preset; /* the default as one would type it, or NULL */
    double min, max;    /* both 0: any */
    int count;
    int least;  /* numbers of a list that are needed, the others being those of
                   the preset; 0: all */
    int spread; /* a single number stands for so many */
    const char *const *choice;  /* ended by NULL */
    const char *(*word)(int i); /* instead of choice: word i, or NULL; of a text
                                   those that completions offer */
    const struct opt_word *also; /* of a choice: more words, ended by NULL */
    const struct opt_foreign *prefix; /* of a choice: what the word may begin
                                         with, and what that means; or NULL */
    bool of_network;                  /* opts_load() takes it over */
    bool of_run;                      /* opts_configure() leaves it alone */
    const char *help;
    void (*more)(char *text, size_t size); /* the end of help, or NULL */
};

struct opt_group {
    const char *title;
    const struct opt *opt; /* ended by a row without name */
};

/* A name that other programs have for an option, or that is no option here. */
struct opt_foreign {
    const char *name;
    const char *option; /* that it means; NULL: none */
    const char *value;  /* it takes no value, and means this one unless another
                           is given; with `why` the values that ask for what is
                           always so, as "a,b" */
    const char *why;    /* no option: a sentence on what there is instead; NULL:
                           what it asks for is always so, and it takes no value */
};

struct opt_command {
    const char *name;                     /* "imagenet train" */
    const char *about;                    /* for --help */
    const char *plain;                    /* option meant by a plain argument */
    const struct opt_group *const *group; /* ended by NULL */
    const struct opt_foreign *foreign;    /* ended by NULL; or NULL */
};

/* One parsed command line. */
struct opts {
    const struct opt_command *cmd;
    void *values;
    bool given[OPT_MAX];  /* on the command line */
    bool loaded[OPT_MAX]; /* from a file: opts_load(), opts_configure() */
};

enum { OPTS_GO = -1 };

/* Set every value to its default, then to what argv (argv[0] is skipped) says.
 *
 * Returns OPTS_GO to continue, or the exit code: 0 after --help, and 2 after a
 * message on stderr that names the option.
 */
int opts_parse(struct opts *o, const struct opt_command *cmd, void *values,
               int argc, char **argv);

/* Was the option on the command line? */
bool opts_given(const struct opts *o, const char *name);

/* Was it there, or in a file that was read? */
bool opts_have(const struct opts *o, const char *name);

/* Complain, and return exit code 2, if the option was given although it has no
 * effect; otherwise OPTS_GO. */
int opts_only(const struct opts *o, const char *name, bool holds,
              const char *why);

/* Free what OPT_TEXT and OPT_TEXTS values hold. */
void opts_free(struct opts *o);

/* The i-th row of the command, or NULL. */
const struct opt *opt_at(const struct opt_command *cmd, int i);

/* Its number, or -1. */
int opt_index(const struct opt_command *cmd, const char *name);

/* A message on stderr that begins with the command. */
void opt_complain(const struct opts *o, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
