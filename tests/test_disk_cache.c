/* test_disk_cache.c - decoded images in a folder: hits, damage, changes, limits
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ddp.h"
#include "defaults.h"
#include "tap.h"

enum { SIDE = 40, SIZE = 16, HEAD = 54, COUNT = 12 };
enum { BYTES = SIZE * SIZE * 3, FILE_BYTES = HEAD + SIDE * SIDE * 3 };
static const int64_t large = (int64_t)1 << 30;

static char top[64] = "/tmp/test_disk_cache.XXXXXX", images[80], copies[80];

/* ---- files -------------------------------------------------------------- */

static const char *path_of(int i)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%d.bmp", images, i);
    return path;
}

/* A BMP file whose pixels a number decides, in place of one that is there. */
static void put_image(int i, unsigned n)
{
    static const unsigned char head[HEAD] = {
        'B',         'M',         [10] = HEAD, [14] = 40,
        [18] = SIDE, [22] = SIDE, [26] = 1,    [28] = 24};
    unsigned char pixels[SIDE * SIDE * 3];
    int fd = open(path_of(i), O_WRONLY | O_CREAT, 0666);

    for (size_t k = 0; k < sizeof(pixels); k++)
        pixels[k] = (unsigned char)((n = n * 1103515245 + 12345) >> 16);
    if (write(fd, head, sizeof(head)) != sizeof(head) ||
        write(fd, pixels, sizeof(pixels)) != sizeof(pixels) || close(fd) < 0)
        diag("%s: %s", path_of(i), strerror(errno));
}

/* Call fn for each copy; returns their number. */
static int each_copy(void (*fn)(const char *path, int64_t *arg), int64_t *arg)
{
    struct dirent **in;
    char path[512];
    int n = 0;

    for (int i = 0; i < 256; i++) {
        int files;

        snprintf(path, sizeof(path), "%s/%02x", copies, i);
        files = scandir(path, &in, NULL, NULL);
        for (int k = 0; k < files; k++) {
            snprintf(path, sizeof(path), "%s/%02x/%s", copies, i,
                     in[k]->d_name);
            if (in[k]->d_name[0] != '.' && ++n)
                fn(path, arg);
            free(in[k]);
        }
        if (files >= 0)
            free(in);
    }
    return n;
}

static void add_size(const char *path, int64_t *sum)
{
    struct stat st;

    *sum += stat(path, &st) == 0 ? st.st_size : 0;
}

/* Flip a bit of the last pixel. */
static void damage(const char *path, int64_t *arg)
{
    int fd = open(path, O_RDWR);
    char c;

    (void)arg;
    lseek(fd, -1, SEEK_END);
    if (read(fd, &c, 1) != 1 || lseek(fd, -1, SEEK_END) < 0 ||
        (c ^= 1, write(fd, &c, 1)) != 1 || close(fd) < 0)
        diag("%s: %s", path, strerror(errno));
}

static void cut(const char *path, int64_t *arg)
{
    (void)arg;
    if (truncate(path, 100) < 0)
        diag("%s: %s", path, strerror(errno));
}

static void delete (const char *path, int64_t *arg)
{
    (void)arg;
    unlink(path);
}

/* ---- reading ------------------------------------------------------------ */

static int64_t hits, misses; /* of the last reads */
static int64_t bytes;        /* of copies */

/* Read image i; true: there are pixels. */
static bool read_image(int i, uint8_t x[BYTES])
{
    const struct ddp_image_options o = {IMAGE_DEFAULTS, .size = SIZE,
                                        .augment = DDP_AUGMENT_RANDOM};
    struct ddp_image_cache_stats before, after;
    ddp_dataset_t *d = ddp_dataset_images((const char *[]){path_of(i)}, 1, &o);
    int rc;

    ddp_image_cache_stats(&before);
    rc = d ? ddp_dataset_get(d, 0, 9, x, NULL) : -1;
    ddp_image_cache_stats(&after);
    hits = after.hits - before.hits;
    misses = after.misses - before.misses;
    ddp_dataset_free(d);
    return rc == 0;
}

/* What the file gives, without a cache. */
static void read_file(int i, uint8_t x[BYTES])
{
    ddp_image_cache_folder(NULL, 0);
    if (!read_image(i, x))
        diag("%s", ddp_errmsg());
    ddp_image_cache_folder(copies, large);
}

static uint8_t want[BYTES], got[BYTES];

/* Whether a read is right, and answered by a copy or not. */
static bool reads(int i, bool hit)
{
    read_file(i, want);
    return read_image(i, got) && !memcmp(got, want, BYTES) && hits == hit &&
           misses == !hit;
}

/* ---- tests -------------------------------------------------------------- */

static void test_hits(void)
{
    ok(ddp_image_cache_folder(copies, 0) == DDP_EINVAL, "%s", ddp_errmsg());
    ok(ddp_image_cache_folder("/nowhere/at/all", large) == DDP_EIO, "%s",
       ddp_errmsg());
    ok(reads(0, false), "the first read decodes");
    ok(reads(0, true), "the second one finds the pixels");
    is_int(each_copy(add_size, &bytes), 1, "in one file");
    each_copy(damage, NULL);
    ok(reads(0, false), "not those that are damaged");
    ok(reads(0, true), "which are made again");
    each_copy(cut, NULL);
    ok(reads(0, false) && reads(0, true), "nor those of a file that is cut");
}

/* Time stamps of the contents can be set by anyone. */
static void test_changes(void)
{
    uint8_t before[BYTES];
    struct stat st;

    read_file(0, before);
    stat(path_of(0), &st);
    put_image(0, 1000);
    utimensat(AT_FDCWD, path_of(0),
              (struct timespec[2]){st.st_atim, st.st_mtim}, 0);
    ok(reads(0, false) && memcmp(before, got, BYTES),
       "another image of the same size and time is read");
    ok(reads(0, true), "and kept");
}

/* A file that cannot be written stands for a full disk. */
static void test_full(void)
{
    struct rlimit none = {FILE_BYTES / 2, RLIM_INFINITY}, all;

    each_copy(delete, NULL);
    getrlimit(RLIMIT_FSIZE, &all);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
    ok(reads(1, false) && reads(1, false), "on a full disk images are read");
    setrlimit(RLIMIT_FSIZE, &all);
    is_int(each_copy(add_size, &bytes), 0, "and nothing is left there");
    ok(reads(1, false) && reads(1, true), "until there is room");
}

/* Whether all images are read right, three times. */
static bool read_all(void)
{
    bool good = true;

    for (int k = 0; k < 3 * COUNT; k++) {
        uint8_t x[BYTES], y[BYTES];

        read_file(k % COUNT, x);
        good &= read_image(k % COUNT, y) && !memcmp(x, y, BYTES);
    }
    return good;
}

static void test_processes(void)
{
    enum { CHILDREN = 3 };
    pid_t child[CHILDREN];
    int good = 0, status;

    each_copy(delete, NULL);
    for (int i = 0; i < CHILDREN; i++)
        if ((child[i] = fork()) == 0)
            _exit(!read_all());
    for (int i = 0; i < CHILDREN; i++)
        good += waitpid(child[i], &status, 0) == child[i] && status == 0;
    is_int(good, CHILDREN, "processes share the folder");
    is_int(each_copy(add_size, &bytes), COUNT, "which has each image once");
}

static void test_limit(void)
{
    const int64_t limit = (int64_t)COUNT * FILE_BYTES / 2;
    uint8_t x[BYTES];

    bytes = 0;
    each_copy(delete, NULL);
    ddp_image_cache_folder(copies, limit);
    for (int i = 0; i < COUNT; i++)
        read_image(i, x);
    each_copy(add_size, &bytes);
    ok(bytes > 0 && bytes <= limit, "%d bytes, of %d that are allowed",
       (int)bytes, (int)limit);
}

int main(void)
{
    char command[128];

    if (!mkdtemp(top))
        skip_all("%s: %s", top, strerror(errno));
    snprintf(images, sizeof(images), "%s/i", top);
    snprintf(copies, sizeof(copies), "%s/c", top);
    mkdir(images, 0777);
    for (int i = 0; i < COUNT; i++)
        put_image(i, (unsigned)i);
    test_hits();
    test_changes();
    test_full();
    test_processes();
    test_limit();
    snprintf(command, sizeof(command), "rm -rf %s", top);
    if (system(command) != 0)
        diag("%s remains", top);
    return done_testing();
}
