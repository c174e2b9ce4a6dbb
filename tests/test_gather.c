/* test_gather.c - what ranks that are threads send to all others
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "ddp.h"
#include "late_wire.h"
#include "runtime/hello.h"
#include "tap.h"

/* ---- something of every rank -------------------------------------------- */

static size_t len_of(const void *arg, int rank)
{
    (void)arg;
    return (size_t)rank * 3;
}

static void *gather_rank(void *arg)
{
    struct rank *r = arg;
    struct ddp__gather g;

    ddp__gather_new(&g, &r->wire, 1, len_of, NULL);
    memset(ddp__gather_of(&g, r->wire.rank), 'a' + r->wire.rank,
           len_of(NULL, r->wire.rank));
    ddp__gather_begin(&g);
    while (ddp__gather_poll(&g) == 0)
        ;
    r->good = memcmp(g.data, "bbbccccccddddddddd", 18) == 0;
    ddp__gather_end(&g);
    return NULL;
}

/* Rank 2 has it; of more than two parts. */
static void *pass_rank(void *arg)
{
    enum { SIZE = (9 << 20) + 5 };
    struct rank *r = arg;
    char *data = calloc(1, SIZE);
    struct ddp__pass p;

    for (size_t i = 0; r->wire.rank == 2 && i < SIZE; i++)
        data[i] = (char)(i % 251);
    ddp__pass_begin(&p, &r->wire, 1, 2, data, SIZE);
    while (ddp__pass_poll(&p) == 0)
        ;
    ddp__pass_end(&p);
    r->good = true;
    for (size_t i = 0; i < SIZE; i++)
        r->good &= data[i] == (char)(i % 251);
    free(data);
    return NULL;
}

/* So many ranks at the same time: whether all find what they should. */
static bool run_ranks(struct rank *r, int n, void *(*run)(void *rank))
{
    bool good = true;

    for (int i = 0; i < n; i++) {
        r[i].wire = wire_of(i, n);
        pthread_create(&r[i].thread, NULL, run, &r[i]);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(r[i].thread, NULL);
        good &= r[i].good;
    }
    return good && !messages;
}

static void test_four(void *(*run)(void *rank), const char *what)
{
    struct rank r[4] = {0};

    ok(run_ranks(r, 4, run), "every rank gets what %s", what);
}

/* ---- the first message -------------------------------------------------- */

static void *say_hello(void *arg)
{
    struct rank *r = arg;
    const char *version = r->wire.rank == 2 ? "libddp 2" : "libddp 1";
    const char *want = "rank 2 (c) has libddp 2, but rank 0 (a) has libddp 1: "
                       "install the same version everywhere";

    r->good = ddp__hello_exchange(&r->wire, version, 0) == DDP_EINVAL &&
              !strcmp(ddp_errmsg(), want);
    return NULL;
}

static void test_hello(void)
{
    struct ddp__hello all[3] = {{DDP__HELLO_ORDER, "1", "a"},
                                {DDP__HELLO_ORDER, "1", "b"},
                                {DDP__HELLO_ORDER, "1", "c"}};
    struct rank r[3] = {0};

    renumber();
    ok(run_ranks(r, 3, say_hello),
       "another version is refused by all ranks, by name");
    r[0].wire = wire_of(0, 2);
    ok(ddp__hello_exchange(&r[0].wire, "libddp 1", 0.05) == DDP_EPEER &&
           strstr(ddp_errmsg(), "rank 1 (b) has sent nothing"),
       "a rank that says nothing is not waited for without end");
    is_int(ddp__hello_compare(all, 3), 0, "equal ranks work together");
    all[1].order = UINT32_C(0x04030201);
    ok(ddp__hello_compare(all, 3) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "rank 1 (b) has another byte order"),
       "another byte order is refused");
}

int main(void)
{
    test_four(gather_rank, "each has");
    test_four(pass_rank, "one has");
    test_hello();
    return done_testing();
}
