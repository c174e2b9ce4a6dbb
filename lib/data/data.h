/* data.h - data sets: what the kinds of them and the trainer share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_DATA_H
#define DDP_DATA_H

#include <pthread.h>

#include "ddp.h"

int ddp__fail(int code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- order.c: which sample comes when ----------------------------------- */

/* The order of one epoch: a pure function of these and the count. */
struct ddp__order {
    uint64_t seed;
    int64_t epoch;
    bool shuffle;
};

/* The sample at position pos of the order, each of 0..count-1 exactly once. */
int64_t ddp__order_index(const struct ddp__order *o, int64_t count,
                         int64_t pos);

/* The random key of a sample in an epoch; not of its position. */
uint64_t ddp__order_key(const struct ddp__order *o, int64_t index);

/* pos as a keyed permutation of 0..count-1 has it. */
int64_t ddp__permute(uint64_t seed, int64_t epoch, int64_t count, int64_t pos);

/* ---- data.c: what is common to all kinds -------------------------------- */

/* The kinds fill this. */
struct ddp__dataset_ops {
    /* Read sample `index` into s; key decides its augmentation.  May run in
     * several threads at once.  DDP_EDATA or DDP_EIO: a bad sample, to be
     * named and replaced; ddp__fail() has the reason, without the path. */
    int (*get)(ddp_dataset_t *d, int64_t index, uint64_t key,
               struct ddp_sample *s);
    /* Its path, until the thread's next call; NULL (also of the function):
     * samples have none. */
    const char *(*path)(const ddp_dataset_t *d, int64_t index);
    /* The CRC-32C of which sample is where, and in words what is done to them;
     * not of the folder they are in.  NULL: unknown. */
    uint32_t (*identity)(const ddp_dataset_t *d, char *how, size_t size);
    void (*free)(ddp_dataset_t *d); /* what the kind added; NULL: nothing */
};

/* The first member of each kind's own struct. */
struct ddp_dataset {
    const struct ddp__dataset_ops *ops;
    int64_t count;
    struct ddp_shape shape;
    enum ddp_dtype type;
    int classes, target_len;
    float mean[4], std[4]; /* of INPUT_U8 */
    char **class_name;     /* owned, classes of them; may be NULL */
    char *describe;        /* owned */
    double max_bad;        /* share of bad samples that is borne; < 0: none */
    pthread_mutex_t lock;  /* of what follows */
    int64_t bad_count;
    int64_t *bad_index; /* a hash table of bad_room, -1: free; owned */
    int64_t bad_room;
    struct ddp__bad {
        char *path, *why;
    } * bad; /* the first DDP__BAD_KEPT; owned */
    int bad_kept;
};
enum { DDP__BAD_KEPT = 1000 };

/* Allocate a data set of size bytes, zeroed but for the defaults. */
ddp_dataset_t *ddp__dataset_new(size_t size,
                                const struct ddp__dataset_ops *ops);

/* Set the line ddp_dataset_describe() gives. */
int ddp__dataset_describe(ddp_dataset_t *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Read the sample at position pos of the order.  A bad one is recorded; with
 * replace the next one of the order that can be read takes its place, without
 * it the result is DDP__BAD and *s holds nothing of use.  Whatever the caller
 * put into *s is what each get() finds there.  DDP_EDATA above the budget of
 * bad ones; any other code of the kind is passed on.  Several threads may call
 * it at once. */
int ddp__dataset_read(ddp_dataset_t *d, const struct ddp__order *o, int64_t pos,
                      bool replace, struct ddp_sample *s);
enum { DDP__BAD = 1 };

/* "48 samples of (16, 16, 3) in 4 classes, crc32c 1a2b3c4d", and what is done
 * to them: what a run must find again when it goes on. */
void ddp__dataset_identity(const ddp_dataset_t *d, char *what, size_t size,
                           char *how, size_t how_size);

/* Whether sample `index` was met and could not be read. */
bool ddp__dataset_is_bad(ddp_dataset_t *d, int64_t index);

/* Bytes of one x. */
size_t ddp__dataset_x_size(const ddp_dataset_t *d);

/* ---- file.c: whole files, and text from them ---------------------------- */

/* A file in memory, with a zero byte behind it. */
struct ddp__bytes {
    uint8_t *data; /* owned */
    size_t len, room;
};

/* Make room for len bytes and a zero; what was in b is lost. */
int ddp__bytes_reserve(struct ddp__bytes *b, size_t len);

/* Read the regular file path, relative to the open directory dir (or
 * AT_FDCWD), into b, whose room is used again.  Errors: DDP_EIO, DDP_EDATA for
 * an empty file, one larger than max or no file; DDP_ENOMEM also when the
 * system has no descriptors left.  The message says what, not which file. */
int ddp__file_read(int dir, const char *path, size_t max, struct ddp__bytes *b);

/* The same for a path of the caller's; the message has the path. */
int ddp__file_load(const char *path, size_t max, struct ddp__bytes *b);

/* "dir/name" in memory of the caller's, or NULL and a message. */
char *ddp__path_join(const char *dir, const char *name);

/* Is there a directory (a regular file) dir/name? */
bool ddp__dir_exists(const char *dir, const char *name);
bool ddp__file_exists(const char *dir, const char *name);

/* Replace control characters: names come from files and go to terminals. */
void ddp__printable(char *s);

/* ---- file_write.c: files that appear whole or not at all ---------------- */

/* A file being written, and what has gone into it so far. */
struct ddp__sink {
    int fd;
    uint64_t size;
    uint32_t crc; /* CRC-32C */
};

/* Write all of it; -1 and errno. */
int ddp__write_all(struct ddp__sink *s, const void *data, size_t n);

/* Make the file at path of what fill (0, or -1 and errno) writes.  Until that
 * is on disk, and after a failure, the file before is as it was.  sum, unless
 * NULL, gets its size and CRC.
 * Errors   DDP_EIO. */
int ddp__file_replace(const char *path,
                      int (*fill)(struct ddp__sink *s, void *arg), void *arg,
                      struct ddp__sink *sum);

/* ---- data_files.c: images in files -------------------------------------- */

/* Starts a data set of image files under dir (NULL: of paths that stand for
 * themselves); NULL after a failure. */
ddp_dataset_t *ddp__files_new(const char *dir,
                              const struct ddp_image_options *o);

/* Add the file at path below dir.  The path is copied. */
int ddp__files_add(ddp_dataset_t *d, const char *path, int32_t label);

/* Add the images of the folder `name` below dir, at any depth, in the order
 * of their paths; the number of images, or a negative code. */
int64_t ddp__files_add_folder(ddp_dataset_t *d, const char *name,
                              int32_t label);

/* Files in the folder dir itself whose names are those of images. */
int64_t ddp__images_count(const char *dir);

/* ---- names.c: what is in a folder --------------------------------------- */

/* Call fn for each entry of the folder path, relative to the open one root,
 * but for those that begin with a dot; fd is the folder's.  Stops at the first
 * negative code and returns it. */
struct dirent;
typedef int (*ddp__entry_f)(int fd, const struct dirent *e, void *arg);
int ddp__folder_each(int root, const char *path, ddp__entry_f fn, void *arg);

/* Is it a folder, or a link to one? */
bool ddp__entry_is_folder(int fd, const struct dirent *e);

/* The subfolders of dir that do not begin with a dot, sorted by bytes. */
struct ddp__names {
    char **name; /* owned */
    int count;
};
int ddp__folder_list(const char *dir, struct ddp__names *n);
void ddp__names_free(struct ddp__names *n);
int ddp__names_find(const struct ddp__names *n, const char *name); /* or -1 */

/* ---- data_folder.c: one folder per class -------------------------------- */

/* ddp_dataset_folder() with the classes named by another's subfolders, so
 * that a part with fewer of them numbers them alike; NULL: by its own. */
ddp_dataset_t *ddp__dataset_folder_like(const char *dir, const char *like,
                                        const struct ddp_image_options *o);

#endif
