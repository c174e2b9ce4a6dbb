/* test_peers.c - whom a rank calls lost, when it is not a process of this host
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The ranks are of one process; a thread tends those that live.
 */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "ddp.h"
#include "runtime/net.h"
#include "runtime/status.h"
#include "tap.h"

enum { RANKS = 3, MOST = 64, OP = 1 };

/* Of silence, in seconds: more than between two beats, and than the time after
 * which a rank does not count as one that speaks. */
#define TIMEOUT 1.2

/* ---- a wire ------------------------------------------------------------- */

/* What has been sent from one rank to another, and how much of it was taken. */
static struct {
    struct ddp__beat beat[MOST];
    int sent, taken;
} line[RANKS][RANKS];
static struct ddp__beat *wanted[RANKS][RANKS]; /* where the next one goes */
static int cut = -1; /* the rank to which nothing can be sent */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int wire_send(struct ddp__wire *w, int to, int tag, const void *data,
                     size_t len, uintptr_t *request)
{
    int rc = 0;

    (void)tag;
    (void)len;
    *request = 0;
    pthread_mutex_lock(&lock);
    if (to == cut)
        rc = DDP_EPEER;
    else if (line[w->rank][to].sent < MOST)
        line[w->rank][to].beat[line[w->rank][to].sent++] =
            *(const struct ddp__beat *)data;
    pthread_mutex_unlock(&lock);
    return rc;
}

/* The request is the rank, and 1 for another one than 0. */
static int wire_recv(struct ddp__wire *w, int from, int tag, void *data,
                     size_t len, uintptr_t *request)
{
    (void)tag;
    (void)len;
    wanted[from][w->rank] = data;
    *request = (uintptr_t)from + 1;
    return 0;
}

static int wire_test(struct ddp__wire *w, uintptr_t *request)
{
    int from = (int)*request - 1, done;

    pthread_mutex_lock(&lock);
    done = line[from][w->rank].taken < line[from][w->rank].sent;
    if (done) {
        *wanted[from][w->rank] =
            line[from][w->rank].beat[line[from][w->rank].taken++];
        *request = 0;
    }
    pthread_mutex_unlock(&lock);
    return done;
}

/* ---- ranks -------------------------------------------------------------- */

static const char hosts[RANKS][DDP__HOST_NAME] = {"a", "b", "c"};
static struct ddp__net net[RANKS];
static struct ddp__status status[RANKS];
static atomic_int living; /* a bit for each rank that the thread tends */

static void *tend(void *arg)
{
    (void)arg;
    while (atomic_load(&living)) {
        for (int r = 1; r < RANKS; r++)
            if (atomic_load(&living) >> r & 1)
                ddp__peers_tend(&net[r]);
        usleep(10000);
    }
    return NULL;
}

/* Rank 1 has not done its part of the operation, or all have. */
static void start(bool all)
{
    memset(line, 0, sizeof(line));
    cut = -1;
    for (int r = 0; r < RANKS; r++) {
        ddp__status_init(&status[r]);
        ddp__status_enter(&status[r], DDP_PHASE_TRAINING);
        ddp__status_step(&status[r], 5, 1);
        net[r] = (struct ddp__net){.wire = {.rank = r,
                                            .count = RANKS,
                                            .tags = 8,
                                            .hosts = hosts,
                                            .send = wire_send,
                                            .recv = wire_recv,
                                            .test = wire_test},
                                   .status = &status[r],
                                   .peers = {.timeout = TIMEOUT},
                                   .ops = all || r != 1 ? OP : OP - 1,
                                   .moved = ddp__clock()};
        pthread_mutex_init(&net[r].lock, NULL);
        pthread_mutex_init(&net[r].peers.lock, NULL);
    }
    for (int r = 0; r < RANKS; r++)
        ddp__peers_new(&net[r]);
}

static void stop(void)
{
    for (int r = 0; r < RANKS; r++) {
        pthread_mutex_destroy(&net[r].lock);
        pthread_mutex_destroy(&net[r].peers.lock);
        for (int from = 0; from < RANKS; from++) { /* nothing is under way */
            struct ddp__peer *p = &net[r].peers.peer[from];

            p->receive = p->send = 0;
            p->lost = false;
        }
        ddp__peers_free(&net[r]);
        ddp__status_fini(&status[r]);
    }
}

/* What rank 0 says of a message that has failed, while these others live. */
static const char *blamed(int others)
{
    pthread_t thread;

    atomic_store(&living, others);
    pthread_create(&thread, NULL, tend, NULL);
    ddp__fail(DDP_EPEER, "the message has failed");
    if (ddp__peers_blame(&net[0], OP) != DDP_EPEER)
        ddp__fail(DDP_EINVAL, "no error");
    atomic_store(&living, 0);
    pthread_join(thread, NULL);
    return ddp_errmsg();
}

static void test_silent(void)
{
    start(false);
    is_str(blamed(1 << 2),
           "rank 1 (b) has not been heard of for 1 s; it was training, after "
           "step 5",
           "a message fails, and a rank is silent: that one is lost");
    stop();
}

static void test_cut(void)
{
    double begin = ddp__clock();

    start(false);
    ddp__peers_tend(&net[0]);
    cut = 1;
    is_str(blamed(1 << 2),
           "rank 1 (b) cannot be reached any more; it was last heard of "
           "training, after step 5",
           "a rank to which nothing can be sent is lost");
    ok(ddp__clock() - begin < TIMEOUT + 1.5, "soon");
    stop();
}

static void test_nobody(void)
{
    start(true);
    is_str(blamed(1 << 1 | 1 << 2), "the message has failed",
           "nobody is lost: the message's own error");
    stop();
}

/* ---- MPI that does not return ------------------------------------------- */

#define DIED "rank 1 (b) has died: its process"

static int calls; /* of on_peer_lost */

static void count_call(const char *why, void *arg)
{
    (void)why;
    (void)arg;
    calls++;
}

/* What breaks rank 0 of so many when its thread is inside MPI for that long. */
static const char *broken(int count, int process, double seconds)
{
    double end = ddp__clock() + seconds;

    start(true);
    net[0].wire.count = count;
    net[0].on_peer_lost = count_call;
    net[0].peers.peer[1].process = process;
    calls = 0;
    ddp__watch_begin(&net[0]);
    while (ddp__clock() < end && net[0].rc == 0)
        usleep(10000);
    ddp__watch_end(&net[0]);
    net[0].wire.count = RANKS;
    stop();
    return net[0].rc == DDP_EPEER && calls == 1 ? net[0].why
           : net[0].rc == 0 && calls == 0       ? ""
                                                : "another error";
}

/* A descriptor of a process that has died. */
static int open_dead(void)
{
    pid_t child = fork();
    int process = -1;

    if (child == 0)
        pause();
#ifdef SYS_pidfd_open
    process = (int)syscall(SYS_pidfd_open, child, 0);
#endif
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return process;
}

static void test_inside(void)
{
    is_str(
        broken(2, -1, 9),
        "rank 1 (b) is lost: MPI has not returned for 2 s; it was last "
        "heard of in the program, after step 0",
        "MPI does not return for longer than the timeout: the other is lost");
    is_str(broken(RANKS, -1, 9),
           "another rank is lost: MPI has not returned for 2 s; ranks that it "
           "returns to say which",
           "one of several is not named");
}

static void test_dead(void)
{
    int process = open_dead();

    if (process < 0) {
        skip(1, "no descriptors of processes here");
        return;
    }
    ok(strncmp(broken(RANKS, process, 9), DIED, strlen(DIED)) == 0,
       "one that has died on this host is");
}

/* Rank 0's thread comes back now and then, and is inside MPI for longer than
 * the timeout in all. */
static void test_busy(void)
{
    start(true);
    ddp__watch_begin(&net[0]);
    for (int i = 0; i < 7; i++) {
        ddp__watch_tick(&net[0]);
        usleep(800000);
    }
    ddp__watch_end(&net[0]);
    ok(net[0].rc == 0, "a thread to which MPI returns is left alone");
    stop();
}

int main(void)
{
    test_silent();
    test_cut();
    test_nobody();
    test_inside();
    test_dead();
    test_busy();
    return done_testing();
}
