/* app_command.h - the command line of a program, for records
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef APP_COMMAND_H
#define APP_COMMAND_H

/* Not copied.  Before the other functions. */
void app_set_command(int argc, char **argv);

/* How many words it has; the i-th, to free(), NULL without memory.  The user
 * and the query of a URL are left out, as they may be secrets. */
int app_command_words(void);
char *app_command_word(int i);

/* Any text without users and queries of URLs, to free(). */
char *app_redact(const char *text);

/* A word quoted for a shell, to free(). */
char *app_shell_word(const char *word);

/* All words, as one would type them, to free(). */
char *app_command_line(void);

#endif
