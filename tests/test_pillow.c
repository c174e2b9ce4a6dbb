/* test_pillow.c - images against Pillow and torchvision, where they are there
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * oracle_image.py makes the images and the expected pixels.  The environment
 * may name more images: DDP_TEST_IMAGES=DIR, such as unpacked ImageNet.
 */
#include "config.h"

#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/file.h"
#include "image/image.h"
#include "image/load.h"
#include "storage/storage.h"
#include "defaults.h"
#include "remove_tree.h"
#include "tap.h"

enum { MAX_SIZE = 256 };

static char top[] = "/tmp/ddp-test-pillow-XXXXXX";

/* What the lines of the index came to, of each kind. */
enum { ALL, EXACT, TALLIES };
struct tally {
    int compared, worst, failed, accepted;
};

/* Largest difference from the bytes in a file, or 1000 without them. */
static int difference(const uint8_t *x, int size, const char *expected)
{
    static uint8_t want[MAX_SIZE * MAX_SIZE * 3];
    size_t len = (size_t)size * (size_t)size * 3;
    FILE *f = fopen(expected, "rb");
    int worst = 0;

    if (!f || fread(want, 1, len, f) != len)
        worst = 1000;
    for (size_t i = 0; i < len && worst < 1000; i++)
        if (abs(x[i] - want[i]) > worst)
            worst = abs(x[i] - want[i]);
    if (f)
        fclose(f);
    return worst;
}

static void count(struct tally *t, int rc, const char *line, const uint8_t *x,
                  int size, const char *expected)
{
    int d = rc < 0 ? 1000 : difference(x, size, expected);

    t->compared++;
    t->failed += rc < 0;
    t->worst = d > t->worst ? d : t->worst;
    if (d > 1)
        diag("%s%s: off by %d", line, rc < 0 ? ddp_errmsg() : "", d);
}

/* Paths as they are. */
static struct ddp__storage *here;

static void one_colour(const char *line, struct tally *t)
{
    static uint8_t x[MAX_SIZE * MAX_SIZE * 3];
    struct ddp__bytes file = {0}, room = {0};
    char path[512], expected[512];
    struct ddp__colour c = {0};
    int size, jitter, gray, rc = DDP_EDATA;
    uint8_t *at = c.order;
    float *f = c.factor;

    if (sscanf(line,
               "colour %511s %511s %d %d %d %f %hhu %hhu %hhu %hhu %f %f "
               "%f %f",
               path, expected, &size, &jitter, &gray, &c.blur, &at[0], &at[1],
               &at[2], &at[3], &f[0], &f[1], &f[2], &f[3]) != 14)
        bail_out("cannot read %s", line);
    c.jitter = jitter;
    c.gray = gray;
    if (ddp__file_load(path, 1 << 30, &file) == 0 && file.len <= sizeof(x)) {
        memcpy(x, file.data, file.len);
        rc = ddp__colour_apply(&c, size, &room, x);
    }
    count(t, rc, line, x, size, expected);
    free(file.data);
    free(room.data);
}

static void one_change(const char *line, struct tally t[TALLIES])
{
    static uint8_t x[MAX_SIZE * MAX_SIZE * 3];
    static uint32_t room[(MAX_SIZE + 2) * (MAX_SIZE + 2)];
    struct ddp__bytes file = {0};
    struct ddp__canvas canvas;
    struct ddp__change c;
    char path[512], expected[512];
    int filter, kind, rc = DDP_EDATA;
    uint8_t *fill = canvas.fill;

    if (sscanf(line, "change %511s %511s %d %d %d %lf %hhu %hhu %hhu", path,
               expected, &canvas.size, &filter, &kind, &c.by, &fill[0],
               &fill[1], &fill[2]) != 9)
        bail_out("cannot read %s", line);
    canvas.filter = (enum ddp_interpolation)filter;
    c.kind = (enum ddp__change_kind)kind;
    if (ddp__file_load(path, 1 << 30, &file) == 0 && file.len <= sizeof(x)) {
        memcpy(x, file.data, file.len);
        ddp__change_apply(&c, &canvas, room, x);
        rc = 0;
    }
    count(&t[kind == DDP__ROTATE ? ALL : EXACT], rc, line, x, canvas.size,
          expected);
    free(file.data);
}

/* ---- what policies draw ------------------------------------------------- */

enum { DRAWS = 30000, MOST_ROWS = 2048 };

/* What the oracle says of a policy, and how often it was drawn. */
static struct seen {
    char policy[32];
    double p, by[2];
    int kind[2], count;
} rows[MOST_ROWS];
static int row_count;

static void one_draw(const char *line)
{
    struct seen *r = &rows[row_count];

    if (row_count + 1 == MOST_ROWS ||
        sscanf(line, "draw %31s %lf %d %lf %d %lf", r->policy, &r->p,
               &r->kind[0], &r->by[0], &r->kind[1], &r->by[1]) != 6)
        bail_out("cannot read %s", line);
    row_count++;
}

/* torchvision's strengths are in f32; some operations have none. */
static bool is_row(const struct seen *r, const char *policy,
                   const struct ddp__change c[2])
{
    bool same = !strcmp(r->policy, policy);

    for (int i = 0; i < 2; i++)
        same &=
            (int)c[i].kind == r->kind[i] &&
            (c[i].kind == DDP__NO_CHANGE || c[i].kind >= DDP__AUTO_CONTRAST ||
             fabs(c[i].by - r->by[i]) < 1e-4);
    return same;
}

static bool count_draw(const char *policy, const struct ddp__change c[2])
{
    for (int i = 0; i < row_count; i++)
        if (is_row(&rows[i], policy, c)) {
            rows[i].count++;
            return true;
        }
    diag("%s: torchvision has no %d by %g, %d by %g", policy, (int)c[0].kind,
         c[0].by, (int)c[1].kind, c[1].by);
    return false;
}

/* Each row as often as it must be, by five deviations. */
static bool counts_agree(const char *policy)
{
    bool good = true;

    for (int i = 0; i < row_count; i++) {
        const struct seen *r = &rows[i];
        double want = DRAWS * r->p;

        if (strcmp(r->policy, policy) != 0 ||
            fabs(r->count - want) <= 5 * sqrt(want + 1))
            continue;
        diag("%s: %d by %g, %d by %g: %d times, expected %g", policy,
             r->kind[0], r->by[0], r->kind[1], r->by[1], r->count, want);
        good = false;
    }
    return good;
}

static void test_policy(const char *name)
{
    struct ddp_policy p;
    bool known = ddp_policy_parse(name, &p) == 0;

    for (uint64_t key = 0; known && key < DRAWS; key++) {
        struct ddp__change c[2] = {{0}};

        c[0] = ddp__policy_draw(&p, key, 61, 0, 0);
        if (p.kind == DDP_AUTO_AUGMENT)
            c[1] = ddp__policy_draw(&p, key, 61, 0, 1);
        known = count_draw(name, c);
    }
    ok(known, "%s: does what torchvision does", name);
    ok(counts_agree(name), "%s: each as often", name);
}

static void test_policies(void)
{
    test_policy("ta_wide");
    test_policy("ra-m9");
    test_policy("ra-m30");
    test_policy("augmix-m4");
    test_policy("imagenet");
}

static void one_line(const char *line, struct tally t[TALLIES])
{
    static uint8_t x[MAX_SIZE * MAX_SIZE * 3];
    struct ddp__bytes file = {0};
    struct ddp_image_options o, in = {IMAGE_DEFAULTS, .size = 32};
    char kind[8], path[512], expected[512];
    struct ddp__crop c = {0};
    int at = 0, size, flip, filter;

    if (sscanf(line, "%7s %511s %n", kind, path, &at) != 2)
        return;
    if (!strcmp(kind, "colour")) {
        one_colour(line, t);
    } else if (!strcmp(kind, "change")) {
        one_change(line, t);
    } else if (!strcmp(kind, "draw")) {
        one_draw(line);
    } else if (!strcmp(kind, "bad")) {
        ddp__image_options(&in, 224, &o);
        t->accepted +=
            ddp__image_load(here, path, &(struct ddp__wanted){.o = &o}, x) !=
            DDP_EDATA;
    } else if (sscanf(line + at, "%511s %d %d %d %d %d %d %d", expected, &size,
                      &c.box.x, &c.box.y, &c.box.w, &c.box.h, &flip,
                      &filter) == 8) {
        c.w = c.h = size;
        c.flip = flip & 1;
        c.vertical_flip = flip & 2;
        c.filter = (enum ddp_interpolation)filter;
        if (ddp__file_load(path, 1 << 30, &file) == 0)
            count(t,
                  ddp__image_crop(file.data, file.len, 178956970, &c, size,
                                  size, x),
                  line, x, size, expected);
    } else if (sscanf(line + at, "%511s %d %d %d", expected, &in.size,
                      &in.resize, &filter) == 4) {
        in.interpolation = (enum ddp_interpolation)filter;
        ddp__image_options(&in, 224, &o);
        count(t, ddp__image_load(here, path, &(struct ddp__wanted){.o = &o}, x),
              line, x, in.size, expected);
    }
    free(file.data);
}

static bool is_supported(const char *line)
{
    bool supported = true;

#ifndef HAVE_PNG
    supported = !strstr(line, "/png");
#endif
#ifndef HAVE_WEBP
    supported = supported && !strstr(line, "/webp");
#endif
#ifndef HAVE_GIF
    supported = supported && !strstr(line, "/gif");
#endif
#ifndef HAVE_TIFF
    supported = supported && !strstr(line, "/tiff");
#endif
#ifndef HAVE_AVIF
    supported = supported && !strstr(line, "/avif");
#endif
    return line && supported;
}

static int run_oracle(void)
{
    const char *images = getenv("DDP_TEST_IMAGES"), *src = getenv("srcdir");
    char command[1024];
    int rc;

    snprintf(
        command, sizeof(command),
        "${PYTHON:-/usr/bin/python3} '%s/tests/oracle_image.py' '%s' %s%s%s",
        src ? src : ".", top, images ? "'" : "", images ? images : "",
        images ? "'" : "");
    rc = system(command);
    return WIFEXITED(rc) ? WEXITSTATUS(rc) : 1;
}

static void compare(void)
{
    char path[64], line[2048];
    struct tally all[TALLIES] = {{0}}, t, exact;
    FILE *f;

    snprintf(path, sizeof(path), "%s/index", top);
    if (!(f = fopen(path, "r")))
        bail_out("no %s", path);
    if (!(here = ddp__storage_open(NULL)))
        bail_out("%s", ddp_errmsg());
    while (fgets(line, sizeof(line), f))
        if (is_supported(line))
            one_line(line, all);
    fclose(f);
    ddp__storage_close(here);
    t = all[ALL];
    exact = all[EXACT];
    diag("%d comparisons, largest difference %d", t.compared, t.worst);
    ok(t.compared > 100 && t.failed == 0, "%d crops are decoded", t.compared);
    /* The arithmetic is Pillow's: 0 is expected; 1 allows for another build of
     * libjpeg in Pillow, whose transforms may round otherwise. */
    ok(t.worst <= 1, "all within 1 grey level of torchvision's");
    /* Of raw pixels, with no sine in the arithmetic. */
    ok(exact.compared > 200 && exact.failed == 0 && exact.worst == 0,
       "%d changes other than turns: equal to torchvision's", exact.compared);
    is_int(t.accepted, 0, "what Pillow refuses is refused");
    test_policies();
    if (!getenv("DDP_TEST_IMAGES"))
        skip(1, "DDP_TEST_IMAGES names no folder of real images");
}

int main(void)
{
    int rc;

    if (!mkdtemp(top))
        bail_out("cannot make a folder in /tmp");
    rc = run_oracle();
    if (rc == 0)
        compare();
    else if (rc != 77 && rc != 127)
        fail("the oracle ran (exit code %d)", rc);
    remove_tree(top);
    if (rc == 77 || rc == 127)
        skip_all("no Python with Pillow and torchvision");
    return done_testing();
}
