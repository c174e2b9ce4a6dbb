/* checkpoint.h - what the files of checkpoints share
 *
 * checkpoint.c        when, and what: the trainer's side
 * checkpoint_state.c  a trainer's state as JSON, and its settings compared
 * checkpoint_write.c  from a copy of the state to a folder on disk
 * checkpoint_read.c   the folders that are there, checked and read
 */
#ifndef DDP_CHECKPOINT_H
#define DDP_CHECKPOINT_H

#include <limits.h>
#include <stdatomic.h>

#include <jansson.h>

#include "train/trainer.h"
#include "weights/safetensors.h"

#define DDP__CKPT_MODEL "model.safetensors"
#define DDP__CKPT_OPTIM "optim.safetensors"
#define DDP__CKPT_EMA "ema.safetensors"
#define DDP__CKPT_STATE "trainer.json"
#define DDP__CKPT_MANIFEST "MANIFEST.json"

/* Names of folders: complete ones, and those being made or removed. */
#define DDP__CKPT_NAME "step-%012lld"
#define DDP__CKPT_TEMP ".tmp-"
enum { DDP__CKPT_NAME_MAX = 64, DDP__CKPT_SETS = 8 };

/* A vector as long as the weights, in the same buckets, and the tensors that
 * it makes in a file.  Those of one file follow one another.  To have more in
 * checkpoints, add a row to ddp__checkpoint_sets(). */
struct ddp__ckpt_set {
    const char *file;
    const char *prefix, *suffix; /* "opt.NAME.exp_avg" of a parameter NAME */
    bool running;                /* statistics too */
    struct ddp__handle *(*handle)(const struct ddp_trainer *t, int bucket);
    float *(*memory)(const struct ddp_trainer *t, int bucket);
    int part; /* of a handle that has several such vectors */
};
int ddp__checkpoint_sets(const struct ddp_trainer *t,
                         struct ddp__ckpt_set set[DDP__CKPT_SETS]);

/* All of a state in memory: what is written, or was read. */
struct ddp__ckpt_copy {
    const struct ddp__params *params; /* how buckets are laid out; not owned */
    struct ddp__ckpt_set set[DDP__CKPT_SETS];
    float *data[DDP__CKPT_SETS]; /* bucket after bucket; owned */
    int sets;
    int64_t step, best; /* best: the step of the best evaluation */
    json_t *state;      /* trainer.json; owned */
};
int ddp__ckpt_copy_new(struct ddp__ckpt_copy *c, const struct ddp_trainer *t);
void ddp__ckpt_copy_free(struct ddp__ckpt_copy *c);

/* Where a tensor of a set is in a copy, and its name in the file. */
float *ddp__ckpt_tensor(const struct ddp__ckpt_copy *c, int set,
                        const struct ddp__block *b, int i);
void ddp__ckpt_tensor_name(const struct ddp__ckpt_set *s,
                           const struct ddp__block *b, int i,
                           char name[DDP__ST_NAME]);

/* The checkpoints of a trainer. */
struct ddp__checkpoints {
    char *dir; /* owned */
    int lock;  /* of dir; -1: not open yet */
    int keep;
    int64_t keep_steps; /* those after a multiple of it stay; 0: none */
    int64_t saved;      /* step of the last one written or loaded; -1: none */
    double saved_at;    /* by ddp__now() */
    bool mine;          /* no other run's checkpoints are in dir */
    bool wanted;        /* a callback asked for one */
    bool busy;          /* thread runs, on copy */
    pthread_t thread;
    struct ddp__ckpt_copy copy;
    atomic_int rc; /* of the thread, with its message */
    char message[1024];
};

/* ---- checkpoint.c: all of it does nothing without a folder for them ------ */

int ddp__checkpoints_new(struct ddp_trainer *t);
void ddp__checkpoints_free(struct ddp_trainer *t);
/* Make sure, before any work is done, that they can be written. */
int ddp__checkpoints_begin(struct ddp_trainer *t);
/* Is one to be written after the steps submitted so far? */
bool ddp__checkpoint_due(const struct ddp_trainer *t);
/* Has a callback asked for one? */
bool ddp__checkpoint_wanted(const struct ddp_trainer *t);
/* Copy the state, when all steps are done, and have it written. */
int ddp__checkpoint_take(struct ddp_trainer *t);
/* Wait until it is on disk, and how that went; the same without waiting. */
int ddp__checkpoint_wait(struct ddp_trainer *t);
int ddp__checkpoint_failed(struct ddp_trainer *t);

/* ---- checkpoint_state.c ------------------------------------------------- */

/* trainer.json; NULL without memory. */
json_t *ddp__checkpoint_state(const struct ddp_trainer *t);

/* DDP_EINVAL and what differs when the state is of a run with other settings;
 * DDP_EDATA when it is no such state at all. */
int ddp__checkpoint_check(const struct ddp_trainer *t, const char *path,
                          const json_t *state);

/* Where the run was.  DDP_EDATA. */
int ddp__checkpoint_parse(const json_t *state, const char *path,
                          struct ddp__run *run);

/* ---- checkpoint_write.c ------------------------------------------------- */

/* Make dir, see that nobody else writes to it, and clear what a process that
 * died has left. */
int ddp__checkpoint_open(struct ddp__checkpoints *k);

/* Write a copy as a folder of k->dir, point the links at it and remove old
 * ones. */
int ddp__checkpoint_write(const struct ddp__checkpoints *k,
                          const struct ddp__ckpt_copy *c);

/* ---- checkpoint_read.c -------------------------------------------------- */

/* Steps of the checkpoints in dir, the newest first; their number, or a code.
 * *step is to be freed. */
int64_t ddp__checkpoint_list(const char *dir, int64_t **step);

/* Read the checkpoint in the folder path into c, whose sets are made, and see
 * that every byte is as it was written.
 * Errors   DDP_EDATA, DDP_EIO: it is damaged; DDP_EINVAL, DDP_ESHAPE: it is of
 *          another run. */
int ddp__checkpoint_read(const struct ddp_trainer *t, const char *path,
                         struct ddp__ckpt_copy *c);

#endif
