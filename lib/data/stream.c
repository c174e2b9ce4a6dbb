/* stream.c - samples that come one after the other, until there are no more
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Samples go from the program into a pool, out of which the next one is drawn,
 * and from there into a ring of those that the steps under way need.  Without a
 * window the pool has one sample: to know that an epoch ends, one more than the
 * last must have been asked for.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "base/philox.h"
#include "data/dataset.h"
#include "data/stream.h"

/* Room for samples; they point into the blocks. */
struct store {
    int64_t room;
    struct ddp_sample *sample; /* owned, like the blocks */
    char *x;
    float *target;
};

struct stream {
    struct ddp_dataset d;
    struct ddp_stream src;
    struct ddp__reader reader;
    bool used; /* by a reader */
    struct store pool, ring;
    int64_t pooled;
    int64_t asked; /* samples of the epoch that the program has given */
    bool ended;    /* and it has no more */
    int64_t skip;  /* samples of the epoch that an earlier run has seen */
    int64_t drawn; /* of all epochs; the next one's number in the ring */
    int64_t steps; /* taken */
    int64_t places;
    struct ddp__place *place; /* of the last steps, by their numbers; owned */
    struct ddp__place now;    /* of the step that is being taken */
};

static const struct ddp__dataset_ops ops;

bool ddp__is_stream(const ddp_dataset_t *d)
{
    return d->ops == &ops;
}

int ddp__stream_refuse(const ddp_dataset_t *d)
{
    return ddp__is_stream(d)
               ? ddp__fail(DDP_EINVAL,
                           "a stream of samples can only be trained on: it has "
                           "no length, and no sample can be asked for")
               : 0;
}

/* ---- room for samples --------------------------------------------------- */

static void store_free(struct store *s)
{
    free(s->sample);
    free(s->x);
    free(s->target);
    *s = (struct store){0};
}

static int store_new(struct store *s, const ddp_dataset_t *d, int64_t room)
{
    size_t size = ddp__dataset_x_size(d), n = (size_t)room;
    size_t len = (size_t)d->target_len;

    s->room = room;
    s->sample = calloc(n, sizeof(*s->sample));
    s->x = calloc(n, size);
    s->target = calloc(n * len + 1, sizeof(*s->target));
    if (!s->sample || !s->x || !s->target)
        return ddp__fail(DDP_ENOMEM,
                         "out of memory for %lld samples of a stream",
                         (long long)room);
    for (size_t i = 0; i < n; i++) {
        s->sample[i].x = s->x + i * size;
        s->sample[i].target = len ? s->target + i * len : NULL;
    }
    return 0;
}

static void copy_sample(const ddp_dataset_t *d, const struct ddp_sample *from,
                        struct ddp_sample *to)
{
    void *x = to->x;
    float *target = to->target;

    *to = *from;
    to->x = memcpy(x, from->x, ddp__dataset_x_size(d));
    to->target = target;
    if (target && from->target)
        memcpy(target, from->target, (size_t)d->target_len * sizeof(*target));
}

/* ---- from the program to the pool --------------------------------------- */

/* Begin with an epoch. */
static void rewind_to(struct stream *s, int64_t epoch)
{
    s->now = (struct ddp__place){.epoch = epoch, .at = s->drawn};
    s->pooled = s->asked = s->skip = 0;
    s->ended = false;
}

static struct ddp__order order_of(const struct stream *s)
{
    return (struct ddp__order){.seed = s->reader.seed, .epoch = s->now.epoch};
}

static int check_label(const struct stream *s, const struct ddp_sample *sample)
{
    if (!s->src.classes ||
        (sample->label >= 0 && sample->label < s->src.classes))
        return 0;
    return ddp__fail(DDP_EINVAL,
                     "the program's next() returned label %d for sample %lld, "
                     "expected 0 to %d",
                     (int)sample->label, (long long)s->asked,
                     s->src.classes - 1);
}

/* Ask the program for a sample. */
static int ask(struct stream *s)
{
    struct ddp_sample *sample = &s->pool.sample[s->pooled];
    const struct ddp__order o = order_of(s);
    int rc;

    sample->label = 0;
    sample->weight = 1;
    sample->norm = -1;
    rc = s->src.next(s->src.arg, s->now.epoch, s->asked,
                     ddp__order_key(&o, s->asked), sample);
    if (rc == DDP_STREAM_END) {
        s->ended = true;
        return 0;
    }
    if (rc != 0)
        return ddp__fail(rc < 0 ? rc : DDP_EDATA,
                         "the program's next() returned %d for sample %lld of "
                         "epoch %lld",
                         rc, (long long)s->asked, (long long)s->now.epoch);
    if ((rc = check_label(s, sample)) < 0)
        return rc;
    s->pooled++;
    s->asked++;
    return 0;
}

static int fill_pool(struct stream *s)
{
    int rc = 0;

    while (rc == 0 && !s->ended && s->pooled < s->pool.room)
        rc = ask(s);
    return rc;
}

/* ---- from the pool to the ring ------------------------------------------ */

/* Draw sample `index` of the epoch from the full pool, whose last one takes its
 * place; to: NULL: nowhere. */
static void draw(struct stream *s, int64_t index, struct ddp_sample *to)
{
    const struct ddp__order o = order_of(s);
    int64_t i = s->pooled > 1 ? ddp__order_draw(&o, index, s->pooled) : 0;
    struct ddp_sample *p = s->pool.sample, one = p[i];

    if (to)
        copy_sample(&s->d, &one, to);
    p[i] = p[--s->pooled];
    p[s->pooled] = one;
}

/* Draw again what an earlier run has drawn. */
static int skip_samples(struct stream *s)
{
    int rc;

    for (; s->skip > 0; s->skip--) {
        if ((rc = fill_pool(s)) < 0)
            return rc;
        if (!s->pooled)
            return ddp__fail(DDP_EDATA,
                             "the stream ended before the %lld samples of "
                             "epoch %lld that were read before the checkpoint",
                             (long long)s->now.first, (long long)s->now.epoch);
        draw(s, s->now.first - s->skip, NULL);
    }
    return 0;
}

/* Note the step that was taken, and begin the next one. */
static void end_step(struct stream *s)
{
    struct ddp__place p = s->now;

    p.last = s->pooled == 0;
    s->place[s->steps++ % s->places] = p;
    if (p.last)
        rewind_to(s, p.epoch + 1);
    else
        s->now = (struct ddp__place){p.epoch,  p.step + 1, p.first + p.n,
                                     s->drawn, 0,          false};
}

int ddp__stream_take(ddp_dataset_t *d, int64_t step)
{
    struct stream *s = (struct stream *)d;
    int rc;

    if (step < s->steps)
        return 0;
    if ((rc = skip_samples(s)) < 0)
        return rc;
    while ((rc = fill_pool(s)) == 0 && s->pooled && s->now.n < s->reader.batch)
        draw(s, s->now.first + s->now.n++,
             &s->ring.sample[s->drawn++ % s->ring.room]);
    if (rc < 0)
        return rc;
    if (s->now.n == 0)
        return 1;
    end_step(s);
    return 0;
}

const struct ddp__place *ddp__stream_place(const ddp_dataset_t *d, int64_t step)
{
    const struct stream *s = (const struct stream *)d;

    return &s->place[step % s->places];
}

void ddp__stream_get(const ddp_dataset_t *d, int64_t at, struct ddp_sample *to)
{
    const struct stream *s = (const struct stream *)d;

    copy_sample(d, &s->ring.sample[at % s->ring.room], to);
}

/* ---- readers ------------------------------------------------------------ */

static void free_rooms(struct stream *s)
{
    store_free(&s->pool);
    store_free(&s->ring);
    free(s->place);
    s->place = NULL;
}

int ddp__stream_begin(ddp_dataset_t *d, const struct ddp__reader *r)
{
    struct stream *s = (struct stream *)d;
    int64_t window = r->shuffle && s->src.window > 1 ? s->src.window : 1;
    int rc;

    if (s->used)
        return ddp__fail(DDP_EINVAL,
                         "another trainer reads this stream: free it first");
    s->reader = *r;
    s->drawn = s->steps = 0;
    s->places = r->run_ahead + 2;
    if ((rc = store_new(&s->pool, d, window)) < 0 ||
        (rc = store_new(&s->ring, d, (int64_t)r->batch * (r->run_ahead + 1))) <
            0 ||
        !(s->place = calloc((size_t)s->places, sizeof(*s->place)))) {
        free_rooms(s);
        return rc < 0 ? rc
                      : ddp__fail(DDP_ENOMEM, "out of memory for a stream");
    }
    rewind_to(s, 0);
    s->used = true;
    return 0;
}

void ddp__stream_end(ddp_dataset_t *d)
{
    struct stream *s = (struct stream *)d;

    free_rooms(s);
    s->used = false;
}

void ddp__stream_seek(ddp_dataset_t *d, int64_t step,
                      const struct ddp__place *p)
{
    struct stream *s = (struct stream *)d;

    s->steps = step;
    if (step > 0)
        s->place[(step - 1) % s->places] = *p;
    rewind_to(s, p->last ? p->epoch + 1 : p->epoch);
    if (p->last)
        return;
    s->now.step = p->step + (step > 0);
    s->now.first = s->skip = p->first + p->n;
}

static void free_stream(ddp_dataset_t *d)
{
    free_rooms((struct stream *)d);
}

/* Only its reader can read it. */
static int refuse(ddp_dataset_t *d, int64_t index, uint64_t key,
                  struct ddp_sample *s)
{
    (void)index;
    (void)key;
    (void)s;
    return ddp__stream_refuse(d);
}

static int options(const ddp_dataset_t *d,
                   struct ddp_option o[DDP__IMAGE_OPTIONS])
{
    o[0] = (struct ddp_option){"window", ((const struct stream *)d)->src.window,
                               NULL};
    return 1;
}

static const struct ddp__dataset_ops ops = {
    .get = refuse,
    .options = options,
    .free = free_stream,
};

/* ---- making ------------------------------------------------------------- */

void ddp_stream_init_sized(struct ddp_stream *s, size_t size)
{
    const struct ddp_stream none = {.type = DDP_F32};

    ddp__options_init(s, size, &none, sizeof(none));
}

static int make_stream(struct stream *s, const struct ddp_stream *given)
{
    struct ddp_stream *src = &s->src;
    int rc;

    ddp_stream_init(src);
    if ((rc = ddp__options_copy(src, sizeof(*src), given, "ddp_stream")) < 0)
        return rc;
    if (!src->next)
        return ddp__fail(DDP_EINVAL, "a stream needs a next()");
    if (src->window < 0)
        return ddp__fail(DDP_EINVAL,
                         "a stream has a window of %d samples, expected 0 or "
                         "more",
                         src->window);
    if ((rc = ddp__dataset_set_samples(&s->d, src->shape, src->type,
                                       src->classes, src->target_len)) < 0)
        return rc;
    return ddp__dataset_describe(&s->d, "a stream of samples from the program");
}

ddp_dataset_t *ddp_dataset_stream(const struct ddp_stream *given)
{
    struct stream *s = (void *)ddp__dataset_new(sizeof(*s), &ops);

    if (!s || make_stream(s, given) == 0)
        return s ? &s->d : NULL;
    ddp_dataset_free(&s->d);
    return NULL;
}
