/* synth.c - "imagenet data synth": a data set for experiments
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Files and folders are named and laid out as in ImageNet of Kaggle, so that
 * the same commands work with the real one.
 */
#include "config.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <unistd.h>

#include "ddp.h"

#include "common/app.h"
#include "common/cores.h"
#include "common/app_fail.h"
#include "jpeg.h"
#include "options.h"
#include "picture.h"
#include "progress.h"
#include "synth.h"

static const char images_dir[] = "ILSVRC/Data/CLS-LOC";
static const char stamp_name[] = "synth.txt";

/* One of the two splits. */
struct part {
    const char *name; /* "train" */
    int64_t count;
    uint64_t seed;
    struct picture *box; /* without pixels, for the CSV file; owned */
};

/* Shared by the threads. */
struct job {
    const struct settings *set;
    struct part *part;
    pthread_mutex_t lock; /* of what follows */
    int64_t next;
    int rc;
    struct work work;
};

/* Classes are equally frequent, up to one image. */
static int label_of(const struct settings *s, int64_t index)
{
    return (int)(index % s->classes);
}

/* "n90000007_12" or "ILSVRC2012_val_00000012" */
static void image_id(const struct job *w, int64_t i, char *buf, size_t size)
{
    if (!strcmp(w->part->name, "train"))
        snprintf(buf, size, "n%08d_%lld", 90000000 + label_of(w->set, i),
                 (long long)(i / w->set->classes));
    else
        snprintf(buf, size, "ILSVRC2012_val_%08lld", (long long)i + 1);
}

static char *image_path(const struct job *w, int64_t i)
{
    char id[64];

    image_id(w, i, id, sizeof(id));
    if (!strcmp(w->part->name, "train"))
        return app_path(w->set->output, "%s/train/n%08d/%s.JPEG", images_dir,
                        90000000 + label_of(w->set, i), id);
    return app_path(w->set->output, "%s/val/%s.JPEG", images_dir, id);
}

/* ---- pictures ----------------------------------------------------------- */

/* A few are grey or progressive, as among real ones. */
static int make_image(struct job *w, int64_t i)
{
    struct part *p = w->part;
    struct picture *img = &p->box[i];
    struct jpeg_how how = {.quality = 75 + (int)(i * 7 % 20),
                           .grey = i % 50 == 17,
                           .progressive = i % 20 == 3};
    char *path = image_path(w, i);
    int rc = EXIT_MEMORY;

    if (path && picture_draw(img, label_of(w->set, i), i, (int)w->set->size,
                             p->seed) == 0)
        rc = jpeg_write(path, img->rgb, img->w, img->h, &how);
    picture_free(img);
    free(path);
    return rc;
}

static void *make_some(void *arg)
{
    struct job *w = arg;

    for (;;) {
        int64_t i;
        int rc;

        pthread_mutex_lock(&w->lock);
        i = w->rc ? w->part->count : w->next++;
        work_count(w->next, w->part->count, &w->work);
        pthread_mutex_unlock(&w->lock);
        if (i >= w->part->count)
            return NULL;
        if ((rc = make_image(w, i))) {
            pthread_mutex_lock(&w->lock);
            w->rc = rc;
            pthread_mutex_unlock(&w->lock);
        }
    }
}

static int make_images(struct job *w)
{
    int n = w->set->workers ? (int)w->set->workers : app_cores(), started = 0;
    pthread_t *thread = calloc((size_t)n, sizeof(*thread));

    if (!thread)
        return EXIT_MEMORY;
    while (started < n &&
           pthread_create(&thread[started], NULL, make_some, w) == 0)
        started++;
    if (!started)
        make_some(w);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    free(thread);
    return w->rc;
}

/* ---- lists -------------------------------------------------------------- */

static FILE *open_list(const struct settings *s, const char *name)
{
    char *path = app_path(s->output, "%s", name);
    FILE *f = path ? fopen(path, "w") : NULL;

    if (!f)
        app_say("%s/%s: %s", s->output, name, strerror(errno));
    free(path);
    return f;
}

static int close_list(FILE *f, const char *name)
{
    bool bad = ferror(f);

    if (fclose(f) == 0 && !bad)
        return 0;
    app_say("cannot write %s: %s", name, strerror(errno));
    return EXIT_WRITE;
}

static int write_mapping(const struct settings *s)
{
    FILE *f = open_list(s, "LOC_synset_mapping.txt");
    char name[64];

    if (!f)
        return EXIT_WRITE;
    for (int i = 0; i < s->classes; i++) {
        picture_class_name(i, name, sizeof(name));
        fprintf(f, "n%08d %s\n", 90000000 + i, name);
    }
    return close_list(f, "LOC_synset_mapping.txt");
}

static int write_solution(const struct job *w)
{
    const struct part *p = w->part;
    char name[64], id[64];
    FILE *f;

    snprintf(name, sizeof(name), "LOC_%s_solution.csv", p->name);
    if (!(f = open_list(w->set, name)))
        return EXIT_WRITE;
    fprintf(f, "ImageId,PredictionString\n");
    for (int64_t i = 0; i < p->count; i++) {
        const struct picture *b = &p->box[i];

        image_id(w, i, id, sizeof(id));
        fprintf(f, "%s,n%08d %d %d %d %d \n", id,
                90000000 + label_of(w->set, i), b->left, b->top, b->right,
                b->bottom);
    }
    return close_list(f, name);
}

static int make_folders(const struct job *w)
{
    bool train = !strcmp(w->part->name, "train");
    int rc = 0;

    for (int i = 0; rc == 0 && i < (train ? w->set->classes : 1); i++) {
        char *dir = train ? app_path(w->set->output, "%s/train/n%08d",
                                     images_dir, 90000000 + i)
                          : app_path(w->set->output, "%s/val", images_dir);

        rc = dir ? app_make_dir(dir) : EXIT_MEMORY;
        free(dir);
    }
    return rc;
}

static int make_part(const struct settings *s, struct part *p)
{
    struct job w = {.set = s, .part = p, .lock = PTHREAD_MUTEX_INITIALIZER};
    int rc;

    if (!(p->box = calloc((size_t)p->count, sizeof(*p->box))))
        return app_exit_code(DDP_ENOMEM);
    work_begin(&w.work, p->name, false);
    if ((rc = make_folders(&w)) == 0 && (rc = make_images(&w)) == 0)
        rc = write_solution(&w);
    work_clear(&w.work);
    free(p->box);
    return rc;
}

/* ---- work done before --------------------------------------------------- */

static void stamp_text(const struct settings *s, char *buf, size_t size)
{
    snprintf(buf, size,
             "synth 1: %lld classes, %lld + %lld pictures of about %lld "
             "pixels, seed %lld\n",
             (long long)s->classes, (long long)s->train_count,
             (long long)s->val_count, (long long)s->size, (long long)s->seed);
}

/* Does DIR/name hold this text?  0: there is no such file, -1: another. */
static int stamp_there(const struct settings *s, const char *name,
                       const char *text)
{
    char *path = app_path(s->output, "%s", name), got[256] = "";
    FILE *f = path ? app_open_text(path) : NULL;
    size_t n;

    free(path);
    if (!f)
        return errno == ENOENT ? 0 : -1;
    n = fread(got, 1, sizeof(got) - 1, f);
    got[n] = 0;
    fclose(f);
    return strcmp(got, text) ? -1 : 1;
}

static int is_entry(const struct dirent *e)
{
    return strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
}

/* True also if it does not exist. */
static bool is_empty(const char *dir)
{
    struct dirent **entry;
    int n = scandir(dir, &entry, is_entry, alphasort);

    for (int i = 0; i < n; i++)
        free(entry[i]);
    if (n >= 0)
        free(entry);
    return n <= 0;
}

/* The stamp gets its final name when the data set is complete.  OPTS_GO, or
 * what to end with. */
static int look_at_output(const struct settings *s, const char *text)
{
    int done = stamp_there(s, stamp_name, text);
    int begun = stamp_there(s, "synth.txt.part", text);

    if (done > 0) {
        printf("%s: already there\n", s->output);
        return 0;
    }
    if (begun > 0 && !done)
        return OPTS_GO;
    if (done < 0 || begun < 0 || !is_empty(s->output)) {
        app_say("%s holds other files; remove it or choose another --output",
                s->output);
        return EXIT_USAGE;
    }
    return OPTS_GO;
}

static int begin_output(const struct settings *s, const char *text)
{
    FILE *f;
    int rc = app_make_dir(s->output);

    if (rc)
        return rc;
    if (!(f = open_list(s, "synth.txt.part")))
        return EXIT_WRITE;
    fputs(text, f);
    return close_list(f, "synth.txt.part");
}

static int finish_output(const struct settings *s)
{
    char *from = app_path(s->output, "synth.txt.part");
    char *to = app_path(s->output, "%s", stamp_name);
    int rc = from && to && rename(from, to) == 0 ? 0 : EXIT_WRITE;

    if (rc)
        app_say("%s/%s: %s", s->output, stamp_name, strerror(errno));
    free(from);
    free(to);
    return rc;
}

int synth_run(struct opts *o, struct settings *s)
{
    uint64_t seed = (uint64_t)s->seed;
    struct part train = {"train", s->train_count, 2 * seed, NULL};
    struct part val = {"val", s->val_count, 2 * seed + 1, NULL};
    double t = app_now();
    char text[256];
    int rc;

    if (!s->output) {
        opt_complain(o, "--output DIR is missing");
        return EXIT_USAGE;
    }
    stamp_text(s, text, sizeof(text));
    if ((rc = look_at_output(s, text)) != OPTS_GO)
        return rc;
    if ((rc = begin_output(s, text)) || (rc = make_part(s, &train)) ||
        (rc = make_part(s, &val)) || (rc = write_mapping(s)) ||
        (rc = finish_output(s)))
        return rc;
    printf("%s: %lld + %lld pictures of %lld classes in %.1f s\n", s->output,
           (long long)s->train_count, (long long)s->val_count,
           (long long)s->classes, app_now() - t);
    return 0;
}
