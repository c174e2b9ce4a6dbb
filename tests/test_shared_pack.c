/* test_shared_pack.c - packed weights that several processes make and read
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "tap.h"

#ifndef HAVE_ONEDNN
int main(void)
{
    skip_all("built without oneDNN");
}
#else
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "cpu/conv/pack.h"
#include "cpu/conv/shared_pack.h"
#include "pixel_layer.h"
#include "ranks_fork.h"

enum { PARTS = 6, NOBODY = -1 };

/* Of all processes. */
static struct memory {
    atomic_int made[PARTS], ready;
    _Alignas(64) char pack[4096];
} * memory;

/* Contents, as the weights of an update; the part that kills its process. */
struct work {
    int value, deadly;
};

static struct ddp__shared_pack *pack(void)
{
    return (void *)memory->pack;
}

static int fill(const void *arg, void *to, int part)
{
    const struct work *w = arg;

    if (part == w->deadly)
        raise(SIGKILL);
    usleep(1000); /* so that others take parts, too */
    atomic_fetch_add(&memory->made[part], 1);
    ((int *)to)[part] = w->value;
    return 0;
}

static bool get(int value, int deadly)
{
    struct work w = {value, deadly};

    return ddp__shared_pack_get(
        pack(), &(struct ddp__packing){.fill = fill,
                                       .arg = &w,
                                       .parts = PARTS,
                                       .size = PARTS * sizeof(int),
                                       .key = (uint64_t)value});
}

static bool has(int value)
{
    const int *data = ddp__shared_pack_data(pack());

    for (int i = 0; i < PARTS; i++)
        if (data[i] != value)
            return false;
    return true;
}

static bool each_made(int times)
{
    for (int i = 0; i < PARTS; i++)
        if (memory->made[i] != times)
            return false;
    return true;
}

static bool end_well(struct fork_ranks *f)
{
    bool good = true;

    for (int r = 0; r < f->count; r++)
        good &= fork_code(f, r) == 0;
    return good;
}

/* ---- all live ----------------------------------------------------------- */

enum { VERSIONS = 20, PROCESSES = 3 };

/* None begins a version before all have read the one before, as in training.
 */
static int read_all(int rank)
{
    bool good = true;

    (void)rank;
    for (int v = 1; v <= VERSIONS; v++) {
        bool got = get(v, NOBODY);

        good &= got && has(v);
        if (got)
            ddp__shared_pack_put(pack());
        atomic_fetch_add(&memory->ready, 1);
        while (atomic_load(&memory->ready) < v * PROCESSES)
            usleep(100);
    }
    return !good;
}

static void test_together(void)
{
    struct fork_ranks f;

    fork_start(&f, PROCESSES, read_all);
    ok(end_well(&f), "%d processes read %d versions, one after another",
       PROCESSES, VERSIONS);
    ok(each_made(VERSIONS), "and make each part of each once");
}

/* ---- versions ----------------------------------------------------------- */

static void test_versions(void)
{
    bool first = get(101, NOBODY), again = get(101, NOBODY);

    ok(first && again && has(101), "two readers of one version");
    ok(!get(102, NOBODY) && has(101), "it is not overwritten meanwhile");
    ddp__shared_pack_put(pack());
    ok(!get(102, NOBODY) && has(101), "nor while one still reads");
    ddp__shared_pack_put(pack());
    ok(get(102, NOBODY) && has(102), "it is when nobody does");
    ddp__shared_pack_put(pack());
}

/* ---- a process dies ----------------------------------------------------- */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* On a machine with other work, half a second is ten times what it waits. */
static bool refused_soon(int value)
{
    double begin = now();
    bool got = get(value, NOBODY);

    return !got && now() - begin < 0.5;
}

static int die_packing(int rank)
{
    (void)rank;
    return get(103, PARTS - 2);
}

static int die_reading(int rank)
{
    (void)rank;
    if (get(201, NOBODY))
        raise(SIGKILL);
    return 1;
}

/* Since nobody gives the copy back. */
static void test_deaths(void)
{
    struct fork_ranks f;

    fork_start(&f, 1, die_packing);
    ok(!end_well(&f), "a process is killed while it packs");
    ok(refused_soon(103), "who waits for its part packs for itself");
    ok(refused_soon(104), "and so does who has other weights");
    memset(memory, 0, sizeof(*memory));
    fork_start(&f, 1, die_reading);
    ok(!end_well(&f), "one is killed while it reads");
    ok(get(201, NOBODY) && has(201), "others read what it has made");
    ddp__shared_pack_put(pack());
    ok(refused_soon(202), "and pack for themselves what comes then");
    memset(memory, 0, sizeof(*memory));
    *(atomic_int *)(void *)memory->pack = 1;
    ok(refused_soon(1), "one was killed while it looked");
}

/* ---- keys --------------------------------------------------------------- */

static void test_keys(void)
{
    float w[1000], other[1000];
    uint64_t key;

    for (int i = 0; i < 1000; i++)
        other[i] = 1e-6f + (w[i] = (float)(i % 7));
    key = ddp__shared_pack_key(5, w, 1000);
    ok(key && key == ddp__shared_pack_key(5, w, 1000), "equal weights");
    ok(key != ddp__shared_pack_key(6, w, 1000), "another update");
    ok(key != ddp__shared_pack_key(5, other, 1000), "other weights");
    ok(ddp__shared_pack_key(5, w, 1) != 0, "few weights");
}

/* ---- layouts ------------------------------------------------------------ */

static struct ddp__dnn *layer(int outputs)
{
    struct ddp__conv_shape s =
        pixel_shape(DDP_F32, &(struct pixel_row){1, 8, 8, 16, outputs, false});
    struct ddp__dnn *d;

    if (ddp__dnn_new(&d, &s, DDP__FWD, false) < 0)
        bail_out("%s", ddp_errmsg());
    return d;
}

/* Whether a copy in this layout is the one that processes share. */
static bool is_shared(struct ddp__packs *p, const struct ddp__dnn *layout,
                      int value)
{
    struct work w = {value, NOBODY};
    struct ddp__pack *k;
    bool shared;

    if (ddp__pack_get(p, &k, layout, 1, 1,
                      &(struct ddp__packing){fill, &w, PARTS,
                                             PARTS * sizeof(int), 300}) < 0)
        bail_out("%s", ddp_errmsg());
    shared = k->data == ddp__shared_pack_data(pack());
    ok(((int *)k->data)[PARTS - 1] == value,
       "a copy has what it was asked for");
    ddp__pack_put(p, k);
    return shared;
}

static void test_layouts(void)
{
    struct ddp__dnn *d = layer(32), *other = layer(64);
    struct ddp__packs p;

    memset(memory, 0, sizeof(*memory));
    ddp__packs_init(&p);
    ddp__packs_share(&p, pack(), d);
    ok(is_shared(&p, d, 5), "copies in one layout are shared");
    ok(!is_shared(&p, other, 6), "those in another are not");
    ddp__packs_free(&p);
    ddp__dnn_free(d);
    ddp__dnn_free(other);
}

int main(void)
{
    alarm(60); /* nobody may wait for a process that has ended */
    memory = fork_memory(sizeof(*memory));
    test_together();
    memset(memory, 0, sizeof(*memory));
    test_versions();
    test_deaths();
    test_keys();
    test_layouts();
    return done_testing();
}
#endif
