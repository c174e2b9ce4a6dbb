/* bus_file.c - whether StarPU can read its files of measured copies
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Of src/core/perfmodel/perfmodel_bus.c, 1.3.10 and 1.4.10: .config has a line
 * for the CPUs, one for the NUMA nodes and one for each kind of accelerator,
 * each with a number; .affinity a line for each accelerator: its number within
 * its kind, and the NUMA nodes, nearest first.  Lines with # are comments.
 * Other numbers of devices than the machine has are measured again; what is no
 * number ends the process.  .latency and .bandwidth are tables of numbers, and
 * are measured again if they are not.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "runtime/bus_file.h"

enum { MAX_FILE = 16 << 20, KINDS = 14 };

/* Text of whole lines. */
static bool is_text(const struct ddp__bytes *b)
{
    for (size_t i = 0; i < b->len; i++)
        if (b->data[i] >= 0x7f ||
            (b->data[i] < ' ' && b->data[i] != '\t' && b->data[i] != '\n'))
            return false;
    return b->len > 0 && b->data[b->len - 1] == '\n';
}

/* The next line that is no comment, as text of its own; NULL: there is none. */
static char *next_line(char **at)
{
    char *line;

    do {
        line = *at;
        *at += strcspn(line, "\n");
        if (**at)
            *(*at)++ = '\0';
        if (*line && *line != '#')
            return line;
    } while (**at);
    return NULL;
}

/* A number from 0 to most. */
static bool read_number(char **at, long most, long *n)
{
    char *end;

    *n = strtol(*at, &end, 10);
    if (end == *at || *n < 0 || *n > most)
        return false;
    *at = end;
    return true;
}

static bool is_config(char *text, struct ddp__bus_counts *c)
{
    long n[2 + KINDS];
    int lines = 0;

    for (char *line; lines < 2 + KINDS && (line = next_line(&text)); lines++)
        if (!read_number(&line, 1 << 20, &n[lines]))
            return false;
    if (lines < 6)
        return false;
    c->numas = (int)n[1];
    c->kinds = lines - 2;
    for (int i = 0; i < c->kinds; i++)
        c->devices[i] = (int)n[2 + i];
    return true;
}

/* A line of .affinity: this device, and all nodes. */
static bool is_near(char *line, int device, int numas)
{
    long n;

    if (!read_number(&line, device, &n) || n != device)
        return false;
    for (int i = 0; i < numas; i++)
        if (!read_number(&line, numas - 1, &n))
            return false;
    return true;
}

/* All devices are there, or those at the end are not. */
static bool is_affinity(char *text, const struct ddp__bus_counts *c)
{
    for (int kind = 0; kind < c->kinds; kind++)
        for (int i = 0; i < c->devices[kind]; i++) {
            char *line = next_line(&text);

            if (!line)
                return true;
            if (!is_near(line, i, c->numas))
                return false;
        }
    return true;
}

bool ddp__bus_file_good(const char *path, int kind, struct ddp__bus_counts *c)
{
    struct ddp__error before = ddp__error_save();
    struct ddp__bytes b = {0};
    char *text = NULL;
    bool good = false;

    if (ddp__file_load(path, MAX_FILE, &b) == 0 && is_text(&b) &&
        (text = strndup((char *)b.data, b.len)))
        good = kind == DDP__BUS_CONFIG     ? is_config(text, c)
               : kind == DDP__BUS_AFFINITY ? is_affinity(text, c)
                                           : true;
    ddp__error_restore(&before);
    free(text);
    free(b.data);
    return good;
}
