/* opt_rows.h - short ways to write the rows of opt.h
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For a .c file with a table: OPT_STRUCT is defined before, the struct of the
 * values.  What follows the help text sets further fields: .letter = 'b'.
 */
#ifndef OPT_ROWS_H
#define OPT_ROWS_H

#include "common/opt.h"

#define OPT_ROW(name_, field, kind_, value_, preset_, lo, hi, help_)           \
    .name = name_, .kind = kind_, .at = offsetof(OPT_STRUCT, field),           \
    .value = value_, .preset = preset_, .min = lo, .max = hi, .help = help_

#define FLAG(name, field, help, ...)                                           \
    {                                                                          \
        OPT_ROW(name, field, OPT_FLAG, NULL, NULL, 0, 0, help), __VA_ARGS__    \
    }

#define INT(name, field, preset, lo, hi, help, ...)                            \
    {                                                                          \
        OPT_ROW(name, field, OPT_INT, "N", preset, lo, hi, help), __VA_ARGS__  \
    }

#define NUM(name, field, preset, lo, hi, help, ...)                            \
    {                                                                          \
        OPT_ROW(name, field, OPT_FLOAT, "X", preset, lo, hi, help),            \
            __VA_ARGS__                                                        \
    }

#define SHARE(name, field, preset, help, ...)                                  \
    {                                                                          \
        OPT_ROW(name, field, OPT_SHARE, "SHARE", preset, 0, 1, help),          \
            __VA_ARGS__                                                        \
    }

#define TIME(name, field, preset, help, ...)                                   \
    {                                                                          \
        OPT_ROW(name, field, OPT_TIME, "TIME", preset, 1, 1e9, help),          \
            __VA_ARGS__                                                        \
    }

#define LIST(name, field, n, value, preset, lo, hi, help, ...)                 \
    {                                                                          \
        OPT_ROW(name, field, OPT_FLOATS, value, preset, lo, hi, help),         \
            .count = n, __VA_ARGS__                                            \
    }

#define WIDTHS(name, field, value, preset, help, ...)                          \
    {                                                                          \
        OPT_ROW(name, field, OPT_WIDTHS, value, preset, 0, 0, help),           \
            __VA_ARGS__                                                        \
    }

#define TEXT(name, field, value, preset, help, ...)                            \
    {                                                                          \
        OPT_ROW(name, field, OPT_TEXT, value, preset, 0, 0, help), __VA_ARGS__ \
    }

#define TEXTS(name, field, value, help, ...)                                   \
    {                                                                          \
        OPT_ROW(name, field, OPT_TEXTS, value, NULL, 0, 0, help), __VA_ARGS__  \
    }

#define CHOICE(name, field, value, preset, words, help, ...)                   \
    {                                                                          \
        OPT_ROW(name, field, OPT_CHOICE, value, preset, 0, 0, help),           \
            .choice = words, __VA_ARGS__                                       \
    }

/* The words come from a function. */
#define CHOICE_OF(name, field, value, preset, word_, help, ...)                \
    {                                                                          \
        OPT_ROW(name, field, OPT_CHOICE, value, preset, 0, 0, help),           \
            .word = word_, __VA_ARGS__                                         \
    }

/* Ends a group. */
#define END                                                                    \
    {                                                                          \
        .name = NULL                                                           \
    }

#endif
