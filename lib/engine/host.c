/* host.c - memory that the ranks of a host share, for packed weights
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * All ranks have the same weights, and would pack them as often as there are
 * ranks.  The first one of a host makes memory for one copy; those with the
 * same calls, plans and places of copies map it.  It has no name, so that
 * nothing is left of it when they end.
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/host.h"
#include "engine/ranks.h"
#include "runtime/devices.h"

/* What a rank has; its numbers hold on that machine. */
struct offer {
    uint64_t machine;       /* 0: unknown */
    int64_t process, file;  /* file -1: none */
    uint64_t size, inode;   /* of the file */
    uint32_t calls, unused; /* calls: what they are, as a checksum */
};

static uint32_t add_call(uint32_t crc, const struct ddp__call *c, size_t size)
{
    uint64_t what[] = {(uint64_t)c->op, size};

    crc = ddp__crc32c(crc, what, sizeof(what));
    for (int i = 0; i < c->buffers; i++)
        crc = ddp__crc32c(crc, &c->buf[i].shape, sizeof(c->buf[i].shape));
    return crc;
}

static struct offer describe(const struct ddp__engine *e)
{
    struct offer o = {.machine = e->ddp->net.own_cores.machine,
                      .process = getpid(),
                      .file = -1};

    for (int i = 0; i < e->graph->nodes; i++) {
        const struct ddp__call *c = &e->graph->node[i]->call;
        size_t size = ddp__call_common(c);

        o.calls = size ? add_call(o.calls, c, size) : o.calls;
        o.size += size;
    }
    return o;
}

/* On the first rank of a host that has others. */
static void make_memory(const struct ddp__engine *e, struct offer *o)
{
    const struct ddp__wire *w = &e->ddp->net.wire;
    struct stat s;

    if (w->local_rank > 0 || w->local_count == 1 || !o->size || !o->machine)
        return;
    o->file = memfd_create("ddp-weights", MFD_CLOEXEC);
    if (o->file < 0)
        return;
    if (ftruncate((int)o->file, (off_t)o->size) == 0 &&
        fstat((int)o->file, &s) == 0) {
        o->inode = s.st_ino;
        return;
    }
    close((int)o->file);
    o->file = -1;
}

/* NULL: there is nobody else's that fits. */
static const struct offer *find(const struct offer *all, int count,
                                const struct offer *mine)
{
    for (int r = 0; r < count; r++)
        if (all[r].file >= 0 && all[r].machine == mine->machine &&
            all[r].size == mine->size && all[r].calls == mine->calls)
            return &all[r];
    return NULL;
}

static int open_file(const struct offer *o)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%lld/fd/%lld", (long long)o->process,
             (long long)o->file);
    return open(path, O_RDWR | O_CLOEXEC);
}

static void *map(const struct offer *o)
{
    int file = open_file(o);
    void *memory = MAP_FAILED;
    struct stat s;

    if (file < 0)
        return NULL;
    if (fstat(file, &s) == 0 && s.st_ino == o->inode &&
        (uint64_t)s.st_size == o->size) /* PID may be of another container */
        memory =
            mmap(NULL, o->size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

static void use(struct ddp__engine *e, const struct offer *o)
{
    char *at;

    if (!o || !(e->host = map(o)))
        return;
    e->host_size = o->size;
    at = e->host;
    for (int i = 0; i < e->graph->nodes; i++) {
        const struct ddp__call *c = &e->graph->node[i]->call;
        size_t size = ddp__call_common(c);

        if (size)
            ddp__call_use_common(c, at);
        at += size;
    }
}

int ddp__host_share(struct ddp__engine *e)
{
    int count = e->ddp->net.wire.count, rc;
    struct offer mine, *all;

    if (e->ranks == 1 || e->simulated)
        return 0;
    if (!(all = calloc((size_t)count, sizeof(*all))))
        return ddp__fail(DDP_ENOMEM, "out of memory for ranks");
    mine = describe(e);
    make_memory(e, &mine);
    if ((rc = ddp__ranks_gather(e->ddp, &mine, sizeof(mine), all)) == 0) {
        use(e, find(all, count, &mine));
        rc = ddp__ranks_agree(e->ddp, 0); /* all have mapped it */
    }
    if (mine.file >= 0)
        close((int)mine.file);
    free(all);
    return rc;
}

void ddp__host_free(struct ddp__engine *e)
{
    if (e->host)
        munmap(e->host, e->host_size);
}
