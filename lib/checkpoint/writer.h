/* writer.h - the file that says which process writes to a folder
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CHECKPOINT_WRITER_H
#define DDP_CHECKPOINT_WRITER_H

#include <stdbool.h>
#include <time.h>

/* The process that a folder's file names. */
struct ddp__writer {
    long pid; /* 0: there is no such file, or it is damaged */
    char host[65], since[33];
    char boot[65];           /* of the machine; "": unknown */
    struct timespec renewed; /* by the file system's clock */
};

/* Name this process in the folder dir, whose path is for messages; DDP_EIO. */
int ddp__writer_note(int dir, const char *path);
struct ddp__writer ddp__writer_read(int dir);

/* Whether it is on this machine, as long as that runs; whether it is this
 * process. */
bool ddp__writer_is_here(const struct ddp__writer *w);
bool ddp__writer_is_own(const struct ddp__writer *w);

/* Has the file renewed every ddp__writer_renew_ms (10 s; tests have less time),
 * so that processes on other machines see that this one lives; NULL: no memory.
 * The end of it removes the file. */
struct ddp__renewal;
extern int ddp__writer_renew_ms;
struct ddp__renewal *ddp__renewal_begin(int dir);
void ddp__renewal_end(struct ddp__renewal *r);

#endif
