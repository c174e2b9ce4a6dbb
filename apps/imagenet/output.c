/* output.c - text files in the folder of a run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/app.h"
#include "common/opt.h"
#include "output.h"

/* Folders of one second that are tried before something is wrong. */
enum { MOST = 1000 };

int output_new(const char *model, char **path)
{
    char clock[32] = "";
    time_t t = time(NULL);
    struct tm tm;
    int rc = app_make_dir("runs");

    *path = NULL;
    if (rc)
        return rc;
    if (localtime_r(&t, &tm))
        strftime(clock, sizeof(clock), "%Y%m%d-%H%M%S", &tm);
    for (int i = 1; i < MOST; i++) {
        free(*path);
        *path = i == 1 ? app_path("runs", "%s-%s", model, clock)
                       : app_path("runs", "%s-%s-%d", model, clock, i);
        if (!*path)
            return EXIT_MEMORY;
        if (mkdir(*path, 0777) == 0)
            return OPTS_GO;
        if (errno != EEXIST)
            break;
    }
    app_say("cannot create the folder %s: %s", *path, strerror(errno));
    return EXIT_WRITE;
}

/* Each returns 0 or errno. */
static int write_file(const char *path, output_f *write, const void *arg)
{
    FILE *f = fopen(path, "w");
    int error = 0;

    if (!f)
        return errno;
    write(arg, f);
    if (fflush(f) != 0 || fsync(fileno(f)) != 0)
        error = errno;
    if (fclose(f) != 0 && !error)
        error = errno;
    return error;
}

static int replace_file(const char *dir, const char *path, const char *temp,
                        output_f *write, const void *arg)
{
    int error = write_file(temp, write, arg);

    if (!error && rename(temp, path) != 0)
        error = errno;
    if (!error)
        error = app_sync_dir(dir); /* then the rename is permanent */
    if (!error)
        return OPTS_GO;
    app_say("cannot write %s: %s", path, strerror(error));
    unlink(temp);
    return EXIT_WRITE;
}

int output_write(const char *dir, const char *name, output_f *write,
                 const void *arg)
{
    char *path = app_path(dir, "%s", name);
    char *temp = app_path(dir, "%s.tmp", name);
    int rc =
        path && temp ? replace_file(dir, path, temp, write, arg) : EXIT_MEMORY;

    free(path);
    free(temp);
    return rc;
}
