/* hello.c - the first message between ranks: whether they can work together
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Another version may give messages another layout, or compute other bits.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "runtime/hello.h"

int ddp__hello_compare(const struct ddp__hello *all, int ranks)
{
    for (int r = 0; r < ranks; r++)
        if (all[r].order != DDP__HELLO_ORDER)
            return ddp__fail(DDP_EINVAL,
                             "rank %d (%.*s) has another byte order: all ranks "
                             "need processors of the same kind",
                             r, DDP__HOST_NAME, all[r].host);
    for (int r = 1; r < ranks; r++)
        if (strcmp(all[r].version, all[0].version) != 0)
            return ddp__fail(DDP_EINVAL,
                             "rank %d (%s) has %s, but rank 0 (%s) has %s: "
                             "install the same version everywhere",
                             r, all[r].host, all[r].version, all[0].host,
                             all[0].version);
    return 0;
}

/* Processes are numbered by namespace, and again from 1 when a machine starts.
 */
uint64_t ddp__hello_machine(void)
{
    char id[64] = "";
    struct stat space;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    bool read = f && fgets(id, sizeof(id), f);

    if (f)
        fclose(f);
    if (!read || stat("/proc/self/ns/pid", &space) < 0)
        return 0;
    return (uint64_t)ddp__crc32c(0, id, strlen(id)) << 32 ^ space.st_ino;
}

/* The sends, then the receives, by rank. */
static int begin(struct ddp__wire *w, char *all, size_t size,
                 uintptr_t *request)
{
    int rc = 0;

    for (int r = 0; r < w->count && rc == 0; r++)
        if (r != w->rank && (rc = w->send(w, r, 0, all + (size_t)w->rank * size,
                                          size, &request[r])) == 0)
            rc = w->recv(w, r, 0, all + (size_t)r * size, size,
                         &request[w->count + r]);
    return rc < 0 ? ddp__fail(rc, "MPI: %s", w->why) : 0;
}

/* How many are not over; < 0, with *failed: one of them has failed. */
static int look(struct ddp__wire *w, uintptr_t *request, int *failed)
{
    int open = 0, bad = 0;

    for (int r = 0; r < w->count; r++) {
        int rc = request[r] ? w->test(w, &request[r]) : 1;

        open += rc == 0;
        if (rc < 0) {
            *failed = r;
            bad = rc;
        }
    }
    return bad < 0 ? bad : open;
}

/* Not at once: the others notice who is lost before this rank ends, too. */
static int fail_lost(const struct ddp__wire *w, int rank, int rc)
{
    const struct timespec patience = {.tv_sec = 1};

    nanosleep(&patience, NULL);
    return ddp__fail(rc, "rank %d (%s) was lost when ranks joined: %s", rank,
                     w->hosts[rank], w->why);
}

static int fail_silent(const struct ddp__wire *w, const uintptr_t *receive,
                       double seconds)
{
    int r = 0;

    while (r < w->count - 1 && !receive[r])
        r++;
    return ddp__fail(DDP_EPEER, "rank %d (%s) has sent nothing for %.0f s", r,
                     w->hosts[r], seconds);
}

/* Nobody watches peers yet: a rank that has stopped is noticed here.  One that
 * has ended because another is lost had sent its message, so a send that fails
 * says less than a receive. */
static int await(struct ddp__wire *w, uintptr_t *request, double seconds)
{
    const struct timespec tick = {.tv_nsec = 1000000};
    uintptr_t *receive = request + w->count;
    double begin = ddp__clock();
    int from = 0, to = 0, in, out;

    for (;;) {
        out = look(w, request, &to);
        if ((in = look(w, receive, &from)) < 0)
            return fail_lost(w, from, in);
        if (in == 0 && out <= 0)
            return out < 0 ? fail_lost(w, to, out) : 0;
        if (seconds > 0 && ddp__clock() - begin > seconds)
            return fail_silent(w, receive, seconds);
        nanosleep(&tick, NULL);
    }
}

/* What messages may still be written to, after a failure, until the process
 * ends.  Nobody reads it: volatile keeps it for who looks for leaks. */
static void *volatile unfinished[2];

int ddp__hello_gather(struct ddp__wire *w, void *all, size_t size,
                      double seconds)
{
    uintptr_t *request = calloc(2 * (size_t)w->count, sizeof(*request));
    int rc;

    if (!request)
        return ddp__fail(DDP_ENOMEM, "out of memory for ranks");
    if ((rc = begin(w, all, size, request)) == 0)
        rc = await(w, request, seconds);
    if (rc == 0) {
        free(request);
        return 0;
    }
    unfinished[0] = all;
    unfinished[1] = request;
    return rc;
}

int ddp__hello_exchange(struct ddp__wire *w, const char *version,
                        double seconds)
{
    struct ddp__hello *all = calloc((size_t)w->count, sizeof(*all));
    int rc;

    if (!all)
        return ddp__fail(DDP_ENOMEM, "out of memory for ranks");
    all[w->rank].order = DDP__HELLO_ORDER;
    snprintf(all[w->rank].version, sizeof(all->version), "%s", version);
    memcpy(all[w->rank].host, w->hosts[w->rank], sizeof(all->host));
    if ((rc = ddp__hello_gather(w, all, sizeof(*all), seconds)) < 0)
        return rc;
    rc = ddp__hello_compare(all, w->count);
    free(all);
    return rc;
}
