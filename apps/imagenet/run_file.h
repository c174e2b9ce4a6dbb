/* run_file.h - run.json: what made a run, and how it ended
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each process that runs a part of it, a segment, adds its own; settings are
 * those of the last.  The file is replaced as a whole, when a process begins
 * and when it ends: "end" is null of one that had no time for that.
 */
#ifndef RUN_FILE_H
#define RUN_FILE_H

#include "ddp.h"

#include "common/opt.h"

struct run_file {
    const char *dir; /* not owned; NULL: there is no file */
    void *root;      /* of the document; owned */
    double begin;
    int64_t from; /* step */
};

/* What a segment is described by; not owned. */
struct run_facts {
    const struct opts *opts;
    const ddp_t *ddp;
    const ddp_trainer_t *trainer;
    const ddp_dataset_t *data, *val; /* val: NULL if there is none */
    const ddp_chain_t *chain;
    bool resumed; /* the folder's file is of the same run */
};

/* OPTS_GO or an exit code. */
int run_file_begin(struct run_file *f, const char *dir,
                   const struct run_facts *facts);

/* After `steps` steps.  weights: the file written at the end, or NULL. */
void run_file_end(struct run_file *f, int code, const char *reason,
                  int64_t steps, const char *weights);

/* git's name of the commit that the program was built from, or "". */
const char *run_file_revision(void);

#endif
