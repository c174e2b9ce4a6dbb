/* app_command.c - the command line of a program, for records
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/app_command.h"

static int words;
static char *const *word;

void app_set_command(int argc, char **argv)
{
    words = argc;
    word = argv;
}

int app_command_words(void)
{
    return words;
}

char *app_command_word(int i)
{
    return app_redact(word[i]);
}

/* ---- secrets ------------------------------------------------------------ */

/* The length of what is kept of text up to the first URL's host, of that URL's
 * user, and of its host and path. */
static size_t find_url(const char *text, size_t *user, size_t *path)
{
    const char *mark = strstr(text, "://"), *host, *at;

    *user = *path = 0;
    if (!mark)
        return strlen(text);
    host = mark + 3;
    *path = strcspn(host, "/?# \t\n,\"'");
    for (at = host + *path; at > host && at[-1] != '@';)
        at--;
    *user = (size_t)(at - host);
    *path = strcspn(at, "?# \t\n,\"'");
    return (size_t)(host - text);
}

char *app_redact(const char *text)
{
    char *out = malloc(2 * strlen(text) + 8), *to = out;

    while (out && *text) {
        size_t user, path, before = find_url(text, &user, &path);

        memcpy(to, text, before);
        to += before;
        text += before + user;
        memcpy(to, text, path);
        to += path;
        text += path;
        if (path && *text == '?') {
            to += sprintf(to, "?");
            text += strcspn(text, " \t\n,\"'");
        }
    }
    if (out)
        *to = '\0';
    return out;
}

/* ---- as one types it ---------------------------------------------------- */

static bool is_plain(char c)
{
    return isalnum((unsigned char)c) || strchr("_-./,:=+@%", c);
}

char *app_shell_word(const char *text)
{
    size_t plain = 0, len = strlen(text);
    char *out = malloc(4 * len + 3), *to = out;

    while (plain < len && is_plain(text[plain]))
        plain++;
    if (!out)
        return NULL;
    if (plain == len && len > 0)
        return strcpy(out, text);
    *to++ = '\'';
    for (; *text; text++) {
        if (*text == '\'')
            to += sprintf(to, "'\\''");
        else
            *to++ = *text;
    }
    strcpy(to, "'");
    return out;
}

char *app_command_line(void)
{
    char *line = strdup("");

    for (int i = 0; i < words && line; i++) {
        char *text = app_command_word(i);
        char *quoted = text ? app_shell_word(text) : NULL, *more = NULL;

        if (!quoted ||
            asprintf(&more, "%s%s%s", line, i ? " " : "", quoted) < 0)
            more = NULL;
        free(text);
        free(quoted);
        free(line);
        line = more;
    }
    return line;
}
