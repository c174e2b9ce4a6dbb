/* app_words.c - messages of the library in the words of a program
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/app_words.h"

static const struct app_word none[] = {{NULL, NULL}};
static const struct app_word *words = none;

void app_set_words(const struct app_word *all)
{
    words = all;
}

/* Paths and longer names are words too; a full stop ends one. */
static bool is_inner(const char *s)
{
    unsigned char next = s[0] == '.' ? (unsigned char)s[1] : 0;

    return s[0] && (isalnum((unsigned char)s[0]) || strchr("_-/", s[0]) ||
                    isalnum(next) || next == '/');
}

/* The row of the word of len bytes at s, or NULL. */
static const struct app_word *find_word(const char *s, size_t len)
{
    for (const struct app_word *w = words; w->library; w++)
        if (strlen(w->library) == len && !strncmp(w->library, s, len))
            return w;
    return NULL;
}

void app_translate(const char *text, char *out, size_t size)
{
    size_t at = 0;

    *out = 0;
    while (*text && at + 1 < size) {
        const struct app_word *w;
        size_t len = 0;

        while (is_inner(text + len))
            len++;
        w = len ? find_word(text, len) : NULL;
        len = len ? len : 1;
        at += (size_t)snprintf(out + at, size - at, "%.*s",
                               w ? (int)strlen(w->program) : (int)len,
                               w ? w->program : text);
        text += len;
    }
}
