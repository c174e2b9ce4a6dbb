/* log_files.c - folders, names and times of logs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file_write.h"
#include "train/log_files.h"

double ddp__log_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int ddp__log_folder(const char *path)
{
    return mkdir(path, 0777) < 0 && errno != EEXIST
               ? ddp__fail(DDP_EIO, "%s: cannot be created: %s", path,
                           strerror(errno))
               : 0;
}

static int write_text(struct ddp__sink *s, void *text)
{
    return ddp__write_all(s, text, strlen(text));
}

int ddp__log_write(const char *path, const char *text)
{
    return ddp__file_replace(path, write_text, (void *)text, NULL);
}

void ddp__log_id(char *id, size_t n, const char *letters)
{
    unsigned char byte[32] = {0};
    size_t count = strlen(letters);

    if (getrandom(byte, sizeof(byte), 0) != sizeof(byte)) {
        uint64_t v = (uint64_t)(1e9 * ddp__log_now()) ^ (uint64_t)getpid()
                                                            << 40;

        memcpy(byte, &v, sizeof(v));
    }
    for (size_t i = 0; i < n; i++)
        id[i] = letters[byte[i % sizeof(byte)] % count];
    id[n] = '\0';
}
