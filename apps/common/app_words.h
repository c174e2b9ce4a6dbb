/* app_words.h - messages of the library in the words of a program
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef APP_WORDS_H
#define APP_WORDS_H

#include <stddef.h>

/* What ddp.h calls something, and what the program does: its option. */
struct app_word {
    const char *library, *program;
};

/* The words of this program, ended by a row of NULL. */
void app_set_words(const struct app_word *words);

/* Copy a text with the library's words replaced. */
void app_translate(const char *text, char *out, size_t size);

#endif
