/* shared_pack.c - packed weights that the processes of a host make together
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * As in pack.c, a copy has users and is handed out in parts, and who reads it
 * keeps it from being overwritten.  But a process may stop or be killed at any
 * line, so nobody waits long: who is kept waiting packs for itself, and whether
 * the other one is lost is left to those who watch it.
 */
#include "config.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "cpu/thread.h"
#include "pack.h"
#include "shared_pack.h"

enum { HEAD = 64, LOOKS = 1000, SAMPLES = 16 };

/* Seconds for what others do, which takes a millisecond at most while their
 * processes run. */
#define PATIENCE 0.05

struct ddp__shared_pack {
    atomic_int lock; /* of key and of the first users */
    atomic_int users, begun, done;
    uint64_t key; /* 0: none */
};

_Static_assert(sizeof(struct ddp__shared_pack) <= HEAD, "no room for a head");

size_t ddp__shared_pack_size(size_t copy)
{
    return HEAD + ddp__align(copy);
}

void *ddp__shared_pack_data(struct ddp__shared_pack *s)
{
    return (char *)s + HEAD;
}

uint64_t ddp__shared_pack_key(uint64_t common, const float *w, size_t n)
{
    uint64_t key = common;

    for (size_t i = 0; i < SAMPLES; i++) {
        uint32_t bits;

        memcpy(&bits, &w[n * i / SAMPLES], sizeof(bits));
        key = (key ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
        key ^= key >> 32;
    }
    return key | 1;
}

/* Its holder needs some nanoseconds, or was stopped there.  Where many threads
 * have one core, each look takes milliseconds. */
static bool lock(struct ddp__shared_pack *s)
{
    double end = ddp__clock() + PATIENCE;

    for (int i = 0; i < LOOKS && ddp__clock() < end; i++) {
        if (!atomic_exchange(&s->lock, 1))
            return true;
        sched_yield();
    }
    return false;
}

/* It becomes the copy of these contents, unless others are being read. */
static bool enter(struct ddp__shared_pack *s, uint64_t key)
{
    bool good;

    if (!lock(s))
        return false;
    good = s->key == key || atomic_load(&s->users) == 0;
    if (good && s->key != key) {
        s->key = key;
        atomic_store(&s->done, 0);
        atomic_store(&s->begun, 0);
    }
    if (good)
        atomic_fetch_add(&s->users, 1);
    atomic_store(&s->lock, 0);
    return good;
}

/* Parts that others have begun. */
static bool await(struct ddp__shared_pack *s, int parts)
{
    double end = 0;

    while (atomic_load(&s->done) < parts) {
        if (end == 0)
            end = ddp__clock() + PATIENCE;
        else if (ddp__clock() > end)
            return false;
        sched_yield();
    }
    return true;
}

bool ddp__shared_pack_get(struct ddp__shared_pack *s,
                          const struct ddp__packing *how)
{
    int part, rc = 0;

    if (!enter(s, how->key))
        return false;
    while (rc == 0 && atomic_load(&s->begun) < how->parts &&
           (part = atomic_fetch_add(&s->begun, 1)) < how->parts)
        if ((rc = how->fill(how->arg, ddp__shared_pack_data(s), part)) == 0)
            atomic_fetch_add(&s->done, 1);
    if (rc == 0 && await(s, how->parts))
        return true;
    ddp__shared_pack_put(s);
    return false;
}

void ddp__shared_pack_put(struct ddp__shared_pack *s)
{
    atomic_fetch_sub(&s->users, 1);
}
