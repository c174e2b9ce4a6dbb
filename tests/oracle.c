/* oracle.c - running a script with PyTorch and reading its safetensors file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/crc32c.h"
#include "oracle.h"

#define TORCH "torch torchvision"

/* ---- the interpreter ---------------------------------------------------- */

static int run(const char *const argv[])
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

const char *oracle_python(const char *modules)
{
    static const char has[] =
        "import importlib.util as u, sys;"
        "sys.exit(not all(u.find_spec(m) for m in sys.argv[1].split()))";
    const char *try[] = {getenv("DDP_PYTHON"), "/usr/bin/python3", "python3"};

    for (int i = 0; i < 3; i++)
        if (try[i] &&
            run((const char *[]){try[i], "-c", has, modules, NULL}) == 0)
            return try[i];
    return NULL;
}

const char *oracle_missing(void)
{
    return oracle_python(TORCH)
               ? NULL
               : "no python3 with torch and torchvision (DDP_PYTHON "
                 "names one)";
}

/* ---- the file ----------------------------------------------------------- */

static bool read_tensor(struct oracle *o, const char *name, json_t *j,
                        size_t data)
{
    struct oracle_tensor *t = &o->tensor[o->tensors];
    json_t *shape = json_object_get(j, "shape");
    json_t *at = json_object_get(j, "data_offsets");
    size_t begin = (size_t)json_integer_value(json_array_get(at, 0));
    size_t end = (size_t)json_integer_value(json_array_get(at, 1));

    if (strcmp(json_string_value(json_object_get(j, "dtype")), "F32") != 0 ||
        json_array_size(shape) > 4 || end > o->size - data || begin > end)
        return false;
    *t = (struct oracle_tensor){
        .ndim = (int)json_array_size(shape),
        .len = 1,
        .data = (const float *)((char *)o->map + data + begin),
    };
    for (int i = 0; i < t->ndim; i++) {
        t->dim[i] = (int)json_integer_value(json_array_get(shape, (size_t)i));
        t->len *= (size_t)t->dim[i];
    }
    if (t->len * sizeof(float) != end - begin || !(t->name = strdup(name)))
        return false;
    o->tensors++;
    return true;
}

static bool read_all(struct oracle *o)
{
    uint64_t head;
    const char *name;
    json_t *root, *j;
    bool good;

    memcpy(&head, o->map, sizeof(head));
    if (head > o->size - 8 ||
        !(root = json_loadb((char *)o->map + 8, head, 0, NULL)))
        return false;
    o->tensor = calloc(json_object_size(root) + 1, sizeof(*o->tensor));
    good = o->tensor != NULL;
    json_object_foreach(root, name, j) good =
        good && read_tensor(o, name, j, 8 + head);
    json_decref(root);
    return good;
}

static struct oracle *open_file(const char *path)
{
    struct oracle *o = calloc(1, sizeof(*o));
    int fd = open(path, O_RDONLY);
    struct stat st;

    if (!o || fd < 0 || fstat(fd, &st) < 0 || st.st_size < 8)
        goto close;
    o->size = (size_t)st.st_size;
    o->map = mmap(NULL, o->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (o->map == MAP_FAILED)
        o->map = NULL;
close:
    if (fd >= 0)
        close(fd);
    if (o && o->map && read_all(o))
        return o;
    oracle_free(o);
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct oracle_tensor *)a)->name,
                  ((const struct oracle_tensor *)b)->name);
}

/* A checksum of a script's text and its argument. */
static uint32_t checksum(const char *script, const char *arg)
{
    const char *src = getenv("srcdir");
    char path[600], text[4096];
    uint32_t crc = arg ? ddp__crc32c(0, arg, strlen(arg)) : 0;
    size_t n;
    FILE *f;

    snprintf(path, sizeof(path), "%s/tests/%s", src ? src : ".", script);
    if (!(f = fopen(path, "r")))
        return crc;
    while ((n = fread(text, 1, sizeof(text), f)) > 0)
        crc = ddp__crc32c(crc, text, n);
    fclose(f);
    return crc;
}

/* Where a script's tensors are kept in the folder DDP_ORACLES, in which other
 * builds find them until the script changes; NULL: nowhere, as there is none,
 * or the argument is a file of this test. */
static const char *keep_path(const char *script, const char *arg)
{
    static char path[600];
    const char *folder = getenv("DDP_ORACLES");

    if (!folder || (arg && strchr(arg, '/')))
        return NULL;
    snprintf(path, sizeof(path), "%s/%s-%08x", folder, script,
             checksum(script, arg));
    return path;
}

static struct oracle *run_script(const char *python, const char *script,
                                 const char *arg, const char *keep)
{
    const char *src = getenv("srcdir"), *tmp = getenv("TMPDIR");
    char dir[512], file[560], path[600];
    struct oracle *o = NULL;
    int rc;

    snprintf(path, sizeof(path), "%s/tests/%s", src ? src : ".", script);
    snprintf(dir, sizeof(dir), "%s/ddp-oracle-XXXXXX",
             keep  ? getenv("DDP_ORACLES")
             : tmp ? tmp
                   : "/tmp");
    if (!mkdtemp(dir)) {
        printf("# no folder like %s can be made\n", dir);
        return NULL;
    }
    snprintf(file, sizeof(file), "%s/tensors", dir);
    rc = run((const char *[]){python, path, file, arg, NULL});
    if (rc != 0 || !(o = open_file(file)))
        printf("# %s %s: exit status %d, or its file is no good\n", path,
               arg ? arg : "", rc);
    snprintf(path, sizeof(path), "%s.weights", file);
    if (!o || !keep || access(path, F_OK) == 0 || rename(file, keep) < 0)
        unlink(file);
    if (o && (o->weights = strdup(path)))
        return o;
    oracle_free(o);
    unlink(path);
    rmdir(dir);
    return NULL;
}

struct oracle *oracle_new_by(const char *python, const char *script,
                             const char *arg)
{
    const char *keep = keep_path(script, arg);
    struct oracle *o = keep ? open_file(keep) : NULL;

    if (!o)
        o = run_script(python, script, arg, keep);
    if (o)
        qsort(o->tensor, (size_t)o->tensors, sizeof(*o->tensor), by_name);
    return o;
}

struct oracle *oracle_new(const char *script, const char *arg)
{
    return oracle_new_by(oracle_python(TORCH), script, arg);
}

void oracle_free(struct oracle *o)
{
    if (!o)
        return;
    for (int i = 0; i < o->tensors; i++)
        free(o->tensor[i].name);
    free(o->tensor);
    if (o->map)
        munmap(o->map, o->size);
    if (o->weights) {
        unlink(o->weights);
        *strrchr(o->weights, '/') = '\0';
        rmdir(o->weights);
        free(o->weights);
    }
    free(o);
}

/* ---- looking at it ------------------------------------------------------ */

const struct oracle_tensor *oracle_find(const struct oracle *o, const char *fmt,
                                        ...)
{
    char name[256];
    struct oracle_tensor key = {.name = name};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(name, sizeof(name), fmt, ap);
    va_end(ap);
    return bsearch(&key, o->tensor, (size_t)o->tensors, sizeof(key), by_name);
}

double oracle_distance(const float *got, const float *want, size_t len)
{
    double difference = 0, norm = 0;

    for (size_t i = 0; i < len; i++) {
        double d = (double)got[i] - want[i];

        difference += d * d;
        norm += (double)want[i] * want[i];
    }
    if (norm > 0)
        difference /= norm;
    return difference >= 0 ? sqrt(difference) : INFINITY;
}
