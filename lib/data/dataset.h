/* dataset.h - the common part of all kinds of data sets
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_DATASET_H
#define DDP_DATASET_H

#include <pthread.h>

#include "base/file.h"
#include "data/identity.h"
#include "data/order.h"
#include "ddp.h"
#include "image/augment.h"

/* The kinds fill this. */
struct ddp__dataset_ops {
    /* Read sample `index` into s; key decides its augmentation.  Several
     * threads may call it at once.  DDP_EDATA: a bad sample, to be named and
     * replaced; other codes are not the sample's fault and end the run.  The
     * message has the reason, without the path. */
    int (*get)(ddp_dataset_t *d, int64_t index, uint64_t key,
               struct ddp_sample *s);
    /* Its path, until the thread's next call; NULL (also of the function):
     * samples have none. */
    const char *(*path)(const ddp_dataset_t *d, int64_t index);
    /* The CRC-32C of which sample is where, but not of the folder that they are
     * in.  NULL: unknown. */
    uint32_t (*checksum)(const ddp_dataset_t *d);
    /* The name and contents of sample `index`, where checksum() covers only
     * the name.  DDP_EDATA: it cannot be read whole.  NULL: it covers all. */
    int (*content)(const ddp_dataset_t *d, int64_t index,
                   struct ddp__content *c);
    /* ddp__dataset_labels() of the data that these are a part of; or NULL. */
    uint32_t (*labels)(const ddp_dataset_t *d);
    /* The options that decide how a sample is processed: fill in names and
     * values, and return their number.  NULL: no processing. */
    int (*options)(const ddp_dataset_t *d,
                   struct ddp_option o[DDP__IMAGE_OPTIONS]);
    /* The file that sample `index` is made of, as it is stored, and its name in
     * the data set.  NULL: samples are not made of files. */
    int (*file)(ddp_dataset_t *d, int64_t index, struct ddp__bytes *b);
    const char *(*name)(const ddp_dataset_t *d, int64_t index);
    /* The class that the kind has for a sample, without reading it; NULL:
     * unknown. */
    int32_t (*label)(const ddp_dataset_t *d, int64_t index);
    /* The sample at position pos of a shuffled order; NULL: any may follow any
     * other, as ddp__order_index() has it. */
    int64_t (*order)(ddp_dataset_t *d, const struct ddp__order *o, int64_t pos);
    /* Begin to read sample `index`, which get() will be asked for soon; only
     * for data that are `far`. */
    void (*ahead)(ddp_dataset_t *d, int64_t index);
    void (*free)(ddp_dataset_t *d); /* frees the fields of the kind; or NULL */
};

/* The first member of each kind's own struct. */
struct ddp_dataset {
    const struct ddp__dataset_ops *ops;
    int64_t count;
    struct ddp_shape shape;
    enum ddp_dtype type;
    int classes, target_len; /* both: a sample may have several classes, and its
                                target has 1 for these */
    float mean[4], std[4];   /* of INPUT_U8 */
    int resize;              /* short side before the crop; 0: no images */
    char **class_name;       /* owned, classes of them; may be NULL */
    int32_t *label_of;       /* of each class of the kind, its number here, -1:
                                none has it; NULL: the same; owned */
    int kind_classes;        /* elements of label_of */
    char *describe;          /* owned */
    bool far;                /* samples take long to arrive: use ahead() */
    double max_bad;       /* fraction of bad samples to tolerate; < 0: none */
    pthread_mutex_t lock; /* of what follows */
    int64_t bad_count;
    int64_t *bad_index; /* a hash table of bad_room, -1: free; owned */
    int64_t bad_room;
    struct ddp__bad {
        char *path, *why;
    } * bad; /* the first DDP_BAD_SAMPLES; owned */
    int bad_kept;
    int64_t retries; /* reads that were tried again */
    struct ddp__identity identity;
};

/* Whether a sample may have several classes, or none. */
static inline bool ddp__dataset_has_several(const ddp_dataset_t *d)
{
    return d->classes && d->target_len;
}

/* Allocate a data set of size bytes, zeroed except for the defaults. */
ddp_dataset_t *ddp__dataset_new(size_t size,
                                const struct ddp__dataset_ops *ops);

/* Set what is the same for all kinds of images, from their options. */
void ddp__dataset_set_images(ddp_dataset_t *d,
                             const struct ddp_image_options *o);

/* Set what samples of the program are. */
int ddp__dataset_set_samples(ddp_dataset_t *d, struct ddp_shape shape,
                             enum ddp_dtype type, int classes, int target_len);

/* Set the line that ddp_dataset_describe() returns. */
int ddp__dataset_describe(ddp_dataset_t *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Read the sample at position pos of the order.  A bad sample is recorded; with
 * replace, the next readable sample of the order takes its place; without it,
 * the result is DDP__BAD and *s is undefined.  Each get() finds in *s what the
 * caller put there.  DDP_EDATA above the budget of bad samples; any other code
 * of the kind is returned.  Several threads may call it at once. */
int ddp__dataset_read(ddp_dataset_t *d, const struct ddp__order *o, int64_t pos,
                      bool replace, struct ddp_sample *s);
enum { DDP__BAD = 1 };

/* Read a sample, and number its class as the data set does. */
int ddp__dataset_get(ddp_dataset_t *d, int64_t index, uint64_t key,
                     struct ddp_sample *s);

/* The class of a sample, numbered so; < 0: unknown without reading it. */
int32_t ddp__dataset_label(const ddp_dataset_t *d, int64_t index);

/* The sample at position pos of the order, each exactly once; or, with repeats,
 * each of the first ones of the order so many times. */
int64_t ddp__dataset_index(ddp_dataset_t *d, const struct ddp__order *o,
                           int64_t pos);

/* What its random numbers are drawn by in an epoch: the number of the sample,
 * and beyond these other numbers for those that repeat it. */
int64_t ddp__dataset_id(ddp_dataset_t *d, const struct ddp__order *o,
                        int64_t pos);

/* Have sample number pos of the order on its way. */
void ddp__dataset_ahead(ddp_dataset_t *d, const struct ddp__order *o,
                        int64_t pos);

/* For who reads begin, begin + 1, ... < end one after the other and is at i:
 * those to have on their way now are *first <= k < the result.  They come in
 * blocks, one block before they are read. */
int64_t ddp__dataset_block(int64_t i, int64_t begin, int64_t end,
                           int64_t *first);

/* Whether an earlier attempt to read sample `index` failed. */
bool ddp__dataset_is_bad(ddp_dataset_t *d, int64_t index);

/* Bytes of one x. */
size_t ddp__dataset_x_size(const ddp_dataset_t *d);

#endif
