/* scratch.h - a folder of a test's own, and files in it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <sys/stat.h>
#include <unistd.h>

#include "make_image.h"
#include "remove_tree.h"
#include "tap.h"

static char scratch_top[] = "/tmp/ddp-test-XXXXXX";

/* The path of a name in it; good until the fourth next call. */
static const char *at(const char *name)
{
    static char path[4][600];
    static int i;

    snprintf(path[++i % 4], sizeof(path[0]), "%s/%s", scratch_top, name);
    return path[i % 4];
}

/* Make the folders that a name is in. */
static void make_dirs(const char *name)
{
    char part[512];

    for (const char *p = name; (p = strchr(p, '/')); p++) {
        snprintf(part, sizeof(part), "%.*s", (int)(p - name), name);
        mkdir(at(part), 0777);
    }
}

/* Write a file, and the folders that it is in. */
static void put(const char *name, const void *data, size_t len)
{
    make_dirs(name);
    if (!write_file(at(name), data, len))
        bail_out("cannot write %s", at(name));
}

static MAKE_UNUSED void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

static void scratch_remove(void)
{
    remove_tree(scratch_top);
}

static void scratch_make(void)
{
    if (!mkdtemp(scratch_top))
        bail_out("cannot make a folder in /tmp");
    atexit(scratch_remove);
}

#endif
