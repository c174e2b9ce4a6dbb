/* host.c - memory that the ranks of a host share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * It has no name in the file system, so that nothing is left of it when they
 * end.
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "engine/host.h"
#include "engine/ranks.h"
#include "runtime/context.h"

/* What a rank has; its numbers hold on that machine. */
struct offer {
    uint64_t machine;      /* 0: unknown */
    int64_t process, file; /* file -1: none */
    uint64_t size, inode;  /* of the file */
    uint32_t use, unused;
};

/* On the first rank of a host that has others. */
static void make_memory(const ddp_t *ddp, const char *name, struct offer *o)
{
    const struct ddp__wire *w = &ddp->net.wire;
    struct stat s;

    if (w->local_rank > 0 || w->local_count == 1 || !o->size || !o->machine)
        return;
    o->file = memfd_create(name, MFD_CLOEXEC);
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

/* The first offer that fits; NULL: none does. */
static const struct offer *find(const struct offer *all, int count,
                                const struct offer *mine)
{
    for (int r = 0; r < count; r++)
        if (all[r].file >= 0 && all[r].machine == mine->machine &&
            all[r].size == mine->size && all[r].use == mine->use)
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
    if (memory != MAP_FAILED)
        madvise(memory, o->size, MADV_HUGEPAGE); /* may be refused */
    close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

int ddp__host_map(ddp_t *ddp, const char *name, size_t size, uint32_t use,
                  struct ddp__host_memory *m)
{
    int count = ddp->net.wire.count, rc;
    struct offer mine = {.machine = ddp->net.own_cores.machine,
                         .process = getpid(),
                         .file = -1,
                         .size = size,
                         .use = use};
    struct offer *all = calloc((size_t)count, sizeof(*all));
    const struct offer *found;

    if (!all)
        return ddp__fail(DDP_ENOMEM, "out of memory for ranks");
    make_memory(ddp, name, &mine);
    if ((rc = ddp__ranks_gather(ddp, &mine, sizeof(mine), all)) == 0) {
        if ((found = find(all, count, &mine)) && (m->at = map(found)))
            m->size = size;
        rc = ddp__ranks_agree(ddp, 0); /* all have mapped it */
    }
    if (mine.file >= 0)
        close((int)mine.file);
    free(all);
    return rc;
}

void ddp__host_unmap(struct ddp__host_memory *m)
{
    if (m->at)
        munmap(m->at, m->size);
    *m = (struct ddp__host_memory){NULL, 0};
}
