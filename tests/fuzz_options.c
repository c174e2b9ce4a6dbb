/* fuzz_options.c - any bytes as a program's options: config.txt, command line,
 * the names of classes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Programs refuse by a line on stderr and the exit code of usage.
 */
#include "config.h"

#include "base/error.h"
#include "common/app.h"
#include "common/opt_file.h"
#include "fuzz.h"
#include "imagenet/names.h"
#include "imagenet/options.h"

/* ---- what is printed ---------------------------------------------------- */

/* While a reader runs, its lines go to memory. */
struct capture {
    FILE *out, *err; /* the real ones */
    char *said, *printed;
    size_t said_size, printed_size;
};

static void capture_begin(struct capture *c)
{
    fflush(stdout);
    *c = (struct capture){.out = stdout, .err = stderr};
    stdout = open_memstream(&c->printed, &c->printed_size);
    stderr = open_memstream(&c->said, &c->said_size);
    if (!stdout || !stderr)
        abort();
}

/* The code of a reader: 0, or negative with the line that was said. */
static int capture_end(struct capture *c, int rc)
{
    bool refused = rc != OPTS_GO && rc != 0;

    fclose(stdout);
    fclose(stderr);
    stdout = c->out;
    stderr = c->err;
    /* A line that is not one would begin or end elsewhere. */
    if (refused && c->said_size > 1 && c->said[c->said_size - 1] == '\n')
        ddp__fail(DDP_EINVAL, "%s", c->said);
    else if (c->said_size > 0)
        abort();
    free(c->said);
    free(c->printed);
    if (refused && rc != EXIT_USAGE && rc != EXIT_MEMORY)
        abort();
    return refused ? DDP_EINVAL : 0;
}

/* ---- readers ------------------------------------------------------------ */

/* What was read can be printed; where that goes is forgotten. */
static void print_values(const struct opts *o)
{
    opts_save(o, stdout);
}

static int read_config(const char *path, const uint8_t *data, size_t len)
{
    static char *argv[] = {"train", NULL};
    struct settings s = {0};
    struct capture c;
    struct opts o;
    int rc;

    (void)data;
    (void)len;
    capture_begin(&c);
    rc = opts_parse(&o, &train_command, &s, 1, argv);
    if (rc == OPTS_GO)
        rc = opts_load(&o, path);
    if (rc == OPTS_GO)
        print_values(&o);
    opts_free(&o);
    return capture_end(&c, rc);
}

/* Each line is an argument. */
static int read_line(const char *path, const uint8_t *data, size_t len)
{
    char *text = malloc(len + 1), *argv[64] = {"train"};
    struct settings s = {0};
    struct capture c;
    struct opts o;
    int argc = 1, rc;

    (void)path;
    memcpy(text, data, len);
    text[len] = 0;
    for (char *p = text; p && argc < 63; argc++) {
        argv[argc] = p;
        if ((p = strchr(p, '\n')))
            *p++ = 0;
    }
    capture_begin(&c);
    if ((rc = opts_parse(&o, &train_command, &s, argc, argv)) == OPTS_GO)
        print_values(&o);
    opts_free(&o);
    rc = capture_end(&c, rc);
    free(text);
    return rc;
}

static int read_names(const char *path, const uint8_t *data, size_t len)
{
    struct names n = {0};
    struct capture c;
    int rc;

    (void)data;
    (void)len;
    capture_begin(&c);
    rc = names_read(&n, path);
    for (int64_t i = 0; i < n.count; i++)
        if (!*n.name[i])
            abort();
    names_free(&n);
    return capture_end(&c, rc);
}

/* ---- files -------------------------------------------------------------- */

static const char *const word[] = {"-",        "=",
                                   " = ",      "--",
                                   "\n",       ",",
                                   "nan",      "1e999",
                                   "1:00:00",  "1-12:00",
                                   "%",        "true",
                                   "f16",      "99999999999999999999",
                                   "--help",   "--mean",
                                   "--hidden", "0x1p3",
                                   "--no-",    "-b",
                                   NULL};

static void fuzz_config(void)
{
    static const struct fuzz_reader r = {"config.txt", "config.txt", 1,
                                         read_config, word};
    static const char config[] =
        "# imagenet train\ndata = /data\nimg-size = 176\n"
        "val-resize-size = 200\nmean = 0.5,0.4,0.3\nstd = 0.2,0.2,0.2\n"
        "model = resnet18\nnum-classes = 10\nwidth = 32\nhidden = 64,32\n"
        "small-stem = true\nno-aux = false\ndrop = 0.2\ndrop-path = 0.1\n"
        "opt = adamw\nlr = 0.001\noutput = \n";

    fuzz(&r, "that of a run", config, sizeof(config) - 1);
}

static void fuzz_line(void)
{
    static const struct fuzz_reader r = {"command line", "line.txt", 1,
                                         read_line, word};
    static const char line[] =
        "--data\n/data\n--model=mlp\n--hidden\n64,32\n-b\n256\n--lr=0.1\n"
        "--mean\n0.5,0.5,0.5\n--opt\nadamw\n--opt-betas\n0.9,0.99\n--max-bad=1%"
        "\n"
        "--time-limit\n1-02:03:04\n--no-flip\n--epochs\n3\n--seed=7\n"
        "--output\n/run";

    fuzz(&r, "twenty arguments", line, sizeof(line) - 1);
}

static void fuzz_names(void)
{
    static const struct fuzz_reader r = {"names", "classes.txt", 1, read_names,
                                         NULL};
    static const char names[] = "tench, Tinca tinca\r\n\ngoldfish\n3\nlast";

    fuzz(&r, "four classes", names, sizeof(names) - 1);
}

int main(void)
{
    app_start("imagenet");
    fuzz_config();
    fuzz_line();
    fuzz_names();
    return done_testing();
}
