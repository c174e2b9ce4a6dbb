/* crash.h - every call that changes the disk below a folder, one by one
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The test program's own write(), rename(), ... come before libc's.  Those
 * that touch the folder are counted, and at each of them something can be
 * done: a copy of the folder is kept, which is what kill -9 would leave at that
 * moment, or the call fails, or the process dies.
 *
 * As a library to preload into any program it is controlled by the environment:
 * DDP_CRASH="kill 17 /folder", "ENOSPC 17 /folder", "EIO+ 17 /folder" (all
 * calls from that one on), "count 0 /folder" (how many), "list 0 /folder"
 * (which folders are made and synced).  It ends with
 * "calls=N" or "failed=write", the first that failed, on stderr.
 */
#ifndef CRASH_H
#define CRASH_H

#include <stdatomic.h>
#include <stdbool.h>

enum crash_mode {
    CRASH_OFF,
    CRASH_COUNT,
    CRASH_COPY, /* keep the folder as it is before the call, in copies/N */
    CRASH_FAIL, /* call number `at` fails; all from it on when `forever` */
    CRASH_KILL, /* the process dies at call number `at` */
    CRASH_LIST, /* print each new folder and name, and what is synced */
};

struct crash {
    _Atomic enum crash_mode mode;
    const char *_Atomic dir; /* what counts is below it */
    const char *copies;      /* folder for copies */
    int at, error;
    bool forever;
    atomic_bool no_locks; /* no /proc/locks, as for another machine's */
    int count;            /* calls so far, from 0 */
    int unsynced;  /* CRASH_COUNT: names given to what is not on the disk */
    char what[64]; /* the call that failed */
};
extern struct crash crash;

/* Start again in this mode. */
void crash_begin(enum crash_mode mode, const char *dir);

#endif
