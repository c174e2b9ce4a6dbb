/* test_faults.c - memory and storage that fail are not the image's fault
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * This program has its own malloc() and read(), which the libraries call too.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef HAVE_PNG
#include <png.h>
#endif

#include "base/file_write.h"
#include "data/dataset.h"
#include "defaults.h"
#include "image/image.h"
#include "make_image.h"
#include "sanitized.h"
#include "tap.h"

enum { OWN_MALLOC = !SANITIZED };

/* ---- faults ------------------------------------------------------------- */

static _Thread_local long fail_malloc; /* the n-th from now; 0: none */
static _Thread_local bool fail_rest;   /* and all after it */
static _Thread_local long fail_reads;  /* so many from now */
static _Thread_local int read_error;
static _Thread_local bool full; /* write() takes nothing */

#if !SANITIZED
void *__libc_malloc(size_t size);

void *malloc(size_t size)
{
    if (fail_malloc > 0 && --fail_malloc == 0) {
        fail_malloc = fail_rest;
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(size);
}
#endif

ssize_t read(int fd, void *to, size_t size)
{
    if (fail_reads > 0) {
        fail_reads--;
        errno = read_error;
        return -1;
    }
    return syscall(SYS_read, fd, to, size);
}

ssize_t write(int fd, const void *data, size_t size)
{
    return full ? 0 : syscall(SYS_write, fd, data, size);
}

/* ---- memory ------------------------------------------------------------- */

enum { SIZE = 16 };

static const struct ddp_image_options small = {IMAGE_DEFAULTS, .size = SIZE,
                                               .resize = 20};

static int decode(const struct bytes *b, uint8_t *x)
{
    return ddp__image_decode(b->data, b->len, &small, DDP__AS_STORED, 1, x);
}

/* Fail each allocation of a decoder once.  libjpeg asks for less then, and may
 * get it. */
static void test_memory(const char *name, const struct bytes *b)
{
    uint8_t want[SIZE * SIZE * 3], x[SIZE * SIZE * 3];
    int failed = 0, memory = 0, spared = 0, rc;
    bool good;
    long left = 0;

    if (!OWN_MALLOC) {
        skip(2, "a sanitizer has its own malloc()");
        return;
    }
    if (decode(b, want) < 0)
        bail_out("%s", ddp_errmsg());
    for (long k = 1; left == 0; k++) {
        fail_malloc = k;
        rc = decode(b, x);
        left = fail_malloc;
        fail_malloc = 0;
        good = rc == 0 && !memcmp(x, want, sizeof(x));
        failed += left == 0;
        memory += left == 0 && rc == DDP_ENOMEM;
        spared += left == 0 && good;
        if (left == 0 && !good && rc != DDP_ENOMEM)
            diag("allocation %ld: %d: %s", k, rc, ddp_errmsg());
    }
    ok(memory > 1 && memory + spared == failed,
       "%s: %d allocations that fail are DDP_ENOMEM, %d are done without", name,
       memory, spared);
    ok(good, "%s: and the image is read after that", name);
}

#ifdef HAVE_PNG
static void test_png(const uint8_t *pixels)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = 60,
                       .height = 50,
                       .format = PNG_FORMAT_RGB};
    png_alloc_size_t size = 1 << 16;
    uint8_t file[1 << 16];
    struct bytes b = {.data = file};

    if (!png_image_write_to_memory(&image, file, &size, 0, pixels, 0, NULL))
        bail_out("cannot make a PNG image");
    b.len = size;
    test_memory("PNG", &b);
}
#endif

static void test_decoders(void)
{
    const struct jpeg_kind kind = {
        .w = 60, .h = 50, .in = JCS_RGB, .progressive = true};
    uint8_t *pixels = make_pixels(60, 50, 3, 1);
    struct bytes b = make_jpeg(&kind, pixels);

    test_memory("progressive JPEG", &b);
    free(b.data);
    b = make_photo(60, 50, 2);
    test_memory("JPEG", &b);
    free(b.data);
#ifdef HAVE_PNG
    test_png(pixels);
#endif
    free(pixels);
}

/* ---- storage ------------------------------------------------------------ */

static char dir[] = "/tmp/test_faults.XXXXXX";

static const char *at(const char *name)
{
    static char path[2][128];
    static int i;

    snprintf(path[++i % 2], sizeof(path[0]), "%s/%s", dir, name);
    return path[i % 2];
}

static ddp_dataset_t *make_data(void)
{
    struct bytes b = make_photo(40, 30, 3);

    if (!mkdtemp(dir))
        bail_out("no folder under /tmp");
    mkdir(at("a"), 0777);
    mkdir(at("b"), 0777);
    if (!write_file(at("a/1.jpg"), b.data, b.len) ||
        !write_file(at("b/2.jpg"), b.data, b.len))
        bail_out("cannot write to %s", dir);
    free(b.data);
    return ddp_dataset_folder(dir, &small);
}

static void remove_data(void)
{
    unlink(at("a/1.jpg"));
    unlink(at("b/2.jpg"));
    rmdir(at("a"));
    rmdir(at("b"));
    rmdir(dir);
}

static int read_first(ddp_dataset_t *d)
{
    uint8_t x[SIZE * SIZE * 3];
    struct ddp_sample s = {.x = x, .weight = 1, .norm = 1};
    struct ddp__order o = {0};

    return ddp__dataset_read(d, &o, 0, true, &s);
}

static void test_passing_errors(ddp_dataset_t *d)
{
    static const int errors[] = {EIO, ESTALE};

    for (int i = 0; i < 2; i++) {
        read_error = errors[i];
        fail_reads = 2;
        is_int(read_first(d), 0, "reads that fail twice: %s",
               strerror(errors[i]));
        is_int((int)ddp_dataset_retries(d), 2 * (i + 1),
               "they are counted as tried again");
    }
    is_int((int)ddp_dataset_bad_count(d), 0, "the image is not a bad one");
}

static void test_full(void)
{
    struct ddp__sink s = {.fd = open("/dev/null", O_WRONLY)};
    int rc;

    full = true;
    alarm(30);
    rc = ddp__write_all(&s, "text", 4);
    alarm(0);
    full = false;
    ok(rc < 0 && errno == EIO, "a write that takes nothing is an error");
    close(s.fd);
}

static void test_lasting_error(ddp_dataset_t *d)
{
    read_error = EIO;
    fail_reads = 1000;
    is_int(read_first(d), DDP_EIO, "reads that fail for seconds: DDP_EIO");
    fail_reads = 0;
    ok(strstr(ddp_errmsg(), "a/1.jpg: cannot be read: ") &&
           strstr(ddp_errmsg(), "6 times: a fault of the storage"),
       "the message names the file and the storage: %s", ddp_errmsg());
    is_int((int)ddp_dataset_bad_count(d), 0, "the image is not a bad one");
}

/* ---- opening ------------------------------------------------------------ */

static void put_text(const char *name, const char *text)
{
    if (!write_file(at(name), text, strlen(text)))
        bail_out("cannot write to %s", dir);
}

/* The same images as folders in train/, and as ImageNet. */
static void make_layouts(void)
{
    struct bytes b = make_photo(40, 30, 3);
    char path[64];

    for (const char *p = "train/a:train/b:ILSVRC/Data/CLS-LOC/train/n1:"
                         "ILSVRC/Data/CLS-LOC/train/n2:";
         *p; p += strcspn(p, ":") + 1) {
        char cmd[256];

        snprintf(path, sizeof(path), "%.*s", (int)strcspn(p, ":"), p);
        snprintf(cmd, sizeof(cmd), "mkdir -p '%s'", at(path));
        strncat(path, "/1.jpg", sizeof(path) - strlen(path) - 1);
        if (system(cmd) != 0 || !write_file(at(path), b.data, b.len))
            bail_out("cannot write to %s", dir);
    }
    free(b.data);
}

/* Fail each allocation of opening a data set, and all after it. */
static void open_without_memory(const char *what)
{
    int failed = 0, wrong = 0;
    ddp_dataset_t *d;
    long left = 0;

    for (long k = 1; left == 0; k++) {
        fail_malloc = k;
        d = ddp_dataset_open(dir, DDP_TRAIN, &small);
        left = fail_malloc;
        fail_malloc = 0;
        failed += left == 0;
        if (left == 0 && !d && ddp_errcode() != DDP_ENOMEM) {
            diag("allocation %ld: %d: %s", k, ddp_errcode(), ddp_errmsg());
            wrong++;
        }
        ddp_dataset_free(d);
    }
    ok(failed > 5, "%s: opening them allocates %d times", what, failed);
    is_int(wrong, 0, "a failure of each is DDP_ENOMEM");
}

static void test_opening(void)
{
    char cmd[128];

    if (!OWN_MALLOC) {
        skip(4, "a sanitizer has its own malloc()");
        return;
    }
    make_layouts();
    open_without_memory("folders");
    put_text("LOC_synset_mapping.txt", "n1 one\nn2 two\n");
    open_without_memory("ImageNet");
    snprintf(cmd, sizeof(cmd), "rm -r '%s'/train '%s'/ILSVRC '%s'/LOC*", dir,
             dir, dir);
    if (system(cmd) != 0)
        diag("%s: failed", cmd);
}

/* In every place, and at a cold start of the thread's decoder. */
static void test_memory_of_data(ddp_dataset_t *d)
{
    if (!OWN_MALLOC) {
        skip(3, "a sanitizer has its own malloc()");
        return;
    }
    fail_rest = true;
    fail_malloc = 1;
    is_int(read_first(d), DDP_ENOMEM, "no memory for an image: DDP_ENOMEM");
    fail_rest = false;
    fail_malloc = 0;
    ok(strstr(ddp_errmsg(), "a/1.jpg: out of memory"), "it is named: %s",
       ddp_errmsg());
    is_int((int)ddp_dataset_bad_count(d), 0, "the image is not a bad one");
}

static void test_missing(ddp_dataset_t *d)
{
    uint8_t x[SIZE * SIZE * 3];
    struct ddp_sample s = {.x = x, .weight = 1, .norm = 1};
    struct ddp__order o = {0};
    int64_t before = ddp_dataset_retries(d);

    unlink(at("a/1.jpg"));
    is_int(ddp__dataset_read(d, &o, 0, false, &s), DDP__BAD,
           "a file that is gone is a bad sample");
    ok(ddp_dataset_retries(d) == before, "which is not tried again");
}

int main(void)
{
    ddp_dataset_t *d;

    test_decoders();
    if (!(d = make_data()))
        bail_out("%s", ddp_errmsg());
    test_opening();
    test_passing_errors(d);
    test_memory_of_data(d);
    test_lasting_error(d);
    test_missing(d);
    test_full();
    ddp_dataset_free(d);
    remove_data();
    return done_testing();
}
