/* classes.c - an evaluation class by class, as a CSV table
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ddp.h"

#include "common/app.h"
#include "prediction.h"
#include "classes.h"

bool classes_new(struct classes *c, int count)
{
    *c = (struct classes){.count = count};
    return (c->row = calloc((size_t)count + 1, sizeof(*c->row))) != NULL;
}

void classes_free(struct classes *c)
{
    free(c->row);
    free(c->wrong);
}

static bool add_wrong(struct classes *c, int label, int taken_for)
{
    if (c->wrongs == c->room) {
        size_t room = c->room ? 2 * c->room : 1024;
        void *more = realloc(c->wrong, room * sizeof(*c->wrong));

        if (!more)
            return false;
        c->wrong = more;
        c->room = room;
    }
    c->wrong[c->wrongs++] = (struct confusion){label, taken_for};
    return true;
}

bool classes_add(struct classes *c, int label, const struct top *top, int k)
{
    struct class_row *r;

    if (label < 0 || label >= c->count || k < 1)
        return true;
    r = &c->row[label];
    r->n++;
    r->top1 += top[0].class == label;
    for (int i = 0; i < k && i < 5; i++)
        r->top5 += top[i].class == label;
    return top[0].class == label || add_wrong(c, label, top[0].class);
}

static int by_class(const void *pa, const void *pb)
{
    const struct confusion *a = pa, *b = pb;

    if (a->label != b->label)
        return a->label < b->label ? -1 : 1;
    return (a->taken_for > b->taken_for) - (a->taken_for < b->taken_for);
}

/* The class that those of `label` are taken for most often, the lower of
 * equals; how often.  *at moves to the next label. */
static int64_t worst(const struct classes *c, int label, size_t *at, int *taken)
{
    int64_t best = 0;

    while (*at < c->wrongs && c->wrong[*at].label == label) {
        size_t begin = *at;
        int64_t n;

        while (*at < c->wrongs && c->wrong[*at].label == label &&
               c->wrong[*at].taken_for == c->wrong[begin].taken_for)
            ++*at;
        n = (int64_t)(*at - begin);
        if (n > best) {
            best = n;
            *taken = c->wrong[begin].taken_for;
        }
    }
    return best;
}

static void print_name(const ddp_dataset_t *d, int class, FILE *f)
{
    const char *name = ddp_dataset_class_name(d, class);

    app_csv_text(f, name ? name : "");
}

/* One record per class, its fields in the order of the header. */
static void print_table(struct classes *c, const ddp_dataset_t *d, FILE *f)
{
    size_t at = 0;

    if (c->wrongs)
        qsort(c->wrong, c->wrongs, sizeof(*c->wrong), by_class);
    fprintf(f, "class,name,n,top1,top5,confused_with,confused_name,"
               "confused_n\n");
    for (int i = 0; i < c->count; i++) {
        const struct class_row *r = &c->row[i];
        double n = r->n ? (double)r->n : 1;
        int taken = -1;
        int64_t times = worst(c, i, &at, &taken);

        fprintf(f, "%d,", i);
        print_name(d, i, f);
        fprintf(f, ",%lld,", (long long)r->n);
        if (r->n) /* without samples there is no rate */
            fprintf(f, "%.2f,%.2f", 100 * (double)r->top1 / n,
                    100 * (double)r->top5 / n);
        else
            fputc(',', f);
        fputc(',', f);
        if (times) {
            fprintf(f, "%d,", taken);
            print_name(d, taken, f);
            fprintf(f, ",%lld\n", (long long)times);
        } else {
            fprintf(f, ",,0\n");
        }
    }
}

int classes_print(struct classes *c, const ddp_dataset_t *d, const char *path)
{
    bool is_file = strcmp(path, "-") != 0;
    FILE *f = is_file ? fopen(path, "w") : stdout;
    bool bad = !f;

    if (f) {
        print_table(c, d, f);
        bad = fflush(f) != 0 || ferror(f);
        bad = (is_file && fclose(f) != 0) || bad;
    }
    if (!bad)
        return 0;
    app_say("cannot write %s: %s", path, strerror(errno));
    return EXIT_WRITE;
}
