/* test_wandb.c - files of Weights & Biases: bytes, blocks, and what a run that
 * resumes leaves of them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * tests/app_board.sh has the package read such files.
 */
#include "config.h"

#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

#include "tap.h"
#include "train/log.h"
#include "train/wandb_file.h"

enum { BLOCK = 32768, HEAD = 7 };

static char dir[] = "/tmp/ddp-wandb-XXXXXX";

static char *at(const char *name)
{
    char *path;

    if (asprintf(&path, "%s/%s", dir, name) < 0)
        bail_out("out of memory");
    return path;
}

/* ---- records ------------------------------------------------------------ */

/* What came first from the package itself: the head of a file and an empty
 * record of the header. */
static void test_bytes(void)
{
    static const unsigned char want[] = {0x3a, 0x57, 0x26, 0x42, 0xe1, 0xbe, 0,
                                         0x55, 0xb7, 0xa6, 0x3f, 0x05, 0,    1,
                                         0x08, 0x01, 0xaa, 0x01, 0x00};
    unsigned char got[sizeof(want) + 1];
    struct ddp__wandb_file f;
    struct ddp__proto none = {0};
    char *path = at("bytes");
    ssize_t len;
    int fd;

    is_int(ddp__wandb_create(&f, path), 0, "a file is made");
    is_int(ddp__wandb_write(&f, 21, &none), 0, "it gets a header");
    fd = open(path, O_RDONLY);
    len = read(fd, got, sizeof(got));
    ok(len == sizeof(want) && !memcmp(got, want, sizeof(want)),
       "its bytes are those that the package writes");
    close(fd);
    unlink(path);
    ddp__wandb_close(&f);
}

/* What a scan has found: bytes of records of one byte value each. */
struct found {
    size_t len[4];
    int count, wrong;
};

static bool note(const unsigned char *record, size_t len, void *arg)
{
    struct found *f = arg;

    if (f->count == 4)
        return false;
    /* Up to ten bytes are numbers and lengths of fields. */
    for (size_t i = len > 16 ? 10 : len - 1; i < len; i++)
        f->wrong += record[i] != 'a' + f->count;
    f->len[f->count++] = len;
    return true;
}

static void put_letters(struct ddp__wandb_file *f, char letter, size_t n)
{
    char *text = malloc(n);
    struct ddp__proto p = {0};

    memset(text, letter, n);
    ddp__proto_bytes(&p, 1, text, n);
    if (ddp__wandb_write(f, 4, &p) < 0)
        bail_out("%s", ddp_errmsg());
    ddp__proto_free(&p);
    free(text);
}

/* A record leaves `left` bytes of the first block: less than a head is filled,
 * a head alone has a part without data. */
static void test_block(int left)
{
    struct ddp__wandb_file f;
    struct found found = {0};
    char *path = at("block");
    size_t first;

    ddp__wandb_create(&f, path);
    put_letters(&f, 'a', BLOCK - 100);
    first = BLOCK - 100 + (size_t)(BLOCK - left - f.size);
    unlink(path);
    ddp__wandb_close(&f);
    path = at("block");
    ddp__wandb_create(&f, path);
    put_letters(&f, 'a', first);
    is_int(f.size, BLOCK - left, "%d bytes of a block are left", left);
    put_letters(&f, 'b', 70000);
    put_letters(&f, 'c', 1);
    if (write(f.fd, "torn", 4) != 4)
        bail_out("cannot write %s", path);
    ddp__wandb_close(&f);
    path = at("block");
    is_int(ddp__wandb_reopen(&f, path, note, &found), 0, "  it is read");
    ok(found.count == 3 && found.wrong == 0 && found.len[0] > first &&
           found.len[1] > 70000,
       "  records are those that were written, one in three blocks");
    is_int(lseek(f.fd, 0, SEEK_END), f.size, "  a torn one is cut off");
    unlink(path);
    ddp__wandb_close(&f);
}

static bool stays_one(const unsigned char *record, size_t len, void *arg)
{
    (void)record;
    (void)len;
    return (*(int *)arg)++ < 1;
}

static void test_reopen(void)
{
    struct ddp__wandb_file f;
    char *path = at("cut");
    int asked = 0, fd;

    ddp__wandb_create(&f, path);
    put_letters(&f, 'a', 10);
    put_letters(&f, 'b', 10);
    put_letters(&f, 'c', 10);
    ddp__wandb_close(&f);
    path = at("cut");
    ddp__wandb_reopen(&f, path, stays_one, &asked);
    ok(f.count == 1 && asked == 2, "what does not stay is cut off");
    ddp__wandb_close(&f);
    path = at("cut");
    fd = open(path, O_WRONLY);
    if (pwrite(fd, "x", 1, 0) != 1)
        bail_out("cannot write %s", path);
    close(fd);
    is_int(ddp__wandb_reopen(&f, path, stays_one, &asked), DDP_EDATA,
           "a file with another head is refused");
    ok(strstr(ddp_errmsg(), "is no file of Weights & Biases; move it away"),
       "it is named");
    unlink(path);
    ddp__wandb_close(&f);
}

/* ---- a log -------------------------------------------------------------- */

/* Bytes of the only file of a run; 0: there is none, or there are several. */
static off_t size_of_run(void)
{
    char *pattern = at("runs/offline-run-*/run-*.wandb");
    off_t size = 0;
    glob_t g;
    int fd;

    if (glob(pattern, 0, NULL, &g) == 0) {
        if (g.gl_pathc == 1 && (fd = open(g.gl_pathv[0], O_RDONLY)) >= 0) {
            size = lseek(fd, 0, SEEK_END);
            close(fd);
        }
        globfree(&g);
    }
    free(pattern);
    return size;
}

static off_t log_steps(int64_t from, int64_t to)
{
    char *runs = at("runs");
    ddp_log_t *l = ddp_log_new(DDP_LOG_WANDB, runs);

    ddp_log_set(l, "lr", "0.1");
    for (int64_t i = from; i <= to; i++)
        if (ddp_log_scalar(l, "v", i, 1.0 / (double)i) < 0)
            bail_out("%s", ddp_errmsg());
    ddp_log_free(l);
    free(runs);
    return size_of_run();
}

/* A program of its own loop begins with the step it has. */
static void test_log(void)
{
    ddp_log_t *l;
    char *runs = at("runs");
    off_t three = log_steps(1, 3), more;
    int fd;

    ok(three > 0, "a log has a file in a folder");
    more = log_steps(10, 10);
    ok(more > three, "one that resumes appends to it");
    ok(log_steps(1, 1) < more, "without rows that come later");
    free(runs);
    runs = at("file");
    fd = open(runs, O_WRONLY | O_CREAT, 0666);
    close(fd);
    l = ddp_log_new(DDP_LOG_WANDB, runs);
    is_int(ddp_log_scalar(l, "v", 1, 1), DDP_EIO, "no folder can be made");
    is_int(ddp_log_scalar(l, "v", 2, 1), DDP_EIO, "as the next value finds");
    is_int(ddp_log_status(l), DDP_EIO, "and the status");
    ddp_log_free(l);
    unlink(runs);
    free(runs);
}

int main(void)
{
    char *remove;

    if (!mkdtemp(dir))
        bail_out("no folder under /tmp");
    test_bytes();
    for (int left = 0; left <= HEAD + 1; left++)
        test_block(left);
    test_reopen();
    test_log();
    if (asprintf(&remove, "rm -rf '%s'", dir) < 0 || system(remove) != 0)
        bail_out("cannot remove %s", dir);
    free(remove);
    return done_testing();
}
